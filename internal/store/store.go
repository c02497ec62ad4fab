// Package store keeps the records of core in one SQLite file: environments,
// commands, shells, idempotency keys, host uids, and what was last known of the
// settings of accounts.
//
// What must hold across records (quotas, keys, uids) is decided inside one
// immediate transaction, and transactions that write run one after another, so
// no two callers can pass a limit together. Transactions about environments
// are on disk when they return; those about commands are in the hands of the
// kernel then, and on disk within a second.
//
// Not protected here: the file from whoever can read or write it (its mode is
// 0600 and nothing in it is encrypted), and the file from a second process
// that opens it; the lock of the data folder is for that.
package store

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"envapi/core"
)

// Store is a core.Store in one SQLite file. Its methods may be called from many
// goroutines.
type Store struct {
	turn    chan struct{} // holds one token while a transaction writes
	durable *writer       // commits with synchronous=FULL
	quick   *writer       // commits with synchronous=NORMAL
	reads   *statements   // short ones
	lists   *statements   // those that may take long
	cursors cursors
	recall  recall
	reserve *reserve

	upgraded [2]int64 // the schema before and after it was opened

	dirty      chan struct{} // holds a token while commits of quick may not be on disk
	flushError atomic.Pointer[error]
	stopped    chan struct{} // closed when the flusher has ended
	kept       chan struct{} // closed when nobody keeps the reserve any more
	closing    context.CancelFunc
	close      func() error
	parts      []io.Closer // what Close closes, in the order of its opening
}

var _ core.Store = (*Store)(nil)

// Ping fails where the records cannot be read, or where the last try to bring
// them to the disk failed.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.flushError.Load(); err != nil && *err != nil {
		return *err
	}
	var one int
	return failed("read the store", s.reads.row(ctx, `SELECT one FROM deployment`).Scan(&one))
}

// Close brings everything to the disk and closes the file. No other method may
// be called after it; a second Close does nothing.
func (s *Store) Close() error { return s.close() }

// closeOnce gives what Close does.
func (s *Store) closeOnce() func() error {
	return sync.OnceValue(func() error {
		s.closing()
		<-s.stopped
		<-s.kept
		err := s.flush(context.Background())
		return errors.Join(err, closeAll(s.parts))
	})
}

// ClaimAccount makes account the one that the deployment serves, if none is
// yet, and gives the one that is.
func (s *Store) ClaimAccount(ctx context.Context, account string) (string, error) {
	const query = `SELECT account FROM deployment WHERE account IS NOT NULL`
	var served string
	err := s.reads.row(ctx, query).Scan(&served)
	if !errors.Is(err, sql.ErrNoRows) {
		return served, failed("read the account served", err)
	}
	err = s.write(ctx, s.durable, "claim the account", func(ctx context.Context, tx *statements) error {
		_, err := tx.exec(ctx, `UPDATE deployment SET account = ? WHERE account IS NULL`, account)
		if err != nil {
			return err
		}
		return tx.row(ctx, query).Scan(&served)
	})
	return served, err
}
