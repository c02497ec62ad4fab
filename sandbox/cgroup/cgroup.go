package cgroup

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
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

	mu     sync.Mutex
	closed bool
	made   int      // numbers that were given to groups
	idle   []*Group // of boxes that are gone
}

// Open finds what this host lets the service have, and removes with all their
// processes the groups that one of the same name left there. That there is no
// control is no error: Holds tells why.
func Open(o Options) *Parent { return open(o, hostSystem) }

func open(o Options, s system) *Parent {
	p := &Parent{options: o, system: s, missing: map[Control]string{}}
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

// Take gives a group with these limits for a box.
func (p *Parent) Take(l sandbox.Limits) (*Group, error) {
	if p == nil || len(p.hierarchies) == 0 {
		return nil, nil //nolint:nilnil // a nil Group is one that bounds nothing
	}
	if g := p.reuse(); g != nil {
		err := p.limit(g.name, l)
		if err == nil {
			return g, nil
		}
		p.options.Log.Warn("a cgroup cannot be used again", "cause", err)
		p.discard(g)
	}
	return p.create(l)
}

func (p *Parent) reuse() *Group {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) == 0 {
		return nil
	}
	g := p.idle[len(p.idle)-1]
	p.idle = p.idle[:len(p.idle)-1]
	return g
}

func (p *Parent) create(l sandbox.Limits) (*Group, error) {
	name, err := p.number()
	if err != nil {
		return nil, fmt.Errorf("cannot make the cgroup of a box: %w", err)
	}
	g := &Group{parent: p, name: name, taken: map[*cell]struct{}{}}
	if err = p.delegate(name); err == nil {
		err = p.limit(name, l)
	}
	if err != nil {
		p.discard(g)
		return nil, fmt.Errorf("cannot limit the cgroup of a box: %w", err)
	}
	return g, nil
}

// number makes the folders of a group under the next number that is free: one
// with processes that do not die may be left from an earlier run.
func (p *Parent) number() (string, error) {
	for {
		p.mu.Lock()
		name := "b" + strconv.Itoa(p.made)
		p.made++
		p.mu.Unlock()
		made, err := p.makeFolders(name)
		if err != nil || made {
			return name, err
		}
	}
}

// keep takes the group of a box that is gone for the next one, unless there are
// enough.
func (p *Parent) keep(g *Group) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.idle) >= maxIdle {
		return false
	}
	p.idle = append(p.idle, g)
	return true
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
