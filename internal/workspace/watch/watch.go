package watch

import (
	"context"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/internal/workspace/inside"
)

const (
	// quiet is how long a file must not have been written for it to be told as
	// modified while its writer has it open, and longest how long one waits that is
	// written all the time.
	quiet   = 500 * time.Millisecond
	longest = 5 * time.Second
	// partner is how long the other half of a move is waited for. The kernel makes
	// both together.
	partner = 10 * time.Millisecond
	// mostWaiting is how many files wait for that. More are told at once.
	mostWaiting = 1024
)

// watch is a subscription. What is below queue is used by one goroutine only, as
// the environment's user.
type watch struct {
	root      *inside.Root
	rel       string // as it was asked for, relative to the folder
	is        folder // which directory that was
	recursive bool
	inotify   *instance
	share     *share // how many directories it may watch
	queue     *queue
	ending    sync.Once
	done      chan struct{} // closed when nothing runs any more

	// top is the watched directory, held for as long as something is done in it only:
	// the kernel does not tell of the end of one that is held. Nil is that it is gone.
	top         *os.File
	base        *directory
	directories map[int32]*directory // by the kernel's number
	finders     []*directory         // those with found
	waiting     map[key]waiting
}

// key is a file that is being written.
type key struct {
	in   *directory
	name string
}

type waiting struct{ since, last time.Time }

func newWatch(root *inside.Root, rel string, recursive bool) (*watch, error) {
	i, err := newInstance()
	if err != nil {
		return nil, err
	}
	return &watch{
		root: root, rel: rel, recursive: recursive, inotify: i,
		queue: newQueue(join(rel, "")), done: make(chan struct{}),
	}, nil
}

// Next implements core.FileWatch; one may wait at a time. After `gone` it gives
// io.EOF; where the service ends, `unavailable`.
func (w *watch) Next(ctx context.Context) ([]core.FileEvent, error) { return w.queue.next(ctx) }

// Close ends the subscription.
func (w *watch) Close() error {
	w.stop(errEnded)
	<-w.done
	return nil
}

// stop lets it end; why is what Next gives then.
func (w *watch) stop(why error) {
	w.queue.end(why)
	w.close()
}

func (w *watch) close() { w.ending.Do(func() { _ = w.inotify.file.Close() }) }

// run reads events until the instance is closed.
func (w *watch) run() {
	defer w.close()
	for {
		events, err := w.collect()
		if err != nil {
			w.queue.end(err)
			return
		}
		gone := false
		err = w.root.As(func() error {
			w.reach()
			defer w.leave()
			gone = w.take(events) || w.top == nil
			w.share.settle(len(w.directories))
			return nil
		})
		if err != nil {
			w.queue.end(err)
			return
		}
		if gone {
			w.queue.gone()
			return
		}
	}
}

// begin watches what is there now.
func (w *watch) begin(ctx context.Context) error {
	top, is, err := find(w.root, w.rel)
	if err != nil {
		return err
	}
	w.top, w.is = top, is
	defer w.leave()
	return w.populate(ctx)
}

// reach finds the watched directory, if it is still where it was.
func (w *watch) reach() {
	top, is, err := find(w.root, w.rel)
	if err != nil {
		return
	}
	if is != w.is {
		_ = top.Close()
		return
	}
	w.top = top
}

func (w *watch) leave() {
	if w.top != nil {
		_ = w.top.Close()
		w.top = nil
	}
}

// collect reads events, and the other half of what was moved where that is still to
// come.
func (w *watch) collect() ([]event, error) {
	var until time.Time
	if len(w.waiting) > 0 {
		until = time.Now().Add(quiet / 2)
	}
	events, err := w.inotify.read(until)
	if err != nil || !halves(events) {
		return events, err
	}
	more, err := w.inotify.read(time.Now().Add(partner))
	return append(events, more...), err
}

// halves says whether there is one of a move.
func halves(events []event) bool {
	open := map[uint32]bool{}
	for _, e := range events {
		if e.is(unix.IN_MOVED_FROM | unix.IN_MOVED_TO) {
			if open[e.cookie] {
				delete(open, e.cookie)
			} else {
				open[e.cookie] = true
			}
		}
	}
	return len(open) > 0
}

// take makes of the kernel's events what is told. It says whether the watched
// directory is gone.
func (w *watch) take(events []event) (gone bool) {
	b := newBatch(events)
	for i := range events {
		e := &events[i]
		if e.is(unix.IN_Q_OVERFLOW) {
			return w.again()
		}
		d := w.directories[e.number]
		switch {
		case b.done[i] || d == nil:
		case e.name == "":
			if w.self(d, e) {
				return true
			}
		default:
			w.one(b, i, d)
		}
	}
	w.settle(time.Now())
	if len(w.finders) > 0 && w.inotify.drained() {
		for _, d := range w.finders {
			d.found = nil
		}
		w.finders = nil
	}
	return false
}

// again begins anew after events were lost.
func (w *watch) again() (gone bool) {
	w.queue.overflow()
	if w.top == nil {
		return true
	}
	// What of it cannot be watched was told as lost.
	_ = w.populate(context.Background())
	return false
}

// self takes what happened to a watched directory itself.
func (w *watch) self(d *directory, e *event) (gone bool) {
	over := e.is(unix.IN_DELETE_SELF | unix.IN_UNMOUNT | unix.IN_IGNORED)
	if d == w.base {
		return over || e.is(unix.IN_MOVE_SELF)
	}
	if e.is(unix.IN_IGNORED) {
		d.detach()
		delete(w.directories, d.number)
	}
	return false
}

// tell tells of something in a directory.
func (w *watch) tell(what core.FileEventType, d *directory, name string, kind core.FileType) {
	w.queue.add(core.FileEvent{Type: what, Path: join(w.rel, d.path(name)), Kind: kind})
}

// settle tells of the files that are no longer being written.
func (w *watch) settle(now time.Time) {
	for k, at := range w.waiting {
		if now.Sub(at.last) >= quiet || now.Sub(at.since) >= longest {
			w.modified(k)
		}
	}
}

// modified tells of a file that was written, if it was.
func (w *watch) modified(k key) {
	if _, ok := w.waiting[k]; !ok {
		return
	}
	delete(w.waiting, k)
	if w.directories[k.in.number] == k.in {
		w.tell(core.FileModified, k.in, k.name, core.TypeFile)
	}
}
