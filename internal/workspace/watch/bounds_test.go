package watch_test

import (
	"fmt"
	"os"
	"testing"

	"envapi/core"
	"envapi/internal/workspace/watch"
)

func TestTheDirectoriesOfAWatchAreBounded(t *testing.T) {
	t.Cleanup(watch.SetMostDirectories(100))
	w := newWorld(t)
	w.do(func() error {
		for n := range 99 {
			if err := os.Mkdir(w.path(fmt.Sprint(n)), 0o700); err != nil {
				return err
			}
		}
		return nil
	})
	one := w.watch("", true)
	w.mkdir("more")
	want(t, one, event(core.FileCreated, "more", directory), event(core.FileOverflow, "", directory))
	_, err := w.watches.Watch(t.Context(), w.root, "", true)
	wantCode(t, err, core.CodeQuotaExceeded)
	must(t, w.watch("", false).Close())
}

func TestTheWatchesOfAnEnvironmentAreBounded(t *testing.T) {
	w := newWorld(t)
	var all []core.FileWatch
	for range 16 {
		all = append(all, w.watch("", false))
	}
	_, err := w.watches.Watch(t.Context(), w.root, "", false)
	wantCode(t, err, core.CodeQuotaExceeded)
	must(t, all[0].Close())
	must(t, w.watch("", false).Close())
}

// All environments together have so many as leave instances of inotify to the rest of
// the service.
func TestTheWatchesOfAllAreBounded(t *testing.T) {
	t.Cleanup(watch.SetMostWatches(3))
	w, other := newWorld(t), newWorld(t)
	one := w.watch("", false)
	w.watch("", false)
	other.watches = w.watches
	other.watch("", false)
	for _, any := range []*world{w, other} {
		_, err := w.watches.Watch(t.Context(), any.root, "", false)
		wantCode(t, err, core.CodeUnavailable)
	}
	must(t, one.Close())
	must(t, other.watch("", false).Close())
}

// The kernel counts what is watched for the service's user, and so for all accounts.
func TestAnAccountLeavesDirectoriesToOthers(t *testing.T) {
	w := newWorld(t)
	w.watches.SetMost(40)
	for n := range 12 {
		w.mkdir(fmt.Sprint(n))
	}
	as := func(account string) (core.FileWatch, error) {
		ctx := core.WithCaller(t.Context(), core.Caller{Owner: core.Owner{Account: account}})
		return w.watches.Watch(ctx, w.root, "", true)
	}
	first, err := as("a") // 13 of the 20 that it may have
	must(t, err)
	_, err = as("a")
	wantCode(t, err, core.CodeUnavailable)
	_, err = as("b") // 13 of 27/2
	must(t, err)
	for n := range 12 { // the 7 that a has left, and none for b
		w.mkdir(fmt.Sprint("more", n))
	}
	until(t, first, event(core.FileOverflow, "", directory))
	if n := w.watches.Watched(); n > 40 {
		t.Errorf("%d are watched", n)
	}
	must(t, first.Close())
	third, err := w.watches.Watch(t.Context(), w.root, "0", true)
	must(t, err)
	must(t, third.Close())
}

func TestWhatIsNotWatchedAnyMoreIsGivenBack(t *testing.T) {
	w := newWorld(t)
	w.mkdir("a/b/c")
	one := w.watch("", true)
	if n := w.watches.Watched(); n != 4 {
		t.Errorf("%d are watched, not 4", n)
	}
	w.do(func() error { return os.RemoveAll(w.path("a/b")) })
	until(t, one, event(core.FileDeleted, "a/b", directory))
	w.mkdir("end")
	until(t, one, event(core.FileCreated, "end", directory))
	must(t, one.Close())
	if n := w.watches.Watched(); n != 0 {
		t.Errorf("%d are watched, and nobody is there", n)
	}
}
