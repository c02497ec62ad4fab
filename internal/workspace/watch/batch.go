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
	if _, ok := d.found[e.name]; ok {
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
	if j, ok := b.answer(i); ok && w.kind(d.path(e.name)) != "" {
		b.done[j] = true
		w.replaced(d, e)
		return
	}
	if e.is(unix.IN_MOVED_TO) {
		w.created(d, e)
		return
	}
	w.deleted(d, e)
}

// replaced tells of a name that stands for something else now.
func (w *watch) replaced(d *directory, e *event) {
	below, kind := d.below[e.name], w.kind(d.path(e.name))
	if below == nil && kind != core.TypeDirectory {
		delete(w.waiting, key{d, e.name})
		w.tell(core.FileModified, d, e.name, kind)
		return
	}
	if below != nil {
		w.drop(below)
	}
	w.tell(core.FileDeleted, d, e.name, "")
	w.tell(core.FileCreated, d, e.name, kind)
	if kind == core.TypeDirectory {
		w.adopt(d, e.name, true)
	}
}

// moved takes a move from a watched directory to a watched one.
func (w *watch) moved(b *batch, i, j int, from, to *directory) {
	e, other := &b.events[i], &b.events[j]
	b.done[j] = true
	if k, l, ok := b.exchange(i, j); ok {
		b.done[k], b.done[l] = true, true
		w.exchanged(from, e, to, other)
		return
	}
	w.modified(key{from, e.name})
	delete(w.waiting, key{to, other.name})
	delete(from.found, e.name)
	delete(to.found, other.name)
	w.queue.add(core.FileEvent{
		Type: core.FileMoved, Path: join(w.rel, to.path(other.name)), From: join(w.rel, from.path(e.name)),
		Kind: w.known(other, to),
	})
	if e.is(unix.IN_ISDIR) {
		w.follow(from, e.name, to, other.name)
	}
}

// follow moves what is watched along with its directory.
func (w *watch) follow(from *directory, name string, to *directory, as string) {
	if old := to.below[as]; old != nil && old != from.below[name] {
		w.drop(old)
	}
	d := from.below[name]
	switch {
	case d == nil:
		w.adopt(to, as, false)
	case to.under(d):
		w.drop(d) // more has happened than was read
		w.queue.overflow()
	default:
		d.attach(to, as)
	}
}

// exchanged tells of two names that stand for each other's thing now.
func (w *watch) exchanged(from *directory, e *event, to *directory, other *event) {
	first, second := from.below[e.name], to.below[other.name]
	if first != nil {
		first.detach()
	}
	if second != nil {
		second.detach()
		second.attach(from, e.name)
	}
	if first != nil {
		first.attach(to, other.name)
	}
	w.tell(core.FileModified, from, e.name, w.kind(from.path(e.name)))
	w.tell(core.FileModified, to, other.name, w.kind(to.path(other.name)))
}
