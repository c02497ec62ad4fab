package core

import (
	"context"
	"sync"
	"time"
)

const (
	// maxPassages is how many environments of an account are archived and restored at one
	// time for its calls: each reads and writes a whole folder, and compresses it.
	maxPassages = 2
	// packPart is the part of the host's reserve that archiving leaves: it may go below
	// what others must stop at, since it frees more than it takes once it is done.
	packPart = 2
)

// lines give so many places at one time to each key; who comes then waits. The zero value
// is ready.
type lines struct {
	mu   sync.Mutex
	some map[string]*line
}

// line is that of a key.
type line struct {
	places chan struct{} // holds a token for each that is taken
	people int           // who have one, or wait
}

// take waits for one of so many places of a key, in the order in which they came. The
// caller must release it.
func (l *lines) take(ctx context.Context, key string, most int) (release func(), err error) {
	l.mu.Lock()
	if l.some == nil {
		l.some = map[string]*line{}
	}
	mine := l.some[key]
	if mine == nil {
		mine = &line{places: make(chan struct{}, most)}
		l.some[key] = mine
	}
	mine.people++
	l.mu.Unlock()
	select {
	case mine.places <- struct{}{}:
		return func() {
			<-mine.places
			l.leave(key)
		}, nil
	case <-ctx.Done():
		l.leave(key)
		return nil, ctx.Err()
	}
}

func (l *lines) leave(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.some[key].people--; l.some[key].people == 0 {
		delete(l.some, key)
	}
}

// whileSpace does what writes a whole folder, and ends it when less is left of the host's
// disk than a part of what must stay free: what is to be written was not counted before,
// and others write meanwhile. It fails with `disk_full` then.
func (s *Service) whileSpace(ctx context.Context, part int64, do func(context.Context) error) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	if err := s.hasPart(part); err != nil {
		return err
	}
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			select {
			case <-time.After(spacePause):
			case <-ctx.Done():
				return
			}
			if err := s.hasPart(part); err != nil {
				end(err)
			}
		}
	})
	err := do(ctx)
	if low := context.Cause(ctx); err != nil && hasCode(low, CodeDiskFull) {
		err = low
	}
	end(nil)
	watching.Wait()
	return err
}
