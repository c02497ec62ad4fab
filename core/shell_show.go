package core

import (
	"context"
	"fmt"
)

// showShell gives a shell as it is, and looks whether it waits for input.
func (s *Service) showShell(ctx context.Context, f foundShell) Shell {
	shown := s.shownShell(f)
	if shown.State == ShellOpen && f.shell != nil {
		shown.WaitingForInput = f.shell.eye.look(ctx, f.shell.process.Terminal())
		shown.Next = shown.advice()
	}
	return shown
}

// shownShell is a shell as callers see it, of what is known without looking.
func (s *Service) shownShell(f foundShell) Shell {
	record := f.record
	if f.shell != nil && isClosed(f.shell.opened.known) {
		record = f.current()
	}
	shown := Shell{
		ID: record.ID, EnvironmentID: record.EnvironmentID,
		Name: record.Name, Kind: record.Kind, State: record.State,
		CloseReason: record.Reason, ExitCode: record.ExitCode, Signal: record.Signal,
		Cols: record.Cols, Rows: record.Rows,
		OpenedAt: At(record.OpenedAt), LastActivityAt: At(record.LastActivityAt),
		TotalBytes: s.terminalBytes(record),
	}
	if record.Kind == ShellCommand {
		shown.Cwd = record.Cwd
	}
	if record.ClosedAt != nil {
		at, never := At(*record.ClosedAt), false
		shown.ClosedAt, shown.WaitingForInput = &at, &never
	}
	if f.shell != nil && record.State == ShellOpen {
		shown.RunningCommandID, shown.Queued = f.shell.inLine()
	}
	return shown
}

// terminalBytes is how long the terminal stream of a shell is. Where its log
// cannot be read, read_shell says why.
func (s *Service) terminalBytes(record ShellRecord) int64 {
	log, err := s.Logs.Open(record.EnvironmentID, record.ID)
	if err != nil {
		s.Log.Error("cannot read the output of a shell", "id", record.ID, "error", err)
		return 0
	}
	defer log.Release()
	total, _ := log.Size(StreamTTY)
	return total
}

// advice says what to call next.
func (sh Shell) advice() string {
	waiting := sh.WaitingForInput != nil && *sh.WaitingForInput
	switch {
	case sh.Kind == ShellTerminal:
		return fmt.Sprintf("Type into it with write_shell and shell_id %q, and read it with read_shell.", sh.ID)
	case sh.RunningCommandID == "":
		return fmt.Sprintf("Call run_in_shell with shell_id %q.", sh.ID)
	case waiting:
		return fmt.Sprintf("Command %q waits for input: type into it with write_shell and shell_id %q, or end it with signal_command.", sh.RunningCommandID, sh.ID)
	}
	return fmt.Sprintf("Command %q runs: call get_command with wait_ms to wait for its end, or signal_command to end it.", sh.RunningCommandID)
}
