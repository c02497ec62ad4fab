package cgroup_test

import (
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"envapi/sandbox"
	"envapi/sandbox/cgroup"
)

// TestV1OfAContainer: of the hierarchy, which is one for all controllers here,
// only the container's own part is mounted.
func TestV1OfAContainer(t *testing.T) {
	f := newFake(t, "/docker/1", "cgroup cgroup rw,cpu,cpuacct,memory,pids", "4:cpu,cpuacct,memory,pids:/docker/1/unit\n", filesV1)
	f.must(f.mkdir(f.path("unit")))
	p := f.open()
	if got := holds(p); got != "memory: cgroup v1, pids: cgroup v1, cpu: cgroup v1, cpuacct: cgroup v1" {
		t.Fatalf("got %q: %v", got, p)
	}
	g, err := p.Take("alice", sandbox.Limits{Processes: 7, MemoryBytes: 1 << 20, CPUPercent: 50})
	f.must(err)
	f.expect(map[string]string{
		"unit/envapi-x/memory.use_hierarchy":        "1",
		"unit/envapi-x/cpu.shares":                  strconv.Itoa(2048 * runtime.NumCPU()),
		"unit/envapi-x/a0/b0/memory.limit_in_bytes": "1048576",
		"unit/envapi-x/a0/b0/pids.max":              "7",
		"unit/envapi-x/a0/b0/cpu.cfs_quota_us":      "50000",
	})
	slot, err := g.Acquire()
	f.must(err)
	if n := len(slot.Entries()); n != 1 {
		t.Errorf("one hierarchy is entered %d times", n)
	}
}

func TestV1WhatIsNotMountedIsNotUsed(t *testing.T) {
	f := newFake(t, "/docker/1", "cgroup cgroup rw,memory", "4:memory:/docker/2\n", filesV1)
	p := f.open()
	if why, ok := p.Holds(cgroup.Memory); ok || !strings.Contains(why, "outside") {
		t.Errorf("got %q, %v", why, ok)
	}
	if why, ok := p.Holds(cgroup.Processes); ok || why == "" {
		t.Errorf("a control without a hierarchy: got %q, %v", why, ok)
	}
}

func TestV1WithCpusetIsNotUsed(t *testing.T) {
	f := newFake(t, "/", "cgroup cgroup rw,cpuset,cpu", "4:cpuset,cpu:/\n", filesV1)
	if why, ok := f.open().Holds(cgroup.CPU); ok || !strings.Contains(why, "cpuset") {
		t.Errorf("got %q, %v", why, ok)
	}
}

func TestTheIdleAreBounded(t *testing.T) {
	f := newFake(t, "/", "cgroup cgroup rw,memory", "4:memory:/\n", filesV1)
	p := f.open()
	var groups []*cgroup.Group
	for range cgroup.MaxIdle + 3 {
		g, err := p.Take("alice", sandbox.Limits{})
		f.must(err)
		groups = append(groups, g)
	}
	var slots []*cgroup.Slot
	for range cgroup.MaxFree + 3 {
		s, err := groups[0].Acquire()
		f.must(err)
		slots = append(slots, s)
	}
	for _, s := range slots {
		s.Release()
		s.Release() // which is the same as once
	}
	if n := len(f.folders("envapi-x/a0/b0")); n != cgroup.MaxFree {
		t.Errorf("a box keeps %d slots", n)
	}
	for _, g := range slices.Backward(groups) {
		g.Release()
		g.Release()
	}
	if n := len(f.folders("envapi-x/a0")); n != cgroup.MaxIdle {
		t.Errorf("%d groups are kept", n)
	}
	if n := len(f.folders("envapi-x/a0/b0")); n != cgroup.MaxKept {
		t.Errorf("a group without a box keeps %d slots", n)
	}
	if s, err := groups[0].Acquire(); err != sandbox.ErrBoxClosed { //nolint:errorlint // exactly this one
		t.Errorf("a closed group gives %v, %v", s, err)
	}
}

func TestASlotIsUsedAgainOnlyWhenItIsEmpty(t *testing.T) {
	f := newFake(t, "/", "cgroup cgroup rw,memory", "4:memory:/\n", filesV1)
	g, err := f.open().Take("alice", sandbox.Limits{})
	f.must(err)
	first, err := g.Acquire()
	f.must(err)
	f.set(f.path("envapi-x/a0/b0/c0/cgroup.procs"), "999999999\n")
	first.Release()
	_, err = g.Acquire()
	f.must(err)
	if n := len(f.folders("envapi-x/a0/b0")); n != 2 {
		t.Fatalf("the slot of a process that lives was given away: there are %d", n)
	}
	f.set(f.path("envapi-x/a0/b0/c0/cgroup.procs"), "")
	_, err = g.Acquire()
	f.must(err)
	if n := len(f.folders("envapi-x/a0/b0")); n != 2 {
		t.Errorf("an empty slot was not used again: there are %d", n)
	}
}

func (f *fake) folders(name string) []string {
	f.t.Helper()
	entries, err := os.ReadDir(f.path(name))
	f.must(err)
	var found []string
	for _, e := range entries {
		if e.IsDir() {
			found = append(found, e.Name())
		}
	}
	return found
}
