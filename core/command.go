package core

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// The default waits.
const (
	defaultExecWait = 10 * time.Second
	noWait          = 0
)

// GetCommand gives a command, after waiting for its end if asked to. It fails
// with `not_found`.
func (s *Service) GetCommand(ctx context.Context, c Caller, in GetCommandInput) (Command, error) {
	v, err := newView(in.WaitMS, noWait, in.OutputBytes)
	if err != nil {
		return Command{}, err
	}
	f, err := s.find(ctx, c.Owner, in.CommandID)
	if err != nil {
		return Command{}, err
	}
	return s.show(ctx, f, v), nil
}

// ListCommands gives a page of the caller's commands, newest first, without
// their output. It fails with `not_found` where the environment or the shell is not
// the caller's.
func (s *Service) ListCommands(ctx context.Context, c Caller, in ListCommandsInput) (Page[Command], error) {
	var err error
	if in.Paging, err = in.sized(); err != nil {
		return Page[Command]{}, err
	}
	if in.EnvironmentID != "" {
		if _, err := s.ownEnvironment(ctx, c.Owner, in.EnvironmentID); err != nil {
			return Page[Command]{}, err
		}
	}
	if in.ShellID != "" {
		if _, err := s.findShell(ctx, c.Owner, in.ShellID); err != nil {
			return Page[Command]{}, err
		}
	}
	records, next, err := s.Store.ListCommands(ctx, c.Owner, in)
	if err != nil {
		return Page[Command]{}, fmt.Errorf("cannot list commands: %w", err)
	}
	page := Page[Command]{Items: make([]Command, len(records)), NextCursor: next}
	for i, record := range records {
		page.Items[i] = record.shown(s.Now())
	}
	return page, nil
}

// found is a command that was looked up.
type found struct {
	record CommandRecord // as it stood then
	run    *run          // nil where the command is no longer in memory
}

// current gives the record as it stands now.
func (f found) current() CommandRecord {
	if f.run == nil {
		return f.record
	}
	return f.run.current()
}

// find gives a command of o's. Memory is asked first: a command leaves it only
// once its end is in the store.
func (s *Service) find(ctx context.Context, o Owner, id string) (found, error) {
	r := s.live(id)
	if r == nil || r.record.Owner != o {
		record, err := s.Store.Command(ctx, o, id)
		return found{record, nil}, missing(err, "command", id)
	}
	select {
	case <-r.started.known:
	case <-ctx.Done():
		return found{}, ctx.Err()
	}
	if r.started.err != nil {
		return found{}, NotFound("command", id) // it never was
	}
	return found{r.current(), r}, nil
}

// view is how a command is to be answered.
type view struct {
	wait   time.Duration // for its end
	inline int64         // bytes of each stream
}

func newView(waitMS *int64, otherwise time.Duration, outputBytes *int64) (view, error) {
	wait, err := waitTime(waitMS, otherwise)
	if err != nil {
		return view{}, err
	}
	inline, err := inlineBytes(outputBytes)
	return view{wait, inline}, err
}

// show gives a command when it has ended, or as it is after the wait.
func (s *Service) show(ctx context.Context, f found, v view) Command {
	begun := time.Now()
	var reading *bool
	if f.run != nil {
		// The look comes before the output is read, in which the prompt then is.
		waiting := s.waitEnd(ctx, f.run, v.wait)
		reading = f.run.reading(ctx, waiting)
	}
	command := s.withOutput(f.current(), v.inline)
	if f.run != nil && command.Status == CommandRunning {
		f.run.stands(&command, reading)
	}
	if v.wait > 0 {
		waited := time.Since(begun).Milliseconds()
		command.WaitedMS = &waited
	}
	return command
}

