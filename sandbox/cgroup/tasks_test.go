package cgroup_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"envapi/sandbox"
	"envapi/sandbox/cgroup"
)

// use takes a slot, says in its pids.peak how many processes there were, and gives
// what the slot says of it.
func (f *fake) use(g *cgroup.Group, peakFile, most string) string {
	f.t.Helper()
	slot, err := g.Acquire()
	f.must(err)
	defer slot.Release()
	f.set(f.path(peakFile), most+"\n")
	_, processes, _ := strings.Cut(inWords(slot.Used()), "bytes, ")
	return processes
}

// await waits for what happens while nobody waits for it.
func await(t *testing.T, what string, happened func() bool) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for !happened() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within 5 s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

func TestTheCountOfProcessesBeginsAnew(t *testing.T) {
	only := map[string]string{"cgroup.procs": "", "tasks": "", "pids.max": "max\n", "pids.peak": "0\n"}
	for name, c := range map[string]struct {
		fake *fake
		cell string
		peak string // below it
	}{
		"v1":            {newFake(t, "/", "cgroup cgroup rw,pids", "4:pids:/\n", only), "envapi-x/a0/b0/c0", "/pids.peak"},
		"v2":            {newFakeV2(t, "own", "memory pids"), "own/envapi-x/a0/b0/c0", "/tasks/pids.peak"},
		"v2, pids only": {newFakeV2(t, "own", "pids"), "own/envapi-x/a0/b0/c0", "/tasks/pids.peak"},
	} {
		t.Run(name, func(t *testing.T) {
			f := c.fake
			g, err := f.open().Take("alice", sandbox.Limits{})
			f.must(err)
			for range 3 {
				if got := f.use(g, c.cell+c.peak, "5"); got != "5 processes" {
					t.Errorf("got %s", got)
				}
				await(t, "the slot is ready again", func() bool { return cgroup.Free(g) == 1 })
				if got := f.use(g, c.cell+c.peak, "1"); got != "1 processes" {
					t.Errorf("after one that had more: got %s", got)
				}
				if cgroup.Free(g) != 1 { // one process is what every command has
					t.Error("a slot that need not be made anew is not ready at once")
				}
			}
			if _, err := os.Stat(f.path(c.cell[:len(c.cell)-1] + "1")); err == nil {
				t.Error("another slot was made for it")
			}
		})
	}
}

func TestAGroupIsGivenBackWhenNothingIsMadeForItAnyMore(t *testing.T) {
	f := newFakeV2(t, "own", "memory pids")
	cells := func() []string {
		all, err := filepath.Glob(f.path("own/envapi-x/a0/b0/c[0-9]*"))
		f.must(err)
		return all
	}
	parent := f.open()
	for range 100 {
		g, err := parent.Take("alice", sandbox.Limits{})
		f.must(err)
		slot, err := g.Acquire()
		f.must(err)
		for _, cell := range cells() {
			f.set(filepath.Join(cell, "tasks", "pids.peak"), "5\n")
		}
		slot.Release() // it is made anew
		g.Release()
		g, err = parent.Take("alice", sandbox.Limits{})
		f.must(err)
		if there, free := cells(), cgroup.Free(g); len(there) != free {
			t.Fatalf("of %v only %d are known", there, free)
		}
		g.Release()
	}
}

func TestV2WhatIsEnteredIsWhereProcessesAreCounted(t *testing.T) {
	f := newFakeV2(t, "own", "memory pids")
	g, err := f.open().Take("alice", sandbox.Limits{})
	f.must(err)
	slot, err := g.Acquire()
	f.must(err)
	f.expect(map[string]string{"own/envapi-x/a0/b0/c0/cgroup.subtree_control": "+pids"})
	f.set(f.path("own/envapi-x/a0/b0/c0/tasks/cgroup.procs"), "999999999\n")
	slot.Release()
	if _, err = g.Acquire(); err != nil {
		t.Fatal(err)
	}
	if n := len(f.folders("own/envapi-x/a0/b0")); n != 2 {
		t.Errorf("the slot of a process that lives was given away: there are %d", n)
	}
}

