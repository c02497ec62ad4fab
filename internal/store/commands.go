package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"envapi/core"
)

const commandColumns = `id, environment_id, coalesce(shell_id, ''), account, profile, command, cwd, merge_stderr, started_ms, status,
	exit_code, signal, reason, advice, shell_closed, ended_ms, cpu_ms, peak_memory_bytes, processes,
	late_stdout, late_stderr, late_tty, late_all`

const selectCommand = `SELECT ` + commandColumns + ` FROM commands WHERE id = ? AND account = ? AND profile = ?`

// CreateCommand counts and inserts in one transaction. The new command is
// running, whatever c says of its end.
func (s *Store) CreateCommand(ctx context.Context, c core.CommandRecord, limit int, key core.Idempotency) (made core.CommandRecord, env core.EnvironmentRecord, again bool, err error) {
	err = s.write(ctx, s.quick, "create the command", func(ctx context.Context, tx *statements) error {
		id, err := madeUnder(ctx, tx, c.Owner, key)
		if err != nil {
			return err
		}
		if id != "" {
			again = true
			made, err = command(ctx, tx, c.Owner, id)
			return err
		}
		made = c
		made.StartedAt = fromMS(c.StartedAt.UnixMilli())
		made.CommandEnd = core.CommandEnd{Status: core.CommandRunning}
		env, err = insertCommand(ctx, tx, made, limit, key)
		return err
	})
	if err != nil {
		return core.CommandRecord{}, core.EnvironmentRecord{}, false, err
	}
	return made, env, again, nil
}

// insertCommand gives the environment that the command is in.
func insertCommand(ctx context.Context, tx *statements, c core.CommandRecord, limit int, key core.Idempotency) (core.EnvironmentRecord, error) {
	env, err := activeEnvironment(ctx, tx, c.Owner, c.EnvironmentID)
	if err != nil {
		return env, err
	}
	if own := env.Limits.RunningCommands; own != nil {
		limit = min(limit, *own)
	}
	var running int
	err = tx.row(ctx, `SELECT count(*) FROM commands WHERE environment_id = ? AND status = 'running'`, env.ID).Scan(&running)
	if err != nil {
		return env, err
	}
	if err := checkQuota("running_commands", "commands running or in line in this environment", "wait for one to end, or end one with signal_command,", limit, running); err != nil {
		return env, err
	}
	_, err = tx.exec(ctx, `INSERT INTO commands
		(id, environment_id, shell_id, account, profile, command, cwd, merge_stderr, started_ms, status)
		VALUES (?, ?, nullif(?, ''), ?, ?, ?, ?, ?, ?, 'running')`,
		c.ID, c.EnvironmentID, c.ShellID, c.Owner.Account, c.Owner.Profile, c.Command, c.Cwd, c.MergeStderr, c.StartedAt.UnixMilli())
	if err != nil {
		return env, err
	}
	if err := touch(ctx, tx, c.EnvironmentID, c.ShellID, c.StartedAt); err != nil {
		return env, err
	}
	return env, rememberKey(ctx, tx, c.Owner, key, c.ID, c.StartedAt)
}

// activeEnvironment fails where the environment is not there or not active.
func activeEnvironment(ctx context.Context, tx *statements, o core.Owner, id string) (core.EnvironmentRecord, error) {
	env, err := environment(ctx, tx, o, id)
	switch {
	case errors.Is(err, sql.ErrNoRows), errors.Is(err, core.ErrNoRecord):
		return env, core.NotFound("environment", id)
	case err == nil && env.State == core.StateArchived:
		return env, core.Errorf(core.CodeEnvironmentArchived, "the environment is archived: restore it with restore_environment first")
	case err == nil && env.State != core.StateActive:
		return env, core.Errorf(core.CodeEnvironmentBusy, "the environment is %s: try again when it is active", env.State).
			With("state", string(env.State)).With("retry_after_ms", retryAfterMS)
	}
	return env, err
}

// DropCommand removes a command that could not be started, and its key.
func (s *Store) DropCommand(ctx context.Context, id string) error {
	return s.writeFreeing(ctx, s.quick, "drop the command", func(ctx context.Context, tx *statements) error {
		if err := dropKey(ctx, tx, id); err != nil {
			return err
		}
		_, err := tx.exec(ctx, `DELETE FROM commands WHERE id = ?`, id)
		return err
	})
}

// FinishCommand records the end of a running command. A command ends once: for
// one that has ended, as for one that is not there, it is ErrNoRecord.
func (s *Store) FinishCommand(ctx context.Context, id string, end core.CommandEnd) error {
	return s.writeEnd(ctx, s.quick, "record the command's end", func(ctx context.Context, tx *statements) error {
		var cpu, memory, processes *int64
		if end.Usage != nil {
			cpu, memory, processes = end.Usage.CPUMS, end.Usage.PeakMemoryBytes, end.Usage.Processes
		}
		err := tx.execOne(ctx, `UPDATE commands SET status = ?, exit_code = ?, signal = ?, reason = ?, advice = ?, shell_closed = ?,
			ended_ms = ?, cpu_ms = ?, peak_memory_bytes = ?, processes = ?,
			late_stdout = ?, late_stderr = ?, late_tty = ?, late_all = ?, cwd = coalesce(nullif(?, ''), cwd)
			WHERE id = ? AND status = 'running'`,
			end.Status, end.ExitCode, end.Signal, end.Reason, end.Advice, end.ShellClosed, toMS(end.EndedAt),
			cpu, memory, processes, end.Late.Stdout, end.Late.Stderr, end.Late.TTY, end.Late.All, end.Cwd, id)
		if err != nil {
			return err
		}
		return afterCommand(ctx, tx, id, end)
	})
}

