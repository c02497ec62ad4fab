package attack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"envapi/sandbox"
)

// Try runs one attack in a box and gives its verdict, which is one line. The
// program is what Main is the main of, as the box sees it, with the arguments
// that come before the row's name. It may have been written a moment ago.
func Try(ctx context.Context, box sandbox.Box, program []string, row Row, bait *Bait) (string, error) {
	for {
		said, err := try(ctx, box, program, row, bait)
		if !errors.Is(err, errBusy) {
			return said, err
		}
		select {
		case <-time.After(busyPause):
		case <-ctx.Done():
			return "", err
		}
	}
}

// errBusy says that the program cannot be executed. Somebody may have it open
// for writing still: a process that the service makes has, for the moment until
// it executes, every descriptor of the service's.
var errBusy = errors.New("cannot execute the attacks' program")

const (
	busyPause = 5 * time.Millisecond
	// cannotExecute is the exit code of a command that is there and cannot be
	// executed.
	cannotExecute = 126
)

func try(ctx context.Context, box sandbox.Box, program []string, row Row, bait *Bait) (string, error) {
	var out output
	c := sandbox.Command{
		Argv:   append(program[:len(program):len(program)], row.ID),
		Env:    map[string]string{variable: bait.targets.encode()},
		Stdout: &out,
	}
	if row.terminal {
		c.Terminal = &sandbox.Size{Cols: 80, Rows: 24}
	}
	p, err := box.Start(ctx, c)
	if err != nil {
		return "", fmt.Errorf("cannot start the attack %s: %w", row.ID, err)
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		_ = p.Kill(context.WithoutCancel(ctx))
		return "", fmt.Errorf("cannot wait longer for the attack %s: %w", row.ID, ctx.Err())
	}
	switch r := p.Result(); {
	case r.Lost:
		return "", errors.New("cannot tell what the attack " + row.ID + " did: the box has ended")
	case r.Signal != "":
		return "killed SIG" + r.Signal, nil
	case r.ExitCode == cannotExecute:
		return "", errBusy
	default:
		return strings.TrimSpace(out.String()), nil
	}
}

// output keeps what an attack says, which is little.
type output struct {
	mu   sync.Mutex
	data bytes.Buffer
}

// maxOutput is more than any verdict.
const maxOutput = 64 << 10

// Write implements io.Writer; what is too much is dropped.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.data.Write(p[:min(len(p), maxOutput-o.data.Len())])
	return len(p), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.data.String()
}
