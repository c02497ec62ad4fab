package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"envapi/core"
)

// freeUIDs are the ways to find a free uid from ?1 up to, not including, ?2,
// the best first: what was never used or was released long ago is the least
// likely to be on a file or a process that somebody overlooked.
var freeUIDs = []string{
	// above every uid that was ever taken
	`SELECT uid FROM (SELECT max(?1, coalesce(max(uid) + 1, ?1)) AS uid FROM host_uids WHERE uid < ?2) WHERE uid < ?2`,
	// released the longest ago
	`SELECT uid FROM host_uids WHERE environment_id IS NULL AND uid >= ?1 AND uid < ?2 ORDER BY released_ms, uid LIMIT 1`,
	// in a gap that a change of the range has left; slow, and hardly ever met
	`WITH RECURSIVE candidate (uid) AS (SELECT ?1 UNION ALL SELECT uid + 1 FROM candidate WHERE uid + 1 < ?2)
		SELECT uid FROM candidate WHERE uid < ?2 AND uid NOT IN (SELECT uid FROM host_uids) LIMIT 1`,
}

// takeUID takes a free uid for an environment; 0 where the range is zero.
func takeUID(ctx context.Context, tx *statements, uids core.UIDRange, environmentID string) (int, error) {
	if uids == (core.UIDRange{}) {
		return 0, nil
	}
	if uids.First <= 0 {
		return 0, errors.New("the range of host uids begins with root's")
	}
	uid, err := findUID(ctx, tx, uids)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, core.Errorf(core.CodeUnavailable,
			"cannot create the environment: all %d host uids of this deployment are in use; delete an environment, "+
				"or ask the operator for a larger range", uids.End-uids.First).With("retry_after_ms", retryAfterMS)
	}
	if err != nil {
		return 0, err
	}
	_, err = tx.exec(ctx, `INSERT INTO host_uids (uid, environment_id) VALUES (?1, ?2)
		ON CONFLICT (uid) DO UPDATE SET environment_id = ?2, released_ms = NULL`, uid, environmentID)
	return uid, err
}

func findUID(ctx context.Context, tx *statements, uids core.UIDRange) (uid int, err error) {
	for _, query := range freeUIDs {
		err = tx.row(ctx, query, uids.First, uids.End).Scan(&uid)
		if !errors.Is(err, sql.ErrNoRows) {
			break
		}
	}
	return uid, err
}

// ReleaseUID frees the uid of a deleted environment. One that has none, or was
// released before, is nothing to do; one that still exists is refused.
func (s *Store) ReleaseUID(ctx context.Context, environmentID string) error {
	return s.writeFreeing(ctx, s.durable, "release the host uid", func(ctx context.Context, tx *statements) error {
		var exists bool
		err := tx.row(ctx, `SELECT EXISTS (SELECT 1 FROM environments WHERE id = ?)`, environmentID).Scan(&exists)
		if err != nil {
			return err
		}
		if exists {
			return errors.New("its environment still exists")
		}
		return releaseUID(ctx, tx, environmentID)
	})
}

func releaseUID(ctx context.Context, tx *statements, environmentID string) error {
	_, err := tx.exec(ctx, `UPDATE host_uids SET environment_id = NULL, released_ms = ? WHERE environment_id = ?`,
		time.Now().UnixMilli(), environmentID)
	return err
}

// UnreleasedUIDs gives the ids of deleted environments whose uid is still
// taken.
func (s *Store) UnreleasedUIDs(ctx context.Context) ([]string, error) {
	ids, err := collect(ctx, s.reads, func(row scanner) (id string, err error) {
		err = row.Scan(&id)
		return id, err
	}, `SELECT environment_id FROM host_uids
		WHERE environment_id IS NOT NULL AND environment_id NOT IN (SELECT id FROM environments)`)
	return ids, failed("list the uids to release", err)
}

// TakenUIDs gives the host uids that environments have, and those of deleted ones
// that are not released.
func (s *Store) TakenUIDs(ctx context.Context) ([]int, error) {
	uids, err := collect(ctx, s.reads, func(row scanner) (uid int, err error) {
		err = row.Scan(&uid)
		return uid, err
	}, `SELECT uid FROM host_uids WHERE environment_id IS NOT NULL`)
	return uids, failed("list the uids that are taken", err)
}
