package store

import (
	"context"
	"slices"
	"time"

	"envapi/core"
)

// OldCommands gives commands that ended at a time or later, and before another one, the
// oldest first; of one environment where that is named.
func (s *Store) OldCommands(ctx context.Context, environmentID string, from, before time.Time, limit int) ([]core.Remnant, error) {
	query, args := `SELECT id, environment_id, ended_ms FROM commands INDEXED BY commands_by_end
		WHERE ended_ms >= ? AND ended_ms < ? AND status <> 'running' ORDER BY ended_ms LIMIT ?`, []any{from.UnixMilli(), before.UnixMilli(), limit}
	if environmentID != "" {
		query = `SELECT id, environment_id, ended_ms FROM commands INDEXED BY commands_of_environment_by_end
			WHERE environment_id = ? AND ended_ms >= ? AND ended_ms < ? AND status <> 'running' ORDER BY ended_ms LIMIT ?`
		args = append([]any{environmentID}, args...)
	}
	old, err := collect(ctx, s.lists, scanRemnant, query, args...)
	return old, failed("look for old commands", err)
}

// RemoveCommands removes commands that have ended, and their keys. One that runs, or
// is not there, is left out.
func (s *Store) RemoveCommands(ctx context.Context, ids []string) error {
	return s.removeEnded(ctx, "remove old commands", ids, `SELECT id FROM commands
		WHERE id IN (SELECT value FROM json_each(?)) AND status <> 'running'`, `DELETE FROM commands`)
}

// leftBehind is what a closed shell must not be, to be removed: its commands name it.
const leftBehind = `EXISTS (SELECT 1 FROM commands WHERE shell_id = shells.id)`

// OldShells gives shells that were closed before a time, the oldest first, except
// those of which commands are left.
func (s *Store) OldShells(ctx context.Context, before time.Time, limit int) ([]core.Remnant, error) {
	old, err := collect(ctx, s.lists, scanRemnant, `SELECT id, environment_id, closed_ms FROM shells INDEXED BY shells_by_end
		WHERE closed_ms < ? AND state = 'closed' AND NOT `+leftBehind+` ORDER BY closed_ms LIMIT ?`, before.UnixMilli(), limit)
	return old, failed("look for old shells", err)
}

// RemoveShells removes shells that are closed and of which no commands are left, and
// their keys. Another, or one that is not there, is left out.
func (s *Store) RemoveShells(ctx context.Context, ids []string) error {
	return s.removeEnded(ctx, "remove old shells", ids, `SELECT id FROM shells
		WHERE id IN (SELECT value FROM json_each(?)) AND state = 'closed' AND NOT `+leftBehind, `DELETE FROM shells`)
}

// removeEnded removes in short transactions the rows that may go, which is a query of
// their ids among those given, and their keys. Its texts are constants of this file.
func (s *Store) removeEnded(ctx context.Context, what string, ids []string, mayGo, remove string) error {
	for some := range slices.Chunk(ids, removeAtOnce) {
		err := s.writeFreeing(ctx, s.quick, what, func(ctx context.Context, tx *statements) error {
			if _, err := tx.exec(ctx, `DELETE FROM idempotency WHERE resource_id IN (`+mayGo+`)`, toJSON(some)); err != nil {
				return err
			}
			_, err := tx.exec(ctx, remove+` WHERE id IN (`+mayGo+`)`, toJSON(some))
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// PruneKeys forgets keys that were first used before a time, the oldest first.
func (s *Store) PruneKeys(ctx context.Context, before time.Time, limit int) (int, error) {
	pruned := 0
	for more := true; more && pruned < limit; {
		atOnce := min(removeAtOnce, limit-pruned)
		err := s.writeFreeing(ctx, s.quick, forgettingKeys, func(ctx context.Context, tx *statements) error {
			n, err := tx.exec(ctx, `DELETE FROM idempotency WHERE (account, profile, operation, key) IN
				(SELECT account, profile, operation, key FROM idempotency INDEXED BY idempotency_by_age
				WHERE created_ms < ? ORDER BY created_ms LIMIT ?)`, before.UnixMilli(), atOnce)
			if more = int(n) == atOnce; err == nil {
				pruned += int(n)
			}
			return err
		})
		if err != nil {
			return pruned, err
		}
	}
	return pruned, nil
}

func scanRemnant(row scanner) (core.Remnant, error) {
	var r core.Remnant
	var ended int64
	err := row.Scan(&r.ID, &r.EnvironmentID, &ended)
	r.EndedAt = fromMS(ended)
	return r, err
}
