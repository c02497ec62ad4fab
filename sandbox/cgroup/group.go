package cgroup

import (
	"path/filepath"
	"strconv"
	"sync"

	"envapi/sandbox"
)

const (
	// maxFree is how many slots without a command a box keeps.
	maxFree = 8
	// maxKept is how many a group keeps without a box.
	maxKept = 2
)

// Group bounds a box. A nil Group bounds nothing.
type Group struct {
	parent  *Parent
	account *account
	name    string

	mu      sync.Mutex
	closed  bool
	made    int // numbers that were given to cells
	free    []*cell
	leaving []*cell // of commands of which a process may still be there
	taken   map[*cell]struct{}
	making  sync.WaitGroup // of cells, new or anew; none begins once it is closed
}

// Acquire gives a slot for a command, or sandbox.ErrBoxClosed after Release.
func (g *Group) Acquire() (*Slot, error) {
	if g == nil {
		return nil, nil //nolint:nilnil // a nil Slot is one that counts nothing
	}
	c, err := g.take()
	if err != nil {
		return nil, err
	}
	return &Slot{group: g, cell: c, begin: Mark{c.begin()}}, nil
}

// take gives a cell that nobody is in.
func (g *Group) take() (*cell, error) {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return nil, sandbox.ErrBoxClosed
	}
	g.collect()
	if last := len(g.free) - 1; last >= 0 {
		c := g.free[last]
		g.free = g.free[:last]
		err := g.parent.unspare(c)
		if err != nil {
			g.parent.removeCell(c)
			g.mu.Unlock()
			return nil, err
		}
		g.taken[c] = struct{}{}
		g.mu.Unlock()
		return c, nil
	}
	name := filepath.Join(g.name, "c"+strconv.Itoa(g.made))
	g.made++
	g.making.Add(1)
	defer g.making.Done()
	g.mu.Unlock()
	c, err := g.parent.newCell(name)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		g.parent.removeCell(c)
		return nil, sandbox.ErrBoxClosed
	}
	g.taken[c] = struct{}{}
	return c, nil
}

// collect frees the cells that the last process has left. One that somebody on
// the host has removed is given up.
func (g *Group) collect() {
	still := g.leaving[:0]
	for _, c := range g.leaving {
		pids, err := processes(c.entry)
		switch {
		case err != nil:
			g.parent.removeCell(c)
		case len(pids) > 0:
			still = append(still, c)
		case c.stale():
			g.making.Go(func() { g.renew(c) })
		default:
			g.parent.spare(c)
			g.free = append(g.free, c)
		}
	}
	g.leaving = still
}

// release takes a cell back.
func (g *Group) release(c *cell) {
	g.mu.Lock()
	if g.closed { // Release has seen to it
		g.mu.Unlock()
		return
	}
	delete(g.taken, c)
	g.leaving = append(g.leaving, c)
	g.collect()
	var surplus []*cell
	if len(g.free) > maxFree {
		surplus = append(surplus, g.free[maxFree:]...)
		g.free = g.free[:maxFree]
	}
	g.mu.Unlock()
	for _, c := range surplus {
		g.parent.removeCell(c)
	}
}

// Release ends what is left of a box that is gone, and keeps its group for
// another.
func (g *Group) Release() {
	if g == nil {
		return
	}
	if !g.end() {
		return
	}
	next := &Group{parent: g.parent, account: g.account, name: g.name, made: g.made, free: append(g.free, g.leaving...), taken: map[*cell]struct{}{}}
	err := g.parent.hierarchies[0].empty(filepath.Join(g.parent.hierarchies[0].dir, g.name))
	for c := range g.taken { // of starts that the end of the box has overtaken
		g.parent.removeCell(c)
	}
	for len(next.free) > maxKept {
		last := len(next.free) - 1
		g.parent.removeCell(next.free[last])
		next.free = next.free[:last]
	}
	if err == nil {
		next.free = g.parent.renewed(next.free)
	}
	if err != nil {
		g.parent.options.Log.Warn("a cgroup is left behind", "cause", err)
		next.close()
		g.parent.leave(g.account)
	} else {
		g.parent.keep(next)
	}
}

// end lets nobody change the group any more, and says whether nobody did before.
// What is being made for it is waited for: it would be left behind in the kernel.
func (g *Group) end() bool {
	g.mu.Lock()
	first := !g.closed
	g.closed = true
	g.mu.Unlock()
	g.making.Wait()
	return first
}

// close gives up what a group without a box has open.
func (g *Group) close() {
	for _, c := range g.free {
		g.parent.uncount(c)
		c.close()
	}
}

// discard removes a group that no box has.
func (p *Parent) discard(g *Group) {
	g.close()
	p.destroy(g.name)
}

// destroy removes a group in every hierarchy.
func (p *Parent) destroy(name string) {
	for _, h := range p.hierarchies {
		if err := h.destroy(filepath.Join(h.dir, name)); err != nil {
			p.options.Log.Warn("a cgroup is left behind", "cause", err)
		}
	}
}

// MemoryBytes says how much memory the box uses, without files that the kernel
// merely has at hand.
func (g *Group) MemoryBytes() (int64, bool) {
	if g == nil {
		return 0, false
	}
	for _, h := range g.parent.hierarchies {
		if h.has(Memory) {
			return h.memoryBytes(filepath.Join(h.dir, g.name))
		}
	}
	return 0, false
}
