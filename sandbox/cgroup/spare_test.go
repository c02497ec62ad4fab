package cgroup_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"envapi/sandbox"
	"envapi/sandbox/cgroup"
)

// descriptors counts the descriptors of this process that lead below the made-up tree.
func (f *fake) descriptors() int {
	f.t.Helper()
	links, err := filepath.Glob("/proc/self/fd/*")
	f.must(err)
	count := 0
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && strings.HasPrefix(target, f.root) {
			count++
		}
	}
	return count
}

func TestSlotsWithoutACommandAreOpenUpToANumberOfAllBoxes(t *testing.T) {
	f := newFake(t, "/", "cgroup cgroup rw,memory", "4:memory:/\n", filesV1)
	p := f.open()
	var groups []*cgroup.Group
	var slots []*cgroup.Slot
	boxes := 2 * cgroup.MaxSpare / cgroup.MaxFree
	for range boxes {
		g, err := p.Take("alice", sandbox.Limits{})
		f.must(err)
		groups = append(groups, g)
		for range cgroup.MaxFree {
			s, err := g.Acquire()
			f.must(err)
			slots = append(slots, s)
		}
	}
	each := f.descriptors() / len(slots)
	for _, s := range slots {
		s.Release()
	}
	if got := f.descriptors(); got != each*cgroup.MaxSpare {
		t.Errorf("%d slots without a command hold %d descriptors, want %d for each of %d", len(slots), got, each, cgroup.MaxSpare)
	}

	last := groups[boxes-1]
	s, err := last.Acquire() // one that was closed
	f.must(err)
	if n := len(f.folders(fmt.Sprintf("envapi-x/a0/b%d", boxes-1))); n != cgroup.MaxFree {
		t.Errorf("a box with slots made another: there are %d", n)
	}
	if len(s.Entries()) != 1 {
		t.Errorf("it is entered by %v", s.Entries())
	}
	if got := f.descriptors(); got != each*(cgroup.MaxSpare+1) {
		t.Errorf("with a command in one that was closed there are %d descriptors", got)
	}
	f.set(f.path(fmt.Sprintf("envapi-x/a0/b%d/c%d/memory.oom_control", boxes-1, cgroup.MaxFree-1)), "oom_kill 1\n")
	if !s.Used().OutOfMemory {
		t.Error("it does not count")
	}
	s.Release()
	for _, g := range groups {
		g.Release()
	}
	f.must(p.Close())
	if got := f.descriptors(); got != 0 {
		t.Errorf("%d descriptors are left", got)
	}
}
