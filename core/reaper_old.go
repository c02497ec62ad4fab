package core

import (
	"context"
	"fmt"
	"time"
)

// pruneKeys forgets the idempotency keys whose time is over.
func (r *reaper) pruneKeys(ctx context.Context) (count int, err error) {
	before := r.service.now().Add(-r.service.Retention.Keys)
	for count < mostReaped {
		n, err := r.service.Store.PruneKeys(ctx, before, reapBatch)
		if count += n; err != nil || n < reapBatch {
			return count, err
		}
	}
	return count, nil
}

// pruneCommands removes the commands that ended longer ago than they are kept, with
// their output.
func (r *reaper) pruneCommands(ctx context.Context) (int, error) {
	s := r.service
	before := s.now().Add(-s.Retention.Ended)
	return r.prune(ctx, "commands", func(ctx context.Context) ([]Remnant, error) {
		s.mu.Lock()
		live := len(s.runs) // of which some have ended, but not their children
		s.mu.Unlock()
		return s.Store.OldCommands(ctx, "", time.Time{}, before, live+reapBatch)
	}, func(id string) bool { return s.live(id) != nil }, s.Store.RemoveCommands)
}

// pruneShells is pruneCommands for shells that are closed. One of which commands are
// left is left too, so that they are found by it.
func (r *reaper) pruneShells(ctx context.Context) (int, error) {
	s := r.service
	before := s.now().Add(-s.Retention.Ended)
	return r.prune(ctx, "shells", func(ctx context.Context) ([]Remnant, error) {
		s.mu.Lock()
		live := len(s.shells)
		s.mu.Unlock()
		return s.Store.OldShells(ctx, before, live+reapBatch)
	}, func(id string) bool { return s.liveShell(id) != nil }, s.Store.RemoveShells)
}

// prune removes what old gives, batch by batch, but for what is still in memory. The
// log goes before the record: after a crash in between the next run finds the record
// again, and nothing is left that nobody finds.
func (r *reaper) prune(ctx context.Context, what string, old func(context.Context) ([]Remnant, error), lives func(id string) bool, remove func(context.Context, []string) error) (count int, err error) {
	for count < mostReaped && err == nil {
		var found []Remnant
		if found, err = old(ctx); err != nil {
			break
		}
		var ids []string
		if ids, err = r.removeLogs(found, lives); len(ids) == 0 {
			break
		}
		if removed := remove(ctx, ids); removed != nil {
			err = removed
			break
		}
		count += len(ids)
	}
	if count > 0 {
		r.service.Log.Info("removed what ended longer ago than it is kept", "what", what, "count", count)
	}
	return count, err
}

// removeLogs removes the logs of a batch and gives the ids of those that have none
// left. Where one cannot be removed it does the others, and fails.
func (r *reaper) removeLogs(found []Remnant, lives func(id string) bool) (ids []string, err error) {
	for _, old := range found {
		if lives(old.ID) || len(ids) == reapBatch {
			continue
		}
		if failed := r.service.Logs.Remove(old.EnvironmentID, old.ID); failed != nil {
			err = fmt.Errorf("cannot remove the output of %s: %w", old.ID, failed)
			continue
		}
		ids = append(ids, old.ID)
	}
	return ids, err
}
