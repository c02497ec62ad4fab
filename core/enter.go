package core

import (
	"cmp"
	"context"
	"time"
)

// Restoring says whether an archived environment is restored in order to be used.
type Restoring struct {
	Restore *bool `json:"restore,omitempty" doc:"Where the environment is archived, restore it first; with false fail with environment_archived instead." default:"true"`
}

func (r Restoring) wanted() bool { return value(r.Restore, true) }

// asItIs is for what is of no use in an environment that must be restored first.
var asItIs = Restoring{Restore: new(bool)}

// enterOwn lets something be started in an environment that is o's, or should be. What
// archives it gives way or is waited for, and so is what restores it; where it is
// archived it is restored, if r says so. What resets or deletes it waits for the leave
// that this gives, and who comes after that is refused. It fails with `not_found`,
// `environment_busy`, `environment_archived`, and as RestoreEnvironment does.
func (s *Service) enterOwn(ctx context.Context, o Owner, id string, r Restoring) (p *place, leave func(), err error) {
	return s.enterFor(ctx, aCall, o, id, r)
}

// enterFor is enterOwn for a kind of work.
func (s *Service) enterFor(ctx context.Context, k kind, o Owner, id string, r Restoring) (p *place, leave func(), err error) {
	if err := s.admitted(k); err != nil {
		// Nobody is told of another's environment.
		_, absent := s.ownEnvironment(ctx, o, id)
		return nil, nil, cmp.Or(absent, err)
	}
	p = s.hold(id)
	if err := s.enter(ctx, p, o, r); err != nil {
		s.letGo(p)
		s.work.leave(k)
		return nil, nil, err
	}
	return p, func() {
		p.gate.RUnlock()
		s.letGo(p)
		s.work.leave(k)
	}, nil
}

// enter takes the gate of an environment that is not archived.
func (s *Service) enter(ctx context.Context, p *place, o Owner, r Restoring) error {
	until := time.Now().Add(patience)
	for {
		if p.gate.TryRLock() {
			archived, err := s.isArchived(ctx, p, o)
			if err == nil && !archived {
				return nil
			}
			p.gate.RUnlock()
			if err == nil {
				err = s.beginRestoring(ctx, p, o, r)
			}
			if err != nil {
				return err
			}
		} else if _, err := s.ownEnvironment(ctx, o, p.id); err != nil {
			return err // before what another does is ended, or waited for
		}
		failed, err := s.await(ctx, p, until)
		if err == nil && r.wanted() {
			err = failed
		}
		if err != nil {
			return err
		}
	}
}

// isArchived says whether an environment is, to who has its gate. The store need not be
// asked where there is a box.
func (s *Service) isArchived(ctx context.Context, p *place, o Owner) (bool, error) {
	if p.box() != nil {
		return false, nil
	}
	env, err := s.ownEnvironment(ctx, o, p.id)
	return env.State == StateArchived, err
}

// beginRestoring begins to restore an environment, once however many ask. It goes on
// where they go away.
func (s *Service) beginRestoring(ctx context.Context, p *place, o Owner, r Restoring) error {
	if !r.wanted() {
		return Errorf(CodeEnvironmentArchived, "environment %q is archived, and the call is not to restore it (restore is false): call restore_environment, or leave restore out", p.id)
	}
	mine := newPassage(StateRestoring, nil)
	if !p.passing.CompareAndSwap(nil, mine) {
		return nil // somebody does it, or something else: who waits for it sees
	}
	if err := s.begin(); err != nil {
		p.passing.Store(nil)
		mine.settle(err)
		return err
	}
	s.hold(p.id)
	ctx, cancel := s.untilClosing(ctx)
	go func() {
		defer s.done()
		defer s.letGo(p)
		defer cancel()
		p.take()
		_, err := s.restore(ctx, p, o)
		p.settle(err)
	}()
	return nil
}
