package store

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"envapi/core"
)

const environmentColumns = `id, account, profile, name, labels, state, limits, host_uid, created_ms, last_activity_ms,
	idle_ms, archived_ms, archive_bytes, archive_content_bytes, archive_content_files`

const selectEnvironment = `SELECT ` + environmentColumns + ` FROM environments
	WHERE id = ? AND account = ? AND profile = ?`

// CreateEnvironment counts, takes a uid and inserts in one transaction.
func (s *Store) CreateEnvironment(ctx context.Context, e core.EnvironmentRecord, q core.EnvironmentQuota, uids core.UIDRange, key core.Idempotency) (made core.EnvironmentRecord, again bool, err error) {
	err = s.write(ctx, s.durable, "create the environment", func(ctx context.Context, tx *statements) error {
		id, err := madeUnder(ctx, tx, e.Owner, key)
		if err != nil {
			return err
		}
		if again = id != ""; !again {
			id = e.ID
			if err := insertEnvironment(ctx, tx, e, q, uids, key); err != nil {
				return err
			}
		}
		made, err = environment(ctx, tx, e.Owner, id)
		if errors.Is(err, sql.ErrNoRows) {
			return core.Errorf(core.CodeNotFound,
				"the environment that was made with this idempotency key was deleted: use a new key for a new one")
		}
		return err
	})
	if err != nil {
		return core.EnvironmentRecord{}, false, err
	}
	return made, again, nil
}

func insertEnvironment(ctx context.Context, tx *statements, e core.EnvironmentRecord, q core.EnvironmentQuota, uids core.UIDRange, key core.Idempotency) error {
	if err := checkEnvironments(ctx, tx, e.Owner, countedAs(e), q); err != nil {
		return err
	}
	uid, err := takeUID(ctx, tx, uids, e.ID)
	if err != nil {
		return err
	}
	args := []any{
		e.ID, e.Owner.Account, e.Owner.Profile, e.Name, toJSON(e.Labels), e.State, toJSON(e.Limits),
		uid, e.CreatedAt.UnixMilli(), e.LastActivityAt.UnixMilli(),
	}
	_, err = tx.exec(ctx, `INSERT INTO environments (`+environmentColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		append(args, lifecycle(e)...)...)
	if err != nil {
		return err
	}
	return rememberKey(ctx, tx, e.Owner, key, e.ID, e.CreatedAt)
}

// lifecycle gives the columns idle_ms and those of the archive.
func lifecycle(e core.EnvironmentRecord) []any {
	columns := make([]any, 5)
	if e.Idle != nil {
		columns[0] = e.Idle.Milliseconds()
	}
	if a := e.Archive; a != nil {
		copy(columns[1:], []any{a.At.UnixMilli(), a.Bytes, a.Content.Bytes, a.Content.Files})
	}
	return columns
}

// Environment gives one record of the owner.
func (s *Store) Environment(ctx context.Context, o core.Owner, id string) (core.EnvironmentRecord, error) {
	e, known, now := s.recall.of(o, id)
	if known {
		return e, nil
	}
	e, err := environment(ctx, s.reads, o, id)
	if err == nil {
		s.recall.keep(e, now)
	}
	return e, failed("read the environment", err)
}

func environment(ctx context.Context, q *statements, o core.Owner, id string) (core.EnvironmentRecord, error) {
	return scanEnvironment(q.row(ctx, selectEnvironment, id, o.Account, o.Profile))
}

// ListEnvironments gives a page of the owner's records, newest first: in the
// reverse of the order in which they were made, whatever the clock said.
func (s *Store) ListEnvironments(ctx context.Context, o core.Owner, f core.ListEnvironmentsInput) ([]core.EnvironmentRecord, string, error) {
	items, next, err := page(ctx, s, selectEnvironments(o, f), f.Paging, scanEnvironment)
	return items, next, failed("list the environments", err)
}

func selectEnvironments(o core.Owner, f core.ListEnvironmentsInput) selection {
	sel := selection{list: listOfEnvironments, columns: environmentColumns, from: `environments`}
	sel.where(`account = ? AND profile = ?`, o.Account, o.Profile)
	if f.State != "" {
		sel.where(`state = ?`, f.State)
	}
	if f.Name != "" {
		sel.where(`name = ?`, f.Name)
	}
	key, value, exact := strings.Cut(f.Label, "=")
	if f.Label != "" {
		sel.where(`EXISTS (SELECT 1 FROM json_each(labels) AS label WHERE label.key = ? AND (NOT ? OR label.value = ?))`,
			key, exact, value)
	}
	return sel
}

// UpdateEnvironment writes what change made of the name, labels, state, limits, idle
// time and archive, and moves the last activity forward. What else it changes is not
// kept. It is a mistake of its caller's to let it come to count against another quota,
// which is TurnEnvironment's.
func (s *Store) UpdateEnvironment(ctx context.Context, o core.Owner, id string, change func(*core.EnvironmentRecord) error) (core.EnvironmentRecord, error) {
	return s.changeEnvironment(ctx, o, id, change, func(_ context.Context, _ *statements, joins standing) error {
		if joins != (standing{}) {
			return errors.New("it would count against a quota that was not given")
		}
		return nil
	})
}

// TurnEnvironment is UpdateEnvironment under quotas.
func (s *Store) TurnEnvironment(ctx context.Context, o core.Owner, id string, q core.EnvironmentQuota, change func(*core.EnvironmentRecord) error) (core.EnvironmentRecord, error) {
	return s.changeEnvironment(ctx, o, id, change, func(ctx context.Context, tx *statements, joins standing) error {
		return checkEnvironments(ctx, tx, o, joins, q)
	})
}

