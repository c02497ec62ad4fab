package core

import (
	"context"
	"fmt"
	"math"
)

// OutputStream is a log that somebody reads for as long as he likes. The log is
// all that is kept of it: a reader who does not go on costs a page at most. It is
// for one goroutine.
type OutputStream struct {
	service *Service
	id      string // of the command or shell
	query   outputQuery
	log     OutputLog
	ended   <-chan struct{}
	outcome func(context.Context) (any, error)
	end     func() // of the use
}

// StreamOutput opens a command's output, to be read from where in says. It fails
// as ReadOutput does. The caller must close it.
func (s *Service) StreamOutput(ctx context.Context, c Caller, in ReadOutputInput) (*OutputStream, error) {
	q, err := in.query()
	if err != nil {
		return nil, err
	}
	f, err := s.find(ctx, c.Owner, in.CommandID)
	if err != nil {
		return nil, err
	}
	return s.stream(q, f.record.EnvironmentID, f.record.ID, f.ended(), s.using(f.record.EnvironmentID), func(ctx context.Context) (any, error) {
		return s.GetCommand(ctx, c, GetCommandInput{CommandID: in.CommandID})
	})
}

// StreamShell opens a shell's terminal stream, to be read from where in says. It
// fails as ReadShell does, and where a screen is asked for, which is no stream. The
// caller must close it.
func (s *Service) StreamShell(ctx context.Context, c Caller, in ReadShellInput) (*OutputStream, error) {
	if in.Screen {
		return nil, invalid("screen", "cannot stream a screen: leave screen out, or ask for JSON")
	}
	q, err := in.query()
	if err != nil {
		return nil, err
	}
	f, err := s.findShell(ctx, c.Owner, in.ShellID)
	if err != nil {
		return nil, err
	}
	return s.stream(q, f.record.EnvironmentID, f.record.ID, f.ended(), s.viewed(f), func(ctx context.Context) (any, error) {
		return s.GetShell(ctx, c, in.ShellRef)
	})
}

// stream opens a log. Ended is closed when the one whose log it is has ended;
// outcome then gives what became of it. End ends the use that the stream is.
func (s *Service) stream(q outputQuery, environmentID, id string, ended <-chan struct{}, end func(), outcome func(context.Context) (any, error)) (*OutputStream, error) {
	log, err := s.Logs.Open(environmentID, id)
	if err != nil {
		end()
		return nil, fmt.Errorf("cannot open the output of %s: %w", id, err)
	}
	q.wait = math.MaxInt64 // as long as the reader does
	return &OutputStream{s, id, q, log, ended, outcome, end}, nil
}

// Close ends the use of the log.
func (o *OutputStream) Close() {
	o.log.Release()
	o.end()
}

// Resume has the next page begin at an offset.
func (o *OutputStream) Resume(offset int64) { o.query.offset, o.query.tail = max(0, offset), 0 }

// Next gives the next page and moves on behind it. It waits for one until the
// context ends, and then gives an empty one. It fails with `output_expired` where
// the bytes were dropped: Resume at the fact next_offset to go on.
func (o *OutputStream) Next(ctx context.Context) (Output, error) {
	page, err := o.service.follow(ctx, o.query, o.log, o.ended)
	if err == nil {
		o.Resume(page.NextOffset)
	}
	return page, err
}

// Outcome gives what became of the one whose output it is; for after the page
// that said EOF.
func (o *OutputStream) Outcome(ctx context.Context) (any, error) { return o.outcome(ctx) }

// Extent says which bytes there are at an offset or after it, at this moment, and
// by which tag: whoever finds the same tag again finds the same bytes, since an
// offset means the same byte for ever, and a byte that was dropped stays so.
func (o *OutputStream) Extent(offset int64) (Extent, string) {
	e := o.log.Extent(o.query.stream, offset)
	return e, fmt.Sprintf("%s-%s-%d-%d", o.id, o.query.stream, e.Total, e.Dropped)
}

// Raw gives bytes from an offset on as they are in the log: limit of them at most,
// none at the end. It fails where the byte at the offset was dropped.
func (o *OutputStream) Raw(offset, limit int64) ([]byte, error) {
	return o.log.Read(o.query.stream, offset, limit)
}
