package core

import (
	"cmp"
	"context"
	"time"

	"envapi/sandbox"
)

// CloseShell ends a shell with everything that descends from it, and answers when
// that is gone; with keep_background, what it started in the background lives on.
// One that is closed already is answered as it is. It fails with `not_found`.
func (s *Service) CloseShell(ctx context.Context, c Caller, in CloseShellInput) (Shell, error) {
	f, err := s.findShell(ctx, c.Owner, in.ShellID)
	if err != nil {
		return Shell{}, err
	}
	if f.shell != nil && !isClosed(f.shell.closed.known) {
		if err := s.look(); err != nil {
			return Shell{}, err
		}
		defer s.looked()
		if err := s.closeShell(context.WithoutCancel(ctx), f.shell, in.KeepBackground, CloseByCaller); err != nil {
			return Shell{}, err
		}
	}
	return s.showShell(ctx, f), nil
}

// closeShell ends a shell for a reason and returns when its end is recorded, and those
// of the commands that were in line.
func (s *Service) closeShell(ctx context.Context, sh *shell, keep bool, reason string) error {
	sh.condemn(reason)
	line := sh.shutDown()
	for _, r := range line {
		r.condemn(doom{status: CommandKilled, reason: ReasonShellClosed})
	}
	ctx, cancel := context.WithTimeout(ctx, killBound)
	defer cancel()
	end := sh.process.Kill
	if keep {
		sh.leave() // before the command is killed, by which bash may end too
		s.endFirst(line)
		end = sh.process.Leave
	}
	s.endOrClose(ctx, sh.in, sh.record.ID, end)
	err := sh.closed.wait(ctx)
	for _, r := range line {
		if r.started.wait(ctx) == nil { // one that was not started has no end
			err = cmp.Or(err, r.ended.wait(ctx))
		}
	}
	if err != nil {
		return unavailable("cannot record the end of shell %q: try again", sh.record.ID).Because(err)
	}
	return nil
}

// endFirst kills the command that runs: it is not of the background.
func (s *Service) endFirst(line []*run) {
	if len(line) == 0 {
		return
	}
	<-line[0].begun // at once: its turn has come
	s.kill(line[0], doom{status: CommandKilled, reason: ReasonShellClosed})
}

// leave has what the shell started in the background live on.
func (sh *shell) leave() {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.leaving = true
}

// watchShell follows a shell to its end and beyond, until nothing of it is left.
// It is one goroutine for each shell that lives.
func (s *Service) watchShell(sh *shell) {
	defer s.watchers.Done()
	<-sh.process.Done()
	if line := sh.shutDown(); len(line) > 0 {
		<-line[0].begun // at once, since bash has ended
		<-line[0].process.Done()
		sh.note(line[0])
	}
	s.endRest(sh)
	sh.output.flush(s.Log)
	sh.end = sh.verdict(s.now())
	sh.active(*sh.end.ClosedAt)
	s.insist("record the end of a shell", sh.record.ID, func(ctx context.Context) error {
		return s.Store.CloseShell(ctx, sh.record.ID, sh.end)
	})
	sh.closed.settle(nil)
	<-sh.process.Quiet()
	sh.output.close(s.Log)
	s.forgetShell(sh)
	sh.gone.settle(nil)
}

// endRest ends what bash has left, unless that is to live on.
func (s *Service) endRest(sh *shell) {
	sh.mu.Lock()
	leaving := sh.leaving
	sh.mu.Unlock()
	if leaving {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), killBound)
	defer cancel()
	s.endOrClose(ctx, sh.in, sh.record.ID, sh.process.Kill)
}

// after notes what the end of a command means to its shell, and lets the next one
// run. Where the shell ended with it, it returns when that is recorded: who is
// told of the command's end finds the shell closed.
func (sh *shell) after(r *run) {
	if state := r.process.Result().Shell; state != nil {
		sh.moved(state.Cwd)
	}
	sh.note(r)
	if endsBash(r.process.Result()) {
		sh.shutDown() // before the next one's turn comes
	}
	sh.quit(r)
	if r.endsShell() {
		<-sh.closed.known
	}
}

// endsShell says whether the shell of a command ends, or is ended, with it.
func (r *run) endsShell() bool {
	if _, never := r.process.(vanished); never {
		return isClosed(r.shell.over)
	}
	result := r.process.Result()
	return result.Lost || endsBash(result)
}

func endsBash(r sandbox.Result) bool { return r.Shell != nil && (r.Shell.Ended || r.Shell.Corrupt) }

// note notes why the shell ends, where a command that has ended is why.
func (sh *shell) note(r *run) {
	result := r.process.Result()
	if !endsBash(result) {
		return
	}
	d := r.doomed()
	switch {
	case result.Shell.Corrupt:
		sh.condemn(CloseCorrupt)
	case d != nil && d.status == CommandTimedOut:
		sh.condemn(CloseTimedOut)
	case d != nil && d.reason == ReasonSignal:
		sh.condemn(CloseKilled)
	}
}

// verdict is how the shell ended. What the system says of bash is told beside the
// reason, save where it was killed for a reason of ours.
func (sh *shell) verdict(at time.Time) ShellEnd {
	result := sh.process.Result()
	sh.mu.Lock()
	end := ShellEnd{Reason: sh.reason, ClosedAt: &at}
	sh.mu.Unlock()
	if d := sh.in.fate.Load(); d != nil {
		end.Reason = cmp.Or(end.Reason, d.reason)
	}
	switch {
	case end.Reason != "":
	case result.OutOfMemory && result.Signal == signalKill:
		end.Reason = CloseOutOfMemory
	case result.Lost:
		end.Reason = CloseSandboxFailed
	case result.Signal != "":
		end.Reason, end.Signal = CloseExited, result.Signal
	default:
		end.Reason, end.ExitCode = CloseExited, &result.ExitCode
	}
	return end
}
