package store

import (
	"context"
	"strings"

	"envapi/core"
)

// defaultLimit is the length of a page where the caller names none.
const defaultLimit = 50

// A selection is a list before its filters and its page are known. Its texts
// are constants of this package; what a caller gave goes into args.
type selection struct {
	list       list
	columns    string
	from       string
	conditions []string
	args       []any
}

// where adds a condition.
func (s *selection) where(condition string, args ...any) {
	s.conditions = append(s.conditions, condition)
	s.args = append(s.args, args...)
}

// query gives the text and the arguments of a page of up to limit rows, newest
// first. Each row has the selection's columns and behind them its seq.
func (s *selection) query(limit int) (string, []any) {
	text := `SELECT ` + s.columns + `, seq FROM ` + s.from +
		` WHERE ` + strings.Join(s.conditions, ` AND `) + ` ORDER BY seq DESC LIMIT ?`
	return text, append(s.args, limit)
}

// page gives the rows of a page, newest first, and the cursor of the next one,
// or "" where there is none. scan reads the selection's columns and what is
// behind them.
func page[T any](ctx context.Context, s *Store, sel selection, p core.Paging, scan func(scanner, ...any) (T, error)) ([]T, string, error) {
	if p.Cursor != "" {
		seq, err := s.cursors.seq(sel.list, p.Cursor)
		if err != nil {
			return nil, "", err
		}
		sel.where(`seq < ?`, seq)
	}
	limit := p.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	query, args := sel.query(limit + 1) // one more tells whether there is a next page
	var seqs []int64
	items, err := collect(ctx, s.lists, func(row scanner) (T, error) {
		var seq int64
		item, err := scan(row, &seq)
		seqs = append(seqs, seq)
		return item, err
	}, query, args...)
	if err != nil || len(items) <= limit {
		return items, "", err
	}
	return items[:limit], s.cursors.after(sel.list, seqs[limit-1]), nil
}
