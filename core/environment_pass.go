package core

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// The passing states of an environment:
//
//	active or archived ─▶ resetting ─▶ active
//	any ─▶ deleting ─▶ gone
//
// and those of environment_archive.go.
//
// The state is on disk before anything of the folder is destroyed. What runs is
// ended even before that: a crash would end it too, and on a full disk it may be
// what takes every byte that the state needs. Every step can be done again, so
// what a crash cut short the next start finishes (reconcile.go), and what an
// error cut short is tried again until it is done (environment_finish.go).

// ResetEnvironment kills everything in an environment and empties its folder;
// the id is kept. An archived one becomes active and empty. When it returns the folder
// is empty, on disk. It fails with `not_found`, `environment_busy` or, where it was
// archived, `quota_exceeded`. What had begun by then is finished all the same.
func (s *Service) ResetEnvironment(ctx context.Context, c Caller, in EnvironmentRef) (Environment, error) {
	env, err := s.passThrough(ctx, c.Owner, in.EnvironmentID, StateResetting)
	if err != nil {
		return Environment{}, err
	}
	s.used(env.ID)
	return s.environment(ctx, env)
}

// DeleteEnvironment kills everything in an environment and removes its folder,
// its shells and commands and their output. It fails with `not_found`, also the second
// time, or `environment_busy`. What had begun by then is finished all the same.
func (s *Service) DeleteEnvironment(ctx context.Context, c Caller, in EnvironmentRef) (Nothing, error) {
	_, err := s.passThrough(ctx, c.Owner, in.EnvironmentID, StateDeleting)
	return Nothing{}, err
}

// passThrough ends everything in an environment and brings it through a passing state. A
// caller that goes away stops none of it, and what fails is tried again without him.
func (s *Service) passThrough(ctx context.Context, o Owner, id string, state EnvironmentState) (EnvironmentRecord, error) {
	if err := s.begin(); err != nil {
		return EnvironmentRecord{}, err
	}
	defer s.done()
	if _, err := s.ownEnvironment(ctx, o, id); err != nil {
		return EnvironmentRecord{}, err // before the place is taken: nobody can hold up another's
	}
	p := s.hold(id)
	defer s.letGo(p)
	if err := s.pass(ctx, p, state); err != nil {
		return EnvironmentRecord{}, err
	}
	defer p.settle(nil)
	env, err := s.change(context.WithoutCancel(ctx), p, o, state)
	if err != nil {
		s.finishLater(p, o)
	}
	return env, err
}

// change resets or deletes an environment whose place the caller has.
func (s *Service) change(ctx context.Context, p *place, o Owner, state EnvironmentState) (EnvironmentRecord, error) {
	reason := ReasonEnvironmentReset
	if state == StateDeleting {
		reason = ReasonEnvironmentDeleted
	}
	left, err := s.endAll(p, doom{status: CommandKilled, reason: reason})
	if err != nil {
		return EnvironmentRecord{}, err
	}
	env, err := s.Store.TurnEnvironment(ctx, o, p.id, s.quota(), func(env *EnvironmentRecord) error { return env.turn(state) })
	if err != nil {
		return env, notActivated(p.id, missing(err, "environment", p.id))
	}
	if err := vacated(ctx, p.id, left); err != nil {
		return env, err
	}
	if state == StateDeleting {
		return env, s.remove(ctx, env)
	}
	return s.refill(ctx, env)
}

// turn changes the state. From deleting there is no way back. What is reset has no
// archive from then on.
func (env *EnvironmentRecord) turn(state EnvironmentState) error {
	if env.State == StateDeleting && state != StateDeleting {
		return busy(env.State)
	}
	if state == StateResetting {
		env.Archive = nil
	}
	env.State = state
	return nil
}

// vacateBound is how long the commands and shells of an environment may take to be
// recorded once its box is gone. Only a store that fails takes that long.
const vacateBound = 30 * time.Second

// endAll ends everything that runs in an environment and gives what must be waited
// for.
func (s *Service) endAll(p *place, d doom) (left []*outcome, err error) {
	for _, r := range s.runsIn(p.id) {
		r.condemn(d)
		left = append(left, &r.gone)
	}
	for _, sh := range s.shellsIn(p.id) {
		sh.condemn(d.reason)
		left = append(left, &sh.gone)
	}
	return left, p.close()
}

// vacated returns when the ends of what ran in an environment are recorded.
func vacated(ctx context.Context, id string, left []*outcome) error {
	ctx, cancel := context.WithTimeout(ctx, vacateBound)
	defer cancel()
	for _, gone := range left {
		if gone.wait(ctx) != nil {
			return unavailable("cannot record the end of what ran in environment %q: try again", id)
		}
	}
	return nil
}

// refill empties the folder, removes the archive and makes the environment active again.
func (s *Service) refill(ctx context.Context, env EnvironmentRecord) (EnvironmentRecord, error) {
	if err := s.Workspaces.Reset(ctx, env.ID, env.HostUID); err != nil {
		return env, fmt.Errorf("cannot empty the folder of %s: %w", env.ID, err)
	}
	s.disk.forget(env.ID)
	if err := s.Workspaces.DropArchive(ctx, env.ID); err != nil {
		return env, fmt.Errorf("cannot remove the archive of %s: %w", env.ID, err)
	}
	return s.Store.UpdateEnvironment(ctx, env.Owner, env.ID, func(env *EnvironmentRecord) error {
		env.State = StateActive
		return nil
	})
}

// remove takes away what belongs to an environment, its record last. Its uid
// stays taken until both the record and every file of it are gone, so that no
// other environment can ever own a file of this one.
func (s *Service) remove(ctx context.Context, env EnvironmentRecord) error {
	var gone atomic.Int32
	oneGone := func() {
		if gone.Add(1) == 2 {
			s.releaseUID(env.ID)
		}
	}
	if err := s.Workspaces.Remove(ctx, env.ID, oneGone); err != nil {
		return fmt.Errorf("cannot remove the folder of %s: %w", env.ID, err)
	}
	s.disk.forget(env.ID)
	if err := s.Logs.RemoveEnvironment(env.ID); err != nil {
		return fmt.Errorf("cannot remove the output of %s: %w", env.ID, err)
	}
	if err := s.Store.DeleteEnvironment(ctx, env.Owner, env.ID); err != nil {
		return missing(err, "environment", env.ID)
	}
	oneGone()
	return nil
}

// releaseUID frees the uid of a deleted environment. Where it fails the next
// start does it.
func (s *Service) releaseUID(id string) {
	if err := s.Store.ReleaseUID(context.Background(), id); err != nil {
		s.Log.Warn("cannot release the uid of a deleted environment", "id", id, "error", err)
	}
}
