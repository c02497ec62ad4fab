package store

import (
	"context"
	"time"

	"envapi/core"
)

const shellColumns = `id, environment_id, account, profile, name, kind, cols, rows, cwd, opened_ms, last_activity_ms,
	state, close_reason, exit_code, signal, closed_ms`

const selectShell = `SELECT ` + shellColumns + ` FROM shells WHERE id = ? AND account = ? AND profile = ?`

// CreateShell counts and inserts in one transaction. The new shell is open,
// whatever sh says of its end.
func (s *Store) CreateShell(ctx context.Context, sh core.ShellRecord, limit int, key core.Idempotency) (made core.ShellRecord, env core.EnvironmentRecord, existed bool, err error) {
	err = s.write(ctx, s.quick, "create the shell", func(ctx context.Context, tx *statements) error {
		id, err := madeUnder(ctx, tx, sh.Owner, key)
		if err != nil {
			return err
		}
		if existed = id != ""; existed {
			made, err = readShell(ctx, tx, sh.Owner, id)
			return err
		}
		if env, err = insertShell(ctx, tx, sh, limit, key); err != nil {
			return err
		}
		made, err = readShell(ctx, tx, sh.Owner, sh.ID)
		return err
	})
	if err != nil {
		return core.ShellRecord{}, core.EnvironmentRecord{}, false, err
	}
	return made, env, existed, nil
}

// insertShell gives the environment that the shell is in.
func insertShell(ctx context.Context, tx *statements, sh core.ShellRecord, limit int, key core.Idempotency) (core.EnvironmentRecord, error) {
	env, err := activeEnvironment(ctx, tx, sh.Owner, sh.EnvironmentID)
	if err != nil {
		return env, err
	}
	if own := env.Limits.Shells; own != nil {
		limit = min(limit, *own)
	}
	open, err := countShells(ctx, tx, env.ID)
	if err != nil {
		return env, err
	}
	if err := checkQuota("shells", "shells open in this environment", "close one with close_shell", limit, open); err != nil {
		return env, err
	}
	at := sh.OpenedAt.UnixMilli()
	_, err = tx.exec(ctx, `INSERT INTO shells
		(id, environment_id, account, profile, name, kind, cols, rows, cwd, opened_ms, last_activity_ms, state)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'open')`,
		sh.ID, sh.EnvironmentID, sh.Owner.Account, sh.Owner.Profile, sh.Name, sh.Kind, sh.Cols, sh.Rows, sh.Cwd, at, at)
	if err != nil {
		return env, err
	}
	if err := touch(ctx, tx, env.ID, "", sh.OpenedAt); err != nil {
		return env, err
	}
	return env, rememberKey(ctx, tx, sh.Owner, key, sh.ID, sh.OpenedAt)
}

// DropShell removes a shell that could not be opened, and its key.
func (s *Store) DropShell(ctx context.Context, id string) error {
	return s.writeFreeing(ctx, s.quick, "drop the shell", func(ctx context.Context, tx *statements) error {
		if err := dropKey(ctx, tx, id); err != nil {
			return err
		}
		_, err := tx.exec(ctx, `DELETE FROM shells WHERE id = ?`, id)
		return err
	})
}

// CloseShell records the end of an open shell. A shell ends once: for one that is
// closed, as for one that is not there, it is ErrNoRecord.
func (s *Store) CloseShell(ctx context.Context, id string, end core.ShellEnd) error {
	return s.writeEnd(ctx, s.quick, "record the shell's end", func(ctx context.Context, tx *statements) error {
		err := tx.execOne(ctx, `UPDATE shells SET state = 'closed', close_reason = ?, exit_code = ?, signal = ?, closed_ms = ?
			WHERE id = ? AND state = 'open'`,
			end.Reason, end.ExitCode, end.Signal, toMS(end.ClosedAt), id)
		if err != nil || end.ClosedAt == nil {
			return err
		}
		if end.Reason == core.CloseIdle || end.Reason == core.ReasonEnvironmentArchived {
			return touch(ctx, tx, "", id, *end.ClosedAt) // nobody has used the environment
		}
		return touchShell(ctx, tx, id, *end.ClosedAt)
	})
}

// CloseShells closes every open shell and says how many there were.
func (s *Store) CloseShells(ctx context.Context, at time.Time, reason string) (int, error) {
	var closed int64
	err := s.writeEnd(ctx, s.quick, "close the shells", func(ctx context.Context, tx *statements) (err error) {
		// By environment, as LoseRunning does.
		closed, err = tx.exec(ctx, `UPDATE shells SET state = 'closed', close_reason = ?, closed_ms = ?
			WHERE environment_id IN (SELECT id FROM environments) AND state = 'open'`,
			reason, at.UnixMilli())
		return err
	})
	return int(closed), err
}

