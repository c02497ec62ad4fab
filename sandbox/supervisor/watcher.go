package supervisor

import (
	"sync"

	"envapi/sandbox/inotify"
)

// watcher is the service's one inotify instance. It is made before any box, which
// could take all that the kernel gives; where it cannot be had then, later.
type watcher struct {
	mu     sync.Mutex
	closed bool
	only   *inotify.Watcher
}

// get gives it, or nil, which has room for no watch.
func (w *watcher) get() (*inotify.Watcher, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, errClosing
	}
	if w.only == nil {
		w.only, _ = inotify.New()
	}
	return w.only, nil
}

func (w *watcher) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	if w.only != nil {
		_ = w.only.Close()
	}
}
