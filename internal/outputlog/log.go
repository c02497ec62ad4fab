package outputlog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"

	"envapi/core"
)

// Log is the output of one command or shell; it implements core.OutputLog.
//
// Two locks keep readers from ever holding up a writer: writing is held over
// the disk calls of a write, mu only while what is known is read or changed.
// A reader opens, reads and closes files under neither; where the ring has
// taken a file from under it, it looks again and finds the bytes expired.
type Log struct {
	logs        *Logs
	environment string
	command     string
	uses        int // guarded by logs.mu
	loading     sync.Once
	loadErr     error

	writing sync.Mutex
	out     output // guarded by writing

	mu       sync.Mutex
	segments []*segment // in order; what lies between two of them was dropped
	pinned   int        // how many of the first ones are kept for ever
	end      position
	removed  bool
	changed  chan struct{} // nil while nobody waits
}

// Writer gives the writer of stdout, stderr or tty; another stream has none, and
// asking for it is a mistake in the program.
func (l *Log) Writer(s core.Stream) io.Writer {
	if streamMarks[s] == 0 {
		panic(fmt.Sprintf("outputlog: no writer for stream %q", s))
	}
	return streamWriter{l, s}
}

// Size gives the bytes of a stream that were ever written, and how many of
// them were dropped.
func (l *Log) Size(s core.Stream) (total, dropped int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.size(s)
}

// Extent gives the first run of bytes of a stream that are kept and do not all
// lie before offset.
func (l *Log) Extent(s core.Stream, offset int64) core.Extent {
	l.mu.Lock()
	defer l.mu.Unlock()
	total, dropped := l.size(s)
	e := core.Extent{Start: total, End: total, Total: total, Dropped: dropped}
	for _, g := range l.segments {
		start, end := g.start().in(s), g.end.in(s)
		switch {
		case end <= offset || start == end: // before it, or without a byte of this stream
		case e.Start == total:
			e.Start, e.End = max(start, offset), end
		case start == e.End:
			e.End = end
		default:
			return e
		}
	}
	return e
}

func (l *Log) size(s core.Stream) (total, dropped int64) {
	total = l.end.in(s)
	dropped = total
	for _, g := range l.segments {
		dropped -= g.end.in(s) - g.start().in(s)
	}
	return total, dropped
}

// Changed gives a channel that is closed at the next write, or when the log is
// removed. Take it before Read or Size, so that no write falls between.
func (l *Log) Changed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return l.changed
}

// Release ends one use of the log. Call it once for each Create and Open.
func (l *Log) Release() { l.logs.release(l) }

// Read gives the bytes of a stream from offset on: limit of them, fewer only
// at the end of the stream and before a dropped part, none at or beyond the
// end. At a dropped byte it fails with *core.ExpiredError. It reads at most a
// block for each byte of its answer, and each block once.
func (l *Log) Read(s core.Stream, offset, limit int64) ([]byte, error) {
	if offset < 0 || limit < 0 {
		return nil, errors.New("cannot read output: offset and limit must not be negative")
	}
	total, _ := l.Size(s)
	if offset >= total || limit == 0 {
		return nil, nil
	}
	most := min(limit, total-offset, l.logs.maxBytes+l.logs.segmentBytes) // more is never kept
	r := reader{log: l, stream: s, offset: offset, out: make([]byte, 0, most)}
	defer r.close()
	for len(r.out) < cap(r.out) {
		if err := r.step(); err != nil {
			return r.answer(err)
		}
	}
	return r.out, nil
}

// find gives the segment and the block that hold the byte at offset of a
// stream. It fails with *core.ExpiredError where that byte was dropped.
func (l *Log) find(s core.Stream, offset int64) (*segment, block, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, g := range l.segments {
		if next := g.start().in(s); offset < next {
			return nil, block{}, &core.ExpiredError{NextOffset: next}
		}
		if offset < g.end.in(s) {
			return g, g.blockAt(s, offset), nil
		}
	}
	return nil, block{}, &core.ExpiredError{NextOffset: l.end.in(s)}
}

// load takes in what is on disk of the log.
func (l *Log) load() error {
	seqs, err := l.logs.segmentsOnDisk(l.environment, l.command)
	if err != nil {
		return fmt.Errorf("cannot open the output of %s: %w", l.command, err)
	}
	for _, seq := range seqs {
		g, err := loadSegment(l.path(seq), seq)
		if errors.Is(err, errCorrupt) || errors.Is(err, fs.ErrNotExist) {
			continue // created, but nothing in it survived: a dropped part
		}
		if err != nil {
			return fmt.Errorf("cannot open the output of %s: %w", l.command, err)
		}
		if l.end.before(g.start()) {
			l.admit(g)
			l.end = g.end
		}
	}
	return nil
}

// admit takes a segment in at the end. The first ones stay for ever, as many
// as fit into half of the log when each grows to its full size.
func (l *Log) admit(g *segment) {
	var before int64
	for _, s := range l.segments {
		before += s.disk
	}
	first := g.seq == l.pinned && len(l.segments) == l.pinned && l.pinned < maxSegments/2
	if first && before+l.logs.segmentBytes <= l.logs.maxBytes/2 {
		l.pinned++
	}
	l.segments = append(l.segments, g)
}

// surplus takes out the oldest segments that the last half of the log does not
// need, and gives them to be deleted.
func (l *Log) surplus() []*segment {
	var tail int64
	for _, g := range l.segments[l.pinned:] {
		tail += g.disk
	}
	n := l.pinned
	for ; n < len(l.segments)-1; n++ {
		tail -= l.segments[n].disk
		if tail < l.logs.maxBytes/2 && len(l.segments)-(n-l.pinned) <= maxSegments {
			break
		}
	}
	gone := append([]*segment(nil), l.segments[l.pinned:n]...)
	l.segments = append(l.segments[:l.pinned], l.segments[n:]...)
	return gone
}

// announce wakes those who wait for a change.
func (l *Log) announce() {
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}
