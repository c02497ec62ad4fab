package watch_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/internal/workspace/watch"
)

const (
	file      = core.TypeFile
	directory = core.TypeDirectory
)

func TestWhatHappensIsTold(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(w *world)
		do   func(w *world) error
		want []core.FileEvent
	}{
		{
			"a new file, written", nil, func(w *world) error { return os.WriteFile(w.path("a"), []byte("x"), 0o600) },
			[]core.FileEvent{event(core.FileCreated, "a", file), event(core.FileModified, "a", file)},
		},
		{
			"an empty new file", nil, func(w *world) error { return os.WriteFile(w.path("a"), nil, 0o600) },
			[]core.FileEvent{event(core.FileCreated, "a", file)},
		},
		{
			"a file, written", func(w *world) { w.write("a", "x") }, func(w *world) error { return os.WriteFile(w.path("a"), []byte("y"), 0o600) },
			[]core.FileEvent{event(core.FileModified, "a", file)},
		},
		{
			"a mode", func(w *world) { w.write("a", "x") }, func(w *world) error { return os.Chmod(w.path("a"), 0o640) },
			[]core.FileEvent{event(core.FileAttributes, "a", file)},
		},
		{
			"a removal", func(w *world) { w.write("a", "x") }, func(w *world) error { return os.Remove(w.path("a")) },
			[]core.FileEvent{event(core.FileDeleted, "a", "")},
		},
		{
			"a rename", func(w *world) { w.write("a", "x") }, func(w *world) error { return os.Rename(w.path("a"), w.path("b")) },
			[]core.FileEvent{{Type: core.FileMoved, Path: "b", From: "a", Kind: file}},
		},
		{
			"a link", nil, func(w *world) error { return os.Symlink("/etc", w.path("a")) },
			[]core.FileEvent{event(core.FileCreated, "a", core.TypeSymlink)},
		},
		{
			"a FIFO", nil, func(w *world) error { return unix.Mkfifo(w.path("a"), 0o600) },
			[]core.FileEvent{event(core.FileCreated, "a", core.TypeFIFO)},
		},
		{
			"D16: a name with a newline", nil, func(w *world) error { return os.WriteFile(w.path("a\n\x1b[31m"), nil, 0o600) },
			[]core.FileEvent{event(core.FileCreated, "a\n\x1b[31m", file)},
		},
		{
			"a new directory", nil, func(w *world) error { return os.Mkdir(w.path("d"), 0o700) },
			[]core.FileEvent{event(core.FileCreated, "d", directory)},
		},
		{
			"below a directory", func(w *world) { w.mkdir("d/e") }, func(w *world) error { return os.WriteFile(w.path("d/e/f"), nil, 0o600) },
			[]core.FileEvent{event(core.FileCreated, "d/e/f", file)},
		},
		{
			"a directory that goes", func(w *world) { w.mkdir("d") }, func(w *world) error { return os.Remove(w.path("d")) },
			[]core.FileEvent{event(core.FileDeleted, "d", directory)},
		},
		{
			"a file that comes from where nobody looks", func(w *world) { w.stage("x") }, func(w *world) error { return os.Rename(filepath.Join(w.aside, "x"), w.path("a")) },
			[]core.FileEvent{event(core.FileCreated, "a", file)},
		},
		{
			"a file that goes where nobody looks", func(w *world) { w.write("a", "") }, func(w *world) error { return os.Rename(w.path("a"), filepath.Join(w.aside, "x")) },
			[]core.FileEvent{event(core.FileDeleted, "a", "")},
		},
		{
			"a file that is replaced by exchange", func(w *world) { w.stage("x"); w.write("a", "") }, func(w *world) error { return exchange(filepath.Join(w.aside, "x"), w.path("a")) },
			[]core.FileEvent{event(core.FileModified, "a", file)},
		},
		{
			"a file that is replaced by exchange, told the other way", func(w *world) { w.stage("x"); w.write("a", "") }, func(w *world) error { return exchange(w.path("a"), filepath.Join(w.aside, "x")) },
			[]core.FileEvent{event(core.FileModified, "a", file)},
		},
		{"a file that came and went", func(w *world) { w.stage("x") }, func(w *world) error {
			return errors.Join(os.Rename(filepath.Join(w.aside, "x"), w.path("a")), os.Rename(w.path("a"), filepath.Join(w.aside, "x")))
		}, []core.FileEvent{event(core.FileCreated, "a", ""), event(core.FileDeleted, "a", "")}},
		{
			"two files that change places", func(w *world) { w.write("a", ""); w.write("b", "") }, func(w *world) error { return exchange(w.path("a"), w.path("b")) },
			[]core.FileEvent{event(core.FileModified, "a", file), event(core.FileModified, "b", file)},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			if c.make != nil {
				c.make(w)
			}
			one := w.watch("", true)
			w.do(func() error { return c.do(w) })
			w.do(func() error { return os.Mkdir(w.path("end"), 0o700) })
			want(t, one, append(slices.Clone(c.want), event(core.FileCreated, "end", directory))...)
		})
	}
}

