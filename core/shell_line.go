package core

import "slices"

// turn is a command's place in the line of its shell.
type turn struct {
	come chan struct{} // closed when it is the first: it may run
	out  chan struct{} // closed when it was taken out of the line before that
}

func newTurn() *turn { return &turn{come: make(chan struct{}), out: make(chan struct{})} }

// join puts a command in line. Where others are there it fails with `shell_busy`,
// unless it may wait. ok is false where the shell is being closed.
func (sh *shell) join(r *run, mayWait bool) (ok bool, err error) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.shut {
		return false, nil
	}
	if len(sh.line) > 0 && !mayWait {
		first := sh.line[0].record.ID
		return true, Errorf(CodeShellBusy, "command %q runs in this shell: wait for its end with get_command, end it with signal_command, or give queue to wait in line", first).
			With("command_id", first)
	}
	sh.line = append(sh.line, r)
	if len(sh.line) == 1 {
		close(r.turn.come)
	}
	return true, nil
}

// quit takes a command out of the line, and lets the next one run where it was
// the first.
func (sh *shell) quit(r *run) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	at := slices.Index(sh.line, r)
	if at < 0 {
		return
	}
	sh.line = slices.Delete(sh.line, at, at+1)
	if at == 0 && len(sh.line) > 0 {
		close(sh.line[0].turn.come)
	}
}

// dismiss takes a command out of the line whose turn has not come, for a reason.
func (sh *shell) dismiss(r *run, d doom) bool {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	at := slices.Index(sh.line, r)
	if at < 1 {
		return false
	}
	sh.line = slices.Delete(sh.line, at, at+1)
	r.condemn(d)
	close(r.turn.out)
	return true
}

// shutDown lets nobody come in line any more. It gives the commands there, the
// one that runs first.
func (sh *shell) shutDown() []*run {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if !sh.shut {
		sh.shut = true
		close(sh.over)
	}
	return slices.Clone(sh.line)
}

// inLine gives the id of the command that runs, or "", and how many wait.
func (sh *shell) inLine() (running string, waiting int) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if len(sh.line) == 0 {
		return "", 0
	}
	return sh.line[0].record.ID, len(sh.line) - 1
}

// first gives the command that runs, or nil.
func (sh *shell) first() *run {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if len(sh.line) == 0 {
		return nil
	}
	return sh.line[0]
}

// before gives the id of the command that one in line comes after, or "".
func (sh *shell) before(r *run) string {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if at := slices.Index(sh.line, r); at > 0 {
		return sh.line[at-1].record.ID
	}
	return ""
}
