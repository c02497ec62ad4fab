package core

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"
)

// The sizes of a page of output, in bytes.
const (
	defaultOutput = 16 << 10
	largestOutput = 1 << 20
)

// ReadOutput gives a page of a command's output. It fails with `not_found`,
// `invalid_argument`, or `output_expired` where the bytes at the offset were
// dropped; with tail_bytes it starts at the first one left instead.
func (s *Service) ReadOutput(ctx context.Context, c Caller, in ReadOutputInput) (Output, error) {
	q, err := in.query()
	if err != nil {
		return Output{}, err
	}
	f, err := s.find(ctx, c.Owner, in.CommandID)
	if err != nil {
		return Output{}, err
	}
	log, err := s.Logs.Open(f.record.EnvironmentID, f.record.ID)
	if err != nil {
		return Output{}, fmt.Errorf("cannot open the output of %s: %w", in.CommandID, err)
	}
	defer log.Release()
	defer s.using(f.record.EnvironmentID)()
	return s.follow(ctx, q, log, f.ended())
}

// ended gives a channel that is closed when the command has ended.
func (f found) ended() <-chan struct{} {
	if f.run == nil {
		return past
	}
	return f.run.ended.known
}

// outputQuery is a checked ReadOutputInput.
type outputQuery struct {
	stream        Stream
	offset, limit int64
	tail          int64 // where not 0: start so many bytes before the end
	wait          time.Duration
	strip         bool // leave out escape sequences
}

func (in ReadOutputInput) query() (outputQuery, error) {
	wait, err := waitTime(in.WaitMS, noWait)
	if err != nil {
		return outputQuery{}, err
	}
	q := outputQuery{stream: StreamAll, limit: defaultOutput, wait: wait}
	switch Stream(in.Stream) {
	case StreamStdout, StreamStderr, StreamTTY, StreamAll:
		q.stream = Stream(in.Stream)
	case "":
	default:
		return q, invalid("stream", "stream %.16q is not one of stdout, stderr, tty, all", in.Stream)
	}
	if q.strip, err = stripped(in.ANSI); err != nil {
		return q, err
	}
	if in.TailBytes != nil {
		q.tail, q.limit = *in.TailBytes, *in.TailBytes
	} else if in.Offset != nil {
		q.offset = *in.Offset
	}
	if in.LimitBytes != nil {
		q.limit = *in.LimitBytes
	}
	return q, q.check(in)
}

func (q outputQuery) check(in ReadOutputInput) error {
	switch {
	case q.offset < 0:
		return invalid("offset", "offset is negative: give 0 or more")
	case in.TailBytes != nil && (q.tail < 1 || q.tail > largestOutput):
		return invalid("tail_bytes", "tail_bytes is %d: give 1 to %d", q.tail, largestOutput)
	case q.limit < 1 || q.limit > largestOutput:
		return invalid("limit_bytes", "limit_bytes is %d: give 1 to %d", q.limit, largestOutput)
	}
	return nil
}

// follow reads a page, waiting for one where there is none yet. Ended is closed
// when the one whose log it is has ended. Where all that came was stripped, it
// reads on: an answer without text says that there is none.
func (s *Service) follow(ctx context.Context, q outputQuery, log OutputLog, ended <-chan struct{}) (Output, error) {
	timeout := time.NewTimer(q.wait)
	defer timeout.Stop()
	var before *Output // what was read of this answer
	for {
		changed := log.Changed()
		over := isClosed(ended)
		page, err := q.page(log, over)
		if err != nil && before != nil {
			return *before, nil // the next call meets it again, at the offset that is answered
		}
		moved := page.NextOffset > page.Offset
		if before != nil {
			page.Offset = before.Offset
		}
		if err != nil || len(page.Data) > 0 || page.EOF || over && !moved {
			return page, err
		}
		if moved && ctx.Err() == nil {
			before, q.offset, q.tail = &page, page.NextOffset, 0
			continue
		}
		if !s.awaitMore(ctx, changed, ended, timeout.C) {
			return page, nil
		}
	}
}

// awaitMore says whether there may be more to read, once that is so or the wait for
// it is over.
func (s *Service) awaitMore(ctx context.Context, changed, ended <-chan struct{}, timeout <-chan time.Time) bool {
	select {
	case <-changed:
		return true
	case <-ended:
		return true
	case <-timeout:
	case <-ctx.Done():
	case <-s.closing:
	}
	return false
}

// page reads what there is. Over says that the command has ended.
func (q outputQuery) page(log OutputLog, over bool) (Output, error) {
	offset, data, err := q.read(log)
	if err != nil {
		return Output{}, err
	}
	total, dropped := log.Size(q.stream)
	final := over || offset+int64(len(data)) < total
	data = data[:pageLength(data, q.limit, final)]
	page := Output{
		Offset:       offset,
		NextOffset:   offset + int64(len(data)),
		TotalBytes:   total,
		DroppedBytes: dropped,
	}
	page.EOF = over && page.NextOffset >= total
	if q.strip {
		strip, err := ansiAt(log, q.stream, offset)
		if err != nil {
			return Output{}, err
		}
		data = strip.strip(data)
	}
	page.Data, page.Encoding = encode(data)
	return page, nil
}

// read gives the bytes to make a page of, some more than its limit where that
// is less than a character, and where they start.
func (q outputQuery) read(log OutputLog) (int64, []byte, error) {
	limit := max(q.limit, utf8.UTFMax)
	if q.tail > 0 {
		total, _ := log.Size(q.stream)
		return readTail(log, q.stream, max(0, total-q.tail), limit)
	}
	data, err := readFull(log, q.stream, q.offset, limit)
	if expired := (*ExpiredError)(nil); errors.As(err, &expired) {
		err = Errorf(CodeOutputExpired, "the output at offset %d was dropped, because the log is bounded: read on from offset %d", q.offset, expired.NextOffset).
			With("next_offset", expired.NextOffset)
	}
	return q.offset, data, err
}

// pageLength is how much of data makes a page of about limit bytes: whole
// characters, at least one. Final says that the rest of an unfinished character
// at the end will not come, or that it is no character.
func pageLength(data []byte, limit int64, final bool) int {
	length := wholeChars(data[:min(int64(len(data)), limit)])
	switch {
	case length > 0:
		return length
	case utf8.FullRune(data):
		_, size := utf8.DecodeRune(data)
		return size
	case final:
		return len(data)
	}
	return 0
}
