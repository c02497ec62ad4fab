package watch

import (
	"time"

	"golang.org/x/sys/unix"

	"envapi/core"
)

// batch are events that were read together.
type batch struct {
	events []event
	done   []bool
	to     map[uint32]int // the second half of moves, by what joins it to the first
	from   map[uint32]int
}

func newBatch(events []event) *batch {
	b := &batch{events: events, done: make([]bool, len(events)), to: map[uint32]int{}, from: map[uint32]int{}}
	for i, e := range events {
		switch {
		case e.is(unix.IN_MOVED_TO):
			b.to[e.cookie] = i
		case e.is(unix.IN_MOVED_FROM):
			b.from[e.cookie] = i
		}
	}
	return b
}

// half gives the other half of a move, or nothing.
func (b *batch) half(i int) (int, bool) {
	e := &b.events[i]
	other := b.to
	if e.is(unix.IN_MOVED_TO) {
		other = b.from
	}
	j, ok := other[e.cookie]
	return j, ok && !b.done[j]
}

// answer finds the event that makes a replacement of one half of a move: something
// came under a name, and what was there left, at the same moment, to or from where
// nobody looks. The files API changes files like that.
func (b *batch) answer(i int) (int, bool) {
	e := &b.events[i]
	wanted := uint32(unix.IN_MOVED_FROM)
	if e.is(unix.IN_MOVED_FROM) {
		wanted = unix.IN_MOVED_TO
	}
	for j := i + 1; j < len(b.events); j++ {
		next := &b.events[j]
		if b.done[j] || next.number != e.number || next.name != e.name {
			continue
		}
		_, paired := b.half(j)
		return j, next.is(wanted) && !paired
	}
	return 0, false
}

// exchange finds out whether a whole move, from i to j, is half of an exchange of two
// names that are both watched.
func (b *batch) exchange(i, j int) (k, l int, ok bool) {
	first, second := &b.events[i], &b.events[j]
	for k := j + 1; k < len(b.events) && k <= j+2; k++ {
		e := &b.events[k]
		if !e.is(unix.IN_MOVED_FROM) || e.number != second.number || e.name != second.name {
			continue
		}
		l, whole := b.half(k)
		if whole && b.events[l].number == first.number && b.events[l].name == first.name {
			return k, l, true
		}
	}
	return 0, 0, false
}

// one takes what happened to a name in a directory.
func (w *watch) one(b *batch, i int, d *directory) {
	e := &b.events[i]
	switch {
	case e.is(unix.IN_MODIFY):
		w.write(key{d, e.name})
	case e.is(unix.IN_CLOSE_WRITE):
		w.modified(key{d, e.name})
	case e.is(unix.IN_ATTRIB):
		w.tell(core.FileAttributes, d, e.name, w.known(e, d))
	case e.is(unix.IN_CREATE):
		w.created(d, e)
	case e.is(unix.IN_DELETE):
		w.deleted(d, e)
	case e.is(unix.IN_MOVED_FROM | unix.IN_MOVED_TO):
		w.move(b, i, d)
	}
}

// known gives what a name is, without a look at it for a directory.
func (w *watch) known(e *event, d *directory) core.FileType {
	if e.is(unix.IN_ISDIR) {
		return core.TypeDirectory
	}
	return w.kind(d.path(e.name))
}

// write notes that a file is being written.
func (w *watch) write(k key) {
	now := time.Now()
	at, ok := w.waiting[k]
	if !ok {
		at.since = now
	}
	at.last = now
	w.waiting[k] = at
	if len(w.waiting) > mostWaiting {
		w.modified(k)
	}
}

func (w *watch) created(d *directory, e *event) {
	if d.has(e.name) {
		delete(d.found, e.name)
		return // it was told of when it was found
	}
	w.tell(core.FileCreated, d, e.name, w.known(e, d))
	if e.is(unix.IN_ISDIR) {
		w.adopt(d, e.name, true)
	}
}

// adopt watches a directory that has come, and all below it.
func (w *watch) adopt(d *directory, name string, tell bool) {
	if !w.recursive {
		return
	}
	todo, err := w.enter(pair{d, name}, nil, tell)
	for err == nil && len(todo) > 0 {
		next := todo[len(todo)-1]
		todo, err = w.enter(next, todo[:len(todo)-1], tell)
	}
	if err != nil {
		w.queue.overflow() // not all of it is watched
	}
}

func (w *watch) deleted(d *directory, e *event) {
	delete(d.found, e.name)
	delete(w.waiting, key{d, e.name})
	kind := core.FileType("")
	if e.is(unix.IN_ISDIR) {
		kind = core.TypeDirectory
		if below := d.below[e.name]; below != nil {
			w.drop(below)
		}
	}
	w.tell(core.FileDeleted, d, e.name, kind)
}

