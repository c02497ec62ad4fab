package store

import (
	"context"
	"database/sql"
	"errors"
	"sync"

	"envapi/core"
)

// statements runs queries on one connection or a pool. Each is prepared at its
// first use and kept, so a query must be one of few texts: values go into its
// arguments.
type statements struct {
	on       preparer
	mu       sync.Mutex
	prepared map[string]*sql.Stmt
}

// preparer is a *sql.Conn or a *sql.DB.
type preparer interface {
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func (q *statements) prepare(ctx context.Context, query string) (*sql.Stmt, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if stmt := q.prepared[query]; stmt != nil {
		return stmt, nil
	}
	stmt, err := q.on.PrepareContext(ctx, query) //nolint:sqlclosecheck // kept; Close closes it
	if err != nil {
		return nil, err
	}
	q.prepared[query] = stmt
	return stmt, nil
}

// exec gives the number of rows that the query changed.
func (q *statements) exec(ctx context.Context, query string, args ...any) (int64, error) {
	stmt, err := q.prepare(ctx, query) //nolint:sqlclosecheck // kept; Close closes it
	if err != nil {
		return 0, err
	}
	result, err := stmt.ExecContext(ctx, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// execOne is exec for what must change a row; without one it is ErrNoRecord.
func (q *statements) execOne(ctx context.Context, query string, args ...any) error {
	changed, err := q.exec(ctx, query, args...)
	if err == nil && changed == 0 {
		return core.ErrNoRecord
	}
	return err
}

func (q *statements) row(ctx context.Context, query string, args ...any) *sql.Row {
	stmt, err := q.prepare(ctx, query) //nolint:sqlclosecheck // kept; Close closes it
	if err != nil {
		return q.on.QueryRowContext(ctx, query, args...) // the same error, at Scan
	}
	return stmt.QueryRowContext(ctx, args...)
}

// Close ends every statement.
func (q *statements) Close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	var errs []error
	for _, stmt := range q.prepared {
		errs = append(errs, stmt.Close())
	}
	clear(q.prepared)
	return errors.Join(errs...)
}

// scanner reads the columns of a row.
type scanner interface{ Scan(columns ...any) error }

// collect gives what scan makes of each row.
func collect[T any](ctx context.Context, q *statements, scan func(scanner) (T, error), query string, args ...any) ([]T, error) {
	stmt, err := q.prepare(ctx, query) //nolint:sqlclosecheck // kept; Close closes it
	if err != nil {
		return nil, err
	}
	rows, err := stmt.QueryContext(ctx, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []T
	for rows.Next() {
		one, err := scan(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, rows.Err()
}
