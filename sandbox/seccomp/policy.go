package seccomp

import (
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Shares says what a box shares with the host. Its zero value is a box with
// namespaces of its own.
type Shares struct {
	// Namespaces: the network and System V IPC are the host's. Then there are no
	// sockets but connected pairs, and no IPC.
	Namespaces bool
	// UID: processes outside have the uid of the commands, and can be named. Then
	// only the calling thread's own scheduling can be changed.
	UID bool
}

// verdict is what becomes of a call, as a filter returns it.
type verdict uint32

const (
	allow verdict = unix.SECCOMP_RET_ALLOW
	kill  verdict = unix.SECCOMP_RET_KILL_PROCESS

	refuse         = verdict(unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM))
	noSuchFamily   = verdict(unix.SECCOMP_RET_ERRNO | uint32(unix.EAFNOSUPPORT))
	noSuchProtocol = verdict(unix.SECCOMP_RET_ERRNO | uint32(unix.EPROTONOSUPPORT))

	// notNamed is the verdict on what no rule decides.
	notNamed = verdict(unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS))
)

// allBits is the mask of a test that looks at all of an argument's low half.
const allBits = 0xffffffff

// rule gives a verdict about calls.
type rule struct {
	calls   string // their names, separated by spaces
	when    []test // all must hold
	only    Shares // only where a box shares one of these; the zero value: always
	verdict verdict
	reason  string
}

// test looks at the low half of one argument.
type test struct {
	arg    int
	mask   uint32 // of the bits that count
	values []uint32
	not    bool // holds where the bits are none of the values
}

// is holds where an argument is one of the values.
func is(arg int, values ...uint32) test { return test{arg, allBits, values, false} }

// isNot holds where an argument is none of the values.
func isNot(arg int, values ...uint32) test { return test{arg, allBits, values, true} }

// has holds where an argument has any of the bits.
func has(arg int, bits uint32) test { return test{arg, bits, []uint32{0}, true} }

// masked makes a test look at some bits only.
func (t test) masked(bits uint32) test {
	t.mask = bits
	return t
}

// holds evaluates the test.
func (t test) holds(args [6]uint64) bool {
	return slices.Contains(t.values, uint32(args[t.arg])&t.mask) != t.not //nolint:gosec // the low half is meant
}

// policy gives the rules, in the order in which they are looked at.
func policy() []rule {
	return slices.Concat(refused, conditional, allowed)
}

// applies says whether the rule is for such boxes.
func (r rule) applies(s Shares) bool {
	return r.only == Shares{} || r.only.Namespaces && s.Namespaces || r.only.UID && s.UID
}

// names gives the calls of the rule.
func (r rule) names() []string { return strings.Fields(r.calls) }

// decide evaluates rules, all of one call, without any filter.
func decide(rules []rule, args [6]uint64) verdict {
	for _, r := range rules {
		if !slices.ContainsFunc(r.when, func(t test) bool { return !t.holds(args) }) {
			return r.verdict
		}
	}
	return notNamed
}
