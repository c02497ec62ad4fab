package cgroup

import (
	"errors"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// tasks is the part of a cell that counts processes. The kernel keeps the most
// that there were at one time (pids.peak) and never sets that back, so the next
// command would be said to have had as many. Where it had more than one, this
// part is made anew. That leaves nothing behind in the kernel, as removing a
// group that counts memory would.
type tasks struct {
	hierarchy *hierarchy // nil where this part is never made anew
	folder    string
	entry     int // which of the cell's entries it is
}

// tasksFolder is below a cell of version 2, which counts memory too: only the
// controller of processes is passed on to it.
const tasksFolder = "tasks"

// openTasks opens the count of processes of a hierarchy that has it, and says
// which folder is to be entered. Not every kernel has one.
func (c *cell) openTasks(h *hierarchy, folder string) (entered string, err error) {
	if c.processes.open(folder, peakFile, "", 1) != nil {
		return folder, nil
	}
	if h.version == 2 {
		c.processes.close()
		err = h.system.set(folder, setting{file: "cgroup.subtree_control", value: "+" + string(Processes)})
		folder = filepath.Join(folder, tasksFolder)
		if err == nil {
			err = h.system.mkdir(folder)
		}
		if errors.Is(err, unix.EEXIST) { // it was closed for a while
			err = nil
		}
		if err == nil {
			err = c.processes.open(folder, peakFile, "", 1)
		}
	}
	if h.version == 2 || !h.has(Memory) {
		c.tasks = tasks{hierarchy: h, folder: folder, entry: len(c.entries)}
	}
	return folder, err
}

const peakFile = "pids.peak"

// stale says that what comes next cannot be told from what was, and that this
// can be helped.
func (c *cell) stale() bool {
	return c.tasks.hierarchy != nil && c.processes.value() > 1
}

// renew makes the count of processes begin anew in a cell that nobody is in.
// After an error the cell is of no use.
func (c *cell) renew() error {
	t := c.tasks
	if err := t.hierarchy.system.rmdir(t.folder); err != nil {
		return err
	}
	if err := t.hierarchy.system.mkdir(t.folder); err != nil {
		return err
	}
	fd, err := t.hierarchy.openEntry(t.folder)
	if err != nil {
		return err
	}
	_ = unix.Close(c.entries[t.entry])
	c.entries[t.entry] = fd
	c.processes.close()
	return c.processes.open(t.folder, peakFile, "", 1)
}

// renew makes a cell of the group ready for the next command, while nobody waits
// for that.
func (g *Group) renew(c *cell) {
	err := c.renew()
	g.mu.Lock()
	if err == nil && !g.closed && len(g.free) < maxFree {
		g.parent.spare(c)
		g.free = append(g.free, c)
		c = nil
	}
	g.mu.Unlock()
	if c != nil {
		g.parent.removeCell(c)
	}
}

// renewed gives the cells of a group without a box that can be used again.
func (p *Parent) renewed(cells []*cell) []*cell {
	usable := cells[:0]
	var err error
	for _, c := range cells {
		if c.stale() {
			if e := c.renew(); e != nil {
				err = errors.Join(err, e)
				p.removeCell(c)
				continue
			}
		}
		usable = append(usable, c)
	}
	if err != nil {
		p.options.Log.Debug("a slot is given up", "cause", err)
	}
	return usable
}
