package store

import (
	"context"

	"envapi/core"
)

// What to do about a quota that is used up, in the words of checkQuota.
const (
	endOneEnvironment = "delete one with delete_environment, or archive one with archive_environment,"
	endOneArchive     = "delete an archived one with delete_environment, or restore one with restore_environment,"
)

// checkQuota fails with `quota_exceeded` where one more would pass the limit
// of that name. things is what is counted and remedy what to do, for people.
func checkQuota(limit, things, remedy string, allowed, used int) error {
	if used < allowed {
		return nil
	}
	return core.Errorf(core.CodeQuotaExceeded, "cannot have more %s (%d of %d): %s first",
		things, used, allowed, remedy).With("limit", limit).With("allowed", allowed).With("used", used)
}

// The two ways in which an environment counts, as conditions: each says in SQL what
// countedAs says in Go. One that is being deleted frees nothing before it is gone: one
// that was archived goes on to count as that, and never as one that is in use.
const (
	countsInUse    = `(state <> 'archived' AND NOT (state = 'deleting' AND archived_ms IS NOT NULL))`
	countsArchived = `(state IN ('archived', 'archiving') OR (state IN ('restoring', 'deleting') AND archived_ms IS NOT NULL))`
)

// standing is against which quotas an environment counts.
type standing struct{ inUse, archived bool }

func countedAs(e core.EnvironmentRecord) standing {
	packed := e.Archive != nil
	switch e.State {
	case core.StateArchived:
		return standing{archived: true}
	case core.StateArchiving:
		return standing{inUse: true, archived: true}
	case core.StateRestoring:
		return standing{inUse: true, archived: packed}
	case core.StateDeleting:
		return standing{inUse: !packed, archived: packed}
	}
	return standing{inUse: true}
}

// joins says which quotas an environment comes to count against that it did not count
// against before.
func (s standing) joins(before standing) standing {
	return standing{inUse: s.inUse && !before.inUse, archived: s.archived && !before.archived}
}

// checkEnvironments fails where there is no room for an environment of the owner's that
// joins those of a standing, and is not counted among them yet.
func checkEnvironments(ctx context.Context, tx *statements, o core.Owner, joins standing, q core.EnvironmentQuota) error {
	if joins == (standing{}) {
		return nil
	}
	count, err := countEnvironments(ctx, tx, o)
	if err != nil {
		return err
	}
	if joins.inUse {
		err = checkQuota("environments_per_profile", "environments of this profile", endOneEnvironment, q.PerProfile, count.PerProfile)
		if err != nil {
			return err
		}
		err = checkQuota("environments_per_account", "environments of this account", endOneEnvironment, q.PerAccount, count.PerAccount)
		if err != nil {
			return err
		}
	}
	if joins.archived {
		return checkQuota("archived_environments", "archived environments of this account", endOneArchive, q.Archived, count.Archived)
	}
	return nil
}

// CountEnvironments counts as CreateEnvironment and TurnEnvironment do.
func (s *Store) CountEnvironments(ctx context.Context, o core.Owner) (core.EnvironmentCount, error) {
	count, err := countEnvironments(ctx, s.reads, o)
	return count, failed("count the environments", err)
}

func countEnvironments(ctx context.Context, q *statements, o core.Owner) (c core.EnvironmentCount, err error) {
	err = q.row(ctx, `SELECT count(*) FILTER (WHERE `+countsInUse+`),
		count(*) FILTER (WHERE profile = ? AND `+countsInUse+`),
		count(*) FILTER (WHERE `+countsArchived+`)
		FROM environments WHERE account = ?`, o.Profile, o.Account).Scan(&c.PerAccount, &c.PerProfile, &c.Archived)
	return c, err
}
