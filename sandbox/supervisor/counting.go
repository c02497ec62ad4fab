package supervisor

import (
	"sync"

	"envapi/sandbox/cgroup"
	"envapi/sandbox/protocol"
)

// counting is where a process is counted, until its slot is given back.
type counting struct {
	mu    sync.Mutex
	slot  *cgroup.Slot
	over  bool
	since *cgroup.Mark // from when on; nil: since it was started
}

// count has the process that is to be started counted.
func (p *process) count(spawn *protocol.Spawn) (err error) {
	p.counting.slot, err = p.box.group.Acquire()
	spawn.Groups = len(p.counting.entries())
	return err
}

// mark counts from now on.
func (c *counting) mark() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		now := c.slot.Mark()
		c.since = &now
	}
}

// used reads what was used since the last mark; nothing is known once the slot is
// given back.
func (c *counting) used() cgroup.Used {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.over:
		return cgroup.Used{}
	case c.since != nil:
		return c.slot.Since(*c.since)
	default:
		return c.slot.Used()
	}
}

// entries are the slot's.
func (c *counting) entries() []int { return c.slot.Entries() }

// release gives the slot back.
func (c *counting) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.over = true
		c.slot.Release()
	}
}
