package core

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// maxScreenCells bounds the terminals whose screen is drawn, and with it what
	// a drawing takes: about 24 MiB, one at a time for each account.
	maxScreenCells = 1 << 15
	// maxReplay is how much of the stream a screen is drawn of at most, and
	// maxSearch how much more is searched for whether it begins on the alternate
	// screen, of which a program may make use for days.
	maxReplay = 1 << 20
	maxSearch = 16 << 20
	// quietTime is how long a program must write nothing to be taken for one that
	// has drawn, where this host cannot tell whether it waits for input.
	quietTime = 300 * time.Millisecond
)

// attempts are how much is drawn, and how long it may take. What does not fit is
// drawn of less: the end says most. The last takes half a second at most where the
// processor has nothing else to do.
var attempts = []struct {
	replay int
	time   time.Duration
}{{maxReplay, time.Second}, {64 << 10, 500 * time.Millisecond}, {4 << 10, 10 * time.Second}}

// screen gives what the terminal of a shell shows, once what runs in its
// foreground waits for input or the wait is over.
func (s *Service) screen(ctx context.Context, f foundShell, log OutputLog, wait time.Duration) (ShellOutput, error) {
	s.awaitDrawn(ctx, f, log, wait)
	record := f.current()
	size := TerminalSize{Cols: record.Cols, Rows: record.Rows}
	if size.Cols*size.Rows > maxScreenCells {
		return ShellOutput{}, invalid("screen", "cannot draw a terminal of %d by %d, which has more than %d cells: make it smaller with resize_shell, or read it without screen", size.Cols, size.Rows, maxScreenCells)
	}
	release, err := s.drawing.take(ctx, record.Owner.Account)
	if err != nil {
		return ShellOutput{}, err
	}
	defer release()
	drawn, page, err := draw(log, size)
	if err != nil {
		s.Log.Warn("cannot draw a screen", "shell", record.ID, "error", err)
		return ShellOutput{}, unavailable("cannot draw the screen of shell %q, since what was written to it takes too long to draw: try again, or read it without screen", record.ID).Because(err)
	}
	page.EOF = isClosed(f.ended())
	return ShellOutput{Output: page, Screen: &drawn}, nil
}

// awaitDrawn waits until what runs in the foreground of a shell waits for input,
// which a full-screen program does when it has drawn.
func (s *Service) awaitDrawn(ctx context.Context, f foundShell, log OutputLog, wait time.Duration) {
	if wait <= 0 || isClosed(f.ended()) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	go func() {
		defer cancel()
		select {
		case <-f.ended():
		case <-s.closing:
		case <-ctx.Done():
		}
	}()
	if f.shell.eye.until(ctx, f.shell.process.Terminal()) {
		return
	}
	for changed := log.Changed(); ctx.Err() == nil; changed = log.Changed() {
		select {
		case <-changed:
		case <-time.After(quietTime):
			return
		case <-ctx.Done():
		}
	}
}

// draw draws what a terminal of a size shows when it is sent what is kept of a
// stream, and says how the stream stood.
func draw(log OutputLog, size TerminalSize) (Screen, Output, error) {
	data, from, err := lastBytes(log, maxReplay)
	if err != nil {
		return Screen{}, Output{}, fmt.Errorf("cannot read the terminal stream: %w", err)
	}
	_, dropped := log.Size(StreamTTY)
	end := from + int64(len(data))
	page := Output{Encoding: encodingText, Offset: end, NextOffset: end, TotalBytes: end, DroppedBytes: dropped}
	before := sync.OnceValue(func() bool { return onAlternate(log, from) })
	for _, attempt := range attempts {
		skip := max(0, len(data)-attempt.replay)
		part, alternate := startOf(data, skip, from > 0, size, before)
		e := newEmulator(size, alternate)
		if err = e.feed(part, time.Now().Add(attempt.time)); err == nil {
			return e.show(), page, nil
		}
	}
	return Screen{}, page, err
}

// lastBytes gives up to limit bytes before the end of a stream, without a gap,
// and the offset of the first.
func lastBytes(log OutputLog, limit int64) ([]byte, int64, error) {
	total, _ := log.Size(StreamTTY)
	for from := max(0, total-limit); ; {
		data, err := readFull(log, StreamTTY, from, total-from)
		expired := (*ExpiredError)(nil)
		switch end := from + int64(len(data)); {
		case errors.As(err, &expired):
			from = max(from+1, expired.NextOffset)
		case err != nil:
			return nil, 0, err
		case end >= total:
			return data, from, nil
		default:
			from = end // in a gap: the next turn finds its end
		}
		total = max(total, from)
	}
}

