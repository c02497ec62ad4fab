package core

import (
	"sync"
	"time"
)

// Census is what lives at one moment, of all owners together.
type Census struct {
	Boxes    int
	Shells   int // open ones
	Commands int // that have not ended, with those that wait in line in shells
}

// Census counts what lives. It holds nobody up for longer than it takes to go through
// what is in memory.
func (s *Service) Census() Census {
	s.mu.Lock()
	defer s.mu.Unlock()
	var c Census
	for _, p := range s.places {
		if p.box() != nil {
			c.Boxes++
		}
	}
	for _, sh := range s.shells {
		if sh.isOpen() && !isClosed(sh.closed.known) {
			c.Shells++
		}
	}
	for _, r := range s.runs {
		if !isClosed(r.ended.known) {
			c.Commands++
		}
	}
	return c
}

// Reaped is what the reaper has done since the service was started.
type Reaped struct {
	Runs    int64
	LastRun time.Time        // when the last one came to its end; zero before the first
	Ended   map[string]int64 // how much it ended or removed, by kind: every kind is there
	Failed  map[string]int64 // runs in which it could not do all, likewise
}

// Reaped says what the reaper has done. Where the deployment has none, nothing.
func (s *Service) Reaped() Reaped {
	if s.reaper == nil {
		return Reaped{}
	}
	return s.reaper.record.copied(s.reaper.steps())
}

// reapRecord is what the reaper has done.
type reapRecord struct {
	mu     sync.Mutex
	runs   int64
	last   time.Time
	ended  map[string]int64 // by what a step is about
	failed map[string]int64
}

// notes one step of a run.
func (r *reapRecord) note(what string, count int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended == nil {
		r.ended, r.failed = map[string]int64{}, map[string]int64{}
	}
	r.ended[what] += int64(count)
	if err != nil {
		r.failed[what]++
	}
}

// noteRun notes that a run came to its end.
func (r *reapRecord) noteRun(at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.runs++
	r.last = at
}

// copied gives it, with a number for each step. What was noted of activity was not ended.
func (r *reapRecord) copied(steps []step) Reaped {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := Reaped{Runs: r.runs, LastRun: r.last, Ended: map[string]int64{}, Failed: map[string]int64{}}
	for _, step := range steps {
		out.Failed[step.what] = r.failed[step.what]
		if step.what != stepActivity {
			out.Ended[step.what] = r.ended[step.what]
		}
	}
	return out
}
