package cgroup

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"envapi/sandbox"
)

// Control is something that groups do.
type Control string

// The controls, by the names of the kernel's controllers.
const (
	Memory    Control = "memory"
	Processes Control = "pids"
	CPU       Control = "cpu"
	CPUTime   Control = "cpuacct" // counted, not bounded; part of version 2 itself
)

var controls = []Control{Memory, Processes, CPU, CPUTime}

const (
	// killPatience bounds the end of what is left in a group. It comes at once
	// but for processes in uninterruptible calls.
	killPatience = 5 * time.Second
	// killAgain is how often that is looked for.
	killAgain = 2 * time.Millisecond
	// maxIdle is how many groups of boxes that are gone are kept.
	maxIdle = 16
)

// Options says whose groups these are.
type Options struct {
	// Name is what tells this service's groups from those of every other on
	// this host. What is found under it is killed.
	Name string
	Log  *slog.Logger // never nil
}

// Parent is the group below which all groups of a service are. A nil Parent has
// no control, and gives nil groups, which bound nothing.
type Parent struct {
	options     Options
	system      system
	hierarchies []*hierarchy // the first one is entered first
	missing     map[Control]string

	spares atomic.Int64 // slots without a command that are open

	mu       sync.Mutex
	closed   bool
	made     int                 // numbers that were given to accounts
	accounts map[string]*account // that have boxes
	idle     []*Group            // of boxes that are gone, the longest first
}

// Open finds what this host lets the service have, and removes with all their
// processes the groups that one of the same name left there. That there is no
// control is no error: Holds tells why.
func Open(o Options) *Parent { return open(o, hostSystem) }

func open(o Options, s system) *Parent {
	p := &Parent{options: o, system: s, missing: map[Control]string{}, accounts: map[string]*account{}}
	p.find()
	for _, h := range p.hierarchies {
		if err := h.clear(); err != nil {
			o.Log.Warn("cannot remove the cgroups of an earlier run", "cause", err)
		}
	}
	return p
}

// Holds says whether there is a control and how, or why not.
func (p *Parent) Holds(c Control) (how string, ok bool) {
	if p == nil {
		return "cgroups are not used", false
	}
	for _, h := range p.hierarchies {
		if slices.Contains(h.controls, c) {
			return fmt.Sprintf("cgroup v%d", h.version), true
		}
	}
	return p.missing[c], false
}

// Take gives a group with these limits for a box of an account. A box of no account
// weighs as much as all of one.
func (p *Parent) Take(account string, l sandbox.Limits) (*Group, error) {
	if p == nil || len(p.hierarchies) == 0 {
		return nil, nil //nolint:nilnil // a nil Group is one that bounds nothing
	}
	a, again := p.enter(account)
	if again != nil {
		err := p.limit(again.name, l)
		if err == nil {
			return again, nil
		}
		p.options.Log.Warn("a cgroup cannot be used again", "cause", err)
		p.discard(again)
	}
	g, err := p.create(a, l)
	if err != nil {
		p.leave(a)
	}
	return g, err
}

func (p *Parent) create(a *account, l sandbox.Limits) (*Group, error) {
	if err := p.make(a); err != nil {
		return nil, fmt.Errorf("cannot make the cgroup of an account: %w", err)
	}
	name, err := p.number(&a.made, filepath.Join(a.name, "b"))
	if err != nil {
		return nil, fmt.Errorf("cannot make the cgroup of a box: %w", err)
	}
	g := &Group{parent: p, account: a, name: name, taken: map[*cell]struct{}{}}
	if err = p.delegate(name); err == nil {
		err = p.limit(name, l)
	}
	if err != nil {
		p.discard(g)
		return nil, fmt.Errorf("cannot limit the cgroup of a box: %w", err)
	}
	return g, nil
}

// Close removes every group. Boxes that are still there are killed.
func (p *Parent) Close() error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	p.closed = true
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	for _, g := range idle {
		p.discard(g)
	}
	var err error
	for _, h := range p.hierarchies {
		err = errors.Join(err, h.destroy(h.dir))
	}
	return err
}
