package store

import (
	"context"
	"errors"
	"sync/atomic"

	sqlite3 "modernc.org/sqlite/lib"
)

// The kinds of failures of a store.
const (
	failedFull    = "full"    // the disk, or its quota, is
	failedBusy    = "busy"    // somebody else has the file
	failedDamaged = "damaged" // it is no sound SQLite file
	failedOther   = "other"
)

// failures counts by kind. It is the process's, which has one store: what fails has only
// an error to tell it by.
var failures = map[string]*atomic.Int64{
	failedFull: {}, failedBusy: {}, failedDamaged: {}, failedOther: {},
}

// Failures gives how often a store of this process could not do what was asked of it,
// by kind: every kind is there. What was refused for its caller's sake, or cancelled by him,
// is no failure.
func Failures() map[string]int64 {
	counts := make(map[string]int64, len(failures))
	for kind, n := range failures {
		counts[kind] = n.Load()
	}
	return counts
}

// countFailure counts an error that is no refusal.
func countFailure(err error) {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return
	}
	kind := failedOther
	switch resultCode(err) {
	case sqlite3.SQLITE_FULL:
		kind = failedFull
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		kind = failedBusy
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		kind = failedDamaged
	case sqlite3.SQLITE_INTERRUPT: // by the end of a context
		return
	}
	failures[kind].Add(1)
}
