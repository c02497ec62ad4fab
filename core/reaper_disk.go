package core

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
)

// keptOutput is how long after the end of a command its output is kept however full
// the disk is: somebody may be about to read it.
const keptOutput = 10 * time.Minute

// makeRoom drops output of commands that have ended before its time while the host's
// disk has little more free than must stay free: of the environment whose logs take
// most, the oldest first. Who reads it is told that it was dropped; the commands stay.
// Nothing of a folder is ever taken for want of disk.
func (r *reaper) makeRoom(ctx context.Context) (count int, err error) {
	s := r.service
	if !s.isTight() {
		return 0, nil
	}
	sizes, err := s.Logs.Bytes()
	if err != nil {
		return 0, fmt.Errorf("cannot tell what output takes, to make room: %w", err)
	}
	maps.DeleteFunc(r.trims, func(id string, _ time.Time) bool { return sizes[id] == 0 })
	largest := slices.SortedFunc(maps.Keys(sizes), func(a, b string) int {
		return cmp.Or(cmp.Compare(sizes[b], sizes[a]), cmp.Compare(a, b))
	})
	var freed int64
	for _, id := range largest {
		n, bytes, failed := r.trimLogs(ctx, id)
		count, freed = count+n, freed+bytes
		if err = failed; err != nil || ctx.Err() != nil || count >= mostReaped || !s.isTight() {
			break
		}
	}
	if count > 0 {
		s.Log.Warn("the disk is nearly full: output of commands that have ended was dropped before its time", "freed_bytes", freed, "commands", count)
	}
	return count, err
}

// isTight says whether the host's disk has less free than half as much again as must
// stay free.
func (s *Service) isTight() bool {
	space, err := s.Workspaces.Space()
	if err != nil {
		return false // the disk watch says so
	}
	reserve := s.Limits.Reserved(space.Total).Bytes
	return space.Free.Bytes < reserve+reserve/2
}

// archiveWithRoom archives what is idle where the disk has room for that. Else nothing of
// it can be done, of any environment, which is said once and not at each run of each.
func (r *reaper) archiveWithRoom(ctx context.Context) (count int, err error) {
	low := r.service.hasPart(packPart) != nil
	switch {
	case low && !r.low:
		r.service.Log.Warn("no idle environment is archived until the disk has more room, since packing one takes some before it frees any")
	case !low && r.low:
		r.service.Log.Info("idle environments are archived again")
	}
	if r.low = low; low {
		return 0, nil
	}
	return r.archiveEnvironments(ctx)
}

// trimLogs drops the output of the oldest commands of an environment until there is
// room, and notes how far it came.
func (r *reaper) trimLogs(ctx context.Context, id string) (count int, freed int64, err error) {
	s := r.service
	for looked := 0; looked < mostReaped; {
		after := r.trims[id]
		page, err := s.Store.OldCommands(ctx, id, after, s.now().Add(-keptOutput), reapBatch)
		if err != nil {
			return count, freed, fmt.Errorf("cannot look for old commands: %w", err)
		}
		for _, old := range page {
			r.trims[id] = old.EndedAt
			if s.live(old.ID) != nil {
				continue // its children write
			}
			n, err := s.Logs.Trim(id, old.ID)
			if err != nil {
				return count, freed, fmt.Errorf("cannot drop the output of %s: %w", old.ID, err)
			}
			if n == 0 {
				continue
			}
			count, freed = count+1, freed+n
			if !s.isTight() {
				return count, freed, nil
			}
		}
		if len(page) < reapBatch {
			break
		}
		if r.trims[id].Equal(after) { // so many in one millisecond
			r.trims[id] = after.Add(time.Millisecond)
		}
		looked += len(page)
	}
	return count, freed, nil
}
