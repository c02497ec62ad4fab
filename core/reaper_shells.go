package core

import (
	"context"
	"slices"
	"time"

	"envapi/sandbox"
)

// viewed notes that somebody looks at a shell's terminal until the end that it gives:
// as long the shell, and its environment, are in use.
func (s *Service) viewed(f foundShell) (end func()) {
	used := s.using(f.record.EnvironmentID)
	sh := f.shell
	if sh == nil {
		return used
	}
	sh.mu.Lock()
	sh.viewers++
	sh.mu.Unlock()
	return func() {
		sh.active(s.now())
		sh.mu.Lock()
		sh.viewers--
		sh.mu.Unlock()
		used()
	}
}

// closeShells closes the shells that nobody has used for as long as they may be idle.
func (r *reaper) closeShells(ctx context.Context) (count int, err error) {
	s := r.service
	times := s.idleTimes()
	s.bringBack()
	for _, sh := range s.idleShells(s.now().Add(-s.Retention.Shell.shortest())) {
		if ctx.Err() != nil || count == mostEnded {
			break
		}
		asked := times.of(ctx, sh.record.Owner)
		if asked.Never {
			continue
		}
		idle := s.Retention.Shell.within(asked.Shell)
		before := s.now().Add(-idle)
		if !s.isOver(sh.current().LastActivityAt, idle) || !sh.isIdle(before) || s.hasProgram(ctx, sh) || !sh.retire(before) {
			continue
		}
		if err := s.closeShell(ctx, sh, true, CloseIdle); err != nil {
			return count, err
		}
		s.Log.Info("a shell is closed, since nobody used it for as long as it may be idle",
			"id", sh.record.ID, "environment", sh.record.EnvironmentID, "account", sh.record.Owner.Account, "idle", idle)
		count++
	}
	return count, nil
}

// idleShells gives the open shells that were not used since before, as far as is known
// without looking; that longest without use first.
func (s *Service) idleShells(before time.Time) []*shell {
	s.mu.Lock()
	var idle []*shell
	for _, sh := range s.shells {
		if sh.isIdle(before) {
			idle = append(idle, sh)
		}
	}
	s.mu.Unlock()
	slices.SortFunc(idle, func(a, b *shell) int {
		return a.current().LastActivityAt.Compare(b.current().LastActivityAt)
	})
	return idle
}

// bringBack has no shell be last used later than now: the clock was set back, and it
// would be kept for as long as that is ahead.
func (s *Service) bringBack() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	for _, sh := range s.shells {
		sh.mu.Lock()
		if sh.now.LastActivityAt.After(now) {
			sh.now.LastActivityAt = now
		}
		sh.mu.Unlock()
	}
}

// isOpen says whether a shell was opened and is not being closed.
func (sh *shell) isOpen() bool {
	return isClosed(sh.opened.known) && sh.opened.err == nil && !isClosed(sh.over)
}

// isIdle says whether an open shell was not used since before, and is not used now by
// a command or by somebody who looks at it.
func (sh *shell) isIdle(before time.Time) bool {
	if !sh.isOpen() {
		return false
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.idleLocked(before)
}

func (sh *shell) idleLocked(before time.Time) bool {
	return !sh.shut && len(sh.line) == 0 && sh.viewers == 0 && !sh.now.LastActivityAt.After(before)
}

// retire lets nobody come in line any more, unless the shell was used since before or
// is used now. Who comes then finds it closed for being idle; who came before has it.
func (sh *shell) retire(before time.Time) bool {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if !sh.idleLocked(before) {
		return false
	}
	sh.shut, sh.reason = true, CloseIdle
	close(sh.over)
	return true
}

// hasProgram says whether anything but its bash lives in a shell for people, in which
// what runs is no command. Where the box does not say, something does.
func (s *Service) hasProgram(ctx context.Context, sh *shell) bool {
	if sh.record.Kind != ShellTerminal {
		return false
	}
	processes, err := sh.in.box.Processes(ctx)
	if err != nil {
		return !isClosed(sh.in.box.Done())
	}
	live := 0
	for _, p := range processes {
		if p.Of == sh.record.ID && p.State != sandbox.ProcessZombie {
			live++
		}
	}
	return live > 1
}
