package core

import (
	"context"
	"time"
)

// passage is one way through a passing state.
type passage struct {
	outcome // settled when it is over; of restoring, with why that failed
	state   EnvironmentState
	// yield ends it for who wants to use the environment, nil where it gives way to
	// nobody.
	yield context.CancelFunc
}

func newPassage(state EnvironmentState, yield context.CancelFunc) *passage {
	return &passage{outcome: newOutcome(), state: state, yield: yield}
}

// passesSoon says whether who comes meanwhile waits. What is reset or deleted is of no
// use to him afterwards.
func (g *passage) passesSoon() bool {
	return g.state == StateArchiving || g.state == StateRestoring
}

// patience is how long a call waits until an environment is archived or restored, before
// it waits for anything of its own: together below the minute after which common clients
// give up.
const patience = 10 * time.Second

// pass takes the place for a passing state alone, once the starts under way are done.
// Another one that archives or restores is waited for, any other is `environment_busy`.
// The caller must settle it.
func (s *Service) pass(ctx context.Context, p *place, state EnvironmentState) error {
	mine, until := newPassage(state, nil), time.Now().Add(patience)
	for !p.passing.CompareAndSwap(nil, mine) {
		if _, err := s.await(ctx, p, until); err != nil {
			return err
		}
	}
	p.take()
	return nil
}

// take has the place for a passage alone.
func (p *place) take() {
	p.gate.Lock()
	p.passes.Add(1)
}

// tryPass is pass for what gives way: it fails where anybody is in the place, and yield
// is called when somebody wants to be.
func (p *place) tryPass(state EnvironmentState, yield context.CancelFunc) bool {
	mine := newPassage(state, yield)
	if !p.passing.CompareAndSwap(nil, mine) {
		return false
	}
	if !p.gate.TryLock() {
		p.passing.Store(nil)
		mine.settle(nil)
		return false
	}
	p.passes.Add(1)
	return true
}

// settle ends what pass began. The gate is open before another can pass.
func (p *place) settle(failed error) {
	over := p.passing.Load()
	p.gate.Unlock()
	p.passing.Store(nil)
	over.settle(failed)
}

// await waits for the passage that has the place, if there is one, and says how that
// failed, of one that restores. Where it is none that passes soon, or not over in time,
// it fails with `environment_busy`.
func (s *Service) await(ctx context.Context, p *place, until time.Time) (failed, err error) {
	g := p.passing.Load()
	if g == nil {
		return nil, nil
	}
	if !g.passesSoon() {
		return nil, busy(g.state)
	}
	if g.yield != nil {
		g.yield()
	}
	late := time.NewTimer(time.Until(until))
	defer late.Stop()
	select {
	case <-g.known:
		return g.err, nil
	case <-late.C:
		return nil, busy(g.state)
	case <-s.closing:
		return nil, stopping()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// untilClosing gives a context for work that goes on where its caller goes away, and
// ends when the service does: work that would hold that up.
func (s *Service) untilClosing(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		select {
		case <-s.closing:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// state is the passing state, or active.
func (p *place) state() EnvironmentState {
	if g := p.passing.Load(); g != nil {
		return g.state
	}
	return StateActive
}