// startOf gives what of data, from skip on, a screen is to be drawn of, and
// whether it begins on the alternate one. Cut says that data itself does not begin
// with the stream; before is then asked how it began.
//
// What scrolled away long ago is left out, on the main screen: to draw it takes
// time, and nothing of it is to be seen.
func startOf(data []byte, skip int, cut bool, size TerminalSize, before func() bool) ([]byte, bool) {
	began := func(at int) bool {
		if on, known := lastSwitch(data[:at]); known {
			return on
		}
		return cut && before()
	}
	if on, known := lastSwitch(data); known && on || !known && cut && before() {
		if at := lastEntry(data); at >= skip {
			return data[at:], false // it begins with the switch
		}
		return afterLine(data, skip), began(skip)
	}
	start := skip
	for lines, at := 0, len(data); at > skip; lines++ {
		if lines > scrolledLines(size) {
			start = at
			break
		}
		at = skip + max(0, bytes.LastIndexByte(data[skip:at], '\n'))
	}
	return afterLine(data, start), began(start)
}

// scrolledLines is how many lines before the end are drawn on the main screen: at
// least the screen four times over, and more where that costs little.
func scrolledLines(size TerminalSize) int {
	return max(4*size.Rows, 1<<22/(size.Cols*size.Rows))
}

// afterLine gives data from the first beginning of a line, or of a sequence, at or
// after start.
func afterLine(data []byte, start int) []byte {
	if start == 0 {
		return data
	}
	rest := data[start:]
	if at := bytes.IndexAny(rest, "\n\x1b"); at >= 0 && at < len(rest)/2 {
		return rest[at:]
	}
	return rest
}

// switches are the sequences that begin or end the use of the alternate screen,
// without their last letter: h or l.
var switches = [][]byte{[]byte("\x1b[?1049"), []byte("\x1b[?1047"), []byte("\x1b[?47")}

// switchBytes is how long the longest is.
const switchBytes = 8

// lastSwitch says whether the last of the switches in data was to the alternate
// screen.
func lastSwitch(data []byte) (on, known bool) {
	last := -1
	for _, s := range switches {
		for rest := data; ; {
			at := bytes.LastIndex(rest, s)
			if at <= last {
				break
			}
			if end := at + len(s); end < len(data) && (data[end] == 'h' || data[end] == 'l') {
				last, on = at, data[end] == 'h'
				break
			}
			rest = rest[:at]
		}
	}
	return on, last >= 0
}

// lastEntry gives where the alternate screen was entered last, or -1.
func lastEntry(data []byte) int {
	last := -1
	for _, s := range switches {
		last = max(last, bytes.LastIndex(data, append(bytes.Clone(s), 'h')))
	}
	return last
}

// onAlternate says whether the alternate screen was shown at an offset, as far as
// can be found without reading too much.
func onAlternate(log OutputLog, offset int64) bool {
	const step = 256 << 10
	for end := offset; end > 0 && end > offset-maxSearch; end -= step {
		from := max(0, end-step)
		data, err := readFull(log, StreamTTY, from, min(end+switchBytes, offset)-from)
		if err != nil {
			return false // dropped
		}
		if on, known := lastSwitch(data); known {
			return on
		}
	}
	return false
}

// turns gives one turn at a time to each key. The zero value is ready.
type turns struct {
	mu    sync.Mutex
	taken map[string]chan struct{}
}

// take waits for the turn of a key. The caller must release it.
func (t *turns) take(ctx context.Context, key string) (release func(), err error) {
	for {
		t.mu.Lock()
		before := t.taken[key]
		if before == nil {
			mine := make(chan struct{})
			if t.taken == nil {
				t.taken = map[string]chan struct{}{}
			}
			t.taken[key] = mine
			t.mu.Unlock()
			return func() { t.pass(key, mine) }, nil
		}
		t.mu.Unlock()
		select {
		case <-before:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (t *turns) pass(key string, mine chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.taken, key)
	close(mine)
}
