package watch_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"envapi/core"
	"envapi/internal/workspace/inside"
	"envapi/internal/workspace/watch"
	"envapi/sandbox/fsuser"
)

// somebody is a uid of nobody here.
const somebody = 65531

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// world is a folder of an environment, and a folder beside it on the same file system.
type world struct {
	t       *testing.T
	dir     string
	aside   string
	uid     int
	root    *inside.Root
	watches *watch.Watches
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, uid: somebody}
	home := t.TempDir()
	for d := home; d != "/" && d != os.TempDir(); d = filepath.Dir(d) {
		must(t, os.Chmod(d, 0o755))
	}
	if os.Geteuid() != 0 {
		w.uid = 0
	}
	w.dir, w.aside = filepath.Join(home, "folder"), filepath.Join(home, "aside")
	for _, dir := range []string{w.dir, w.aside} {
		must(t, os.Mkdir(dir, 0o700))
		if w.uid != 0 {
			must(t, os.Chown(dir, w.uid, w.uid))
		}
	}
	f, err := os.Open(w.dir)
	must(t, err)
	w.root = inside.NewRoot(f, w.uid, "/workspace")
	w.watches, err = watch.Open()
	must(t, err)
	t.Cleanup(func() {
		must(t, w.watches.Close())
		must(t, w.root.Close())
	})
	return w
}

// do runs something as the environment's user.
func (w *world) do(do func() error) {
	w.t.Helper()
	must(w.t, fsuser.Do(w.uid, w.uid, do))
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

func (w *world) write(name, text string) {
	w.t.Helper()
	w.do(func() error { return os.WriteFile(w.path(name), []byte(text), 0o600) })
}

func (w *world) mkdir(names ...string) {
	w.t.Helper()
	for _, name := range names {
		w.do(func() error { return os.MkdirAll(w.path(name), 0o700) })
	}
}

func (w *world) watch(path string, recursive bool) core.FileWatch {
	w.t.Helper()
	one, err := w.watches.Watch(w.t.Context(), w.root, path, recursive)
	must(w.t, err)
	return one
}

// want waits until just these events were told.
func want(t *testing.T, one core.FileWatch, wanted ...core.FileEvent) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var got []core.FileEvent
	for len(got) < len(wanted) {
		some, err := one.Next(ctx)
		got = append(got, some...)
		if err != nil {
			t.Fatalf("got %+v, then %v; want %+v", got, err, wanted)
		}
	}
	if !slices.Equal(got, wanted) {
		t.Fatalf("got %+v; want %+v", got, wanted)
	}
}

// until waits for an event.
func until(t *testing.T, one core.FileWatch, wanted core.FileEvent) (before []core.FileEvent) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		some, err := one.Next(ctx)
		if i := slices.Index(some, wanted); i >= 0 {
			return append(before, some[:i]...)
		}
		before = append(before, some...)
		if err != nil {
			t.Fatalf("%+v never came: %v; got %d others, at last %+v", wanted, err, len(before), before[max(0, len(before)-20):])
		}
	}
}

func event(what core.FileEventType, path string, kind core.FileType) core.FileEvent {
	return core.FileEvent{Type: what, Path: path, Kind: kind}
}

func wantCode(t *testing.T, err error, code core.Code) {
	t.Helper()
	var e *core.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Errorf("got %v; want %s", err, code)
	}
}

// soon waits for events for a moment: longer than any is held back.
func soon(t *testing.T, one core.FileWatch) ([]core.FileEvent, error) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, os.ErrDeadlineExceeded)
	defer cancel()
	some, err := one.Next(ctx)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return some, err
}