// waitEnd waits for the end of a command, at most so long, and less where the
// caller goes away or the service cannot end it, or where the command waits for input: then
// it gives true.
func (s *Service) waitEnd(ctx context.Context, r *run, wait time.Duration) (waiting bool) {
	if wait <= 0 {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	prompted := make(chan struct{})
	if r.hasTerminal() {
		go func() {
			if r.waitsForInput(ctx) {
				close(prompted)
			}
		}()
	}
	select {
	case <-r.ended.known:
	case <-prompted:
		return true
	case <-ctx.Done():
	case <-s.closing:
		r.awaitLast(ctx)
	}
	return false
}

// lastWait is how long a call that waits for a command goes on waiting once the service
// ends it: longer than that takes, unless the store fails.
const lastWait = 4 * time.Second

// awaitLast waits for the end of a command that the service ends: who waits is told how
// it ended, not that it runs.
func (r *run) awaitLast(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lastWait)
	defer cancel()
	_ = r.ended.wait(ctx) // late: it is answered as it is
}

// waitTime is how long a call waits: at most MaxWait.
func waitTime(ms *int64, otherwise time.Duration) (time.Duration, error) {
	if ms == nil {
		return otherwise, nil
	}
	if *ms < 0 {
		return 0, invalid("wait_ms", "wait_ms is negative: give 0 to %d", MaxWait.Milliseconds())
	}
	return time.Duration(min(*ms, MaxWait.Milliseconds())) * time.Millisecond, nil
}

// shown is the record as callers see it, without output.
func (r CommandRecord) shown(now time.Time) Command {
	command := Command{
		ID:            r.ID,
		EnvironmentID: r.EnvironmentID,
		ShellID:       r.ShellID,
		Command:       r.Command,
		Cwd:           r.Cwd,
		Status:        r.Status,
		ExitCode:      r.ExitCode,
		Signal:        r.Signal,
		Reason:        r.Reason,
		ShellClosed:   r.ShellClosed,
		StartedAt:     At(r.StartedAt),
		Usage:         r.Usage,
	}
	if r.EndedAt != nil {
		ended := At(*r.EndedAt)
		command.EndedAt = &ended
		now = ended.Time
	}
	if r.Status != CommandRunning {
		command.WaitingForInput = new(bool)
	}
	command.DurationMS = max(0, now.Sub(r.StartedAt).Milliseconds())
	return command
}

// withOutput is the command with so many bytes of each stream. Where the log
// cannot be read the command is answered without: it has run all the same.
func (s *Service) withOutput(record CommandRecord, inline int64) Command {
	command := record.shown(s.Now())
	stdout, stderr, err := s.excerpts(record, inline)
	if err != nil {
		s.Log.Error("cannot read the output of a command", "id", record.ID, "error", err)
		command.Next = "Its output cannot be read now: call read_output later."
		return command
	}
	command.Stdout, command.Stderr = &stdout.Excerpt, &stderr.Excerpt
	command.LateFromOffset = record.late(stdout.TotalBytes, stderr.TotalBytes)
	command.Next = next(command, record.Advice, stdout, stderr)
	return command
}

// excerpts reads the beginning and the end of both streams.
func (s *Service) excerpts(record CommandRecord, inline int64) (stdout, stderr part, err error) {
	log, err := s.Logs.Open(record.EnvironmentID, record.ID)
	if err != nil {
		return part{}, part{}, err
	}
	defer log.Release()
	ended := record.Status != CommandRunning
	if stdout, err = excerpt(log, StreamStdout, inline, ended); err != nil {
		return part{}, part{}, err
	}
	stderr, err = excerpt(log, StreamStderr, inline, ended)
	return stdout, stderr, err
}

// late says where the output starts that came after the end, if any did. It is
// not known of a command that was lost.
func (r CommandRecord) late(stdout, stderr int64) *LateOffsets {
	if r.Status == CommandRunning || r.Status == CommandLost {
		return nil
	}
	if stdout <= r.Late.Stdout && stderr <= r.Late.Stderr {
		return nil
	}
	return &r.Late
}

// next says what to call next, where there is something.
func next(c Command, advice string, stdout, stderr part) string {
	if c.Status == CommandRunning {
		return fmt.Sprintf("It still runs: call get_command with command_id %q and wait_ms to wait for its end, read_output to follow its output, or signal_command to end it.", c.ID)
	}
	for _, cut := range []part{stdout, stderr} {
		if cut.Truncated {
			cut := fmt.Sprintf("The output was cut: call read_output with command_id %q, stream %q and offset %d to read on.", c.ID, cut.stream, cut.cutAt)
			return strings.TrimSpace(advice + " " + cut)
		}
	}
	return advice
}
