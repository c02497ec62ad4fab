package directory_test

import (
	"bytes"
	"strconv"
	"strings"
	"testing"

	"envapi/sandbox"
	"envapi/sandbox/cgroup"
	"envapi/sandbox/landlock"
	"envapi/sandbox/sandboxtest"
)

func bounded(t *testing.T, groups *cgroup.Parent) sandboxtest.Tier {
	t.Helper()
	h := newHostIn(t, landlock.ABI(), groups)
	return sandboxtest.Tier{Open: h.Open, WorkspacePath: h.WorkspacePath}
}

func TestBounds(t *testing.T) {
	asUser(t)
	groups := sandboxtest.AllGroups(t)
	sandboxtest.Bounds(t, bounded(t, groups.Parent), groups)
}

func TestBoundsWithoutCgroups(t *testing.T) {
	asUser(t)
	sandboxtest.BoundsAlone(t, bounded(t, nil))
}

// TestD12AForkBombLeavesTheHostToOthers: without cgroups nothing else ends it, and
// a service that has to wait for ten thousand others to run cannot either.
func TestD12AForkBombLeavesTheHostToOthers(t *testing.T) {
	asUser(t)
	h := newHostIn(t, landlock.ABI(), nil)
	box, err := h.Open(t.Context(), sandbox.Spec{ID: "bomb", Workspace: t.TempDir(), Limits: sandbox.Limits{Processes: 64}})
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	var out bytes.Buffer
	p, err := box.Start(t.Context(), sandbox.Command{Script: "ulimit -Hu", Stdout: &out})
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	n, err := strconv.Atoi(strings.TrimSpace(out.String()))
	if err != nil || n < 64 || n > 10_000 {
		t.Errorf("the user may have %q processes", out.String())
	}
}
