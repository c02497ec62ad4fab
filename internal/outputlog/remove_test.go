package outputlog

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"envapi/core"
)

const otherCmd = "cmd_other"

// fill writes several segments, and gives how long stdout and stderr then are.
func fill(t *testing.T, l core.OutputLog) (stdout, stderr int64) {
	t.Helper()
	for range 4 {
		write(t, l, core.StreamStdout, bytes.Repeat([]byte("o"), 6<<10))
		write(t, l, core.StreamStderr, bytes.Repeat([]byte("e"), 3<<10))
	}
	return 4 * 6 << 10, 4 * 3 << 10
}

func TestARemovedLogIsGoneAndNoOther(t *testing.T) {
	dir := t.TempDir()
	ls := openLogs(t, dir, MinBytes)
	l, other := openLog(t, ls, testCmd), openLog(t, ls, otherCmd)
	fill(t, l)
	write(t, other, core.StreamStdout, []byte("kept"))
	changed := l.Changed()
	if err := ls.Remove(testEnv, testCmd); err != nil {
		t.Fatal(err)
	}
	select {
	case <-changed:
	default:
		t.Error("who waits for it is not told")
	}
	wantSize(t, l, core.StreamAll, 36<<10, 36<<10) // who has it open finds the bytes gone
	wantSize(t, openLog(t, ls, testCmd), core.StreamAll, 0, 0)
	if _, files := diskUse(t, dir); files != 1 {
		t.Errorf("%d files are left", files)
	}
	wantRead(t, other, core.StreamAll, 0, 10, "kept")
	for _, id := range []string{testCmd, "cmd_never"} {
		if err := ls.Remove(testEnv, id); err != nil {
			t.Errorf("removing what is not there: %v", err)
		}
	}
	if err := ls.Remove("..", testCmd); err == nil {
		t.Error("a path was taken for an id")
	}
	if err := ls.Remove(testEnv, "../"+testEnv); err == nil {
		t.Error("a path was taken for an id")
	}
}

func TestATrimmedLogSaysWhatItWas(t *testing.T) {
	dir := t.TempDir()
	ls := openLogs(t, dir, MinBytes)
	l := openLog(t, ls, testCmd)
	stdout, stderr := fill(t, l)
	before, _ := diskUse(t, dir)
	freed, err := ls.Trim(testEnv, testCmd)
	if after, _ := diskUse(t, dir); err != nil || freed < stdout+stderr || after > segmentHeaderBytes || before-after != freed-segmentHeaderBytes {
		t.Fatalf("freed %d of %d, left %d, %v", freed, before, after, err)
	}
	check := func(l core.OutputLog) {
		t.Helper()
		wantSize(t, l, core.StreamStdout, stdout, stdout)
		wantSize(t, l, core.StreamStderr, stderr, stderr)
		var expired *core.ExpiredError
		if _, err := l.Read(core.StreamStdout, 0, 10); !errors.As(err, &expired) || expired.NextOffset != stdout {
			t.Fatalf("got %v", err)
		}
		wantRead(t, l, core.StreamAll, stdout+stderr, 10, "")
	}
	check(l)
	if freed, err := ls.Trim(testEnv, testCmd); err != nil || freed != 0 {
		t.Fatalf("trimmed again: %d, %v", freed, err)
	}
	ls = openLogs(t, dir, MinBytes)
	check(openLog(t, ls, testCmd)) // also after a restart
	if freed, err := ls.Trim(testEnv, testCmd); err != nil || freed != 0 {
		t.Fatalf("trimmed after a restart: %d, %v", freed, err)
	}
	if err := ls.Remove(testEnv, testCmd); err != nil {
		t.Fatal(err)
	}
	if _, files := diskUse(t, dir); files != 0 {
		t.Errorf("%d files are left", files)
	}
}

func TestWhatTakesNextToNothingIsNotTrimmed(t *testing.T) {
	ls := openLogs(t, t.TempDir(), MinBytes)
	write(t, openLog(t, ls, testCmd), core.StreamStdout, []byte("short"))
	for _, id := range []string{testCmd, "cmd_never"} {
		if freed, err := ls.Trim(testEnv, id); err != nil || freed != 0 {
			t.Errorf("%s: %d, %v", id, freed, err)
		}
	}
	wantRead(t, openLog(t, ls, testCmd), core.StreamStdout, 0, 10, "short")
	if _, err := ls.Trim(testEnv, ".."); err == nil {
		t.Error("a path was taken for an id")
	}
}

// A log of which a crash left segments that a trim was about to remove is as before
// for those, and says of the rest that it was dropped.
func TestACrashDuringATrim(t *testing.T) {
	dir := t.TempDir()
	ls := openLogs(t, dir, MinBytes)
	stdout, _ := fill(t, openLog(t, ls, testCmd))
	first := filepath.Join(dir, testEnv, testCmd)
	kept, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ls.Trim(testEnv, testCmd); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(first, kept, 0o600); err != nil {
		t.Fatal(err)
	}
	l := openLog(t, openLogs(t, dir, MinBytes), testCmd)
	if total, dropped := l.Size(core.StreamStdout); total != stdout || dropped <= 0 || dropped >= total {
		t.Fatalf("%d of %d", dropped, total)
	}
	wantRead(t, l, core.StreamStdout, 0, 3, "ooo")
}

func TestBytesCountsEachEnvironment(t *testing.T) {
	dir := t.TempDir()
	ls := openLogs(t, dir, MinBytes)
	fill(t, openLog(t, ls, testCmd))
	fill(t, openLog(t, ls, otherCmd))
	small, err := ls.Open("env_small", testCmd)
	if err != nil {
		t.Fatal(err)
	}
	defer small.Release()
	write(t, small, core.StreamTTY, []byte("x"))
	if err := os.WriteFile(filepath.Join(dir, "stray"), make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	sizes, err := ls.Bytes()
	if err != nil || len(sizes) != 2 || sizes[testEnv] < 72<<10 || sizes[testEnv] > 144<<10 || sizes["env_small"] < 1 || sizes["env_small"] > 64<<10 {
		t.Fatalf("got %v, %v", sizes, err)
	}
}
