package core

import (
	"sync"
	"time"
)

const (
	// leap is by how much more the clock must have moved than time has passed, to
	// have been set, or the machine asleep: more than a clock is corrected by.
	leap = time.Minute
	// longestRespite is how long who could not come for a while has at most to come.
	longestRespite = 24 * time.Hour
)

// respite keeps what seems idle only since nobody could use it: while the service was
// off, or the machine asleep, or because the clock was set forward. That time is none
// in which anything was idle, for a while, in which its owner can come. The zero value
// is that nothing of the kind was seen.
type respite struct {
	mu     sync.Mutex
	gap    time.Duration // the time that does not count
	since  time.Duration // when it was over, by the steady clock
	wall   time.Time     // the clock when it was last looked at, and the steady one
	steady time.Duration
}

// begin notes, at the start, since when nobody may have been able to come.
func (r *respite) begin(off time.Duration, wall time.Time, steady time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gap, r.since, r.wall, r.steady = max(off, 0), steady, wall, steady
}

// look compares the clock with the steady one.
func (r *respite) look(wall time.Time, steady time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	leapt := wall.Sub(r.wall) - (steady - r.steady)
	if steady < r.steady { // another looked in between
		return
	}
	if leapt > leap {
		if steady-r.since >= min(r.gap, longestRespite) {
			r.gap = 0 // the one before is over
		}
		r.gap, r.since = r.gap+leapt, steady
	}
	r.wall, r.steady = wall, steady
}

// left gives how long what was not used for a while, and may not be for as long as
// allowed, is kept all the same.
func (r *respite) left(unused, allowed, steady time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if unused-r.gap >= allowed {
		return 0 // it was idle without that
	}
	return max(0, min(r.gap, allowed, longestRespite)-(steady-r.since))
}

// isOver says whether what was last used at a time has been idle for as long as it may
// be. It looks at the clocks after the time was read: no leap goes unseen.
func (s *Service) isOver(last time.Time, allowed time.Duration) bool {
	unused := s.now().Sub(last)
	return unused >= allowed && s.respiteOf(unused, allowed) == 0
}

func (s *Service) respiteOf(unused, allowed time.Duration) time.Duration {
	s.respite.look(s.now(), s.steady())
	return s.respite.left(unused, allowed, s.steady())
}

// steady is how long the service has run by a clock that nobody can set.
func (s *Service) steady() time.Duration {
	if s.Steady != nil {
		return s.Steady()
	}
	return s.Now().Sub(s.started)
}

// beginRespite has the time not count for which the service was off, by the last use
// of any environment that is recorded: where hardly anybody comes it is taken to have
// been longer than it was.
func (s *Service) beginRespite(environments []EnvironmentRecord) {
	now := s.now()
	var last time.Time
	for _, env := range environments {
		if !env.LastActivityAt.After(now) {
			last = later(last, env.LastActivityAt)
		}
	}
	if !last.IsZero() {
		s.respite.begin(now.Sub(last), now, s.steady())
	} else {
		s.respite.begin(0, now, s.steady())
	}
}
