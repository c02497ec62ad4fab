package supervisor

import (
	"context"
	"sync"
	"time"

	"envapi/sandbox"
)

// Boxes are the boxes of one tier that are there.
type Boxes struct {
	removing sync.WaitGroup // one for each box that is there, or whose temporary folder still is

	mu     sync.Mutex
	closed bool
	boxes  map[*Box]struct{}
}

// Launch makes a box and keeps it until it is gone, and with it its temporary
// folder.
func (b *Boxes) Launch(ctx context.Context, l *Launcher, o Options) (sandbox.Box, error) {
	box, err := Launch(ctx, l, o)
	if err != nil {
		o.removeTemporary()
		return nil, err
	}
	if !b.add(box) {
		_ = box.Close()
		o.removeTemporary()
		return nil, sandbox.ErrBoxClosed
	}
	go func() {
		defer b.removing.Done()
		<-box.Done()
		b.drop(box)
		o.removeTemporary()
	}()
	return box, nil
}

func (b *Boxes) add(box *Box) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	if b.boxes == nil {
		b.boxes = map[*Box]struct{}{}
	}
	b.boxes[box] = struct{}{}
	b.removing.Add(1)
	return true
}

func (b *Boxes) drop(box *Box) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.boxes, box)
}

// removePatience is how long Close waits for temporary folders to be removed. What
// is left then the next start removes.
const removePatience = 10 * time.Second

// Close ends every box, at the same time, and lets no other be made.
func (b *Boxes) Close() error {
	b.mu.Lock()
	b.closed = true
	var ending sync.WaitGroup
	for box := range b.boxes {
		ending.Go(func() { _ = box.Close() })
	}
	b.mu.Unlock()
	ending.Wait()
	removed := make(chan struct{})
	go func() {
		b.removing.Wait()
		close(removed)
	}()
	select {
	case <-removed:
	case <-time.After(removePatience):
	}
	return nil
}