// move takes one half of a move.
func (w *watch) move(b *batch, i int, d *directory) {
	e := &b.events[i]
	if j, ok := b.half(i); ok && e.is(unix.IN_MOVED_FROM) {
		if to := w.directories[b.events[j].number]; to != nil {
			w.moved(b, i, j, d, to)
			return
		}
	}
	if j, ok := b.answer(i); ok && w.sure(d) && w.kind(d.path(e.name)) != "" {
		b.done[j] = true
		if e.is(unix.IN_MOVED_TO) {
			e = &b.events[j]
		}
		w.replaced(d, e)
		return
	}
	switch {
	case e.is(unix.IN_MOVED_FROM):
		w.deleted(d, e)
	case d.has(e.name):
		w.changed(d, e)
	default:
		w.created(d, e)
	}
}

// changed tells of a name that was exchanged for another one, or moved there and back:
// that looks the same.
func (w *watch) changed(d *directory, left *event) {
	if w.sure(d) && w.kind(d.path(left.name)) != "" {
		w.replaced(d, left)
		return
	}
	w.deleted(d, left)
}

// replaced tells of a name that stands for something else now than what left it.
func (w *watch) replaced(d *directory, left *event) {
	kind := w.kind(d.path(left.name))
	if kind != core.TypeDirectory && !left.is(unix.IN_ISDIR) {
		delete(w.waiting, key{d, left.name})
		w.tell(core.FileModified, d, left.name, kind)
		return
	}
	w.deleted(d, left)
	w.tell(core.FileCreated, d, left.name, kind)
	if kind == core.TypeDirectory {
		w.adopt(d, left.name, true)
	}
}

// moved takes a move from a watched directory to a watched one.
func (w *watch) moved(b *batch, i, j int, from, to *directory) {
	e, other := &b.events[i], &b.events[j]
	b.done[j] = true
	if k, l, ok := b.exchange(i, j); ok {
		b.done[k], b.done[l] = true, true
		w.changed(from, e)
		w.changed(to, &b.events[k])
		return
	}
	if from.has(e.name) || to.has(other.name) {
		// It was read by then, or before: no telling which.
		w.changed(from, e)
		w.changed(to, other)
		return
	}
	w.modified(key{from, e.name})
	delete(w.waiting, key{to, other.name})
	w.queue.add(core.FileEvent{
		Type: core.FileMoved, Path: join(w.rel, to.path(other.name)), From: join(w.rel, from.path(e.name)),
		Kind: w.known(other, to),
	})
	if e.is(unix.IN_ISDIR) {
		w.follow(from, e.name, to, other.name)
	}
}

// follow moves what is watched along with its directory. What was read already may be
// older than what is known: a directory that is read when it comes is read as it is
// then. So it is looked at what stands there, and the names are believed only where
// nothing does.
func (w *watch) follow(from *directory, name string, to *directory, as string) {
	if !w.recursive {
		return
	}
	moved, old := from.below[name], to.below[as]
	there, is := w.watched(to, as)
	switch {
	case there && is == nil:
		w.adopt(to, as, true)
	case there:
		if old != nil && old != is {
			w.drop(old)
		}
		w.attach(is, to, as)
	case moved != nil && moved != old:
		if old != nil {
			w.drop(old)
		}
		if still, is := w.watched(from, name); !still || is != moved {
			w.attach(moved, to, as)
		}
	}
}

// sure says whether a directory is still where it is thought to be. Where it is not,
// and that matters, nobody knows what is there, and that is told.
func (w *watch) sure(d *directory) bool {
	if d == w.base && w.top != nil {
		return true
	}
	if there, is := w.watched(d, ""); !there || is != d {
		w.queue.overflow()
		return false
	}
	return true
}

// attach puts a directory below another one, unless it is above that by what is known:
// then more has happened than was read.
func (w *watch) attach(d, to *directory, as string) {
	if to.under(d) {
		w.drop(d)
		w.queue.overflow()
		return
	}
	d.attach(to, as)
}

// watched says whether there is a directory at a name (or "": the directory itself),
// and which it is, if it is watched.
func (w *watch) watched(d *directory, name string) (there bool, is *directory) {
	held, err := w.hold(d.path(name), unix.O_DIRECTORY)
	if err != nil {
		return false, nil
	}
	defer held.Close()
	number, err := w.inotify.add(held)
	if err != nil {
		return true, nil
	}
	if is = w.directories[number]; is == nil {
		w.inotify.remove(number)
	}
	return true, is
}
