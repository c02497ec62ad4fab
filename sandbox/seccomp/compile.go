package seccomp

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"sync"

	"golang.org/x/net/bpf"
)

// Where a filter finds what it decides by (struct seccomp_data, seccomp(2)).
const (
	numberAt    = 0
	archAt      = 4
	argumentsAt = 16
)

// maxInstructions is what the kernel takes (BPF_MAXINSNS).
const maxInstructions = 4096

// programs are the filters of this machine that were asked for.
var programs struct {
	sync.Mutex
	made map[Shares][]byte
}

// Filter gives the filter for a box on this machine, as protocol.Setup carries
// it. It is compiled once.
func Filter(s Shares) ([]byte, error) {
	programs.Lock()
	defer programs.Unlock()
	if made, ok := programs.made[s]; ok {
		return made, nil
	}
	m, ok := machines()[runtime.GOARCH]
	if !ok {
		return nil, fmt.Errorf("cannot make a system call filter: none is known for %s", runtime.GOARCH)
	}
	program, err := m.compile(policy(), s)
	if err != nil {
		return nil, err
	}
	made, err := encode(program)
	if err != nil {
		return nil, err
	}
	if programs.made == nil {
		programs.made = map[Shares][]byte{}
	}
	programs.made[s] = made
	return made, nil
}

// encode lays a program out as the kernel reads it: an array of sock_filter.
func encode(program []bpf.Instruction) ([]byte, error) {
	raw, err := bpf.Assemble(program)
	if err != nil {
		return nil, fmt.Errorf("cannot assemble the system call filter: %w", err)
	}
	if len(raw) > maxInstructions {
		return nil, fmt.Errorf("cannot make a system call filter of %d instructions", len(raw))
	}
	var b []byte
	for _, i := range raw {
		b = binary.NativeEndian.AppendUint16(b, i.Op)
		b = append(b, i.Jt, i.Jf)
		b = binary.NativeEndian.AppendUint32(b, i.K)
	}
	return b, nil
}

// compile makes the program: the architecture, the foreign table, then a binary
// search over ranges of numbers. Where the arguments do not matter it looks at
// nothing else, and the kernel then does not even run it (Linux 5.11).
func (m machine) compile(rules []rule, s Shares) ([]bpf.Instruction, error) {
	decisions, err := m.decisions(rules, s)
	if err != nil {
		return nil, err
	}
	program := []bpf.Instruction{
		bpf.LoadAbsolute{Off: archAt, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(m.table.ID), SkipTrue: 1},
		returns(kill),
		bpf.LoadAbsolute{Off: numberAt, Size: 4},
	}
	if m.foreign != 0 {
		// The number -1 is no call: a tracer sets it so that none is made.
		program = append(program,
			bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: m.foreign, SkipFalse: 2},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: noCall, SkipTrue: 1},
			returns(kill),
		)
	}
	return append(program, search(ranges(decisions))...), nil
}

// noCall is the number of no call.
const noCall = 0xffffffff

func returns(v verdict) bpf.Instruction { return bpf.RetConstant{Val: uint32(v)} }

// span is a range of numbers that are treated alike, up to the next one's first.
type span struct {
	first uint32
	code  []bpf.Instruction
}

// ranges covers all numbers. Neighbours whose verdict depends on nothing are
// made one.
func ranges(decisions []decision) []span {
	spans := []span{{0, []bpf.Instruction{returns(notNamed)}}}
	add := func(next span) {
		if last := len(spans) - 1; spans[last].first == next.first {
			spans = spans[:last]
		}
		if len(spans) == 0 || !spans[len(spans)-1].like(next) {
			spans = append(spans, next)
		}
	}
	for _, d := range decisions {
		add(span{d.number, chain(d.rules)})
		add(span{d.number + 1, []bpf.Instruction{returns(notNamed)}})
	}
	return append(spans, span{noCall, []bpf.Instruction{returns(allow)}})
}

// like says whether both give one and the same verdict, whatever the arguments.
func (s span) like(other span) bool {
	return len(s.code) == 1 && len(other.code) == 1 && s.code[0] == other.code[0]
}

// search finds the span of the number that is loaded.
func search(spans []span) []bpf.Instruction {
	if len(spans) == 1 {
		return spans[0].code
	}
	middle := len(spans) / 2
	below, above := search(spans[:middle]), search(spans[middle:])
	at := bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: spans[middle].first}
	var head []bpf.Instruction
	if len(below) <= 0xff {
		at.SkipTrue = uint8(len(below)) //nolint:gosec // just compared
		head = []bpf.Instruction{at}
	} else { // a conditional jump cannot go so far
		at.SkipFalse = 1
		head = []bpf.Instruction{at, bpf.Jump{Skip: uint32(len(below))}} //nolint:gosec // at most maxInstructions
	}
	return append(append(head, below...), above...)
}

// chain decides by the rules of one call, in order.
func chain(rules []rule) []bpf.Instruction {
	var code []bpf.Instruction
	for _, r := range rules {
		code = append(code, r.code()...)
	}
	if len(rules) == 0 || len(rules[len(rules)-1].when) > 0 {
		code = append(code, returns(notNamed))
	}
	return code
}

// code gives the rule's verdict where all tests hold, and otherwise goes on
// behind it.
func (r rule) code() []bpf.Instruction {
	code := []bpf.Instruction{returns(r.verdict)}
	for i := len(r.when) - 1; i >= 0; i-- {
		code = append(r.when[i].code(len(code)), code...)
	}
	return code
}

// code goes on where the test holds, and otherwise skips the rest of its rule.
func (t test) code(rest int) []bpf.Instruction {
	// The low half is the first: every machine here is little endian.
	code := []bpf.Instruction{bpf.LoadAbsolute{Off: uint32(argumentsAt + 8*t.arg), Size: 4}} //nolint:gosec // six arguments
	if t.mask != allBits {
		code = append(code, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: t.mask})
	}
	for i, value := range t.values {
		left := len(t.values) - 1 - i // compares behind this one
		jump := bpf.JumpIf{Cond: bpf.JumpEqual, Val: value}
		found, last := left, rest
		if t.not {
			found, last = left+rest, 0
		}
		jump.SkipTrue = uint8(found) //nolint:gosec // a rule is short
		if left == 0 {
			jump.SkipFalse = uint8(last)
		}
		code = append(code, jump)
	}
	return code
}
