package outputlog

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"sort"
	"time"

	"envapi/core"
)

// indexStride is how many bytes of a segment lie between two marks of its
// index. It decides what a random read costs (a stride and a frame at most)
// and what a log costs in memory: one mark of 32 bytes for each stride, 34 KiB
// for a log of 64 MiB.
const indexStride = 64 << 10

// segment is one file of a log, as known in memory.
type segment struct {
	path  string
	seq   int
	began time.Time
	marks []mark   // never empty; the first is where the segment starts
	size  int64    // bytes of the file that hold whole frames
	disk  int64    // bytes of the file, a torn frame included
	end   position // where the log stands at its end
	dirty bool     // written since the last sync
	named bool     // the folders that name it were synced
}

// mark says where in the log a frame begins.
type mark struct {
	offset int64 // of the frame's header, in the file
	at     position
}

// newSegment makes a segment of which only the header, of so many bytes, is
// there.
func newSegment(path string, seq int, h segmentHeader, header int64) *segment {
	return &segment{
		path:  path,
		seq:   seq,
		began: h.began,
		marks: []mark{{header, h.start}},
		size:  header,
		disk:  header,
		end:   h.start,
	}
}

// start is where the log stood when the segment began.
func (s *segment) start() position { return s.marks[0].at }

// add takes note of a frame at the end.
func (s *segment) add(f frame) {
	if s.size-s.marks[len(s.marks)-1].offset >= indexStride {
		s.marks = append(s.marks, mark{s.size, s.end})
	}
	s.size += frameHeaderBytes + int64(f.length)
	s.disk = max(s.disk, s.size)
	s.end = s.end.plus(f.stream, f.length)
}

// block is a run of whole frames in a segment's file.
type block struct {
	from, to int64
	at       position // where the log stands at from
}

// blockAt gives the block that holds the byte at offset of a stream, which
// must lie in the segment.
func (s *segment) blockAt(stream core.Stream, offset int64) block {
	next := sort.Search(len(s.marks), func(i int) bool { return s.marks[i].at.in(stream) > offset })
	b := block{from: s.marks[next-1].offset, to: s.size, at: s.marks[next-1].at}
	if next < len(s.marks) {
		b.to = s.marks[next].offset
	}
	return b
}

// loadSegment reads a segment's file and makes its index. It ends before the
// first frame that is not whole: a write that kill -9 or a full disk cut short.
func loadSegment(path string, seq int) (*segment, error) {
	f, err := openFile(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	s, err := scanSegment(f, info.Size(), path, seq)
	if err != nil {
		return nil, fmt.Errorf("cannot read segment %d: %w", seq, err)
	}
	return s, nil
}

// scanSegment makes the index of a segment of size bytes.
func scanSegment(r io.Reader, size int64, path string, seq int) (*segment, error) {
	buffered := bufio.NewReaderSize(io.LimitReader(r, size), int(min(size, 64<<10)))
	head, _ := buffered.Peek(segmentHeaderBytes) // an old one with nothing in it is shorter
	h, length, err := parseSegmentHeader(head)
	if err != nil {
		return nil, err
	}
	_, _ = buffered.Discard(length) // it was just seen
	s := newSegment(path, seq, h, int64(length))
	for scanFrame(buffered, s) {
	}
	s.disk = size
	return s, nil
}

// scanFrame adds the next frame to s, if there is a whole one.
func scanFrame(r *bufio.Reader, s *segment) bool {
	head, err := r.Peek(frameHeaderBytes)
	if err != nil {
		return false
	}
	f, err := parseFrame(head)
	if err != nil {
		return false
	}
	if _, err := r.Discard(frameHeaderBytes + f.length); err != nil {
		return false
	}
	s.add(f)
	return true
}

// copyStream appends to out the bytes of a stream from offset on that are in
// b, whose first frame stands at place at; out grows to its capacity at most.
func copyStream(out, b []byte, at position, stream core.Stream, offset int64) ([]byte, error) {
	for len(b) > 0 && len(out) < cap(out) {
		f, err := parseFrame(b)
		if err != nil || len(b) < frameHeaderBytes+f.length {
			return out, errCorrupt
		}
		data := b[frameHeaderBytes : frameHeaderBytes+f.length]
		b = b[frameHeaderBytes+f.length:]
		first := at.in(stream)
		at = at.plus(f.stream, f.length)
		if stream != core.StreamAll && stream != f.stream || at.in(stream) <= offset {
			continue
		}
		data = data[max(0, offset-first):]
		data = data[:min(len(data), cap(out)-len(out))]
		out = append(out, data...)
		offset += int64(len(data))
	}
	return out, nil
}
