package outputlog

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"envapi/core"
)

// firstSegment is the file of a short log.
func firstSegment(dir string) string { return filepath.Join(dir, testEnv, testCmd) }

// Wherever kill -9 or a power loss cuts the file, the whole frames before are
// there, and what is written then is found behind them.
func TestALogThatWasCutGoesOnBehindItsLastWholeFrame(t *testing.T) {
	const frames, size = 3, 10
	want := patterned(0, frames*size)
	length := segmentHeaderBytes + frames*(frameHeaderBytes+size)
	for cut := range length + 1 {
		t.Run(fmt.Sprint(cut), func(t *testing.T) {
			dir := t.TempDir()
			l := openLog(t, openLogs(t, dir, MinBytes), testCmd)
			for c := range chunks(want, size) {
				write(t, l, core.StreamStdout, c)
			}
			if err := os.Truncate(firstSegment(dir), int64(cut)); err != nil {
				t.Fatal(err)
			}
			whole := string(want[:max(cut-segmentHeaderBytes, 0)/(frameHeaderBytes+size)*size])
			l = openLog(t, openLogs(t, dir, MinBytes), testCmd)
			wantRead(t, l, core.StreamAll, 0, 100, whole)
			wantSize(t, l, core.StreamAll, int64(len(whole)), 0)
			write(t, l, core.StreamStderr, []byte("more"))
			l = openLog(t, openLogs(t, dir, MinBytes), testCmd)
			wantRead(t, l, core.StreamAll, 0, 100, whole+"more")
		})
	}
}

// full makes the disk take nothing more of a log: the next write fails as on a
// full disk, and so does the beginning of a segment.
func full(t *testing.T, l *Log) {
	t.Helper()
	l.writing.Lock()
	defer l.writing.Unlock()
	l.closeFile()
	file, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	l.out.file = file
}

func TestAFullDiskDropsBytesAndMovesNoOffset(t *testing.T) {
	dir := t.TempDir()
	ls := openLogs(t, dir, MinBytes)
	l := openLog(t, ls, testCmd).(*Log)
	write(t, l, core.StreamStdout, []byte("before"))
	full(t, l)
	write(t, l, core.StreamStdout, []byte("lost"))
	write(t, l, core.StreamStderr, []byte("lost too")) // the disk is not asked again yet
	wantRead(t, l, core.StreamStdout, 0, 100, "before")
	wantExpired(t, l, core.StreamStdout, 6, 10)
	waitFor(t, func() bool { // until it is asked again, and takes what comes
		write(t, l, core.StreamStdout, []byte("."))
		_, dropped := l.Size(core.StreamStdout)
		total, _ := l.Size(core.StreamStdout)
		return total-dropped > 6
	})
	total, dropped := l.Size(core.StreamStdout)
	for _, l := range []core.OutputLog{l, openLog(t, openLogs(t, dir, MinBytes), testCmd)} {
		wantSize(t, l, core.StreamStdout, total, dropped)
		wantSize(t, l, core.StreamStderr, 8, 8)
		wantExpired(t, l, core.StreamStdout, 6, total-1)
		wantExpired(t, l, core.StreamStderr, 0, 8)
		wantRead(t, l, core.StreamStdout, total-1, 100, ".")
	}
}

func TestDroppedBytesAtTheEndAreKnownAfterARestart(t *testing.T) {
	dir := t.TempDir()
	ls := openLogs(t, dir, MinBytes)
	l, err := ls.Create(testEnv, testCmd)
	if err != nil {
		t.Fatal(err)
	}
	write(t, l, core.StreamStdout, []byte("before"))
	full(t, l.(*Log))
	write(t, l, core.StreamStdout, []byte("lost"))
	waitFor(t, func() bool { // until the disk is asked again
		l.(*Log).writing.Lock()
		defer l.(*Log).writing.Unlock()
		return time.Now().After(l.(*Log).out.retryAt)
	})
	l.Release()
	again := openLog(t, openLogs(t, dir, MinBytes), testCmd)
	wantSize(t, again, core.StreamStdout, 10, 4)
	wantExpired(t, again, core.StreamStdout, 6, 10)
}

func TestWhereNoFileCanBeMadeEverythingIsDropped(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, openLogs(t, dir, MinBytes), testCmd)
	if err := os.WriteFile(filepath.Join(dir, testEnv), nil, 0o600); err != nil { // in the folder's place
		t.Fatal(err)
	}
	write(t, l, core.StreamStdout, []byte("lost"))
	wantSize(t, l, core.StreamStdout, 4, 4)
	wantExpired(t, l, core.StreamAll, 0, 4)
}

func wantExpired(t *testing.T, l core.OutputLog, s core.Stream, offset, next int64) {
	t.Helper()
	var expired *core.ExpiredError
	if p, err := l.Read(s, offset, 100); !errors.As(err, &expired) || expired.NextOffset != next {
		t.Fatalf("Read(%s, %d) = %q, %v (%+v); want it expired up to %d", s, offset, p, err, expired, next)
	}
}

// Whatever stands in a segment's file, scanning it ends, its index fits the
// file, and every byte that the index promises can be read.
func FuzzScanSegment(f *testing.F) {
	h := segmentHeader{began: time.UnixMilli(1), start: position{3, 5, 7}}
	one := frame{stream: core.StreamStderr, length: 4}.encode()
	whole := append(append(h.encode(), one[:]...), "data"...)
	f.Add(whole)
	f.Add(whole[:len(whole)-1])
	f.Add([]byte(segmentMagic))
	f.Add(oldSegment(3, 5, one[:], []byte("data")))
	typed := frame{stream: core.StreamTTY, length: 4}.encode()
	f.Add(append(append(h.encode(), typed[:]...), "data"...))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := scanSegment(bytes.NewReader(b), int64(len(b)), "path", 0)
		if err != nil {
			return
		}
		if s.size > int64(len(b)) || s.disk != int64(len(b)) {
			t.Fatalf("%d bytes hold frames, %d are there", s.size, len(b))
		}
		for _, stream := range streams {
			readWhole(t, s, b, stream)
		}
	})
}

// readWhole reads a stream of a segment, block by block.
func readWhole(t *testing.T, s *segment, b []byte, stream core.Stream) {
	t.Helper()
	for offset := s.start().in(stream); offset < s.end.in(stream); {
		block := s.blockAt(stream, offset)
		out, err := copyStream(make([]byte, 0, len(b)), b[block.from:block.to], block.at, stream, offset)
		if err != nil || len(out) == 0 {
			t.Fatalf("%s at %d: %d bytes, %v", stream, offset, len(out), err)
		}
		offset += int64(len(out))
	}
}

// What the parser accepts is what encode writes.
func FuzzParseFrame(f *testing.F) {
	one := frame{stream: core.StreamStdout, length: maxFrameBytes}.encode()
	f.Add(one[:])
	typed := frame{stream: core.StreamTTY, length: 1}.encode()
	f.Add(typed[:])
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := parseFrame(b)
		if err != nil {
			return
		}
		if again := got.encode(); !bytes.Equal(again[:], b[:frameHeaderBytes]) || got.length < 1 || got.length > maxFrameBytes {
			t.Fatalf("%x was read as %+v", b[:frameHeaderBytes], got)
		}
	})
}
