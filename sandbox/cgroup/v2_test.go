package cgroup_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"envapi/sandbox"
	"envapi/sandbox/cgroup"
)

func TestV2BoxesGetTheirLimits(t *testing.T) {
	f := newFakeV2(t, "own", "cpuset cpu io memory pids")
	p := f.open()
	if got := holds(p); got != "memory: cgroup v2, pids: cgroup v2, cpu: cgroup v2, cpuacct: cgroup v2" {
		t.Fatalf("got %q", got)
	}
	g, err := p.Take("alice", sandbox.Limits{Processes: 7, MemoryBytes: 1 << 20, CPUPercent: 150})
	f.must(err)
	f.expect(map[string]string{
		"own/cgroup.subtree_control":                "+cpu +memory +pids",
		"own/envapi-x/cgroup.subtree_control":       "+cpu +memory +pids",
		"own/envapi-x/a0/b0/cgroup.subtree_control": "+cpu +memory +pids",
		"own/envapi-x/a0/b0/memory.max":             "1048576",
		"own/envapi-x/a0/b0/memory.swap.max":        "0",
		"own/envapi-x/a0/b0/pids.max":               "7",
		"own/envapi-x/a0/b0/cpu.max":                "150000 100000",
	})
	g.Release()
	_, err = p.Take("alice", sandbox.Limits{})
	f.must(err)
	f.expect(map[string]string{
		"own/envapi-x/a0/b0/memory.max": "max", "own/envapi-x/a0/b0/pids.max": "max", "own/envapi-x/a0/b0/cpu.max": "max 100000",
	})
	f.must(p.Close())
	if _, err := os.Stat(f.path("own/envapi-x")); err == nil {
		t.Error("the groups are left")
	}
}

func TestV2CountsACommand(t *testing.T) {
	f := newFakeV2(t, "own", "memory")
	g, err := f.open().Take("alice", sandbox.Limits{})
	f.must(err)
	slot, err := g.Acquire()
	f.must(err)
	cell := f.path("own/envapi-x/a0/b0/c0")
	f.set(cell+"/cpu.stat", "user_usec 1\nusage_usec 2500\n")
	f.set(cell+"/memory.peak", "4096\n")
	f.set(cell+"/memory.events.local", "oom 3\noom_kill 1\noom_group_kill 0\n")
	if got := inWords(slot.Used()); got != "killed, 2.5ms, 4096 bytes, no processes" {
		t.Errorf("got %s", got)
	}
	slot.Release()
	next, err := g.Acquire()
	f.must(err)
	if _, err := os.Stat(f.path("own/envapi-x/a0/b0/c1")); err == nil {
		t.Error("a slot that is free is not used again")
	}
	f.set(cell+"/memory.peak", "0\n") // as the kernel has it after a write
	if got := inWords(next.Used()); got != "0s, no bytes, no processes" {
		t.Errorf("the next command is said to have used %s", got)
	}
	f.set(f.path("own/envapi-x/a0/b0/memory.current"), "9000\n")
	f.set(f.path("own/envapi-x/a0/b0/memory.stat"), "anon 1\ninactive_file 1000\n")
	if got, ok := g.MemoryBytes(); !ok || got != 8000 {
		t.Errorf("the box uses %d bytes, %v", got, ok)
	}
}

// TestV2PeaksThatCannotBeSetBack: before Linux 6.12 one says something of a command
// only where that made it higher.
func TestV2PeaksThatCannotBeSetBack(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write what is read-only; the user's pass runs this")
	}
	f := newFakeV2(t, "own", "memory")
	f.readOnly = "memory.peak"
	g, err := f.open().Take("alice", sandbox.Limits{})
	f.must(err)
	for _, c := range []struct {
		peak string
		want string
	}{{"5000\n", "0s, 5000 bytes, no processes"}, {"5000\n", "0s, no bytes, no processes"}, {"7000\n", "0s, 7000 bytes, no processes"}} {
		slot, err := g.Acquire()
		f.must(err)
		peak := f.path("own/envapi-x/a0/b0/c0/memory.peak")
		f.must(os.Chmod(peak, 0o600))
		f.set(peak, c.peak)
		f.must(os.Chmod(peak, 0o400))
		if got := inWords(slot.Used()); got != c.want {
			t.Errorf("a peak of %s: got %s, want %s", c.peak, got, c.want)
		}
		slot.Release()
	}
}

func TestV2TheServiceMovesOutOfTheWay(t *testing.T) {
	f := newFakeV2(t, "own", "memory pids")
	moved := false
	f.written = func(path, value string) error {
		switch path {
		case f.path("own/envapi-service/cgroup.procs"):
			moved = value == "0"
		case f.path("own/cgroup.subtree_control"):
			if !moved {
				return unix.EBUSY
			}
		}
		return nil
	}
	p := f.open()
	if got := holds(p); !moved || got != "memory: cgroup v2, pids: cgroup v2, cpuacct: cgroup v2" {
		t.Errorf("moved: %v; got %q", moved, got)
	}
	if why, ok := p.Holds(cgroup.CPU); ok || why == "" {
		t.Errorf("cpu: got %q, %v", why, ok)
	}
}

func TestV2AServiceThatIsInItsLeafFindsTheGroupAboveIt(t *testing.T) {
	f := newFakeV2(t, "own/envapi-service", "memory")
	f.must(f.mkdir(f.path("own/envapi-service")))
	if got := holds(f.open()); got != "memory: cgroup v2, cpuacct: cgroup v2" {
		t.Errorf("got %q", got)
	}
}

func TestV2WithoutItsControllersIsNotUsed(t *testing.T) {
	f := newFakeV2(t, "own", "hugetlb misc")
	p := f.open()
	if why, ok := p.Holds(cgroup.Memory); ok || !strings.Contains(why, "offers none") {
		t.Errorf("got %q, %v", why, ok)
	}
	if g, err := p.Take("alice", sandbox.Limits{MemoryBytes: 1}); g != nil || err != nil {
		t.Errorf("got %v, %v", g, err)
	}
}

func TestAReasonNamesNoPath(t *testing.T) {
	f := newFakeV2(t, "own", "memory")
	f.failing["envapi-x"] = unix.EACCES
	if why, ok := f.open().Holds(cgroup.Memory); ok || strings.Contains(why, "/") || !strings.Contains(why, "permission denied") {
		t.Errorf("got %q, %v", why, ok)
	}
	f = newFakeV2(t, "own", "memory")
	f.must(os.Remove(filepath.Join(f.proc, "mountinfo")))
	if why, ok := f.open().Holds(cgroup.Memory); ok || strings.Contains(why, "/") {
		t.Errorf("got %q, %v", why, ok)
	}
}

func TestAGroupThatCannotBeLimitedIsNotGiven(t *testing.T) {
	f := newFakeV2(t, "own", "memory")
	p := f.open()
	f.written = func(path, _ string) error {
		if filepath.Base(path) == "memory.max" {
			return unix.EINVAL
		}
		return nil
	}
	if g, err := p.Take("alice", sandbox.Limits{MemoryBytes: 1 << 20}); g != nil || err == nil {
		t.Errorf("got %v, %v", g, err)
	}
	if _, err := os.Stat(f.path("own/envapi-x/a0/b0")); err == nil {
		t.Error("it is left")
	}
}
