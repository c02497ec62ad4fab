package core

import (
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

	// passing is what brings the environment through a passing state, or nil. One
	// at a time sets it.
	passing atomic.Pointer[passage]
	// passes counts the passing states: whoever opened the folder before one has
	// another folder than who comes after it.
	passes atomic.Int64
	// gate is held for reading while a command is started and for writing by
	// the passage. It is only ever tried for reading: a start that finds it taken
	// is refused, or waits for the passage with a bound.
	gate sync.RWMutex
	// unfinished is that finishLater is at it; who passes changes it.
	unfinished atomic.Bool

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

	using   sync.Mutex
	uses    int64 // how often something was to be started in it, shells included
	retired bool  // it is let go: what comes is started in the next one
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
