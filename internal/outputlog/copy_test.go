package outputlog

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"envapi/core"
)

// copied copies the logs of the test's environment while do is done between any two files,
// and opens the copy.
func copied(t *testing.T, dir string, keep func(string) (bool, error)) *Logs {
	t.Helper()
	to := filepath.Join(t.TempDir(), "logs")
	if err := os.Mkdir(to, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Copy(t.Context(), dir, to, testEnv, keep); err != nil {
		t.Fatal(err)
	}
	return openLogs(t, to, MinBytes)
}

func all(string) (bool, error) { return true, nil }

func TestACopyHasWhatTheLogHas(t *testing.T) {
	dir := t.TempDir()
	ls := openLogs(t, dir, MinBytes)
	for command, pieces := range map[string]int{"cmd_short": 1, "cmd_long": 20, "cmd_outgrown": 200, "cmd_trimmed": 20, "cmd_unwanted": 1} {
		l := openLog(t, ls, command)
		for n := range pieces {
			write(t, l, core.StreamStdout, bytes.Repeat([]byte{byte('a' + n%26)}, 1000))
		}
	}
	if _, err := ls.Trim(testEnv, "cmd_trimmed"); err != nil {
		t.Fatal(err)
	}
	again := copied(t, dir, func(id string) (bool, error) { return id != "cmd_unwanted", nil })
	for _, command := range []string{"cmd_short", "cmd_long", "cmd_outgrown", "cmd_trimmed", "cmd_none"} {
		from, to := openLog(t, ls, command), openLog(t, again, command)
		total, dropped := from.Size(core.StreamStdout)
		wantSize(t, to, core.StreamStdout, total, dropped)
		for e := from.Extent(core.StreamStdout, 0); e.Start < e.End; e = from.Extent(core.StreamStdout, e.End) {
			want, err := from.Read(core.StreamStdout, e.Start, e.End-e.Start)
			if err != nil {
				t.Fatal(err)
			}
			wantRead(t, to, core.StreamStdout, e.Start, e.End-e.Start, string(want))
		}
	}
	wantSize(t, openLog(t, again, "cmd_unwanted"), core.StreamStdout, 0, 0)
	if size, err := Size(dir); err != nil || size < 100_000 {
		t.Errorf("the size is %d, %v", size, err)
	}
}

// writing is a context that writes to a log whenever it is looked at, which is between any
// two files of a copy.
type writing struct {
	context.Context //nolint:containedctx // it is one
	write           func()
}

func (w writing) Err() error {
	w.write()
	return w.Context.Err()
}

// TestACopyHasNoGapThatTheLogHasNot, while the log grows by more than a segment.
func TestACopyHasNoGapThatTheLogHasNot(t *testing.T) {
	dir, to := t.TempDir(), t.TempDir()
	ls := openLogs(t, dir, MinBytes)
	l := openLog(t, ls, testCmd)
	grow := func() { write(t, l, core.StreamStdout, make([]byte, MinBytes/segmentsPerLog/2)) }
	grow()
	if _, err := Copy(writing{t.Context(), grow}, dir, to, testEnv, all); err != nil {
		t.Fatal(err)
	}
	again := openLog(t, openLogs(t, to, MinBytes), testCmd)
	if total, dropped := again.Size(core.StreamStdout); total < 1 || dropped > 0 {
		t.Errorf("of %d bytes %d are missing", total, dropped)
	}
}

// TestACopyOfALogThatIsTrimmedMeanwhile knows how long it was.
func TestACopyOfALogThatIsTrimmedMeanwhile(t *testing.T) {
	dir, to := t.TempDir(), t.TempDir()
	ls := openLogs(t, dir, MinBytes)
	l := openLog(t, ls, testCmd)
	for range 10 {
		write(t, l, core.StreamStdout, make([]byte, 4000))
	}
	_, err := Copy(t.Context(), dir, to, testEnv, func(string) (bool, error) {
		_, err := ls.Trim(testEnv, testCmd)
		return true, err
	})
	if err != nil {
		t.Fatal(err)
	}
	wantSize(t, openLog(t, openLogs(t, to, MinBytes), testCmd), core.StreamStdout, 40_000, 40_000)
}