// TestV1ACountThatCannotBeginAnew: where a hierarchy counts memory too, a removed
// group would live on in the kernel.
func TestV1ACountThatCannotBeginAnew(t *testing.T) {
	f := newFake(t, "/", "cgroup cgroup rw,memory,pids", "4:memory,pids:/\n", filesV1)
	g, err := f.open().Take("alice", sandbox.Limits{})
	f.must(err)
	for _, c := range []struct{ most, want string }{
		{"1", "1 processes"}, {"5", "5 processes"}, {"5", "no processes"}, {"6", "6 processes"},
	} {
		if got := f.use(g, "envapi-x/a0/b0/c0/pids.peak", c.most); got != c.want {
			t.Errorf("the most ever are %s: got %s, want %s", c.most, got, c.want)
		}
	}
}

func TestWithoutAPeakNoProcessesAreTold(t *testing.T) {
	files := maps.Clone(filesV2)
	delete(files, "pids.peak")
	f := newFakeV2(t, "own", "memory pids")
	f.files = files
	g, err := f.open().Take("alice", sandbox.Limits{})
	f.must(err)
	slot, err := g.Acquire()
	f.must(err)
	if got := inWords(slot.Used()); got != "0s, no bytes, no processes" {
		t.Errorf("got %s", got)
	}
	if _, err := os.Stat(f.path("own/envapi-x/a0/b0/c0/tasks")); err == nil {
		t.Error("a group is made for nothing")
	}
}

// TestASlotWhoseCountCannotBeMadeAnewIsGivenUp: nobody could enter it.
func TestASlotWhoseCountCannotBeMadeAnewIsGivenUp(t *testing.T) {
	f := newFakeV2(t, "own", "memory pids")
	g, err := f.open().Take("alice", sandbox.Limits{})
	f.must(err)
	slot, err := g.Acquire()
	f.must(err)
	f.set(f.path("own/envapi-x/a0/b0/c0/tasks/pids.peak"), "2\n")
	f.failing["tasks"] = errors.New("no more of them")
	slot.Release()
	await(t, "it is removed", func() bool { return len(f.folders("own/envapi-x/a0/b0")) == 0 })
}

func TestMarksTellTheCommandsOfAShellApart(t *testing.T) {
	f := newFakeV2(t, "own", "memory pids")
	g, err := f.open().Take("alice", sandbox.Limits{})
	f.must(err)
	slot, err := g.Acquire()
	f.must(err)
	cell := f.path("own/envapi-x/a0/b0/c0")
	f.set(cell+"/cpu.stat", "usage_usec 1000\n")
	f.set(cell+"/memory.peak", "7000\n")
	f.set(cell+"/memory.current", "3000\n")
	f.set(cell+"/memory.events.local", "oom_kill 1\n")
	mark := slot.Mark()
	if got := inWords(slot.Since(mark)); got != "0s, no bytes, no processes" {
		t.Errorf("at once: got %s", got)
	}
	f.set(cell+"/cpu.stat", "usage_usec 3500\n")
	f.set(cell+"/memory.peak", "5000\n")
	f.set(cell+"/tasks/pids.peak", "4\n")
	if got := inWords(slot.Since(mark)); got != "2.5ms, 2000 bytes, no processes" {
		t.Errorf("got %s", got)
	}
	f.set(cell+"/memory.events.local", "oom_kill 2\n")
	if u := slot.Since(mark); !u.OutOfMemory {
		t.Errorf("a kill is not told: %s", inWords(u))
	}
	var none *cgroup.Slot
	if got := inWords(none.Since(none.Mark())); got != "no cpu, no bytes, no processes" {
		t.Errorf("without a cgroup: got %s", got)
	}
}
