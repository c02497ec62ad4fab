package namespace_test

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"testing"

	"envapi/sandbox"
	"envapi/sandbox/cgroup"
	"envapi/sandbox/sandboxtest"
)

func TestBounds(t *testing.T) {
	sandboxtest.Leak(t)
	groups := sandboxtest.AllGroups(t)
	_, tier := newTierIn(t, groups.Parent)
	sandboxtest.Bounds(t, tier, groups)
}

func TestBoundsWithoutCgroups(t *testing.T) {
	sandboxtest.Leak(t)
	_, tier := newTierIn(t, nil)
	sandboxtest.BoundsAlone(t, tier)
}

// newBox opens a box that ends with the test.
func newBox(t *testing.T, groups *cgroup.Parent, limits sandbox.Limits) sandbox.Box {
	t.Helper()
	h, tier := newTierIn(t, groups)
	box, err := h.Open(t.Context(), sandbox.Spec{ID: "test", Workspace: workspace(t, tier.UID), UID: tier.UID, Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = box.Close() })
	return box
}

// run runs a script to its end.
func run(t *testing.T, box sandbox.Box, script string) (sandbox.Result, string) {
	t.Helper()
	var out bytes.Buffer
	p, err := box.Start(t.Context(), sandbox.Command{Script: script, Stdout: &out})
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	return p.Result(), out.String()
}

// TestD12FilesInMemoryAreMemory: they count, and they leave room for programs.
func TestD12FilesInMemoryAreMemory(t *testing.T) {
	sandboxtest.Leak(t)
	groups := sandboxtest.AllGroups(t)
	box := newBox(t, groups.Parent, sandbox.Limits{Processes: 64, MemoryBytes: 256 << 20})
	run := func(script string) (sandbox.Result, string) { return run(t, box, script) }
	const eat = "head -c 180M /dev/zero | tail >/dev/null"
	if r, said := run(eat); r.OutOfMemory || r.ExitCode != 0 {
		t.Fatalf("the memory is less than it should be: %+v %s", r, said)
	}
	if r, said := run("head -c 200M /dev/zero >/tmp/full"); r.ExitCode == 0 || r.OutOfMemory {
		t.Errorf("/tmp takes more than half of the memory: %+v %s", r, said)
	}
	usage, err := box.Usage(t.Context())
	if err != nil || usage.MemoryBytes == nil || *usage.MemoryBytes < 128<<20 {
		t.Errorf("what is in /tmp does not count: %+v, %v", usage, err)
	}
	if r, said := run(eat); !r.OutOfMemory {
		t.Errorf("what is in /tmp does not count: %+v %s", r, said)
	}
	if r, said := run("rm /tmp/full && " + eat); r.OutOfMemory || r.ExitCode != 0 {
		t.Errorf("the box is of no use afterwards: %+v %s", r, said)
	}
}

// TestD12TerminalsAreLeftForOthers: the kernel counts them for all boxes.
func TestD12TerminalsAreLeftForOthers(t *testing.T) {
	box := newBox(t, nil, sandbox.Limits{Processes: 64})
	_, said := run(t, box, `
		for i in $(seq 100); do exec {fd}<>/dev/ptmx || break; done 2>/dev/null; ls /dev/pts | grep -c '^[0-9]'`)
	if said != "64\n" {
		t.Errorf("a box has %q terminals", said)
	}
}

// TestD12SharesOfTheUser: what is used in a box's user namespace counts for the
// service's user, and so for every other box and program of that user's, too.
func TestD12SharesOfTheUser(t *testing.T) {
	sandboxtest.Leak(t)
	box := newBox(t, nil, sandbox.Limits{Processes: 64})
	for _, share := range []struct {
		what, ask string
		atMost    int
	}{
		{"inotify instances", "cat /proc/sys/user/max_inotify_instances", hostLimit(t, "fs/inotify/max_user_instances") / 8},
		{"inotify watches", "cat /proc/sys/user/max_inotify_watches", hostLimit(t, "fs/inotify/max_user_watches") / 8},
		{"waiting signals", "ulimit -Hi", 4096},
		{"bytes in message queues", "ulimit -Hq", 256 << 10},
	} {
		_, said := run(t, box, share.ask)
		n, err := strconv.Atoi(strings.TrimSpace(said))
		if err != nil || n < 1 || n > share.atMost {
			t.Errorf("a box has %q %s, want at most %d", said, share.what, share.atMost)
		}
	}
}

// hostLimit reads a limit below /proc/sys.
func hostLimit(t *testing.T, name string) int {
	t.Helper()
	content, err := os.ReadFile("/proc/sys/" + name)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestD12WhatSocketsHoldIsBounded: in version 1 it is no memory of the box's.
func TestD12WhatSocketsHoldIsBounded(t *testing.T) {
	sandboxtest.Leak(t)
	groups := sandboxtest.AllGroups(t)
	box := newBox(t, groups.Parent, sandbox.Limits{Processes: 64, MemoryBytes: 64 << 20})
	result, said := run(t, box, `python3 -c '
import socket
sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(800)]
held = 0
for s in sockets:
    s.bind(("127.0.0.1", 0))
    for _ in range(90):
        s.sendto(bytes(1000), s.getsockname())
for s in sockets:
    s.setblocking(False)
    try:
        while True:
            held += len(s.recv(1000))
    except BlockingIOError:
        pass
print(held)'`)
	const bound = 16 << 20 // with what the kernel needs beside each packet
	if held, err := strconv.Atoi(strings.TrimSpace(said)); result.ExitCode != 127 && (err != nil || held == 0 || held > bound) {
		t.Errorf("its sockets hold %q bytes, of a quarter of 64 MiB at most: %+v", said, result)
	}
}
