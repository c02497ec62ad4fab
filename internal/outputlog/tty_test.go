package outputlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"envapi/core"
)

// oldSegment is a segment as it was written before there were terminals.
func oldSegment(stdout, stderr uint64, frames ...[]byte) []byte {
	b := binary.LittleEndian.AppendUint64([]byte("envlog 1"), 1_700_000_000_000)
	b = binary.LittleEndian.AppendUint64(b, stdout)
	b = binary.LittleEndian.AppendUint64(b, stderr)
	return append(b, bytes.Join(frames, nil)...)
}

// oldFrame is a frame as it was written then, and is now.
func oldFrame(mark byte, data string) []byte {
	return append([]byte{mark, byte(len(data)), 0, 0, 0, 0, 0, 0}, data...)
}

// putOld lays down a log of two old segments with a gap between them.
func putOld(t *testing.T, dir string) {
	t.Helper()
	more := filepath.Join(dir, testEnv, testCmd+".d")
	if err := os.MkdirAll(more, 0o700); err != nil {
		t.Fatal(err)
	}
	for path, b := range map[string][]byte{
		firstSegment(dir):        oldSegment(0, 0, oldFrame(1, "out"), oldFrame(2, "err")),
		filepath.Join(more, "1"): oldSegment(10, 3, oldFrame(1, "end")),
	} {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestALogFromBeforeTerminalsIsReadAndGoesOn(t *testing.T) {
	dir := t.TempDir()
	putOld(t, dir)
	check := func(l core.OutputLog, more string) {
		t.Helper()
		wantRead(t, l, core.StreamAll, 0, 100, "outerr")
		wantRead(t, l, core.StreamStderr, 0, 100, "err")
		wantExpired(t, l, core.StreamStdout, 3, 10)
		wantRead(t, l, core.StreamStdout, 10, 100, "end")
		wantRead(t, l, core.StreamAll, 13, 100, "end"+more)
		wantRead(t, l, core.StreamTTY, 0, 100, more)
		wantSize(t, l, core.StreamAll, int64(16+len(more)), 7)
		wantSize(t, l, core.StreamTTY, int64(len(more)), 0)
	}
	l := openLog(t, openLogs(t, dir, MinBytes), testCmd)
	check(l, "")
	write(t, l, core.StreamTTY, []byte("typed"))
	check(l, "typed")
	check(openLog(t, openLogs(t, dir, MinBytes), testCmd), "typed")
}

// What is cut of an old segment is cut as of a new one.
func TestAnOldSegmentThatWasCutKeepsItsWholeFrames(t *testing.T) {
	for cut, want := range map[int]string{
		0: "", oldHeaderBytes - 1: "", oldHeaderBytes: "", oldHeaderBytes + 10: "",
		oldHeaderBytes + 11: "out", oldHeaderBytes + 21: "out", oldHeaderBytes + 22: "outerr",
	} {
		dir := t.TempDir()
		putOld(t, dir)
		if err := os.Truncate(firstSegment(dir), int64(cut)); err != nil {
			t.Fatal(err)
		}
		l := openLog(t, openLogs(t, dir, MinBytes), testCmd)
		got, err := l.Read(core.StreamAll, 0, 100)
		if expired := (*core.ExpiredError)(nil); errors.As(err, &expired) {
			got, err = nil, nil
		}
		if err != nil || string(got) != want {
			t.Errorf("cut at %d: %q, %v; want %q", cut, got, err, want)
		}
		wantRead(t, l, core.StreamStdout, 10, 100, "end")
	}
}

// A shell's log has one stream, and goes with its environment as those of
// commands do.
func TestAShellHasALogOfItsTerminal(t *testing.T) {
	const shell = "sh_a"
	dir := t.TempDir()
	ls := openLogs(t, dir, MinBytes)
	l, err := ls.Create(testEnv, shell)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Release()
	data := patterned(0, 1<<20)
	for c := range chunks(data, 1000) {
		write(t, l, core.StreamTTY, c)
	}
	again := openLog(t, openLogs(t, dir, MinBytes), shell)
	for _, l := range []core.OutputLog{l, again} {
		wantBothHalves(t, l, data, MinBytes)
		total, dropped := l.Size(core.StreamTTY)
		wantSize(t, l, core.StreamAll, total, dropped)
		wantSize(t, l, core.StreamStdout, 0, 0)
		wantRead(t, l, core.StreamTTY, total-5, 100, string(data[len(data)-5:]))
	}
	if err := ls.RemoveEnvironment(testEnv); err != nil {
		t.Fatal(err)
	}
	wantSize(t, openLog(t, ls, shell), core.StreamTTY, 0, 0)
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("there is %v, %v; want nothing", entries, err)
	}
}