func (w *world) stage(name string) {
	w.do(func() error { return os.WriteFile(filepath.Join(w.aside, name), []byte("staged"), 0o600) })
}

func exchange(a, b string) error {
	return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}

// A writer that keeps the file open is told of when it stops for a moment.
func TestALongWriterIsTold(t *testing.T) {
	w := newWorld(t)
	w.write("log", "")
	one := w.watch("", false)
	f, err := os.OpenFile(w.path("log"), os.O_WRONLY, 0)
	must(t, err)
	defer f.Close()
	for range 3 {
		_, err = f.WriteString("line\n")
		must(t, err)
	}
	want(t, one, event(core.FileModified, "log", file))
}

func TestPathsAreThoseOfTheWatchedDirectory(t *testing.T) {
	w := newWorld(t)
	w.mkdir("a/b")
	for _, path := range []string{"a/b", "./a//b/", "/workspace/a/b"} {
		one := w.watch(path, false)
		w.write("a/b/f", "")
		want(t, one, event(core.FileCreated, "a/b/f", file))
		must(t, one.Close())
		must(t, os.Remove(w.path("a/b/f")))
	}
}

func TestWithoutRecursionOnlyTheDirectoryItselfIsWatched(t *testing.T) {
	w := newWorld(t)
	w.mkdir("d")
	one := w.watch("", false)
	w.write("d/f", "x")
	w.mkdir("e")
	w.write("e/f", "x")
	w.write("f", "")
	want(t, one, event(core.FileCreated, "e", directory), event(core.FileCreated, "f", file))
}

// What is in a directory by the time it is watched is told too, and nothing twice.
func TestADirectoryThatComesIsToldWithAllThatIsInIt(t *testing.T) {
	w := newWorld(t)
	one := w.watch("", true)
	for round := range 30 {
		top := fmt.Sprintf("d%d", round)
		wanted := map[string]int{top: 1}
		for i := range 5 {
			dir := filepath.Join(top, "e", fmt.Sprint(i))
			w.mkdir(dir)
			w.write(filepath.Join(dir, "f"), "")
			wanted[filepath.Join(top, "e")], wanted[dir], wanted[filepath.Join(dir, "f")] = 1, 1, 1
		}
		w.write("end"+top, "")
		before := until(t, one, event(core.FileCreated, "end"+top, file))
		for len(wanted) > 0 {
			for _, e := range before {
				if e.Type == core.FileCreated {
					wanted[e.Path]--
				}
				if n, ok := wanted[e.Path]; !ok || n < 0 {
					t.Fatalf("%+v was told too often", e)
				} else if n == 0 {
					delete(wanted, e.Path)
				}
			}
			if before = nil; len(wanted) > 0 {
				some, err := one.Next(t.Context())
				must(t, err)
				before = some
			}
		}
	}
}

