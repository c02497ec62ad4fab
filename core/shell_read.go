package core

import (
	"context"
	"fmt"
)

// ReadShell gives a page of a shell's terminal stream, also after it was closed,
// or the screen that it makes. It fails with `not_found`, `invalid_argument`, or
// `output_expired` as ReadOutput does.
func (s *Service) ReadShell(ctx context.Context, c Caller, in ReadShellInput) (ShellOutput, error) {
	q, err := in.query()
	if err != nil {
		return ShellOutput{}, err
	}
	f, err := s.findShell(ctx, c.Owner, in.ShellID)
	if err != nil {
		return ShellOutput{}, err
	}
	log, err := s.Logs.Open(f.record.EnvironmentID, f.record.ID)
	if err != nil {
		return ShellOutput{}, fmt.Errorf("cannot open the output of %s: %w", in.ShellID, err)
	}
	defer log.Release()
	defer s.viewed(f)()
	if in.Screen {
		return s.screen(ctx, f, log, q.wait)
	}
	page, err := s.follow(ctx, q, log, f.ended())
	return ShellOutput{Output: page}, err
}

// query is that of a command's output, of the one stream that a shell has.
func (in ReadShellInput) query() (outputQuery, error) {
	return ReadOutputInput{
		Stream: string(StreamTTY),
		Offset: in.Offset, LimitBytes: in.LimitBytes, TailBytes: in.TailBytes, WaitMS: in.WaitMS, ANSI: in.ANSI,
	}.query()
}

// ended gives a channel that is closed when the shell is.
func (f foundShell) ended() <-chan struct{} {
	if f.shell == nil {
		return past
	}
	return f.shell.closed.known
}
