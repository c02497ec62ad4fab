package supervisor

import (
	"context"
	"time"

	"golang.org/x/sys/unix"

	"envapi/sandbox"
	"envapi/sandbox/protocol"
)

// aimOf is whom a caller means.
func aimOf(ref sandbox.ProcessRef) protocol.Aim {
	aim := protocol.Aim{PID: ref.PID}
	if !ref.StartedAt.IsZero() {
		aim.Birth = birthOf(ref.StartedAt)
	}
	return aim
}

// failureOf is what an init says of an Aim.
func failureOf(errno unix.Errno) error {
	switch errno {
	case protocol.NoProcess:
		return sandbox.ErrNoProcess
	case protocol.Replaced:
		return sandbox.ErrProcessReplaced
	default:
		return errno
	}
}

// SignalProcess implements sandbox.Box.
func (b *Box) SignalProcess(ctx context.Context, ref sandbox.ProcessRef, signal string, tree bool) (reached int, err error) {
	number, err := signalNumber(signal)
	if err != nil {
		return 0, err
	}
	answer, err := b.ask(ctx, func(seq uint64) protocol.Request {
		return protocol.Request{Strike: &protocol.Strike{Seq: seq, Aim: aimOf(ref), Signal: number, Tree: tree}}
	})
	switch {
	case err != nil:
		return 0, err
	case answer.Signaled == nil || answer.Signaled.Reached < 0:
		return 0, b.violate("another answer than to a strike")
	case answer.Signaled.Errno != 0:
		return 0, failureOf(answer.Signaled.Errno)
	default:
		return answer.Signaled.Reached, nil
	}
}

// maxWaits is how many wait for processes of one box at one time: each holds a
// descriptor of the init's.
const maxWaits = 128

// WaitProcess implements sandbox.Box.
func (b *Box) WaitProcess(ctx context.Context, ref sandbox.ProcessRef) (sandbox.ProcessEnd, error) {
	end, answer, err := b.expect(question{wait: true})
	if err != nil {
		return sandbox.ProcessEnd{}, err
	}
	if err := b.find(ctx, end, aimOf(ref)); err != nil {
		return sandbox.ProcessEnd{}, err
	}
	select {
	case r := <-answer:
		return b.endOf(ctx, r)
	case <-b.done: // and with it all that was there
		return sandbox.ProcessEnd{}, nil
	case <-ctx.Done():
		return b.cancelWait(ctx, end, answer)
	}
}

// cancelWait ends a wait whose caller waits no more. How the process ended is told
// where it just has. Until the init has answered the wait counts.
func (b *Box) cancelWait(ctx context.Context, end uint64, answer <-chan protocol.Report) (sandbox.ProcessEnd, error) {
	_ = b.write(protocol.Request{Cancel: &protocol.Cancel{End: end}}, nil) // else the box is done
	patience := time.NewTimer(answerPatience)
	defer patience.Stop()
	select {
	case r := <-answer:
		return b.endOf(ctx, r)
	case <-b.done:
		return sandbox.ProcessEnd{}, nil
	case <-patience.C:
		return sandbox.ProcessEnd{}, ctx.Err()
	}
}

// find begins a wait. It is answered at once, so a caller who goes away does not
// matter here.
func (b *Box) find(ctx context.Context, end uint64, aim protocol.Aim) error {
	answer, err := b.put(context.WithoutCancel(ctx), question{end: end}, func(seq uint64) protocol.Request {
		return protocol.Request{Wait: &protocol.Wait{Seq: seq, End: end, Aim: aim}}
	})
	switch {
	case err != nil:
		// It may be found yet, and nobody waits for it any more.
		_ = b.write(protocol.Request{Cancel: &protocol.Cancel{End: end}}, nil)
		return err
	case answer.Found == nil:
		return b.violate("another answer than to a wait")
	case answer.Found.Errno != 0:
		return failureOf(answer.Found.Errno)
	}
	return nil
}

// endOf takes how a process ended, or that ctx did before it.
func (b *Box) endOf(ctx context.Context, r protocol.Report) (sandbox.ProcessEnd, error) {
	if r.Waited == nil {
		return sandbox.ProcessEnd{}, b.violate("another answer than how a process ended")
	}
	if err := ctx.Err(); !r.Waited.Ended && err != nil {
		return sandbox.ProcessEnd{}, err
	}
	if !r.Waited.Ended {
		return sandbox.ProcessEnd{}, b.violate("a wait was given up that nobody cancelled")
	}
	if !r.Waited.Known {
		return sandbox.ProcessEnd{}, nil
	}
	switch wait := unix.WaitStatus(r.Waited.WaitStatus); {
	case wait.Signaled():
		return sandbox.ProcessEnd{Known: true, Signal: signalName(wait.Signal())}, nil
	case wait.Exited():
		return sandbox.ProcessEnd{Known: true, ExitCode: wait.ExitStatus()}, nil
	default:
		return sandbox.ProcessEnd{}, b.violate("a process ended in no way that there is")
	}
}
