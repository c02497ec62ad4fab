package outputlog

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"envapi/core"
)

// What is put in the place of a log is neither followed nor waited for, whatever is done
// with the log.
func TestWhatIsPutInThePlaceOfALogIsNotOpened(t *testing.T) {
	const secret = "not the service's"
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	for name, put := range map[string]func(path string) error{
		"FIFO":   func(path string) error { return unix.Mkfifo(path, 0o600) },
		"link":   func(path string) error { return os.Symlink(elsewhere, path) },
		"folder": func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		t.Run(name, func(t *testing.T) {
			must(t, os.WriteFile(elsewhere, []byte(secret), 0o600))
			dir := t.TempDir()
			ls, err := Open(dir, 1<<20)
			must(t, err)
			l := openLog(t, ls, testCmd)
			write(t, l, core.StreamStdout, []byte("out"))
			path := filepath.Join(dir, testEnv, testCmd)
			must(t, os.Remove(path))
			must(t, put(path))
			inTime(t, "Read", func() {
				if got, err := l.Read(core.StreamStdout, 0, 10); err == nil {
					t.Errorf("it was read as %q", got)
				}
			})
			l.Release()
			inTime(t, "Copy", func() {
				_, _ = Copy(t.Context(), dir, t.TempDir(), testEnv, func(string) (bool, error) { return true, nil })
			})
			inTime(t, "Close", func() { _ = ls.Close() })

			ls = openLogs(t, dir, 1<<20) // as the next service
			inTime(t, "Open", func() {
				if l, err := ls.Open(testEnv, testCmd); err == nil {
					_, _ = l.Writer(core.StreamStdout).Write([]byte("more"))
					l.Release()
				}
			})
			if now, err := os.ReadFile(elsewhere); err != nil || string(now) != secret {
				t.Errorf("what a link points to holds %q now, %v", now, err)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// inTime fails where something does not return.
func inTime(t *testing.T, what string, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatalf("%s does not return", what)
	}
}