// afterCommand records what the end of a command is to its environment and to
// its shell.
func afterCommand(ctx context.Context, tx *statements, id string, end core.CommandEnd) error {
	var environmentID, shellID string
	err := tx.row(ctx, `SELECT environment_id, coalesce(shell_id, '') FROM commands WHERE id = ?`, id).Scan(&environmentID, &shellID)
	if err != nil {
		return err
	}
	if shellID != "" && end.Cwd != "" {
		if _, err := tx.exec(ctx, `UPDATE shells SET cwd = ? WHERE id = ?`, end.Cwd, shellID); err != nil {
			return err
		}
	}
	if end.EndedAt == nil {
		return nil
	}
	return touch(ctx, tx, environmentID, shellID, *end.EndedAt)
}

// BeginCommand records that a command which waited in line was started.
func (s *Store) BeginCommand(ctx context.Context, id string, at time.Time) error {
	return s.writeEnd(ctx, s.quick, "record the command's start", func(ctx context.Context, tx *statements) error {
		return tx.execOne(ctx, `UPDATE commands SET started_ms = ? WHERE id = ? AND status = 'running'`, at.UnixMilli(), id)
	})
}

// Command gives one record of the owner.
func (s *Store) Command(ctx context.Context, o core.Owner, id string) (core.CommandRecord, error) {
	c, err := command(ctx, s.reads, o, id)
	return c, failed("read the command", err)
}

func command(ctx context.Context, q *statements, o core.Owner, id string) (core.CommandRecord, error) {
	return scanCommand(q.row(ctx, selectCommand, id, o.Account, o.Profile))
}

// ListCommands gives a page of the owner's records, newest first, as
// ListEnvironments does.
func (s *Store) ListCommands(ctx context.Context, o core.Owner, f core.ListCommandsInput) ([]core.CommandRecord, string, error) {
	items, next, err := page(ctx, s, selectCommands(o, f), f.Paging, scanCommand)
	return items, next, failed("list the commands", err)
}

// selectCommands names the index to use, which SQLite cannot guess without
// statistics: an owner may have many more commands than one environment. Each
// has the rows of a page side by side, so that no filter, however little it
// finds, reads all that its caller ever ran.
func selectCommands(o core.Owner, f core.ListCommandsInput) selection {
	sel := selection{list: listOfCommands, columns: commandColumns, from: `commands INDEXED BY commands_of_owner`}
	sel.where(`account = ? AND profile = ?`, o.Account, o.Profile)
	if f.EnvironmentID != "" {
		sel.from = `commands INDEXED BY commands_of_environment`
		sel.where(`environment_id = ?`, f.EnvironmentID)
	}
	if f.ShellID != "" {
		sel.from = `commands INDEXED BY commands_of_shell`
		sel.where(`shell_id = ?`, f.ShellID)
	}
	if f.Status != "" {
		sel.from += `_by_status`
		sel.where(`status = ?`, f.Status)
	}
	return sel
}

// CountRunning counts as CreateCommand does.
func (s *Store) CountRunning(ctx context.Context, environmentID string) (running int, err error) {
	err = s.reads.row(ctx, `SELECT count(*) FROM commands WHERE environment_id = ? AND status = 'running'`,
		environmentID).Scan(&running)
	return running, failed("count the running commands", err)
}

// LoseRunning ends every running command as alone says, those of shells as inShell
// does, and says how many there were.
func (s *Store) LoseRunning(ctx context.Context, alone, inShell core.CommandEnd) (int, error) {
	var lost int64
	err := s.writeEnd(ctx, s.quick, "mark the commands lost", func(ctx context.Context, tx *statements) error {
		lost = 0
		for ofShell, end := range map[bool]core.CommandEnd{false: alone, true: inShell} {
			// By environment, for which there is an index: a start must not read
			// every command that ever ran.
			n, err := tx.exec(ctx, `UPDATE commands SET status = ?, reason = ?, advice = ?, shell_closed = ?, ended_ms = ?
				WHERE environment_id IN (SELECT id FROM environments) AND status = 'running' AND (shell_id IS NOT NULL) = ?`,
				end.Status, end.Reason, end.Advice, end.ShellClosed, toMS(end.EndedAt), ofShell)
			if err != nil {
				return err
			}
			lost += n
		}
		return nil
	})
	return int(lost), err
}

// scanCommand reads commandColumns, and more columns behind them.
func scanCommand(row scanner, more ...any) (core.CommandRecord, error) {
	var c core.CommandRecord
	var started int64
	var ended, cpu, memory, processes *int64
	columns := []any{
		&c.ID, &c.EnvironmentID, &c.ShellID, &c.Owner.Account, &c.Owner.Profile, &c.Command, &c.Cwd, &c.MergeStderr, &started, &c.Status,
		&c.ExitCode, &c.Signal, &c.Reason, &c.Advice, &c.ShellClosed, &ended, &cpu, &memory, &processes,
		&c.Late.Stdout, &c.Late.Stderr, &c.Late.TTY, &c.Late.All,
	}
	if err := row.Scan(append(columns, more...)...); err != nil {
		return core.CommandRecord{}, err
	}
	c.StartedAt = fromMS(started)
	if ended != nil {
		at := fromMS(*ended)
		c.EndedAt = &at
	}
	if usage := (core.CommandUsage{CPUMS: cpu, PeakMemoryBytes: memory, Processes: processes}); usage != (core.CommandUsage{}) {
		c.Usage = &usage
	}
	return c, nil
}