// changeEnvironment changes a record, if may says that it can join those of a standing.
func (s *Store) changeEnvironment(ctx context.Context, o core.Owner, id string, change func(*core.EnvironmentRecord) error,
	may func(context.Context, *statements, standing) error,
) (updated core.EnvironmentRecord, err error) {
	leave := int64(leaveAll)
	leaving := func() int64 { return leave }
	err = s.writeLeaving(ctx, s.durable, leaving, "update the environment", func(ctx context.Context, tx *statements) error {
		e, err := environment(ctx, tx, o, id)
		if err != nil {
			return err
		}
		before, counted := e.State, countedAs(e)
		if err := change(&e); err != nil {
			return err
		}
		if before != core.StateActive || e.State != core.StateActive {
			leave = leaveNone // it is being emptied, archived or deleted
		}
		if err := may(ctx, tx, countedAs(e).joins(counted)); err != nil {
			return err
		}
		args := []any{e.Name, toJSON(e.Labels), e.State, toJSON(e.Limits), e.LastActivityAt.UnixMilli()}
		err = tx.execOne(ctx, `UPDATE environments SET name = ?, labels = ?, state = ?, limits = ?,
			last_activity_ms = max(last_activity_ms, ?), idle_ms = ?,
			archived_ms = ?, archive_bytes = ?, archive_content_bytes = ?, archive_content_files = ? WHERE id = ?`,
			append(append(args, lifecycle(e)...), id)...)
		if err != nil {
			return err
		}
		updated, err = environment(ctx, tx, o, id)
		return err
	})
	return updated, err
}

// DeleteEnvironment removes the record, its shells, its commands and their keys. The key
// of its own creation stays, so that a late retry of it is told that the
// environment was deleted.
func (s *Store) DeleteEnvironment(ctx context.Context, o core.Owner, id string) error {
	const what = "delete the environment"
	if _, err := environment(ctx, s.reads, o, id); err != nil {
		return failed(what, err)
	}
	if err := s.removeRows(ctx, id); err != nil {
		return err
	}
	return s.writeFreeing(ctx, s.durable, what, func(ctx context.Context, tx *statements) error {
		removed, err := removeEnvironment(ctx, tx, id)
		if err == nil && removed == 0 {
			return core.ErrNoRecord
		}
		return err
	})
}

// DropEnvironment removes as DeleteEnvironment does, and also the key of its
// creation and its hold on a uid.
func (s *Store) DropEnvironment(ctx context.Context, id string) error {
	if err := s.removeRows(ctx, id); err != nil {
		return err
	}
	return s.writeFreeing(ctx, s.durable, "drop the environment", func(ctx context.Context, tx *statements) error {
		if _, err := removeEnvironment(ctx, tx, id); err != nil {
			return err
		}
		if err := dropKey(ctx, tx, id); err != nil {
			return err
		}
		return releaseUID(ctx, tx, id)
	})
}

// removeEnvironment removes the record and the few rows that came after
// removeRows.
func removeEnvironment(ctx context.Context, tx *statements, id string) (int64, error) {
	if _, err := removeSome(ctx, tx, id); err != nil {
		return 0, err
	}
	return tx.exec(ctx, `DELETE FROM environments WHERE id = ?`, id)
}

// AllEnvironments gives the environments of all owners, the oldest first.
func (s *Store) AllEnvironments(ctx context.Context) ([]core.EnvironmentRecord, error) {
	all, err := collect(ctx, s.reads, func(row scanner) (core.EnvironmentRecord, error) {
		return scanEnvironment(row)
	}, `SELECT `+environmentColumns+` FROM environments ORDER BY seq`)
	return all, failed("list all environments", err)
}

// scanEnvironment reads environmentColumns, and more columns behind them.
func scanEnvironment(row scanner, more ...any) (core.EnvironmentRecord, error) {
	var e core.EnvironmentRecord
	var labels, limits []byte
	var created, active int64
	var idle, archived, bytes, contentBytes, contentFiles sql.NullInt64
	columns := []any{
		&e.ID, &e.Owner.Account, &e.Owner.Profile, &e.Name, &labels, &e.State, &limits, &e.HostUID, &created, &active,
		&idle, &archived, &bytes, &contentBytes, &contentFiles,
	}
	err := row.Scan(append(columns, more...)...)
	if err != nil {
		return core.EnvironmentRecord{}, err
	}
	e.CreatedAt, e.LastActivityAt = fromMS(created), fromMS(active)
	if idle.Valid {
		time := time.Duration(idle.Int64) * time.Millisecond
		e.Idle = &time
	}
	if archived.Valid {
		content := core.DiskUse{Bytes: contentBytes.Int64, Files: contentFiles.Int64}
		e.Archive = &core.Archive{At: fromMS(archived.Int64), Bytes: bytes.Int64, Content: content}
	}
	err = errors.Join(json.Unmarshal(labels, &e.Labels), json.Unmarshal(limits, &e.Limits))
	return e, err
}

// toJSON gives v, which has only strings and numbers in it, in the plainest
// form: SQLite reads it too.
func toJSON(v any) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		panic(err) // a type that cannot be encoded: a mistake of this package
	}
	return strings.TrimSpace(b.String())
}

// toMS gives the column of an optional time.
func toMS(at *time.Time) *int64 {
	if at == nil {
		return nil
	}
	ms := at.UnixMilli()
	return &ms
}

func fromMS(ms int64) time.Time { return time.UnixMilli(ms).UTC() }
