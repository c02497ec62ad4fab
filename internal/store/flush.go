package store

import (
	"context"
	"time"
)

// flushAfter is how long a commit of quick may wait for its way to the disk:
// half of the second that is promised, which leaves the rest to a slow disk.
const flushAfter = 500 * time.Millisecond

// flushLoop brings the commits of quick to the disk, until ctx ends.
func (s *Store) flushLoop(ctx context.Context) {
	defer close(s.stopped)
	for {
		select {
		case <-s.dirty:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(flushAfter):
		case <-ctx.Done():
			return
		}
		err := s.flush(ctx)
		s.flushError.Store(&err)
		if err != nil {
			s.markDirty()
		}
	}
}

// flush makes every commit before it safe against power loss. A commit with
// synchronous=NORMAL appends its pages to the write-ahead log and leaves them
// to the kernel; one with FULL syncs that file, and with it all that was
// appended before. It must change something: an empty transaction syncs
// nothing.
func (s *Store) flush(ctx context.Context) error {
	return s.writeEnd(ctx, s.durable, flushing, func(ctx context.Context, tx *statements) error {
		_, err := tx.exec(ctx, `UPDATE deployment SET flushes = flushes + 1`)
		return err
	})
}

// markDirty wakes the flusher.
func (s *Store) markDirty() {
	select {
	case s.dirty <- struct{}{}:
	default:
	}
}
