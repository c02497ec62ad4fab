package core

import (
	"context"
	"fmt"

	"envapi/sandbox"
)

// terminal gives the terminal of a command that has begun, or nil.
func (r *run) terminal() sandbox.Terminal {
	if !isClosed(r.begun) {
		return nil
	}
	return r.process.Terminal()
}

// hasTerminal says whether a command has a terminal, or will have once it begins.
func (r *run) hasTerminal() bool { return r.shell != nil || r.terminal() != nil }

// waitsForInput returns true once a command that has a terminal waits for input,
// and false where ctx ends first or this host cannot tell.
func (r *run) waitsForInput(ctx context.Context) bool {
	select {
	case <-r.begun:
	case <-ctx.Done():
		return false
	}
	t := r.terminal()
	return t != nil && r.eye.until(ctx, t) && !r.hasPassed()
}

// hasPassed says whether a command has ended, recorded or not: who reads its
// shell's terminal by now may be the next one.
func (r *run) hasPassed() bool { return isClosed(r.begun) && isClosed(r.process.Done()) }

// reading says whether a command waits for input, which may have been seen
// already; nil where this host cannot tell.
func (r *run) reading(ctx context.Context, seen bool) *bool {
	switch {
	case seen:
		return &seen
	case isClosed(r.ended.known) || r.terminal() == nil:
		return new(bool)
	}
	if reading := r.eye.look(ctx, r.terminal()); !r.hasPassed() {
		return reading
	}
	return new(bool)
}

// stands completes the answer of a command that runs: whether it waits for input,
// or in line, and what to do about that.
func (r *run) stands(c *Command, reading *bool) {
	c.WaitingForInput = reading
	switch {
	case !isClosed(r.begun):
		if before := r.shell.before(r); before != "" {
			c.Next = fmt.Sprintf("It waits in line behind command %q in shell %q: call get_command with command_id %q and wait_ms to wait for its end, or signal_command to take it out of the line.", before, c.ShellID, c.ID)
		}
	case reading != nil && *reading:
		c.Next = r.prompted(c.ID)
	}
}

// prompted says what to do with a command that waits for input.
func (r *run) prompted(id string) string {
	if r.shell != nil {
		next := fmt.Sprintf("It waits for input: type into it with write_shell and shell_id %q, or end it with signal_command and command_id %q.", r.shell.record.ID, id)
		if beside, _ := r.output.log.Size(StreamTTY); beside > 0 { // as a prompt for a password is
			next += " What stdout and stderr do not show of what it asks, read_output with stream \"tty\" does."
		}
		return next
	}
	return fmt.Sprintf("It waits for input: type into it with write_input and command_id %q, or end it with signal_command.", id)
}
