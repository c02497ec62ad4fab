package core

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"envapi/sandbox"
)

// shell is a shell in memory: from before its record is written until it is
// closed and nothing of it can write output any more.
type shell struct {
	record ShellRecord // as it was opened
	place  *place
	tty    keepsTerminal

	opened outcome // whether it was opened
	// The following are valid once it was.
	in      *opening // the box that it runs in
	process sandbox.Shell
	output  *recorder // of its terminal
	eye     *eye      // on its terminal

	over   chan struct{} // closed when nobody comes in line any more
	closed outcome       // never with an error; settled when the end is recorded
	end    ShellEnd      // valid once closed
	gone   outcome       // never with an error; settled when nothing is left of it

	recording sync.Mutex // held while the use of it is recorded

	mu      sync.Mutex
	reason  string // why it is closed, where that was for a reason of ours or a command's
	leaving bool   // what it started in the background lives on
	shut    bool   // over is closed
	line    []*run // its commands: the first one runs, the others wait
	viewers int    // who is before its terminal, or follows its stream
	touched time.Time
	now     ShellRecord // its size, directory and last activity
	latest  string      // the command that it runs, or ran last; see runs
}

func newShell(p *place, record ShellRecord) *shell {
	return &shell{
		record: record, now: record, touched: record.OpenedAt, place: p, eye: &eye{},
		opened: newOutcome(), closed: newOutcome(), gone: newOutcome(), over: make(chan struct{}),
	}
}

// condemn notes why the shell is about to be closed. The first reason stays.
func (sh *shell) condemn(reason string) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.reason = cmp.Or(sh.reason, reason)
}

// current gives the record as it stands.
func (sh *shell) current() ShellRecord {
	sh.mu.Lock()
	record := sh.now
	sh.mu.Unlock()
	if isClosed(sh.closed.known) {
		record.State, record.ShellEnd = ShellClosed, sh.end
	}
	return record
}

// moved notes the directory after a command.
func (sh *shell) moved(cwd string) {
	if cwd == "" {
		return
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.now.Cwd = cwd
}

// active notes that the shell was used.
func (sh *shell) active(at time.Time) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if at.After(sh.now.LastActivityAt) {
		sh.now.LastActivityAt = at
	}
}

// cwd is the directory in which a command would start.
func (sh *shell) cwd() string {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.now.Cwd
}

// runs notes which command the shell runs; "" while one is being started, in which
// nobody can tell whose a process of the shell is.
func (sh *shell) runs(command string) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.latest = command
}

// latestCommand gives the command that the shell runs, or ran last, or "".
func (sh *shell) latestCommand() string {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.latest
}

// rememberShell lets others find a shell.
func (s *Service) rememberShell(sh *shell) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shells[sh.record.ID] = sh
}

// forgetShell is the opposite of rememberShell: from then on the store and the
// log say what is known of the shell.
func (s *Service) forgetShell(sh *shell) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.shells, sh.record.ID)
	sh.tty.letGo()
}

func (s *Service) liveShell(id string) *shell {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shells[id]
}

// shellsIn gives the shells of an environment that are in memory, as runsIn does.
func (s *Service) shellsIn(id string) []*shell {
	s.mu.Lock()
	defer s.mu.Unlock()
	var shells []*shell
	for _, sh := range s.shells {
		if sh.record.EnvironmentID == id {
			shells = append(shells, sh)
		}
	}
	return shells
}

// foundShell is a shell that was looked up.
type foundShell struct {
	record ShellRecord // as it stood then
	shell  *shell      // nil where the shell is no longer in memory
}

// current gives the record as it stands now.
func (f foundShell) current() ShellRecord {
	if f.shell == nil {
		return f.record
	}
	return f.shell.current()
}

// findShell gives a shell of o's, as find gives a command.
func (s *Service) findShell(ctx context.Context, o Owner, id string) (foundShell, error) {
	sh := s.liveShell(id)
	if sh == nil || sh.record.Owner != o {
		record, err := s.Store.Shell(ctx, o, id)
		return foundShell{record, nil}, missing(err, "shell", id)
	}
	select {
	case <-sh.opened.known:
	case <-ctx.Done():
		return foundShell{}, ctx.Err()
	}
	if sh.opened.err != nil {
		return foundShell{}, NotFound("shell", id) // it never was
	}
	return foundShell{sh.current(), sh}, nil
}

// usableShell gives a shell of o's that is open, as far as is known. It fails with
// `not_found` or `shell_closed`.
func (s *Service) usableShell(ctx context.Context, o Owner, id string) (*shell, error) {
	f, err := s.findShell(ctx, o, id)
	if err != nil {
		return nil, err
	}
	if f.record.State == ShellClosed || f.shell == nil {
		return nil, shellClosed(f.record)
	}
	return f.shell, nil
}

func shellClosed(record ShellRecord) *Error {
	return Errorf(CodeShellClosed, "shell %q is closed (%s): open another with open_shell; what was written to its terminal can be read with read_shell", record.ID, record.Reason).
		With("reason", record.Reason)
}

// hasEnded gives the error for a shell whose end was met before it was recorded.
func (s *Service) hasEnded(ctx context.Context, sh *shell) error {
	ctx, cancel := context.WithTimeout(ctx, killBound)
	defer cancel()
	if err := sh.closed.wait(ctx); err != nil {
		return unavailable("shell %q is being closed: look at it with get_shell", sh.record.ID).Because(err)
	}
	return shellClosed(sh.current())
}

// GetShell gives a shell. It fails with `not_found`.
func (s *Service) GetShell(ctx context.Context, c Caller, in ShellRef) (Shell, error) {
	f, err := s.findShell(ctx, c.Owner, in.ShellID)
	if err != nil {
		return Shell{}, err
	}
	return s.showShell(ctx, f), nil
}

// ListShells gives a page of the caller's shells, newest first. It fails with
// `not_found` where the environment is not the caller's.
func (s *Service) ListShells(ctx context.Context, c Caller, in ListShellsInput) (Page[Shell], error) {
	var err error
	if in.Paging, err = in.sized(); err != nil {
		return Page[Shell]{}, err
	}
	if in.EnvironmentID != "" {
		if _, err := s.ownEnvironment(ctx, c.Owner, in.EnvironmentID); err != nil {
			return Page[Shell]{}, err
		}
	}
	records, next, err := s.Store.ListShells(ctx, c.Owner, in)
	if err != nil {
		return Page[Shell]{}, fmt.Errorf("cannot list shells: %w", err)
	}
	page := Page[Shell]{Items: make([]Shell, len(records)), NextCursor: next}
	for i, record := range records {
		page.Items[i] = s.shownShell(foundShell{record, s.liveShell(record.ID)})
	}
	return page, nil
}
