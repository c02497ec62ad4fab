package watch

import (
	"context"
	"io"
	"sync"

	"envapi/core"
)

const (
	// mostEvents and mostEventBytes bound what waits for one who does not fetch it.
	// Then the rest is lost, and that is told.
	mostEvents     = 4096
	mostEventBytes = 1 << 20
)

// queue holds events until they are fetched.
type queue struct {
	path string // of the watched directory
	wake chan struct{}

	mu     sync.Mutex
	events []core.FileEvent
	bytes  int
	lost   bool
	ended  error
}

func newQueue(path string) *queue { return &queue{path: path, wake: make(chan struct{}, 1)} }

// add takes an event, unless some were lost already: what is told then is that.
func (q *queue) add(e core.FileEvent) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended != nil || q.lost || q.again(e) {
		return
	}
	q.bytes += len(e.Path) + len(e.From)
	if len(q.events) == mostEvents || q.bytes > mostEventBytes {
		q.lost = true
		return
	}
	q.events = append(q.events, e)
	q.signal()
}

// again says whether the last event says the same.
func (q *queue) again(e core.FileEvent) bool {
	repeats := e.Type == core.FileModified || e.Type == core.FileAttributes || e.Type == core.FileOverflow
	return repeats && len(q.events) > 0 && q.events[len(q.events)-1] == e
}

// overflow says that events were lost before they came here.
func (q *queue) overflow() { q.add(q.loss()) }

func (q *queue) loss() core.FileEvent {
	return core.FileEvent{Type: core.FileOverflow, Path: q.path, Kind: core.TypeDirectory}
}

// full says whether events are lost now.
func (q *queue) full() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lost
}

// end is why there are no more events, once those that are there are fetched.
func (q *queue) end(why error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended == nil {
		q.ended = why
	}
	q.signal()
}

// gone ends it with an event that says so.
func (q *queue) gone() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended == nil {
		q.events = append(q.events, core.FileEvent{Type: core.FileGone, Path: q.path, Kind: core.TypeDirectory})
		q.ended = io.EOF
	}
	q.signal()
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// next waits for events. Where some were lost, those before are told, then that.
func (q *queue) next(ctx context.Context) ([]core.FileEvent, error) {
	for {
		if events, err := q.take(); len(events) > 0 || err != nil {
			return events, err
		}
		select {
		case <-q.wake:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (q *queue) take() ([]core.FileEvent, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	events := q.events
	if q.lost {
		events = q.withOverflow(events)
	}
	q.events, q.bytes, q.lost = nil, 0, false
	if len(events) == 0 && q.ended != nil {
		q.signal() // for whoever waits too
		return nil, q.ended
	}
	return events, nil
}

// withOverflow says last that events were lost, but before that all is gone.
func (q *queue) withOverflow(events []core.FileEvent) []core.FileEvent {
	if n := len(events); n > 0 && events[n-1].Type == core.FileGone {
		return append(events[:n-1:n-1], q.loss(), events[n-1])
	}
	return append(events, q.loss())
}
