package store

import (
	"context"

	"envapi/core"
)

// CountStates counts the environments of all owners by state.
func (s *Store) CountStates(ctx context.Context) (map[core.EnvironmentState]int, error) {
	counts := map[core.EnvironmentState]int{}
	_, err := collect(ctx, s.lists, func(row scanner) (struct{}, error) {
		var state core.EnvironmentState
		var count int
		err := row.Scan(&state, &count)
		counts[state] = count
		return struct{}{}, err
	}, `SELECT state, count(*) FROM environments GROUP BY state`)
	if err != nil {
		return nil, failed("count the environments by state", err)
	}
	return counts, nil
}
