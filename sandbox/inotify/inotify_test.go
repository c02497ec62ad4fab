package inotify_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"envapi/sandbox/inotify"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func watcher(t *testing.T) *inotify.Watcher {
	t.Helper()
	w, err := inotify.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w
}

func folder(t *testing.T) *os.File {
	t.Helper()
	dir, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dir.Close() })
	return dir
}

func create(t *testing.T, dir *os.File, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir.Name(), name), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func once(t *testing.T, w *inotify.Watcher, f *os.File, mask uint32) (*inotify.Watch, chan inotify.Event) {
	t.Helper()
	told := make(chan inotify.Event, 8)
	watch, err := w.Once(int(f.Fd()), mask, func(e inotify.Event) { told <- e })
	if err != nil {
		t.Fatal(err)
	}
	return watch, told
}

func receive(t *testing.T, told chan inotify.Event) inotify.Event {
	t.Helper()
	select {
	case e := <-told:
		return e
	case <-time.After(30 * time.Second):
		t.Fatal("nothing was told")
		return inotify.Event{}
	}
}

func TestAWatchTellsOfOneEvent(t *testing.T) {
	w, dir := watcher(t), folder(t)
	_, told := once(t, w, dir, unix.IN_CREATE)
	create(t, dir, "first")
	create(t, dir, "second")
	if e := receive(t, told); e.Name != "first" || e.Lost {
		t.Errorf("got %+v", e)
	}
	_, again := once(t, w, dir, unix.IN_CREATE) // it can be watched again
	create(t, dir, "third")
	if e := receive(t, again); e.Name != "third" {
		t.Errorf("got %+v", e)
	}
	if len(told) != 0 || w.Pending() != 0 {
		t.Errorf("%d events and %d watches are left", len(told), w.Pending())
	}
}

func TestACancelledWatchTellsNothing(t *testing.T) {
	w, dir := watcher(t), folder(t)
	watch, told := once(t, w, dir, unix.IN_CREATE)
	watch.Cancel()
	watch.Cancel()
	_, again := once(t, w, dir, unix.IN_CREATE)
	create(t, dir, "x")
	receive(t, again)
	if len(told) != 0 {
		t.Error("it told")
	}
}

func TestAFolderHasOneWatch(t *testing.T) {
	w, dir := watcher(t), folder(t)
	_, told := once(t, w, dir, unix.IN_CREATE)
	if _, err := w.Once(int(dir.Fd()), unix.IN_CREATE, func(inotify.Event) {}); err == nil {
		t.Error("a second one took its place")
	}
	create(t, dir, "x")
	receive(t, told)
}

func TestWhatIsDeletedIsLost(t *testing.T) {
	w, dir := watcher(t), folder(t)
	_, told := once(t, w, dir, unix.IN_CREATE)
	if err := os.Remove(dir.Name()); err != nil {
		t.Fatal(err)
	}
	_ = dir.Close() // the last who had it
	if e := receive(t, told); !e.Lost {
		t.Errorf("got %+v", e)
	}
}
