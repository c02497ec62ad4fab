package core

import (
	"context"
	"time"

	"envapi/sandbox"
)

// InMemory counts what a Service holds in memory: commands, environments in
// use, and keys under which something is being made.
func (s *Service) InMemory() (runs, places, keys int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keyed.mu.Lock()
	defer s.keyed.mu.Unlock()
	return len(s.runs), len(s.places), len(s.keyed.taken)
}

// Watched gives how many environments the disk watch watches.
func (s *Service) Watched() int {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	return len(s.disk.watched)
}

// Resting gives how many of them rest.
func (s *Service) Resting() int {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	resting := 0
	for _, w := range s.disk.watched {
		if !w.rests.IsZero() {
			resting++
		}
	}
	return resting
}

// DueAtRest says whether an environment that came to rest some time ago is counted
// now, since much went away from the disk or that is low.
func DueAtRest(ago time.Duration, low bool) bool {
	now := time.Now()
	came := now.Add(-ago)
	w := watched{hurry: true, soonest: came.Add(countPause), next: came.Add(restCount), rests: came.Add(restPause)}
	return w.due(now, low)
}

// Counting gives how many counts of the disk watch are under way.
func (s *Service) Counting() int { return len(s.disk.turns) }

// Counted says whether the disk watch knows what an environment has.
func (s *Service) Counted(id string) bool {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	_, ok := s.disk.known[id]
	return ok
}

// Known gives what the disk watch last counted.
func (s *Service) Known(id string) DiskUse {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	return s.disk.known[id].use
}

// MaxExports is maxExports.
const MaxExports = maxExports

// PageLength is pageLength, for a fuzz test.
var PageLength = pageLength

// ShellsInMemory counts what a Service holds in memory of shells.
func (s *Service) ShellsInMemory() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.shells)
}

// KeyBytes is keyBytes.
var KeyBytes = keyBytes

// WaitsToBeRead is what a wait does with the terminal of its command.
func WaitsToBeRead(ctx context.Context, t sandbox.Terminal) bool { return new(eye).until(ctx, t) }

// UntilAlone and ChangeTries are how a change is made anew that others are in the way of.
var UntilAlone = untilAlone

const ChangeTries = changeTries

// ArchiveIdle is archiveIdle.
func (s *Service) ArchiveIdle(ctx context.Context, env EnvironmentRecord, since time.Time) (bool, error) {
	return s.archiveIdle(ctx, env, since)
}

// Reap is a run of the reaper.
func (s *Service) Reap() { s.reaper.reap() }

// Drained says whether a service that drains has nothing to wait for.
func (s *Service) Drained() bool {
	s.work.mu.Lock()
	defer s.work.mu.Unlock()
	return isClosed(s.work.drained)
}

// ReaperEnded is closed when the reaper has ended.
func (s *Service) ReaperEnded() <-chan struct{} { return s.reaper.done }

// ArchiveFor has each run of the reaper archive for so long.
func (s *Service) ArchiveFor(d time.Duration) { s.reaper.period = d }

// Waiting is how many calls of an account archive or restore, or wait for it.
func (s *Service) Waiting(account string) int {
	s.passages.mu.Lock()
	defer s.passages.mu.Unlock()
	if l := s.passages.some[account]; l != nil {
		return l.people
	}
	return 0
}
