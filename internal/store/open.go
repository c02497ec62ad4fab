package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	_ "modernc.org/sqlite" // the driver named "sqlite"
)

// FileName is what the store's file is called in a data folder.
const FileName = "envapi.db"

const (
	// readers is how many queries of a kind run at one time. Lists have
	// connections of their own: they are the longest, and must hold up no other
	// call than lists.
	readers = 2
	// walLimitBytes is what the write-ahead log is cut to after a burst.
	walLimitBytes = 64 << 20
)

// Open gives the store in the file at path, which is made, with mode 0600, if
// there is none. The schema is brought up to date; one that a newer envapi
// wrote is refused.
func Open(ctx context.Context, path string) (*Store, error) {
	s := &Store{
		turn:    make(chan struct{}, 1),
		dirty:   make(chan struct{}, 1),
		stopped: make(chan struct{}),
		kept:    make(chan struct{}),
	}
	if err := s.open(ctx, path); err != nil {
		return nil, errors.Join(failed("open the store "+path, err), closeAll(s.parts))
	}
	var flushing context.Context
	flushing, s.closing = context.WithCancel(context.WithoutCancel(ctx))
	s.close = s.closeOnce()
	go s.flushLoop(flushing)
	go func() {
		defer close(s.kept)
		s.reserve.keep(flushing)
	}()
	return s, nil
}

func (s *Store) open(ctx context.Context, path string) (err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return err
	}
	if err := refuseNewer(ctx, path); err != nil {
		return err
	}
	if s.reserve, err = openReserve(path + "-reserve"); err != nil {
		return err
	}
	s.parts = append(s.parts, s.reserve)
	if err := makePrivate(path); err != nil {
		return err
	}
	if s.durable, err = s.openWriter(ctx, path, true); err != nil {
		return err
	}
	if s.quick, err = s.openWriter(ctx, path, false); err != nil {
		return err
	}
	if s.reads, err = s.openReaders(path); err != nil {
		return err
	}
	if s.lists, err = s.openReaders(path); err != nil {
		return err
	}
	var key []byte
	if err := s.reads.row(ctx, `SELECT cursor_key FROM deployment`).Scan(&key); err != nil {
		return err
	}
	if s.cursors, err = newCursors(key); err != nil {
		return err
	}
	return syncDirectory(filepath.Dir(path))
}

// openWriter opens the one connection of a writer. The durable one is opened
// first and brings the schema up to date.
func (s *Store) openWriter(ctx context.Context, path string, durable bool) (*writer, error) {
	synchronous := "synchronous(NORMAL)"
	if durable {
		synchronous = "synchronous(FULL)"
	}
	pool, err := s.openPool(path, 1, synchronous)
	if err != nil {
		return nil, err
	}
	if durable {
		if err := s.upgrade(ctx, pool); err != nil {
			return nil, err
		}
	}
	conn, err := pool.Conn(ctx)
	if err != nil {
		return nil, err
	}
	s.parts = append(s.parts, conn)
	return &writer{statements: s.newStatements(conn), durable: durable}, nil
}

func (s *Store) openReaders(path string) (*statements, error) {
	pool, err := s.openPool(path, readers, "query_only(1)")
	if err != nil {
		return nil, err
	}
	return s.newStatements(pool), nil
}

// newStatements gives the statements of a connection or a pool and remembers
// them to close them: SQLite keeps a file open while one of them lives.
func (s *Store) newStatements(on preparer) *statements {
	q := &statements{on: on, prepared: map[string]*sql.Stmt{}}
	s.parts = append(s.parts, q)
	return q
}

// openPool opens up to size connections, which last, and remembers the pool to
// close it.
func (s *Store) openPool(path string, size int, pragma string) (*sql.DB, error) {
	pool, err := connect(path, size, pragmas(
		"journal_mode(WAL)",
		fmt.Sprintf("journal_size_limit(%d)", walLimitBytes),
		"foreign_keys(1)",
		pragma,
	))
	if err != nil {
		return nil, err
	}
	s.parts = append(s.parts, pool)
	return pool, nil
}

// makePrivate makes the file before SQLite does, which would let others read
// it. The files beside it (-wal, -shm) get the mode of this one.
func makePrivate(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(file.Chmod(0o600), file.Close())
}

// syncDirectory makes the names of new files safe against power loss.
func syncDirectory(path string) error {
	directory, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(directory.Sync(), directory.Close())
}

// closeAll closes the parts, the one opened last first.
func closeAll(parts []io.Closer) error {
	var errs []error
	for _, part := range slices.Backward(parts) {
		errs = append(errs, part.Close())
	}
	return errors.Join(errs...)
}
