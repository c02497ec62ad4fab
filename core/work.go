package core

import (
	"sync"
	"time"
)

// kind says what of the end of the service a piece of work holds up.
type kind int

// The kinds of work. What was begun before the service drains is done to its end, as
// far as the grace allows.
const (
	// aCall starts or changes something. None begins while the service drains, which
	// waits for those that have, and so does Close.
	aCall kind = iota
	// aLook belongs to what was begun, or changes nothing. It goes on while the
	// service drains, which does not wait for it; Close does.
	aLook
	// aCommand is one that runs. Close ends it.
	aCommand
	// aChange is one of files whose content is on its way. Where that does not come
	// in the grace Close refuses the change, and so waits for none.
	aChange
	kinds
)

// work is what is under way in a service. Make it with newWork.
type work struct {
	draining chan struct{} // closed by drain: nothing new begins
	drained  chan struct{} // closed when nothing is left that draining waits for
	over     chan struct{} // closed when nothing is left that closing waits for

	mu     sync.Mutex
	counts [kinds]int
	closed bool      // nothing goes on
	until  time.Time // when it waits no longer; zero where that was not said
}

func newWork() *work {
	return &work{draining: make(chan struct{}), drained: make(chan struct{}), over: make(chan struct{})}
}

// enter lets work begin, unless it comes too late. Who entered must leave.
func (w *work) enter(k kind) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || isClosed(w.draining) && k != aLook {
		return false
	}
	w.counts[k]++
	return true
}

// add is enter for what belongs to work that has begun and not left yet.
func (w *work) add(k kind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[k]++
}

func (w *work) leave(k kind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[k]--
	w.settle()
}

// drain lets nothing new begin. It says whether that is so only now.
func (w *work) drain(until time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if isClosed(w.draining) {
		return false
	}
	w.until = until
	close(w.draining)
	w.settle()
	return true
}

// close lets nothing go on any more.
func (w *work) close() {
	w.drain(time.Time{})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.settle()
}

// settle tells who waits. Once closed, a channel stays so: what comes later is refused,
// or added by what is counted already.
func (w *work) settle() {
	if isClosed(w.draining) && w.counts[aCall]+w.counts[aCommand]+w.counts[aChange] == 0 && !isClosed(w.drained) {
		close(w.drained)
	}
	if w.closed && w.counts[aCall]+w.counts[aLook] == 0 && !isClosed(w.over) {
		close(w.over)
	}
}

// left gives what draining waits for.
func (w *work) left() Draining {
	w.mu.Lock()
	defer w.mu.Unlock()
	return Draining{
		Commands: w.counts[aCommand],
		Calls:    w.counts[aCall] + w.counts[aChange],
		Until:    w.until,
	}
}
