package store

import (
	"database/sql"
	"errors"
	"fmt"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"envapi/core"
)

// retryAfterMS is when a caller who met a busy store may try again: longer than
// any transaction takes.
const retryAfterMS = 1000

// failed gives the error of an attempt to do what: as core knows it where a
// caller can act on it, otherwise wrapped, which core answers as `internal`.
// SQLite's own words stay in the private cause.
func failed(what string, err error) error {
	var known *core.Error
	switch {
	case err == nil, errors.As(err, &known), errors.Is(err, core.ErrNoRecord):
		return err
	case errors.Is(err, sql.ErrNoRows):
		return core.ErrNoRecord
	}
	countFailure(err)
	switch resultCode(err) {
	case sqlite3.SQLITE_FULL:
		return core.Errorf(core.CodeDiskFull, "cannot %s: the host's disk is full", what).Because(err)
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return core.Errorf(core.CodeUnavailable, "cannot %s: the records are in use; try again", what).
			With("retry_after_ms", retryAfterMS).Because(err)
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("cannot %s: the store's file is damaged or no SQLite database; "+
			"put the whole data folder back from a backup: %w", what, err)
	}
	return fmt.Errorf("cannot %s: %w", what, err)
}

// resultCode gives SQLite's primary result code, or 0 where err is not of
// SQLite.
func resultCode(err error) int {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return 0
	}
	return e.Code() & 0xff
}
