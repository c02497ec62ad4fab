package outputlog

import (
	"encoding/binary"
	"errors"
	"time"

	"envapi/core"
)

// A segment file is one segment header and then frames, all little endian:
//
//	segment   magic 8 | began 8 (ms since 1970) | stdout 8 | stderr 8 | tty 8 | frame…
//	frame     stream 1 | length 3 | late 4 (ms since began)                   | bytes…
//
// stdout, stderr and tty are the offsets in those streams at which the segment
// begins, so that a segment stands for itself when those before it are gone.
// Before there were terminals the magic was another and tty was not there; such
// segments are read still, and never written.
const (
	segmentMagic       = "envlog 2"
	segmentHeaderBytes = 40
	oldSegmentMagic    = "envlog 1"
	oldHeaderBytes     = 32
	frameHeaderBytes   = 8

	// maxFrameBytes bounds the bytes of one frame, so that a reader who looks
	// for one byte reads little more than that.
	maxFrameBytes = 64 << 10
	// maxOffset keeps the sum of three offsets from overflowing.
	maxOffset = 1 << 61
)

// The marks of the streams in a frame. Zero is none, so that a hole in a file
// is not read as frames.
const (
	markStdout = 1
	markStderr = 2
	markTTY    = 3
)

// streamMarks gives the mark of each stream that can be written.
var streamMarks = map[core.Stream]uint64{
	core.StreamStdout: markStdout,
	core.StreamStderr: markStderr,
	core.StreamTTY:    markTTY,
}

var errCorrupt = errors.New("not a frame of an output log")

// position is a place in a log: how many bytes of each stream lie before it.
type position struct{ stdout, stderr, tty int64 }

// in gives the place's offset in one stream.
func (p position) in(s core.Stream) int64 {
	switch s {
	case core.StreamStdout:
		return p.stdout
	case core.StreamStderr:
		return p.stderr
	case core.StreamTTY:
		return p.tty
	default:
		return p.stdout + p.stderr + p.tty
	}
}

// plus gives the place n bytes of stream s further on.
func (p position) plus(s core.Stream, n int) position {
	switch s {
	case core.StreamStderr:
		p.stderr += int64(n)
	case core.StreamTTY:
		p.tty += int64(n)
	default:
		p.stdout += int64(n)
	}
	return p
}

// before says whether the place lies before another, or is the same, in every
// stream.
func (p position) before(q position) bool {
	return p.stdout <= q.stdout && p.stderr <= q.stderr && p.tty <= q.tty
}

// frame is what a frame's header says.
type frame struct {
	stream core.Stream
	length int           // bytes that follow the header, 1 to maxFrameBytes
	late   time.Duration // since the segment began; whole milliseconds
}

// encode gives the header of f.
func (f frame) encode() [frameHeaderBytes]byte {
	late := min(max(f.late.Milliseconds(), 0), 1<<32-1)
	var b [frameHeaderBytes]byte
	binary.LittleEndian.PutUint64(b[:], streamMarks[f.stream]|uint64(f.length)<<8|uint64(late)<<32) //nolint:gosec // neither is negative
	return b
}

// parseFrame reads the frame header at the start of b.
func parseFrame(b []byte) (frame, error) {
	if len(b) < frameHeaderBytes {
		return frame{}, errCorrupt
	}
	v := binary.LittleEndian.Uint64(b)
	f := frame{length: int(v >> 8 & 0xffffff), late: time.Duration(v>>32) * time.Millisecond}
	switch v & 0xff {
	case markStdout:
		f.stream = core.StreamStdout
	case markStderr:
		f.stream = core.StreamStderr
	case markTTY:
		f.stream = core.StreamTTY
	default:
		return frame{}, errCorrupt
	}
	if f.length == 0 || f.length > maxFrameBytes {
		return frame{}, errCorrupt
	}
	return f, nil
}

// segmentHeader is what the header of a segment says.
type segmentHeader struct {
	began time.Time // whole milliseconds
	start position
}

// encode gives the bytes of h.
func (h segmentHeader) encode() []byte {
	b := []byte(segmentMagic)
	for _, v := range []int64{h.began.UnixMilli(), h.start.stdout, h.start.stderr, h.start.tty} {
		b = binary.LittleEndian.AppendUint64(b, uint64(v)) //nolint:gosec // neither a time nor an offset is negative
	}
	return b
}

// parseSegmentHeader reads the segment header at the start of b, and says how
// long it is.
func parseSegmentHeader(b []byte) (h segmentHeader, length int, err error) {
	switch {
	case len(b) >= segmentHeaderBytes && string(b[:8]) == segmentMagic:
		length = segmentHeaderBytes
	case len(b) >= oldHeaderBytes && string(b[:8]) == oldSegmentMagic:
		length = oldHeaderBytes
	default:
		return segmentHeader{}, 0, errCorrupt
	}
	var values [4]int64 // that of tty stays 0 where the header has none
	for i := range length/8 - 1 {
		v := binary.LittleEndian.Uint64(b[8+8*i:])
		if v > maxOffset {
			return segmentHeader{}, 0, errCorrupt
		}
		values[i] = int64(v)
	}
	return segmentHeader{
		began: time.UnixMilli(values[0]),
		start: position{stdout: values[1], stderr: values[2], tty: values[3]},
	}, length, nil
}
