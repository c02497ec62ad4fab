package core

import (
	"context"
	"sync"
	"time"

	"envapi/sandbox"
)

// The pauses between two looks at a terminal by one who waits: short at first,
// since most prompts come at once, and then such that a prompt is seen within a
// second and looking costs little.
const (
	firstLook = 50 * time.Millisecond
	lastLook  = 500 * time.Millisecond
	// lookBound is how long one look may take: many times what it does.
	lookBound = time.Second
	// blindLooks is after how many looks in a row that tell nothing this host is
	// believed not to tell.
	blindLooks = 6
)

// eye looks whether a terminal is being read. However many want to know, there is
// one look at a time; who asks while one is under way gets the next, so that what
// it answers was seen after it was asked. The zero value is ready.
type eye struct {
	mu        sync.Mutex
	now, next *glance
}

// glance is one look.
type glance struct {
	done    chan struct{}
	reading *bool // nil where this host does not let it look; valid once done
}

// look says whether a terminal is being read; nil where that is not known.
func (e *eye) look(ctx context.Context, t sandbox.Terminal) *bool {
	if t == nil {
		return nil
	}
	e.mu.Lock()
	if e.next == nil {
		e.next = &glance{done: make(chan struct{})}
	}
	mine := e.next
	if e.now == nil {
		e.now, e.next = mine, nil
		go e.open(t) //nolint:gosec // not under ctx: others may want to know too, and lookBound ends it
	}
	e.mu.Unlock()
	select {
	case <-mine.done:
		return mine.reading
	case <-ctx.Done():
		return nil
	}
}

// open looks until nobody wants to know any more.
func (e *eye) open(t sandbox.Terminal) {
	for e.now != nil { // set by this goroutine alone, or before it began
		ctx, cancel := context.WithTimeout(context.Background(), lookBound)
		if reading, known := t.Reading(ctx); known {
			e.now.reading = &reading
		}
		cancel()
		close(e.now.done)
		e.mu.Lock()
		e.now, e.next = e.next, nil
		last := e.now == nil
		e.mu.Unlock()
		if last {
			return
		}
	}
}

// until returns true once the terminal is seen to be read, and false where ctx
// ends first or this host cannot tell. A look that tells nothing may be followed by
// one that does, since nobody may look at a program while it is being executed.
func (e *eye) until(ctx context.Context, t sandbox.Terminal) bool {
	blind := 0
	for pause := firstLook; ; pause = min(pause*3/2, lastLook) {
		switch reading := e.look(ctx, t); {
		case reading == nil:
			if blind++; blind == blindLooks {
				return false
			}
		case *reading:
			return true
		default:
			blind = 0
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return false
		}
	}
}
