package store

import (
	"context"

	sqlite3 "modernc.org/sqlite/lib"

	"envapi/internal/faults"
)

// What the store and its callers write by themselves now and then.
const (
	flushing       = "flush the store"
	notingActivity = "record the activity of environments"
	forgettingKeys = "forget old idempotency keys"
)

var ticks = map[string]bool{flushing: true, notingActivity: true, forgettingKeys: true}

// A writer is one connection that writes. How safe its commits are was decided
// when it was opened and never changes.
type writer struct {
	*statements
	durable bool
}

// write runs do in an immediate transaction of w, after the ones before it:
// SQLite has one writer at a time, and waiting for a turn here is fairer and
// faster than its own polling. An error of do, or a panic, undoes all.
func (s *Store) write(ctx context.Context, w *writer, what string, do func(context.Context, *statements) error) error {
	return s.writeLeaving(ctx, w, func() int64 { return leaveAll }, what, do)
}

// writeEnd is write for what ends something: half of the reserve is for it.
func (s *Store) writeEnd(ctx context.Context, w *writer, what string, do func(context.Context, *statements) error) error {
	return s.writeLeaving(ctx, w, func() int64 { return leaveHalf }, what, do)
}

// writeFreeing is write for what frees space: all of the reserve is for it.
func (s *Store) writeFreeing(ctx context.Context, w *writer, what string, do func(context.Context, *statements) error) error {
	return s.writeLeaving(ctx, w, func() int64 { return leaveNone }, what, do)
}

// writeLeaving is write. Where the disk is full it is tried again with space of
// the reserve, of which leave, asked after the try, must be left.
func (s *Store) writeLeaving(ctx context.Context, w *writer, leave func() int64, what string, do func(context.Context, *statements) error) error {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return failed(what, ctx.Err())
	}
	defer func() { <-s.turn }()
	// Once begun it is finished, whether or not the caller stays: it is short,
	// and nobody has to guess what became of a commit that was cut off.
	ctx = context.WithoutCancel(ctx)
	err := w.transact(ctx, what, do)
	for range reserveBytes / reserveStep { // a bound: meanwhile the reserve may be refilled
		if resultCode(err) != sqlite3.SQLITE_FULL || !s.reserve.give(leave()) {
			break
		}
		err = w.transact(ctx, what, do)
	}
	s.recall.forget() // also after a failure: it may have been one of the commit's answer
	if err != nil {
		return failed(what, err)
	}
	if !w.durable {
		s.markDirty()
	}
	return nil
}

func (w *writer) transact(ctx context.Context, what string, do func(context.Context, *statements) error) error {
	reached := faults.At
	if ticks[what] {
		reached = faults.Tick
	}
	if err := reached("store.begin", what); err != nil {
		return err
	}
	if _, err := w.exec(ctx, `BEGIN IMMEDIATE`); err != nil {
		return err
	}
	committed := false
	defer func() {
		if !committed {
			// Its error says only that SQLite has rolled back by itself.
			_, _ = w.exec(ctx, `ROLLBACK`)
		}
	}()
	if err := do(ctx, w.statements); err != nil {
		return err
	}
	if err := reached("store.commit", what); err != nil {
		return err
	}
	if _, err := w.exec(ctx, `COMMIT`); err != nil {
		return err
	}
	committed = true
	_ = reached("store.committed", what) // what is committed cannot fail any more
	return nil
}