func TestADirectoryThatMovesIsFollowed(t *testing.T) {
	w := newWorld(t)
	w.mkdir("a/x/y", "b")
	one := w.watch("", true)
	w.do(func() error { return os.Rename(w.path("a/x"), w.path("b/z")) })
	w.write("b/z/y/f", "")
	want(t, one, core.FileEvent{Type: core.FileMoved, Path: "b/z", From: "a/x", Kind: directory}, event(core.FileCreated, "b/z/y/f", file))
	w.do(func() error { return os.Rename(w.path("b/z"), filepath.Join(w.aside, "z")) })
	want(t, one, event(core.FileDeleted, "b/z", directory))
	w.do(func() error { return os.WriteFile(filepath.Join(w.aside, "z/y/g"), nil, 0o600) })
	w.do(func() error { return os.Rename(filepath.Join(w.aside, "z"), w.path("back")) })
	want(t, one, event(core.FileCreated, "back", directory), event(core.FileCreated, "back/y", directory),
		event(core.FileCreated, "back/y/f", file), event(core.FileCreated, "back/y/g", file))
}

func TestDirectoriesThatChangePlacesAreToldAsNew(t *testing.T) {
	w := newWorld(t)
	w.mkdir("a/x", "b/y")
	one := w.watch("", true)
	w.do(func() error { return exchange(w.path("a"), w.path("b")) })
	want(t, one, event(core.FileDeleted, "a", directory), event(core.FileCreated, "a", directory), event(core.FileCreated, "a/y", directory),
		event(core.FileDeleted, "b", directory), event(core.FileCreated, "b", directory), event(core.FileCreated, "b/x", directory))
	for _, path := range []string{"a/y/f", "b/x/f"} { // one by one: each has an instance of its own
		w.write(path, "")
		want(t, one, event(core.FileCreated, path, file))
	}
}

func TestTheEndOfTheDirectoryIsTheEndOfTheWatch(t *testing.T) {
	for name, end := range map[string]func(w *world) error{
		"removed": func(w *world) error { return os.Remove(w.path("up/d")) },
		"moved":   func(w *world) error { return os.Rename(w.path("up/d"), w.path("e")) },
		"taken":   func(w *world) error { return os.Rename(w.path("up/d"), filepath.Join(w.aside, "e")) },
		"taken with what is above": func(w *world) error {
			return errors.Join(os.Rename(w.path("up"), filepath.Join(w.aside, "up")), os.Mkdir(filepath.Join(w.aside, "up/d/e"), 0o700))
		},
		"another in its place": func(w *world) error {
			return errors.Join(os.Rename(w.path("up"), filepath.Join(w.aside, "up")), os.MkdirAll(w.path("up/d"), 0o700), os.Mkdir(filepath.Join(w.aside, "up/d/e"), 0o700))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.mkdir("up/d")
			one := w.watch("up/d", true)
			w.do(func() error { return end(w) })
			for _, e := range until(t, one, event(core.FileGone, "up/d", directory)) {
				if e.Path != "up/d/e" { // it is there, as far as that can be known
					t.Errorf("got %+v", e)
				}
			}
			if events, err := one.Next(t.Context()); !errors.Is(err, io.EOF) || len(events) != 0 {
				t.Errorf("then got %v, %v", events, err)
			}
		})
	}
}

// A link inside never makes a watch of what it leads to.
func TestLinksAreNotFollowedToADirectory(t *testing.T) {
	w := newWorld(t)
	w.do(func() error { return os.Symlink(w.aside, w.path("out")) })
	one := w.watch("", true)
	w.do(func() error { return os.Symlink(w.aside, w.path("new")) })
	w.stage("secret")
	w.write("end", "")
	want(t, one, event(core.FileCreated, "new", core.TypeSymlink), event(core.FileCreated, "end", file))
	_, err := w.watches.Watch(t.Context(), w.root, "out", true)
	wantCode(t, err, core.CodePathOutside)
	_, err = w.watches.Watch(t.Context(), w.root, "end", true)
	wantCode(t, err, core.CodeNotADirectory)
	_, err = w.watches.Watch(t.Context(), w.root, "nothing", true)
	wantCode(t, err, core.CodeNotFound)
}

