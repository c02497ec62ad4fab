package cgroup

import (
	"errors"
	"path/filepath"
)

// maxSpare is how many slots without a command are kept open, in all boxes together. Each
// is some nine descriptors in version 1, and a thousand boxes that each wait with one
// would have half of what a process is given.
const maxSpare = 256

// spare takes a cell without a command: open for the next one, so that it need not wait,
// or closed where many are open already. Its folders stay, since a removed memory group
// lives on in the kernel. It is the group's to guard.
func (p *Parent) spare(c *cell) {
	if p.spares.Add(1) <= maxSpare {
		c.spare = true
		return
	}
	p.spares.Add(-1)
	c.close()
	c.shut = true
}

// unspare makes a cell ready for a command. After an error it is of no use.
func (p *Parent) unspare(c *cell) error {
	p.uncount(c)
	if !c.shut {
		return nil
	}
	c.shut = false
	return p.openCell(c)
}

// uncount counts a cell no more.
func (p *Parent) uncount(c *cell) {
	if c.spare {
		c.spare = false
		p.spares.Add(-1)
	}
}

// openCell opens what is needed of a cell in every hierarchy.
func (p *Parent) openCell(c *cell) error {
	var err error
	for _, counter := range c.counters() {
		*counter = noCounter
	}
	for i, h := range p.hierarchies {
		entered, e := c.open(h, filepath.Join(h.dir, c.name))
		if i == 0 {
			c.entry = entered
		}
		err = errors.Join(err, e)
	}
	return err
}
