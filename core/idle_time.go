package core

import (
	"context"
	"time"
)

// longestIdle is the longest time that is told from longer ones: no deployment allows
// as much, and more milliseconds are more than a time can be.
const longestIdle = 100 * 365 * 24 * time.Hour

// idleTime is the time that an environment is to have of its own; nil for 0, which is
// none.
func idleTime(ms int64) *time.Duration {
	if ms == 0 {
		return nil
	}
	idle := time.Duration(min(ms, longestIdle.Milliseconds())) * time.Millisecond
	return &idle
}

// askedIdle is idleTime where one is given.
func askedIdle(ms *int64) *time.Duration {
	if ms == nil {
		return nil
	}
	return idleTime(*ms)
}

// ownIdle shows the time of its own that an environment has, as it holds here.
func (s *Service) ownIdle(env EnvironmentRecord) *int64 {
	if env.Idle == nil {
		return nil
	}
	ms := s.Retention.Environment.within(env.Idle).Milliseconds()
	return &ms
}

// archivesAt says when an environment in which no command runs is archived, if it is
// not used before, by what is known without asking.
func (s *Service) archivesAt(ctx context.Context, env EnvironmentRecord) *Time {
	if env.State != StateActive {
		return nil
	}
	var asked IdleTimes
	if s.Lifetimes != nil {
		asked = s.Lifetimes.Known(ctx, env.Owner)
	}
	idle, ends := s.environmentTime(env, asked)
	if !ends {
		return nil
	}
	last := s.lastActivity(env)
	at, now := At(last.Add(idle)), s.now()
	if left := s.respiteOf(now.Sub(last), idle); left > 0 {
		at = At(later(at.Time, now.Add(left)))
	}
	return &at
}
