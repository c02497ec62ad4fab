package core

import (
	"context"
	"errors"
	"strings"
	"time"

	"envapi/sandbox"
)

// activePause is the least time between two records of a shell's activity: not
// every key is one.
const activePause = 10 * time.Second

// WriteShell types into the terminal of a shell. It fails with `not_found`,
// `shell_closed`, `invalid_argument`, `too_large`, or `input_closed` where the
// shell is of kind command and nothing runs in it.
func (s *Service) WriteShell(ctx context.Context, c Caller, in WriteShellInput) (ShellInputTaken, error) {
	what, err := newTyped(in.Data, in.Encoding, in.Keys, in.EOF, in.WaitMS)
	if err != nil {
		return ShellInputTaken{}, err
	}
	sh, err := s.usableShell(ctx, c.Owner, in.ShellID)
	if err != nil {
		return ShellInputTaken{}, err
	}
	took, err := s.typeInto(ctx, sh, what)
	if err != nil {
		return ShellInputTaken{}, err
	}
	answer := ShellInputTaken{s.showShell(ctx, foundShell{sh.current(), sh}), int64(took.written)}
	answer.Next = strings.TrimSpace(took.next + " " + answer.Next)
	return answer, nil
}

// typeInto types into the terminal of a shell, as WriteShell does.
func (s *Service) typeInto(ctx context.Context, sh *shell, what typed) (taken, error) {
	if err := sh.reads(); err != nil {
		return taken{}, err
	}
	s.touch(ctx, sh)
	if isClosed(sh.over) {
		return taken{}, s.hasEnded(ctx, sh) // it was idle until now
	}
	took, err := what.put(ctx, sh.process.Terminal())
	if err != nil && sh.isEnding(err) {
		return taken{}, s.hasEnded(ctx, sh)
	}
	return took, err
}

// isEnding says whether an error of a shell's terminal is that bash is no more,
// which the terminal may know first.
func (sh *shell) isEnding(err error) bool {
	if isClosed(sh.process.Done()) {
		return true
	}
	// One of kind command takes no input either between two commands.
	return sh.record.Kind == ShellTerminal && errors.Is(err, sandbox.ErrInputClosed)
}

// reads fails where nothing reads the terminal: a shell of kind command reads its
// commands from elsewhere, and what is typed between them would go to the next.
func (sh *shell) reads() error {
	if sh.record.Kind == ShellTerminal {
		return nil
	}
	if first := sh.first(); first != nil && isClosed(first.begun) {
		return nil
	}
	return Errorf(CodeInputClosed, "nothing runs in shell %q, so nothing reads its terminal: run a command with run_in_shell first", sh.record.ID)
}

// ResizeShell gives a shell's terminal another size. It fails with `not_found`,
// `shell_closed` or `invalid_argument`.
func (s *Service) ResizeShell(ctx context.Context, c Caller, in ResizeShellInput) (Shell, error) {
	if err := in.TerminalSize.check("cols", "rows"); err != nil {
		return Shell{}, err
	}
	sh, err := s.usableShell(ctx, c.Owner, in.ShellID)
	if err != nil {
		return Shell{}, err
	}
	if err := s.resize(ctx, sh, in.TerminalSize); err != nil {
		return Shell{}, err
	}
	return s.showShell(ctx, foundShell{sh.current(), sh}), nil
}

// resize gives a terminal another size, which was checked.
func (s *Service) resize(ctx context.Context, sh *shell, size TerminalSize) error {
	if err := sh.process.Terminal().Resize(*size.size()); err != nil {
		if sh.isEnding(err) || errors.Is(err, sandbox.ErrInputClosed) {
			return s.hasEnded(ctx, sh)
		}
		return err
	}
	sh.mu.Lock()
	sh.now.Cols, sh.now.Rows = size.Cols, size.Rows
	sh.touched = time.Time{} // so that it is recorded
	sh.mu.Unlock()
	s.touch(ctx, sh)
	return nil
}

// touch notes that a shell was used, by which what runs there may go on to fill
// the disk.
func (s *Service) touch(ctx context.Context, sh *shell) {
	s.used(sh.record.EnvironmentID)
	s.disk.add(EnvironmentRecord{ID: sh.record.EnvironmentID, Owner: sh.record.Owner})
	sh.recording.Lock() // so that the store has the last one last
	defer sh.recording.Unlock()
	now := s.now()
	sh.mu.Lock()
	sh.now.LastActivityAt = later(sh.now.LastActivityAt, now)
	due := now.Sub(sh.touched) >= activePause
	if due {
		sh.touched = now
	}
	record := sh.now
	sh.mu.Unlock()
	if !due {
		return
	}
	err := s.Store.UpdateShell(context.WithoutCancel(ctx), record.ID, record.Cols, record.Rows, now)
	if err != nil {
		s.Log.Error("cannot record the use of a shell", "id", record.ID, "error", err)
	}
}
