package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"envapi/sandbox"
)

// place is an environment in use: its box, and who may work in it.
type place struct {
	id    string
	users int // who holds it; guarded by Service.mu

	// passing is the state that the environment passes through, or nil. One
	// call at a time sets it.
	passing atomic.Pointer[EnvironmentState]
	// passes counts the passing states: whoever opened the folder before one has
	// another folder than who comes after it.
	passes atomic.Int64
	// gate is held for reading while a command is started and for writing by
	// the passing call. It is only ever tried for reading: a start that finds
	// it taken is refused, never held up.
	gate sync.RWMutex

	mu     sync.Mutex
	opened *opening // the last box, or nil
}

// opening is a box that is being opened, and then it.
type opening struct {
	outcome
	box sandbox.Box
	// limits are those that the box was opened with, which it keeps.
	limits boxLimits
	// fate is what becomes of every command in it, once that is decided and
	// before it is closed for that; else nil.
	fate atomic.Pointer[doom]
}

// over says whether another box must be opened.
func (o *opening) over() bool {
	return isClosed(o.known) && (o.err != nil || isClosed(o.box.Done()))
}

// hold gives the place of an environment, which stays the one until let go.
func (s *Service) hold(id string) *place {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.places[id]
	if p == nil {
		p = &place{id: id}
		s.places[id] = p
	}
	p.users++
	return p
}

// letGo forgets a place that nobody holds and that has no box.
func (s *Service) letGo(p *place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.users--
	if p.users == 0 && p.box() == nil {
		delete(s.places, p.id)
	}
}

// enter lets a command be started in an environment. Reset and delete wait for
// the leave that it gives, and what comes after them is refused.
func (s *Service) enter(id string) (p *place, leave func(), err error) {
	if err := s.begin(); err != nil {
		return nil, nil, err
	}
	p = s.hold(id)
	if !p.gate.TryRLock() {
		defer s.open.RUnlock()
		defer s.letGo(p)
		return nil, nil, busy(p.state())
	}
	return p, func() {
		p.gate.RUnlock()
		s.letGo(p)
		s.open.RUnlock()
	}, nil
}

// enterOwn is enter for an environment that is o's, or should be.
func (s *Service) enterOwn(ctx context.Context, o Owner, id string) (p *place, leave func(), err error) {
	p, leave, err = s.enter(id)
	if err != nil {
		// It is busy, or we are: neither is told of another's environment.
		_, absent := s.ownEnvironment(ctx, o, id)
		return nil, nil, cmp.Or(absent, err)
	}
	return p, leave, nil
}

// pass takes the place for a passing state alone, once the starts under way are
// done. Another one that passes is `environment_busy`.
func (p *place) pass(state EnvironmentState) error {
	if !p.passing.CompareAndSwap(nil, &state) {
		return busy(p.state())
	}
	p.gate.Lock()
	p.passes.Add(1)
	return nil
}

// settle ends what pass began.
func (p *place) settle() {
	p.passing.Store(nil)
	p.gate.Unlock()
}

// state is the passing state, or active.
func (p *place) state() EnvironmentState {
	if state := p.passing.Load(); state != nil {
		return *state
	}
	return StateActive
}

// box gives the box if there is one that lives, without waiting for one that is
// being opened.
func (p *place) box() sandbox.Box {
	if o := p.live(); o != nil {
		return o.box
	}
	return nil
}

// live is box with all that is known of it.
func (p *place) live() *opening {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.opened == nil || !isClosed(p.opened.known) || p.opened.over() {
		return nil
	}
	return p.opened
}

// use gives the box. Where there is none that lives it is opened, once, however
// many ask.
func (p *place) use(limits boxLimits, open func() (sandbox.Box, error)) (*opening, error) {
	p.mu.Lock()
	o := p.opened
	mine := o == nil || o.over()
	if mine {
		o = &opening{outcome: newOutcome(), limits: limits}
		p.opened = o
	}
	p.mu.Unlock()

	if mine {
		err := errors.New("the opening of the box did not return")
		defer func() { o.settle(err) }() // also where open panics
		o.box, err = open()
		return o, err
	}
	<-o.known
	return o, o.err
}

// close ends the box and everything in it, if there is one.
func (p *place) close() error {
	box := p.box()
	if box == nil {
		return nil
	}
	if err := box.Close(); err != nil {
		return fmt.Errorf("cannot end the box of %s: %w", p.id, err)
	}
	return nil
}
