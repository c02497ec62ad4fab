package core

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

const (
	// attachBytes is how much of the past an attachment begins with, where it is
	// not said: enough for the screen of most programs.
	attachBytes = 64 << 10
	// attachChunk is the most that one Read gives.
	attachChunk = 32 << 10
	// attachWait is how long what was typed waits for a program to read it.
	attachWait = 30 * time.Second
)

// AttachInput asks for a shell's terminal, live.
type AttachInput struct {
	ShellRef
	Offset *int64 `json:"offset,omitempty" doc:"The byte to start at: the offset of hello and the number of bytes received since, to go on where a connection broke. By default up to 65536 bytes before the end." min:"0"`
}

// Attachment is a shell's terminal as one who sits before it has it. The log is
// all that is kept of what he has not read yet. Read is for one goroutine, Type
// and Resize for another.
type Attachment struct {
	service *Service
	caller  Caller
	found   foundShell
	log     OutputLog
	offset  int64
	end     func() // of the use
}

// Attach opens the terminal of a shell, also of one that is closed, for what is
// left to be read. It fails with `not_found`, and with `unavailable` while the
// service stops, which waits until the attachments are closed. The caller must
// Close it.
func (s *Service) Attach(ctx context.Context, c Caller, in AttachInput) (*Attachment, error) {
	if in.Offset != nil && *in.Offset < 0 {
		return nil, invalid("offset", "offset is negative: give 0 or more")
	}
	if err := s.look(); err != nil {
		return nil, err
	}
	defer s.looked()
	f, err := s.findShell(ctx, c.Owner, in.ShellID)
	if err != nil {
		return nil, err
	}
	log, err := s.Logs.Open(f.record.EnvironmentID, f.record.ID)
	if err != nil {
		return nil, fmt.Errorf("cannot open the output of %s: %w", in.ShellID, err)
	}
	a := &Attachment{service: s, caller: c, found: f, log: log, end: s.viewed(f)}
	if in.Offset != nil {
		a.offset = *in.Offset
	} else {
		total, _ := log.Size(StreamTTY)
		a.offset = log.Extent(StreamTTY, max(0, total-attachBytes)).Start
	}
	s.watchers.Add(1)
	return a, nil
}

// Close ends the attachment. The shell goes on.
func (a *Attachment) Close() {
	a.log.Release()
	a.end()
	a.service.watchers.Done()
}

// Offset is where the next Read begins.
func (a *Attachment) Offset() int64 { return a.offset }

// Shell gives the shell as it stands, without looking whether it is read.
func (a *Attachment) Shell() Shell { return a.service.shownShell(a.found) }

// MayType says whether the caller may type and resize, for which looking is not
// enough.
func (a *Attachment) MayType() bool { return a.caller.Require(ScopeExec) == nil }

// Read gives the bytes that come next, once there are any. It fails with io.EOF
// where the shell is closed and there are no more, with `output_expired` where the
// bytes were dropped, behind which the next Read goes on, and with the context's
// error.
func (a *Attachment) Read(ctx context.Context) ([]byte, error) {
	for {
		changed, over := a.log.Changed(), isClosed(a.found.ended())
		data, err := a.log.Read(StreamTTY, a.offset, attachChunk)
		if expired := (*ExpiredError)(nil); errors.As(err, &expired) {
			a.offset = expired.NextOffset
			return nil, Errorf(CodeOutputExpired, "what was to come next was dropped, because the log is bounded: it goes on at offset %d", a.offset).
				With("next_offset", a.offset)
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read the output of %s: %w", a.found.record.ID, err)
		}
		if a.offset += int64(len(data)); len(data) > 0 {
			return data, nil
		}
		if over {
			return nil, io.EOF
		}
		select {
		case <-changed:
		case <-a.found.ended():
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Type types, as WriteShell does, and says how much was taken in time.
func (a *Attachment) Type(ctx context.Context, data []byte) (int, error) {
	if len(data) == 0 {
		return 0, nil
	}
	sh, err := a.usable(ctx)
	if err != nil {
		return 0, err
	}
	took, err := a.service.typeInto(ctx, sh, typed{data: data, wait: attachWait})
	return took.written, err
}

// Resize gives the terminal another size, for everybody who is before it.
func (a *Attachment) Resize(ctx context.Context, size TerminalSize) error {
	if err := size.check("cols", "rows"); err != nil {
		return err
	}
	sh, err := a.usable(ctx)
	if err != nil {
		return err
	}
	return a.service.resize(ctx, sh, size)
}

// usable gives the shell to one who may type into it.
func (a *Attachment) usable(ctx context.Context) (*shell, error) {
	if err := a.caller.Require(ScopeExec); err != nil {
		return nil, err
	}
	return a.service.usableShell(ctx, a.caller.Owner, a.found.record.ID)
}
