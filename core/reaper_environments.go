package core

import (
	"context"
	"fmt"
	"maps"
	"time"
)

// warnPause is how long nothing more is said of an account whose archives are full.
const warnPause = 24 * time.Hour

// failurePause is how long an environment that could not be archived is left: each try
// may go through all of its folder.
const failurePause = time.Hour

// archiveEnvironments archives the environments that nobody has used for as long as
// they may be idle: that longest without use first. The next run goes on where one
// stops, which is after one environment where that took all its time: one account's large
// folders must not keep everything else from being reaped.
func (r *reaper) archiveEnvironments(ctx context.Context) (count int, err error) {
	s := r.service
	times, until := s.idleTimes(), time.Now().Add(r.period)
	for looked := range mostReaped {
		if len(r.page) == 0 {
			if looked > 0 && r.after == "" {
				break // those were the last
			}
			if err := r.nextPage(ctx); err != nil || len(r.page) == 0 {
				return count, err
			}
		}
		env := r.page[0]
		r.page = r.page[1:]
		done, err := r.archiveOne(ctx, times, env)
		if ctx.Err() != nil {
			return count, nil
		}
		if err != nil {
			s.Log.Error("cannot archive an idle environment, trying again in an hour", "id", env.ID, "error", err)
			r.failedAt(env.ID)
		}
		if done {
			count++
		}
		if count >= mostEnded || time.Now().After(until) {
			break
		}
	}
	return count, nil
}

// nextPage reads the next idle environments. What is known of them may be old when they
// are come to, so that whoever came meanwhile is seen when they are archived.
func (r *reaper) nextPage(ctx context.Context) (err error) {
	before := r.service.now().Add(-r.service.Retention.Environment.shortest())
	r.page, r.after, err = r.service.Store.IdleEnvironments(ctx, before, r.after, reapBatch)
	if err != nil {
		r.page, r.after = nil, ""
		return fmt.Errorf("cannot look for idle environments: %w", err)
	}
	return nil
}

// archiveOne archives an environment where its time is over and nothing runs in it.
func (r *reaper) archiveOne(ctx context.Context, times idleTimes, env EnvironmentRecord) (bool, error) {
	s := r.service
	last := s.lastActivity(env)
	if s.now().Sub(last) < s.Retention.Environment.shortest() {
		return false, nil
	}
	idle, ends := s.environmentTime(env, times.of(ctx, env.Owner))
	if !ends || !s.isOver(last, idle) || r.hasFailed(env.ID) || s.hasWork(ctx, env.ID) {
		return false, nil
	}
	done, err := r.archive(ctx, env, last)
	switch {
	case hasCode(err, CodeQuotaExceeded):
		r.warnOfArchives(env, err)
		return false, nil
	case err != nil || !done:
		return false, err
	}
	s.Log.Info("an environment is archived, since nobody used it for as long as it may be idle",
		"id", env.ID, "account", env.Owner.Account, "profile", env.Owner.Profile, "last_activity", last, "idle", idle)
	return true, nil
}

// failedAt notes that an environment could not be archived now.
func (r *reaper) failedAt(id string) {
	maps.DeleteFunc(r.failed, func(other string, _ time.Time) bool { return !r.hasFailed(other) })
	r.failed[id] = r.service.now()
}

// hasFailed says whether an environment is left for now, since it could not be archived.
// A clock that was put back leaves none.
func (r *reaper) hasFailed(id string) bool {
	at, ok := r.failed[id]
	age := r.service.now().Sub(at)
	return ok && age >= 0 && age < failurePause
}

// environmentTime gives how long an environment may be idle, by what it says itself
// and what its owner has asked for, and whether it ends for being idle at all. A time of
// its own was asked for with it in mind, and holds also where nothing is known of its
// owner.
func (s *Service) environmentTime(env EnvironmentRecord, asked IdleTimes) (idle time.Duration, ends bool) {
	switch {
	case s.Retention.Every == 0:
		return 0, false
	case env.Idle != nil:
		return s.Retention.Environment.within(env.Idle), true
	case asked.Never:
		return 0, false
	}
	return s.Retention.Environment.within(asked.Environment), true
}

// hasWork says whether anything is under way in an environment: a command that has not
// ended, a shell in which one is, or that somebody looks at, or one for people in which
// a program lives. What a command that has ended left in the background is not.
func (s *Service) hasWork(ctx context.Context, id string) bool {
	if s.hasRun(id) {
		return true
	}
	for _, sh := range s.shellsIn(id) {
		if isClosed(sh.closed.known) {
			continue
		}
		if !sh.isIdle(s.now()) || s.hasProgram(ctx, sh) {
			return true
		}
	}
	return false
}

// hasRun says whether a command of an environment has not ended.
func (s *Service) hasRun(id string) bool {
	for _, r := range s.runsIn(id) {
		if !isClosed(r.ended.known) {
			return true
		}
	}
	return false
}

// warnOfArchives says that an environment stays active because its account has as many
// archives as it may, now and then.
func (r *reaper) warnOfArchives(env EnvironmentRecord, err error) {
	now, account := r.service.now(), env.Owner.Account
	if last, ok := r.warned[account]; ok && now.Sub(last) < warnPause {
		return
	}
	for other, at := range r.warned {
		if now.Sub(at) >= warnPause {
			delete(r.warned, other)
		}
	}
	r.warned[account] = now
	r.service.Log.Warn("an idle environment stays active, since its account has as many archived ones as it may", "id", env.ID, "account", account, "error", err)
}
