package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	sqlite3 "modernc.org/sqlite/lib"

	"envapi/core"
)

// Of the schemas, those from which on there are shells, and archives.
const (
	schemaOfShells   = 3
	schemaOfArchives = 4
)

// Backup is a copy of the records that is being made into those of a backup: what was
// copied beside it decides what stays in it.
//
// It has the schema that it was copied with, also one that is older than this program's,
// so that the program that wrote it can be put back too.
type Backup struct {
	db       *sql.DB // the copy, with the records that it was copied from as "live"
	archives bool    // whether its schema knows archives
	shells   bool    // likewise
}

// NewBackup copies the records in the file from, as they are at its beginning, to the
// file to, which must not be there or be empty. The service may write to them meanwhile,
// and is not held up. What it copied is checked: a file that is damaged makes no backup.
// Close the backup at the end.
func NewBackup(ctx context.Context, from, to string) (*Backup, error) {
	if err := snapshot(ctx, from, to); err != nil {
		return nil, failed("copy the store "+from, err)
	}
	b := &Backup{}
	if err := b.open(ctx, from, to); err != nil {
		return nil, errors.Join(failed("open the copy of the store "+from, err), b.Close())
	}
	return b, nil
}

// snapshot makes the copy in one transaction that reads.
func snapshot(ctx context.Context, from, to string) error {
	if err := makePrivate(to); err != nil {
		return err
	}
	db, err := connect(from, 1, toRead())
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, `VACUUM INTO ?`, to)
	if code := resultCode(err); code == sqlite3.SQLITE_CANTOPEN || code == sqlite3.SQLITE_READONLY {
		err = fmt.Errorf("%w: to read it SQLite must write beside it; where nobody can write, copy the folder by other means (cp -a)", err)
	}
	return errors.Join(err, db.Close())
}

func (b *Backup) open(ctx context.Context, from, to string) (err error) {
	// Whoever makes a backup syncs all of it at its end, and throws it away before.
	b.db, err = connect(to, 1, pragmas("journal_mode(MEMORY)", "synchronous(OFF)"))
	if err != nil {
		return err
	}
	if err := b.sound(ctx); err != nil {
		return err
	}
	provider, err := newProvider(b.db)
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
	b.archives, b.shells = has >= schemaOfArchives, has >= schemaOfShells
	live, err := sourceName(from, toRead())
	if err != nil {
		return err
	}
	_, err = b.db.ExecContext(ctx, `ATTACH ? AS live`, live)
	return err
}

// sound fails where the copy is not whole.
func (b *Backup) sound(ctx context.Context) error {
	var found string
	if err := b.db.QueryRowContext(ctx, `PRAGMA main.quick_check(1)`).Scan(&found); err != nil {
		return err
	}
	if found != "ok" {
		return fmt.Errorf("the store's file is damaged: %s", found)
	}
	return nil
}

// Environments gives the environments of all owners in the copy, the oldest first.
func (b *Backup) Environments(ctx context.Context) ([]core.EnvironmentRecord, error) {
	q := &statements{on: b.db, prepared: map[string]*sql.Stmt{}}
	defer func() { _ = q.Close() }()
	all, err := collect(ctx, q, func(row scanner) (core.EnvironmentRecord, error) {
		return scanEnvironment(row)
	}, `SELECT `+b.columns()+` FROM main.environments ORDER BY seq`)
	return all, failed("list the environments of the copy", err)
}

// columns gives environmentColumns, as far as the copy has them.
func (b *Backup) columns() string {
	if b.archives {
		return environmentColumns
	}
	return `id, account, profile, name, labels, state, limits, host_uid, created_ms, last_activity_ms, NULL, NULL, NULL, NULL, NULL`
}

// Now gives an environment as the service has it at this moment, and whether it does.
func (b *Backup) Now(ctx context.Context, id string) (core.EnvironmentRecord, bool, error) {
	env, err := scanEnvironment(b.db.QueryRowContext(ctx, `SELECT `+b.columns()+` FROM live.environments WHERE id = ?`, id))
	if errors.Is(err, sql.ErrNoRows) {
		return core.EnvironmentRecord{}, false, nil
	}
	return env, err == nil, failed("read the environment", err)
}

