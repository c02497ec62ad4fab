package cgroup

import (
	"errors"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"envapi/sandbox"
)

// Slot counts a command. A nil Slot counts nothing.
type Slot struct {
	group *Group
	cell  *cell
	begin Mark
	once  sync.Once
}

// Used is what the processes in a slot have used since a moment.
type Used struct {
	OutOfMemory bool // the kernel has killed one of them for want of memory
	sandbox.Used
}

// Mark is what a slot said at one moment.
type Mark struct{ reading }

// Entries are the descriptors by which a process that writes "0" to each enters
// the slot. The kernel asks whether this service may, not whether that process
// may (CVE-2021-4197). They stay the slot's.
func (s *Slot) Entries() []int {
	if s == nil {
		return nil
	}
	return s.cell.entries
}

// Used reads what was used since the slot was taken, unless Mark was called:
// then what Since says of that. It must not be called after Release.
func (s *Slot) Used() Used {
	if s == nil {
		return Used{}
	}
	return s.Since(s.begin)
}

// Mark notes the moment from which on Since is to count, where one slot counts
// several commands one after another. The peak of memory begins anew, so what
// was marked before tells no peak any more. How many processes there were cannot
// be told after a Mark. It must not be called after Release.
func (s *Slot) Mark() Mark {
	if s == nil {
		return Mark{}
	}
	r := s.cell.begin()
	r.processes = unknown
	return Mark{r}
}

// Since reads what was used since the mark. It must not be called after Release.
func (s *Slot) Since(m Mark) Used {
	if s == nil {
		return Used{}
	}
	now := s.cell.read()
	u := Used{OutOfMemory: now.killed > m.killed}
	if now.cpu != unknown && m.cpu != unknown {
		cpu := time.Duration(max(now.cpu-m.cpu, 0))
		u.CPU = &cpu
	}
	// A mark that could not be set back says something only where it went up.
	if now.peak > m.peak {
		bytes := max(now.peak-m.memory, 0)
		u.PeakMemoryBytes = &bytes
	}
	if m.fresh() || m.processes != unknown && now.processes > m.processes {
		u.Processes = &now.processes
	}
	return u
}

// Release gives the slot back when the command is over. Processes of it that are
// still dying keep it from the next one.
func (s *Slot) Release() {
	if s != nil {
		s.once.Do(func() { s.group.release(s.cell) })
	}
}

// cell is a group for the processes of one command after another.
type cell struct {
	name    string
	entry   string // its folder in the hierarchy that is entered first and so left last
	entries []int

	tasks tasks

	spare bool // it has no command and is open, and counted as that
	shut  bool // it has no command and is closed

	killed, cpu, peak, memory, processes counter
}

func (c *cell) counters() []*counter {
	return []*counter{&c.killed, &c.cpu, &c.peak, &c.memory, &c.processes}
}

// reading is what a cell says at one time; unknown where it does not.
type reading struct {
	killed, cpu, memory int64
	peak                int64 // before a command, 0 where it was set back
	processes           int64 // the most at one time, ever
}

// newCell makes a cell.
func (p *Parent) newCell(name string) (*cell, error) {
	made, err := p.makeFolders(name)
	if err == nil && !made {
		err = unix.EEXIST
	}
	if err != nil {
		return nil, err
	}
	c := &cell{name: name}
	if err := p.openCell(c); err != nil {
		p.removeCell(c)
		return nil, err
	}
	return c, nil
}

// open opens what is needed of one hierarchy, and says what folder is entered.
func (c *cell) open(h *hierarchy, folder string) (entered string, err error) {
	var errs []error
	if h.version == 2 {
		errs = h.countV2(c, folder)
	} else {
		errs = h.countV1(c, folder)
	}
	entered = folder
	if h.has(Processes) {
		entered, err = c.openTasks(h, folder)
		errs = append(errs, err)
	}
	fd, err := h.openEntry(entered)
	if err == nil {
		c.entries = append(c.entries, fd)
	}
	return entered, errors.Join(append(errs, err)...)
}

// openEntry opens the file by which a process enters a group.
func (h *hierarchy) openEntry(folder string) (int, error) {
	// In version 1 tasks is the one that never needs a lock of the whole host's,
	// and the process that enters has one thread.
	name := "tasks"
	if h.version == 2 {
		name = "cgroup.procs"
	}
	return unix.Open(filepath.Join(folder, name), unix.O_WRONLY|unix.O_CLOEXEC, 0)
}

func (h *hierarchy) countV1(c *cell, folder string) []error {
	var errs []error
	if h.has(Memory) {
		errs = append(errs,
			h.system.set(folder, setting{socketLimit, "-1", true}), // the group's own bounds it
			c.killed.open(folder, "memory.oom_control", "oom_kill", 1),
			c.peak.open(folder, "memory.max_usage_in_bytes", "", 1),
			c.memory.open(folder, "memory.usage_in_bytes", "", 1))
	}
	if h.has(CPUTime) {
		errs = append(errs, c.cpu.open(folder, "cpuacct.usage", "", 1))
	}
	return errs
}

func (h *hierarchy) countV2(c *cell, folder string) []error {
	errs := []error{c.cpu.open(folder, "cpu.stat", "usage_usec", int64(time.Microsecond))}
	if h.has(Memory) {
		_ = c.peak.open(folder, "memory.peak", "", 1) // since Linux 5.19
		errs = append(errs,
			c.killed.open(folder, "memory.events.local", "oom_kill", 1),
			c.memory.open(folder, "memory.current", "", 1))
	}
	return errs
}

// begin reads what the cell says before a command.
func (c *cell) begin() reading {
	r := c.read()
	if c.peak.reset() {
		r.peak = 0
	}
	r.memory = c.memory.value()
	return r
}

// read reads what the cell says at the end of a command.
func (c *cell) read() reading {
	return reading{killed: c.killed.value(), cpu: c.cpu.value(), peak: c.peak.value(), processes: c.processes.value()}
}

// fresh says that the most processes that there will be at one time are those of
// what comes now: it has at least one itself.
func (r reading) fresh() bool { return r.processes == 0 || r.processes == 1 }

// removeCell removes a cell that nobody is in. Where somebody is after all, it
// stays until its group is removed.
func (p *Parent) removeCell(c *cell) {
	p.uncount(c)
	c.close()
	for _, h := range p.hierarchies {
		_ = removeAll(p.system, filepath.Join(h.dir, c.name))
	}
}

func (c *cell) close() {
	for _, fd := range c.entries {
		_ = unix.Close(fd)
	}
	c.entries = nil
	for _, counter := range c.counters() {
		counter.close()
	}
}
