package core

import "context"

// isIdle says whether nothing runs in an environment but shells that seem to wait to
// be used, which is noted when it comes (touch), and how many those are. Where its box
// does not say so, something does.
func (s *Service) isIdle(ctx context.Context, id string) (left int, idle bool) {
	shells := s.shellsIn(id)
	if len(s.runsIn(id)) > 0 || !allWait(ctx, shells) {
		return len(shells), false
	}
	box := s.boxOf(id)
	if box == nil {
		return 0, true
	}
	ctx, cancel := context.WithTimeout(ctx, usageBound)
	defer cancel()
	now, err := box.Usage(ctx)
	if isClosed(box.Done()) {
		return 0, true
	}
	return len(shells), err == nil && now.Processes <= len(shells)
}

// allWait says whether each shell waits for what to do: bash of kind command does
// where it runs no command, any other where it reads its terminal.
func allWait(ctx context.Context, shells []*shell) bool {
	for _, sh := range shells {
		if !isClosed(sh.opened.known) || sh.opened.err != nil || isClosed(sh.closed.known) {
			return false // it comes or goes
		}
		if sh.record.Kind == ShellCommand {
			continue
		}
		if waits := sh.eye.look(ctx, sh.process.Terminal()); waits == nil || !*waits {
			return false
		}
	}
	return true
}
