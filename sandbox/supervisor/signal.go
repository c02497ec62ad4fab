package supervisor

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"envapi/sandbox"
	"envapi/sandbox/protocol"
)

// signalNumber gives a signal by its name without SIG.
func signalNumber(name string) (unix.Signal, error) {
	if sig := unix.SignalNum("SIG" + name); sig != 0 {
		return sig, nil
	}
	return 0, fmt.Errorf("cannot send signal %q: there is none of this name", name)
}

// Signal implements sandbox.Process.
func (p *process) Signal(ctx context.Context, name string) error {
	sig, err := signalNumber(name)
	if err != nil {
		return err
	}
	select {
	case <-p.done:
		return nil
	default:
		_, err = p.ask(ctx, protocol.Signal{Signal: sig})
		return err
	}
}

// Kill implements sandbox.Process.
func (p *process) Kill(ctx context.Context) error {
	return p.finishOff(ctx, protocol.Signal{Signal: unix.SIGKILL})
}

// leave ends the leader alone.
func (p *process) leave(ctx context.Context) error {
	return p.finishOff(ctx, protocol.Signal{Signal: unix.SIGKILL, Leader: true})
}

// finishOff sends a signal that ends the leader, and returns when it has ended.
func (p *process) finishOff(ctx context.Context, s protocol.Signal) error {
	if _, err := p.ask(ctx, s); err != nil && !errors.Is(err, sandbox.ErrBoxClosed) { // a box takes all along
		return fmt.Errorf("cannot end what runs: %w", err)
	}
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ask has the init send a signal, and says how many processes got it.
func (p *process) ask(ctx context.Context, s protocol.Signal) (reached int, err error) {
	answer, err := p.box.ask(ctx, func(seq uint64) protocol.Request {
		s.Seq, s.ID = seq, p.id
		return protocol.Request{Signal: &s}
	})
	switch {
	case err != nil:
		return 0, err
	case answer.Signaled == nil:
		return 0, p.box.violate("another answer than to a signal")
	case answer.Signaled.Errno != 0:
		return 0, answer.Signaled.Errno
	default:
		return answer.Signaled.Reached, nil
	}
}
