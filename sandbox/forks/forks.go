// Package forks knows which processes the service has forked that have yet to execute
// their program. Until then each has a copy of every descriptor of the service, also
// of those that are closed meanwhile; so long the kernel runs no program from a file
// that one of them has open for writing ("text file busy").
//
// Nothing makes a fork tell of itself here; one that does not is not waited for.
package forks

import (
	"context"
	"sync"
)

var (
	mu    sync.Mutex
	young = map[chan struct{}]struct{}{}
)

// Begin says that a process is about to be forked. grown must be called when it has
// executed its program, or ended.
func Begin() (grown func()) {
	done := make(chan struct{})
	mu.Lock()
	defer mu.Unlock()
	young[done] = struct{}{}
	return func() {
		mu.Lock()
		defer mu.Unlock()
		delete(young, done)
		close(done)
	}
}

// Settle waits until no process has a descriptor any more that the service had closed
// before, or until ctx ends. That takes milliseconds, or on a host that hardly runs as
// long as whoever forks has patience; it holds no fork up.
func Settle(ctx context.Context) error {
	mu.Lock()
	waiting := make([]chan struct{}, 0, len(young))
	for done := range young {
		waiting = append(waiting, done)
	}
	mu.Unlock()
	for _, done := range waiting {
		select {
		case <-done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