// HasOutput says whether the copy has a command or shell of an environment.
func (b *Backup) HasOutput(ctx context.Context, environmentID, id string) (bool, error) {
	query := `SELECT EXISTS (SELECT 1 FROM main.commands WHERE id = ?1 AND environment_id = ?2)`
	if b.shells {
		query += ` OR EXISTS (SELECT 1 FROM main.shells WHERE id = ?1 AND environment_id = ?2)`
	}
	var has bool
	err := b.db.QueryRowContext(ctx, query, id, environmentID).Scan(&has)
	return has, failed("look for a command in the copy", err)
}

// Settle makes an environment of the copy archived, with an archive, or active, with nil.
func (b *Backup) Settle(ctx context.Context, id string, archive *core.Archive) error {
	state := core.StateActive
	if archive != nil {
		state = core.StateArchived
	}
	query, args := `UPDATE main.environments SET state = ? WHERE id = ?`, []any{state, id}
	if b.archives {
		query = `UPDATE main.environments SET state = ?, archived_ms = ?, archive_bytes = ?,
			archive_content_bytes = ?, archive_content_files = ? WHERE id = ?`
		args = append(append([]any{state}, lifecycle(core.EnvironmentRecord{Archive: archive})[1:]...), id)
	}
	_, err := b.db.ExecContext(ctx, query, args...)
	return failed("settle an environment of the copy", err)
}

// Drop removes an environment from the copy, with all that ran in it, as
// DeleteEnvironment does. The key of its creation stays where the service still has it,
// unless nothing was ever made under it.
func (b *Backup) Drop(ctx context.Context, id string, made bool) error {
	queries := []string{
		`DELETE FROM main.idempotency WHERE resource_id IN (SELECT id FROM main.commands WHERE environment_id = ?1)`,
		`DELETE FROM main.commands WHERE environment_id = ?1`,
		`DELETE FROM main.environments WHERE id = ?1`,
	}
	if b.shells {
		queries = append([]string{
			`DELETE FROM main.idempotency WHERE resource_id IN (SELECT id FROM main.shells WHERE environment_id = ?1)`,
			`DELETE FROM main.shells WHERE environment_id = ?1`,
		}, queries...)
	}
	key := `DELETE FROM main.idempotency WHERE resource_id = ?1`
	if made {
		key += ` AND NOT EXISTS (SELECT 1 FROM live.idempotency AS now WHERE now.resource_id = ?1)`
	}
	return failed("drop an environment of the copy", b.all(ctx, append(queries, key), id))
}

// Finish takes what ended out of the copy that was removed for its age meanwhile, since
// its output may not be there any more, gives the host uids of deleted environments
// free, whose files a backup does not have, and checks the copy once more.
func (b *Backup) Finish(ctx context.Context) error {
	queries := []string{
		`DELETE FROM main.commands WHERE ended_ms IS NOT NULL AND id NOT IN (SELECT id FROM live.commands)`,
		`UPDATE main.host_uids SET environment_id = NULL, released_ms = CAST(unixepoch('subsec') * 1000 AS INTEGER)
			WHERE environment_id IS NOT NULL AND environment_id NOT IN (SELECT id FROM main.environments)`,
	}
	if b.shells {
		queries = append(queries, `DELETE FROM main.shells WHERE closed_ms IS NOT NULL AND id NOT IN (SELECT id FROM live.shells)
			AND NOT EXISTS (SELECT 1 FROM main.commands WHERE shell_id = main.shells.id)`)
	}
	if err := b.all(ctx, queries); err != nil {
		return failed("bring the copy of the store into line", err)
	}
	return failed("check the copy of the store", b.sound(ctx))
}

// all runs queries in one transaction.
func (b *Backup) all(ctx context.Context, queries []string, args ...any) error {
	tx, err := b.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	for _, query := range queries {
		if _, err := tx.ExecContext(ctx, query, args...); err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	return tx.Commit()
}

// Close closes the copy.
func (b *Backup) Close() error {
	if b.db == nil {
		return nil
	}
	return b.db.Close()
}
