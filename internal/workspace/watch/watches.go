// Package watch tells of changes below a directory of an environment's folder, by
// inotify(7).
//
// Each subscription has an inotify instance of its own: the kernel's queue of events
// is the instance's, and one who floods it loses his own events and nobody else's.
// The kernel gives a user 128 instances, so the subscriptions are bounded; and so are
// the directories, the events and the bytes that each holds.
//
// What is not protected: an event says what happened, not who did it, and what is told
// is not all that was: several changes of a file in a moment are told as one, what is
// made and gone again before its directory is watched is not told, and neither is what
// is written through a mapping. A directory that the environment's user may not read
// is not watched, nor one so deep that no path reaches it. That a directory above the
// watched one was moved, and so that is gone, is told with the next event.
package watch

import (
	"context"
	"errors"
	"os"
	"path"
	"sync"

	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/internal/workspace/inside"
)

// mostWatches is how many subscriptions there are in all: the kernel gives a user 128
// instances by default, and the service needs others. Tests make it less.
var mostWatches = 96

const (
	// mostOfOne is how many a folder has.
	mostOfOne = 16
	// retryAfter is what is advised where there is no room, in milliseconds.
	retryAfter = 5000
)

// Watches are the subscriptions of a service.
type Watches struct {
	room *room

	mu     sync.Mutex
	open   map[*watch]struct{}
	count  map[folder]int // with those that are being made
	total  int
	closed bool
}

// folder is a directory, by what the kernel knows it by.
type folder struct{ dev, ino uint64 }

// Open makes the place for subscriptions.
func Open() (*Watches, error) {
	return &Watches{room: newRoom(), open: map[*watch]struct{}{}, count: map[folder]int{}}, nil
}

// Close ends all subscriptions, and returns when nothing of them runs any more.
func (w *Watches) Close() error {
	w.mu.Lock()
	w.closed = true
	all := make([]*watch, 0, len(w.open))
	for one := range w.open {
		all = append(all, one)
	}
	w.mu.Unlock()
	for _, one := range all {
		one.stop(draining())
		<-one.done
	}
	return nil
}

func draining() error {
	return core.Errorf(core.CodeUnavailable, "cannot watch: the service ends; watch again when it is back").With("retry_after_ms", retryAfter)
}

// Watch implements core.FileTree. It fails with `not_a_directory`, `quota_exceeded`
// where there are more directories than may be watched, and `unavailable` where there
// are too many subscriptions, or the kernel or the share of the account that ctx is of
// gives no more watches. The root
// must be open as long as the watch.
func (w *Watches) Watch(ctx context.Context, root *inside.Root, name string, recursive bool) (core.FileWatch, error) {
	rel, err := root.Relative(name)
	if err != nil {
		return nil, err
	}
	of, err := home(root)
	if err != nil {
		return nil, err
	}
	if err := w.reserve(of); err != nil {
		return nil, err
	}
	one, err := newWatch(root, rel, recursive)
	if err == nil {
		caller, _ := core.CallerFrom(ctx)
		one.share = &share{room: w.room, account: caller.Account}
		if err = root.As(func() error { return one.begin(ctx) }); err != nil {
			one.close()
			one.share.settle(0)
		}
	}
	if err != nil {
		w.release(of)
		return nil, inside.Fault(rel, err)
	}
	w.start(ctx, one, of)
	return one, nil
}

// home says which folder a root is of.
func home(root *inside.Root) (of folder, err error) {
	err = root.As(func() error {
		dir, is, err := find(root, "")
		if err != nil {
			return err
		}
		of = is
		return dir.Close()
	})
	return of, err
}

// find opens a directory, only to hold it, and says which it is.
func find(root *inside.Root, rel string) (dir *os.File, is folder, err error) {
	place, err := root.Locate(rel, inside.Mode{Follow: true})
	if err != nil {
		return nil, is, err
	}
	if !place.Exists() || place.Kind() != unix.S_IFDIR {
		defer place.Close()
		_, err := place.OpenDirectory(rel)
		return nil, is, err
	}
	dir, place.Leaf = place.Leaf, nil
	place.Close()
	return dir, folder{place.Stat.Dev, place.Stat.Ino}, nil
}

// reserve counts a subscription before it is made, so that many at a time pass no
// bound.
func (w *Watches) reserve(of folder) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed:
		return draining()
	case w.count[of] >= mostOfOne:
		return core.Errorf(core.CodeQuotaExceeded, "cannot watch: this environment has %d watches open; end one", mostOfOne).
			With("limit", "watches").With("allowed", mostOfOne).With("used", w.count[of])
	case w.total >= mostWatches:
		return core.Errorf(core.CodeUnavailable, "cannot watch: the service has as many watches open as it may; list the directory instead, or try again").With("retry_after_ms", retryAfter)
	}
	w.count[of]++
	w.total++
	return nil
}

func (w *Watches) release(of folder) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.total--
	if w.count[of]--; w.count[of] == 0 {
		delete(w.count, of)
	}
}

// start lets a subscription run until ctx ends or it is closed.
func (w *Watches) start(ctx context.Context, one *watch, of folder) {
	w.mu.Lock()
	w.open[one] = struct{}{}
	closed := w.closed
	w.mu.Unlock()
	forget := context.AfterFunc(ctx, func() { one.stop(context.Cause(ctx)) })
	go func() {
		one.run()
		one.share.settle(0)
		forget()
		w.mu.Lock()
		delete(w.open, one)
		w.mu.Unlock()
		w.release(of)
		close(one.done)
	}()
	if closed {
		one.stop(draining())
	}
}

// join puts a path together, below where the watched directory was asked for.
func join(dir, name string) string {
	switch {
	case name == "":
		return dir
	case dir == "":
		return name
	}
	return path.Join(dir, name)
}

var errEnded = errors.New("the watch is closed")
