package store

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"envapi/core"
)

// TouchEnvironments moves the last activity of environments forward, never back, in
// short transactions.
func (s *Store) TouchEnvironments(ctx context.Context, active map[string]time.Time) error {
	for some := range slices.Chunk(slices.Sorted(maps.Keys(active)), changeAtOnce) {
		times := map[string]int64{}
		for _, id := range some {
			times[id] = active[id].UnixMilli()
		}
		err := s.write(ctx, s.quick, notingActivity, func(ctx context.Context, tx *statements) error {
			_, err := tx.exec(ctx, `UPDATE environments SET last_activity_ms = later.value
				FROM json_each(?) AS later WHERE environments.id = later.key AND last_activity_ms < later.value`, toJSON(times))
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// EndFuture brings the last activity of active environments that is later than now back
// to it. Mostly there is none, and nothing is written.
func (s *Store) EndFuture(ctx context.Context, now time.Time) error {
	const what, later = "correct the activity of environments", ` WHERE state = 'active' AND last_activity_ms > ?1`
	var ahead bool
	err := s.reads.row(ctx, `SELECT EXISTS (SELECT 1 FROM environments INDEXED BY environments_by_activity`+later+`)`, now.UnixMilli()).Scan(&ahead)
	if err != nil || !ahead {
		return failed(what, err)
	}
	return s.write(ctx, s.quick, what, func(ctx context.Context, tx *statements) error {
		_, err := tx.exec(ctx, `UPDATE environments SET last_activity_ms = ?1`+later, now.UnixMilli())
		return err
	})
}

// IdleEnvironments gives active environments of all owners, that longest without
// activity first. Its cursor is for this process only, and says how others are.
func (s *Store) IdleEnvironments(ctx context.Context, before time.Time, cursor string, limit int) ([]core.EnvironmentRecord, string, error) {
	const what = "look for idle environments"
	afterMS, afterSeq := int64(math.MinInt64), int64(0)
	if cursor != "" {
		if _, err := fmt.Sscanf(cursor, "%d.%d", &afterMS, &afterSeq); err != nil {
			return nil, "", fmt.Errorf("cannot %s: the cursor %q is none: %w", what, cursor, err)
		}
	}
	var seqs []int64
	idle, err := collect(ctx, s.lists, func(row scanner) (core.EnvironmentRecord, error) {
		var seq int64
		e, err := scanEnvironment(row, &seq)
		seqs = append(seqs, seq)
		return e, err
	}, `SELECT `+environmentColumns+`, seq FROM environments INDEXED BY environments_by_activity
		WHERE state = 'active' AND last_activity_ms < ? AND (last_activity_ms, seq) > (?, ?)
		ORDER BY last_activity_ms, seq LIMIT ?`, before.UnixMilli(), afterMS, afterSeq, limit+1)
	if err != nil || len(idle) <= limit {
		return idle, "", failed(what, err)
	}
	last := idle[limit-1]
	return idle[:limit], fmt.Sprintf("%d.%d", last.LastActivityAt.UnixMilli(), seqs[limit-1]), nil
}
