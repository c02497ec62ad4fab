package core

import (
	"context"
	"errors"
	"time"
)

// lastFinishPause is the longest pause between tries to finish what failed: each may go
// through all of a folder, and says in the log why it failed.
const lastFinishPause = time.Minute

// finishLater has what an error cut short in a passing state be finished without its
// caller, who may not come again. The place must be the caller's alone. Where the
// service stops first, the next start does it.
func (s *Service) finishLater(p *place, o Owner) {
	if !p.unfinished.CompareAndSwap(false, true) {
		return // somebody is at it
	}
	s.hold(p.id)
	s.watchers.Go(func() {
		defer s.letGo(p)
		for pause := firstPause; ; pause = min(2*pause, lastFinishPause) {
			select {
			case <-time.After(pause):
			case <-s.work.draining:
				return
			}
			err := s.finishPassing(p, o)
			if err == nil {
				return
			}
			s.Log.Error("cannot finish what was begun in an environment, trying again", "id", p.id, "error", err)
		}
	})
}

// orLater is finishLater for a start, where something failed.
func (s *Service) orLater(env EnvironmentRecord, err error) error {
	if err != nil {
		p := s.hold(env.ID)
		defer s.letGo(p)
		s.finishLater(p, env.Owner)
	}
	return err
}

// finishPassing brings an environment out of a passing state in which an error left it. It does
// nothing where somebody else did, or the service stops.
func (s *Service) finishPassing(p *place, o Owner) error {
	if s.begin() != nil {
		return nil
	}
	defer s.done()
	ctx := context.Background()
	env, err := s.Store.Environment(ctx, o, p.id)
	if err != nil && !errors.Is(err, ErrNoRecord) {
		return err
	}
	if err := s.pass(ctx, p, env.State); err != nil {
		return err
	}
	defer p.settle(nil)
	env, err = s.Store.Environment(ctx, o, p.id) // nobody changes it from here on
	switch {
	case errors.Is(err, ErrNoRecord):
		err = nil
	case err == nil && (env.State == StateResetting || env.State == StateDeleting):
		_, err = s.change(ctx, p, o, env.State)
	case err == nil && env.State == StateRestoring && env.Archive == nil:
		err = s.dropFork(ctx, env.ID)
	}
	if err == nil {
		p.unfinished.Store(false)
	}
	return err
}
