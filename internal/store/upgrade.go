package store

import (
	"context"
	"database/sql"
	"errors"
	"os"
)

// Upgraded gives from which schema to which opening the store has brought it. From is
// 0 where there were no records, and the two are the same where nothing was changed.
func (s *Store) Upgraded() (from, to int64) { return s.upgraded[0], s.upgraded[1] }

// upgrade refuses what this program must not write to, brings the schema up to date and
// notes what that was. Each step is one transaction, so that an end in the middle leaves
// a schema that the next start goes on from.
func (s *Store) upgrade(ctx context.Context, pool *sql.DB) error {
	if err := checkEngine(ctx, pool); err != nil {
		return err
	}
	provider, err := newProvider(pool)
	if err != nil {
		return err
	}
	has, knows, err := provider.GetVersions(ctx)
	if err != nil {
		return err
	}
	if err := known(has, knows); err != nil {
		return err
	}
	s.upgraded = [2]int64{has, knows}
	_, err = provider.Up(ctx)
	return err
}

// refuseNewer refuses the file of a newer envapi before anything is changed: to open it
// for writing would already put its write-ahead log into it. What else is wrong with it
// is found by opening it.
func refuseNewer(ctx context.Context, path string) error {
	if info, err := os.Stat(path); err != nil || info.Size() == 0 {
		return nil //nolint:nilerr // there is none yet
	}
	pool, err := connect(path, 1, toRead())
	if err != nil {
		return err
	}
	var has int64
	err = pool.QueryRowContext(ctx, `SELECT max(version_id) FROM goose_db_version`).Scan(&has)
	if err = errors.Join(err, pool.Close()); err != nil {
		return nil //nolint:nilerr // said by who opens it
	}
	provider, err := newProvider(pool)
	if err != nil {
		return err
	}
	sources := provider.ListSources()
	return known(has, sources[len(sources)-1].Version)
}
