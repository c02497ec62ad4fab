package outputlog

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"envapi/core"
)

// retryAfter is how long a log that the disk refused drops what comes, so that
// a full disk is not asked at each write.
const retryAfter = 100 * time.Millisecond

// output is the file that a log is being written to.
type output struct {
	file    *os.File // of the last segment; nil: the next write begins one
	retryAt time.Time
	// What is being written: frames, their headers, and headers and bytes in turn.
	frames  []frame
	headers [][frameHeaderBytes]byte
	parts   [][]byte
}

// streamWriter is the one writer of a stream.
type streamWriter struct {
	log    *Log
	stream core.Stream
}

// Write takes all of p and never fails. It returns when what was kept is
// written to its file; what could not be kept is counted as dropped.
func (w streamWriter) Write(p []byte) (int, error) {
	w.log.write(w.stream, p)
	return len(p), nil
}

func (l *Log) write(s core.Stream, p []byte) {
	l.writing.Lock()
	defer l.writing.Unlock()
	for len(p) > 0 {
		n := l.keep(s, p)
		if n == 0 {
			l.drop(s, len(p))
			return
		}
		p = p[n:]
	}
}

// keep writes the beginning of p as frames, as much as there is room for in a
// segment, and gives its length, or 0 where the disk does not take it. All frames
// are one write: a loud command is carried at a third of the cost.
func (l *Log) keep(s core.Stream, p []byte) int {
	g := l.writable()
	if g == nil {
		return 0
	}
	l.out.lay(s, p, l.logs.segmentBytes-g.size, time.Since(g.began))
	n, err := unix.Pwritev(int(l.out.file.Fd()), l.out.parts, g.size)
	if err != nil {
		n = 0
	}
	whole, length := 0, 0
	for _, f := range l.out.frames {
		if n < frameHeaderBytes+f.length {
			break
		}
		n -= frameHeaderBytes + f.length
		whole, length = whole+1, length+f.length
	}
	if whole > 0 {
		l.kept(g, l.out.frames[:whole])
	}
	if whole < len(l.out.frames) {
		l.giveUp(g, n)
	}
	return length
}

// lay lays out p as frames, as far as there is room for them.
func (o *output) lay(s core.Stream, p []byte, room int64, late time.Duration) {
	o.frames, o.headers, o.parts = o.frames[:0], o.headers[:0], o.parts[:0]
	for len(p) > 0 && room > frameHeaderBytes {
		f := frame{stream: s, length: int(min(int64(len(p)), maxFrameBytes, room-frameHeaderBytes)), late: late}
		o.frames, o.headers = append(o.frames, f), append(o.headers, f.encode())
		o.parts = append(o.parts, nil, p[:f.length])
		p, room = p[f.length:], room-frameHeaderBytes-int64(f.length)
	}
	for i := range o.headers { // now that they move no more
		o.parts[2*i] = o.headers[i][:]
	}
}

// writable gives the last segment if there is room for a frame in it, or else
// a new one, or nil where there can be none.
func (l *Log) writable() *segment {
	if l.out.file != nil {
		g := l.segments[len(l.segments)-1] // only writers change the list
		if g.size+frameHeaderBytes < l.logs.segmentBytes {
			return g
		}
		l.closeFile()
	}
	return l.begin()
}

// begin begins a new segment where the log ends.
func (l *Log) begin() *segment {
	if l.removed || time.Now().Before(l.out.retryAt) {
		return nil
	}
	seq := 0
	if n := len(l.segments); n > 0 {
		seq = l.segments[n-1].seq + 1
	}
	h := segmentHeader{began: time.UnixMilli(time.Now().UnixMilli()), start: l.end}
	file, err := createSegment(l.path(seq), h)
	if err != nil {
		l.out.retryAt = time.Now().Add(retryAfter)
		return nil
	}
	g := newSegment(l.path(seq), seq, h, segmentHeaderBytes)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.out.file = file
	l.admit(g)
	l.markDirty(g)
	return g
}

// createSegment makes a segment's file, and its folder if there is none yet.
func createSegment(path string, h segmentHeader) (*os.File, error) {
	const flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	file, err := openFile(path, flags)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(filepath.Dir(path), 0o700); err == nil {
			file, err = openFile(path, flags)
		}
	}
	if err != nil {
		return nil, err
	}
	if _, err := file.Write(h.encode()); err != nil {
		_ = file.Close()
		_ = os.Remove(path) // if it stays, it is found corrupt and written over
		return nil, err
	}
	return file, nil
}

// kept takes note of frames that were written, and deletes what the log has
// outgrown.
func (l *Log) kept(g *segment, frames []frame) {
	l.mu.Lock()
	for _, f := range frames {
		g.add(f)
	}
	l.end = g.end
	l.markDirty(g)
	gone := l.surplus()
	l.announce()
	l.mu.Unlock()
	for _, g := range gone {
		_ = os.Remove(g.path) // if it stays, the next start takes it in and drops it
	}
}

// drop counts n bytes that are not kept.
func (l *Log) drop(s core.Stream, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end = l.end.plus(s, n)
	l.announce()
}

// giveUp ends a segment that the disk cut short by a frame of which n bytes
// were written. The next segment says where it begins, so the gap is known.
func (l *Log) giveUp(g *segment, n int) {
	l.closeFile()
	l.out.retryAt = time.Now().Add(retryAfter)
	l.mu.Lock()
	defer l.mu.Unlock()
	g.disk = g.size + int64(max(n, 0))
}

// rest closes the file of a log that nobody uses. Where the last bytes were
// dropped, it tries to leave a segment that says so.
func (l *Log) rest() {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.closeFile()
	if n := len(l.segments); n > 0 && l.segments[n-1].end != l.end {
		l.begin()
		l.closeFile()
	}
}

// remove drops all that was written and all that will be.
func (l *Log) remove() {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.closeFile()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.removed = true
	l.segments, l.pinned = nil, 0
	l.announce()
}

func (l *Log) closeFile() {
	if l.out.file != nil {
		_ = l.out.file.Close() // what was written is in the kernel
		l.out.file = nil
	}
}

// markDirty has a segment that was written synced.
func (l *Log) markDirty(g *segment) {
	if !g.dirty {
		g.dirty = true
		l.logs.syncer.add(l, g)
	}
}
