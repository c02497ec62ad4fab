package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"envapi/sandbox"
)

// hierarchy is one tree of groups and what it does for us.
type hierarchy struct {
	system   system
	version  int
	dir      string // the Parent's folder in it
	controls []Control
}

func (h *hierarchy) has(c Control) bool { return slices.Contains(h.controls, c) }

// limit writes the limits of a box to its group.
func (p *Parent) limit(name string, l sandbox.Limits) error {
	for _, h := range p.hierarchies {
		settings := h.settingsV1(l)
		if h.version == 2 {
			settings = h.settingsV2(l)
		}
		for _, s := range settings {
			if err := p.system.set(filepath.Join(h.dir, name), s); err != nil {
				return err
			}
		}
	}
	return nil
}

// period is the time in microseconds within which a share of a cpu is used up.
const period = 100_000

// quota gives the cpu time per period for a percentage of one core.
func quota(percent int) string { return strconv.Itoa(percent * period / 100) }

// number gives a limit as the kernel has it; zero is none.
func number(limit int64, none string) string {
	if limit <= 0 {
		return none
	}
	return strconv.FormatInt(limit, 10)
}

// socketLimit bounds what the sockets of a group hold of TCP and UDP, which
// version 1 does not count as memory: a box could take many times its own, and of
// what the kernel lets the whole host have. It counts for a group itself only once
// it was written there.
const socketLimit = "memory.kmem.tcp.limit_in_bytes"

// socketBytes is what they may hold of a box with such a limit of memory.
func socketBytes(memory int64) int64 { return min(memory/4, 64<<20) }

func (h *hierarchy) settingsV1(l sandbox.Limits) []setting {
	var settings []setting
	if h.has(Memory) {
		bytes := number(l.MemoryBytes, "-1")
		settings = append(settings,
			// Memory with swap may never be less than memory alone.
			setting{"memory.memsw.limit_in_bytes", "-1", true},
			setting{"memory.limit_in_bytes", bytes, false},
			setting{"memory.memsw.limit_in_bytes", bytes, true},
			setting{socketLimit, number(socketBytes(l.MemoryBytes), "-1"), true})
	}
	if h.has(Processes) {
		settings = append(settings, setting{"pids.max", number(int64(l.Processes), "max"), false})
	}
	if h.has(CPU) {
		share := "-1"
		if l.CPUPercent > 0 {
			share = quota(l.CPUPercent)
		}
		settings = append(settings, setting{"cpu.cfs_quota_us", share, false})
	}
	return settings
}

func (h *hierarchy) settingsV2(l sandbox.Limits) []setting {
	var settings []setting
	if h.has(Memory) {
		settings = append(settings,
			setting{"memory.max", number(l.MemoryBytes, "max"), false},
			setting{"memory.swap.max", "0", true})
	}
	if h.has(Processes) {
		settings = append(settings, setting{"pids.max", number(int64(l.Processes), "max"), false})
	}
	if h.has(CPU) {
		share := "max"
		if l.CPUPercent > 0 {
			share = quota(l.CPUPercent)
		}
		settings = append(settings, setting{"cpu.max", fmt.Sprintf("%s %d", share, period), false})
	}
	return settings
}

// beginV1 prepares the Parent's folder of version 1.
func (h *hierarchy) beginV1() error {
	if h.has(Memory) {
		// Before Linux 5.11 groups count for those above them only if told to.
		content, err := os.ReadFile(filepath.Join(h.dir, "memory.use_hierarchy"))
		if err == nil && strings.TrimSpace(string(content)) == "0" {
			err = h.system.set(h.dir, setting{"memory.use_hierarchy", "1", false})
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if h.has(CPU) {
		// All boxes together stand beside single tasks, each of which has 1024: those
		// of the service, which must answer however many processes spin in boxes,
		// and where it has no group of its own, of the host. Two for each core: with
		// ten a call to another environment took ten times as long.
		return h.system.set(h.dir, setting{"cpu.shares", strconv.Itoa(2 * 1024 * runtime.NumCPU()), false})
	}
	return nil
}

// delegate lets the slots of a group count.
func (p *Parent) delegate(name string) error {
	for _, h := range p.hierarchies {
		if h.version != 2 {
			continue
		}
		if err := h.enable(filepath.Join(h.dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// enable passes the controllers on to the groups below one of version 2.
func (h *hierarchy) enable(folder string) error {
	var all []string
	for _, c := range h.controls {
		if c != CPUTime {
			all = append(all, "+"+string(c))
		}
	}
	return h.system.set(folder, setting{"cgroup.subtree_control", strings.Join(all, " "), false})
}

// makeFolders makes a group in every hierarchy. It made none where one is there
// already.
func (p *Parent) makeFolders(name string) (made bool, err error) {
	for i, h := range p.hierarchies {
		err := p.system.mkdir(filepath.Join(h.dir, name))
		if err == nil {
			continue
		}
		for _, done := range p.hierarchies[:i] {
			_ = p.system.rmdir(filepath.Join(done.dir, name))
		}
		if errors.Is(err, unix.EEXIST) {
			return false, nil
		}
		return false, err
	}
	return true, nil
}
