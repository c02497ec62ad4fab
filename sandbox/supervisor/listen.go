package supervisor

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"envapi/sandbox"
	"envapi/sandbox/protocol"
)

// errViolation is what an init did that no honest one does.
var errViolation = errors.New("the box broke the protocol")

// listen takes reports until the init ends or breaks the protocol, and then
// ends everything that belonged to the box.
func (b *Box) listen() {
	err := b.takeReports()
	if !errors.Is(err, io.EOF) && !b.isClosing() { // an init that is killed may have left something unread
		b.options.Log.Warn("a box is ended", "box", b.options.ID, "cause", err)
	}
	_ = b.init.Kill()
	b.end(b.inits.wait(b.init))
	_ = b.conn.Close()
	b.mu.Lock()
	b.closing = true
	left := b.processes
	b.processes = map[uint64]*process{}
	b.mu.Unlock()
	for _, p := range left {
		p.lose()
	}
	b.group.Release()
	close(b.done)
}

// end ends what may have outlived the init of a box without a pid namespace.
func (b *Box) end(init *os.ProcessState) {
	if b.options.Setup.Namespaces || !b.served {
		return // the kernel has seen to it, or nothing was started
	}
	if init != nil && init.ExitCode() == 0 {
		return // it has ended all itself
	}
	if b.options.Killed != nil {
		b.options.Killed()
	}
	if err := b.inits.endOrphans(); err != nil {
		b.options.Log.Warn("a box left processes", "box", b.options.ID, "cause", err)
	}
}

// takeReports returns why no other report can be taken.
func (b *Box) takeReports() error {
	for {
		report, err := protocol.ReadReport(b.conn)
		if err != nil {
			return err
		}
		if err := b.take(report); err != nil {
			return err
		}
	}
}

// violate ends the box for what its init did or failed to do.
func (b *Box) violate(what string) error {
	b.options.Log.Warn("a box is ended", "box", b.options.ID, "cause", what)
	_ = b.init.Kill()
	return errors.Join(errViolation, errors.New(what))
}

// take acts on one report.
func (b *Box) take(r protocol.Report) error {
	switch {
	case r.Ready != nil, r.Failed != nil:
		b.served = r.Ready != nil
		select {
		case b.ready <- r:
			return nil
		default:
			return errViolation
		}
	case r.Refused != nil:
		return b.refused(r.Refused)
	case r.Ended != nil:
		return b.ended(r.Ended)
	case r.Gone != nil:
		return b.gone(r.Gone.ID)
	case r.Signaled != nil:
		return b.answer(r.Signaled.Seq, r)
	case r.Marked != nil:
		return b.answer(r.Marked.Seq, r)
	case r.Listed != nil:
		return b.answer(r.Listed.Seq, r)
	case r.Found != nil:
		return b.answer(r.Found.Seq, r)
	case r.Waited != nil:
		return b.answer(r.Waited.End, r)
	default:
		return b.answer(r.Counted.Seq, r)
	}
}

// refused takes that a command was not started at all.
func (b *Box) refused(r *protocol.Refused) error {
	p := b.process(r.ID)
	if p == nil || p.running.Load() {
		return errViolation
	}
	b.forget(p)
	return p.answerStart(&sandbox.StartError{Dir: r.Dir, Err: r.Errno})
}

// ended takes the end of a command that killed its reaper.
func (b *Box) ended(e *protocol.Ended) error {
	p := b.process(e.ID)
	if p == nil || p.adopted {
		return errViolation
	}
	p.adopted = true
	<-p.followed // the reaper is gone, so its pipe is at its end
	if p.ended.Load() {
		return nil // it had said so itself, and was killed just then
	}
	status := protocol.Status{
		Kind: protocol.StatusEnded, Value: e.WaitStatus,
		CPUMicroseconds: e.CPUMicroseconds, PeakMemoryBytes: e.PeakMemoryBytes,
	}
	return p.take(status)
}

// gone takes the last word about a command. Where it killed its reaper, that may
// have been before its leader was started, or before anybody knew how it ended.
func (b *Box) gone(id uint64) error {
	p := b.process(id)
	if p == nil || p.gone {
		return errViolation
	}
	p.gone = true
	<-p.followed
	if !p.running.Load() {
		b.forget(p)
		_ = p.answerStart(&sandbox.StartError{Err: unix.ECHILD}) // unless its reaper has said why
		return nil
	}
	p.end(sandbox.Result{Lost: true}) // unless its end is known
	p.counting.release()
	p.release()
	return nil
}

func (b *Box) process(id uint64) *process {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.processes[id]
}

func (b *Box) forget(p *process) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.processes, p.id)
}

var _ sandbox.Box = (*Box)(nil)
