package core

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"
)

// activity is the use of environments that the store does not record as it happens:
// files, reads and signals come too often to write a record each time. It is in memory
// until the reaper, or Close, brings it into the store; after kill -9 what was used
// since the last run seems to have been used before it. docs/operations.md says what
// counts. The zero value is none.
type activity struct {
	mu    sync.Mutex
	last  map[string]time.Time // by environment: what the store may not know yet
	under map[string]int       // by environment: how many uses go on
}

// used notes that an environment is used now. It costs next to nothing.
func (s *Service) used(id string) { s.activity.note(id, s.now()) }

// using notes a use that goes on until it is ended, once.
func (s *Service) using(id string) (end func()) {
	s.activity.begin(id, s.now())
	return sync.OnceFunc(func() { s.activity.end(id, s.now()) })
}

// lastUsed gives when an environment was last used, as far as that may not be in the
// store yet: now while a use goes on, and the zero time where nothing is known.
func (s *Service) lastUsed(id string) time.Time {
	last, goesOn := s.activity.of(id)
	if goesOn {
		return s.now()
	}
	return last
}

// lastActivity gives when an environment was last used, by its record and by what that
// does not say yet.
func (s *Service) lastActivity(env EnvironmentRecord) time.Time {
	return later(env.LastActivityAt, s.lastUsed(env.ID))
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func (a *activity) note(id string, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.noteLocked(id, at)
}

func (a *activity) noteLocked(id string, at time.Time) {
	if a.last == nil {
		a.last = map[string]time.Time{}
	}
	a.last[id] = later(a.last[id], at)
}

func (a *activity) begin(id string, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.under == nil {
		a.under = map[string]int{}
	}
	a.under[id]++
	a.noteLocked(id, at)
}

func (a *activity) end(id string, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.under[id]--; a.under[id] == 0 {
		delete(a.under, id)
	}
	a.noteLocked(id, at)
}

func (a *activity) of(id string) (last time.Time, goesOn bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.last[id], a.under[id] > 0
}

// unwritten gives what the store may not know, with the uses that go on as of now, and
// none later: where the clock was set back since, that is when it was at the latest.
func (a *activity) unwritten(now time.Time) map[string]time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id := range a.under {
		a.noteLocked(id, now)
	}
	for id, at := range a.last {
		if at.After(now) {
			a.last[id] = now
		}
	}
	return maps.Clone(a.last)
}

// written forgets what the store knows by now, and nothing that came meanwhile.
func (a *activity) written(known map[string]time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, at := range known {
		if a.last[id].Equal(at) {
			delete(a.last, id)
		}
	}
}

// recordActivity brings what is known of the use of environments into the store, and
// says of how many. What cannot be written stays known.
func (s *Service) recordActivity(ctx context.Context) (int, error) {
	now := s.now()
	if err := s.Store.EndFuture(ctx, now); err != nil {
		return 0, fmt.Errorf("cannot correct the use of environments that is later than now: %w", err)
	}
	unwritten := s.activity.unwritten(now)
	if len(unwritten) == 0 {
		return 0, nil
	}
	if err := s.Store.TouchEnvironments(ctx, unwritten); err != nil {
		return 0, fmt.Errorf("cannot record the use of environments: %w", err)
	}
	s.activity.written(unwritten)
	return len(unwritten), nil
}