// A directory that is swapped with a link out, all the time, never makes the watch
// tell of what is outside.
func TestD10ASwapNeverLeadsTheWatchOut(t *testing.T) {
	w := newWorld(t)
	w.do(func() error { return os.Mkdir(filepath.Join(w.aside, "sub"), 0o700) })
	one := w.watch("", true)
	w.do(func() error {
		for n := range 400 { // so many that no event is lost
			err := errors.Join(
				os.MkdirAll(w.path("d/sub"), 0o700), os.Rename(w.path("d"), w.path("old")), os.Symlink(w.aside, w.path("d")),
				os.WriteFile(filepath.Join(w.aside, "sub", fmt.Sprintf("secret%d", n)), nil, 0o600),
				os.Remove(w.path("d")), os.RemoveAll(w.path("old")),
			)
			if err != nil {
				return err
			}
		}
		return nil
	})
	w.write("end", "")
	for _, e := range until(t, one, event(core.FileCreated, "end", file)) {
		if strings.Contains(e.Path, "secret") || strings.Contains(e.From, "secret") {
			t.Fatalf("got %+v", e)
		}
	}
}

func TestWhoDoesNotFetchLosesEventsAndIsToldSo(t *testing.T) {
	w := newWorld(t)
	w.write("0", "")
	one := w.watch("", false)
	w.do(func() error {
		for n := 0; !watch.Full(one); n++ {
			if err := os.Rename(w.path(fmt.Sprint(n)), w.path(fmt.Sprint(n+1))); err != nil {
				return err
			}
		}
		return nil
	})
	before := until(t, one, event(core.FileOverflow, "", directory))
	if len(before) > 4096 || len(before) == 0 {
		t.Errorf("%d events came before the overflow", len(before))
	}
	settled(t, one)
	w.write("on", "")
	until(t, one, event(core.FileCreated, "on", file))
}

// settled fetches until nothing comes for a moment.
func settled(t *testing.T, one core.FileWatch) {
	t.Helper()
	settledInto(t, one, model{})
}

func TestTheKernelsOverflowIsToldAndWatchingGoesOn(t *testing.T) {
	w := newWorld(t)
	w.write("a", "")
	w.write("b", "")
	one := w.watch("", true)
	var told atomic.Bool
	go func() {
		until(t, one, event(core.FileOverflow, "", directory))
		told.Store(true)
	}()
	// Two names in turn, since the kernel tells the same event only once; more of them
	// than its queue has room for (16 384) before anybody could look at half of them.
	made := 0
	for ; made < 100 && !told.Load(); made++ {
		w.do(func() error {
			for range 20_000 {
				if err := errors.Join(os.Chmod(w.path("a"), 0o600), os.Chmod(w.path("b"), 0o600)); err != nil {
					return err
				}
			}
			return os.Mkdir(w.path(fmt.Sprintf("d%d", made)), 0o700)
		})
	}
	if !told.Load() {
		t.Fatal("no event was lost")
	}
	settled(t, one)
	for n := range made {
		name := fmt.Sprintf("d%d/on", n)
		w.write(name, "")
		until(t, one, event(core.FileCreated, name, file))
	}
}

func TestAWatchEndsWithItsContextAndWithTheService(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	one, err := w.watches.Watch(ctx, w.root, "", true)
	must(t, err)
	cancel()
	if _, err := one.Next(t.Context()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	other := w.watch("", true)
	must(t, w.watches.Close())
	_, err = other.Next(t.Context())
	wantCode(t, err, core.CodeUnavailable)
	_, err = w.watches.Watch(t.Context(), w.root, "", true)
	wantCode(t, err, core.CodeUnavailable)
	must(t, other.Close())
	must(t, one.Close())
}

// A directory that its user may not read is not watched, though the service could.
func TestRightsAreThoseOfTheUser(t *testing.T) {
	w := newWorld(t)
	w.mkdir("d")
	w.do(func() error { return os.Chmod(w.path("d"), 0o300) })
	one := w.watch("", true)
	_, err := w.watches.Watch(t.Context(), w.root, "d", false)
	wantCode(t, err, core.CodePermissionDenied)
	w.write("d/secret", "")
	w.write("end", "")
	want(t, one, event(core.FileCreated, "end", file))
	w.do(func() error { return os.Chmod(w.path("d"), 0o700) })
}