// UpdateShell records the size of a shell's terminal and its last activity, which
// is the environment's too.
func (s *Store) UpdateShell(ctx context.Context, id string, cols, rows int, at time.Time) error {
	return s.write(ctx, s.quick, "update the shell", func(ctx context.Context, tx *statements) error {
		if err := tx.execOne(ctx, `UPDATE shells SET cols = ?, rows = ? WHERE id = ?`, cols, rows, id); err != nil {
			return err
		}
		return touchShell(ctx, tx, id, at)
	})
}

// touchShell moves the last activity of a shell and of its environment.
func touchShell(ctx context.Context, tx *statements, id string, at time.Time) error {
	var environmentID string
	if err := tx.row(ctx, `SELECT environment_id FROM shells WHERE id = ?`, id).Scan(&environmentID); err != nil {
		return err
	}
	return touch(ctx, tx, environmentID, id, at)
}

// touch moves the last activity of an environment, and of a shell where shellID is
// not "", forward, never back.
func touch(ctx context.Context, tx *statements, environmentID, shellID string, at time.Time) error {
	_, err := tx.exec(ctx, `UPDATE environments SET last_activity_ms = max(last_activity_ms, ?) WHERE id = ?`,
		at.UnixMilli(), environmentID)
	if err != nil || shellID == "" {
		return err
	}
	_, err = tx.exec(ctx, `UPDATE shells SET last_activity_ms = max(last_activity_ms, ?) WHERE id = ?`, at.UnixMilli(), shellID)
	return err
}

// Shell gives one record of the owner.
func (s *Store) Shell(ctx context.Context, o core.Owner, id string) (core.ShellRecord, error) {
	sh, err := readShell(ctx, s.reads, o, id)
	return sh, failed("read the shell", err)
}

func readShell(ctx context.Context, q *statements, o core.Owner, id string) (core.ShellRecord, error) {
	return scanShell(q.row(ctx, selectShell, id, o.Account, o.Profile))
}

// ListShells gives a page of the owner's records, newest first, as
// ListEnvironments does.
func (s *Store) ListShells(ctx context.Context, o core.Owner, f core.ListShellsInput) ([]core.ShellRecord, string, error) {
	items, next, err := page(ctx, s, selectShells(o, f), f.Paging, scanShell)
	return items, next, failed("list the shells", err)
}

// selectShells names the index to use, as selectCommands does.
func selectShells(o core.Owner, f core.ListShellsInput) selection {
	sel := selection{list: listOfShells, columns: shellColumns, from: `shells INDEXED BY shells_of_owner`}
	sel.where(`account = ? AND profile = ?`, o.Account, o.Profile)
	if f.EnvironmentID != "" {
		sel.from = `shells INDEXED BY shells_of_environment`
		sel.where(`environment_id = ?`, f.EnvironmentID)
	}
	if f.State != "" {
		sel.from += `_by_state`
		sel.where(`state = ?`, f.State)
	}
	return sel
}

// CountShells counts as CreateShell does.
func (s *Store) CountShells(ctx context.Context, environmentID string) (int, error) {
	open, err := countShells(ctx, s.reads, environmentID)
	return open, failed("count the open shells", err)
}

func countShells(ctx context.Context, q *statements, environmentID string) (open int, err error) {
	err = q.row(ctx, `SELECT count(*) FROM shells WHERE environment_id = ? AND state = 'open'`, environmentID).Scan(&open)
	return open, err
}

// scanShell reads shellColumns, and more columns behind them.
func scanShell(row scanner, more ...any) (core.ShellRecord, error) {
	var sh core.ShellRecord
	var opened, active int64
	var closed *int64
	columns := []any{
		&sh.ID, &sh.EnvironmentID, &sh.Owner.Account, &sh.Owner.Profile, &sh.Name, &sh.Kind, &sh.Cols, &sh.Rows, &sh.Cwd,
		&opened, &active, &sh.State, &sh.Reason, &sh.ExitCode, &sh.Signal, &closed,
	}
	if err := row.Scan(append(columns, more...)...); err != nil {
		return core.ShellRecord{}, err
	}
	sh.OpenedAt, sh.LastActivityAt = fromMS(opened), fromMS(active)
	if closed != nil {
		at := fromMS(*closed)
		sh.ClosedAt = &at
	}
	return sh, nil
}
