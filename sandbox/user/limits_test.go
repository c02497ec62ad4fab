package user_test

import (
	"testing"

	"envapi/sandbox/cgroup"
	"envapi/sandbox/landlock"
	"envapi/sandbox/sandboxtest"
)

func bounded(t *testing.T, groups *cgroup.Parent) sandboxtest.Tier {
	t.Helper()
	h := newHostIn(t, landlock.ABI(), groups)
	return sandboxtest.Tier{Open: h.Open, WorkspacePath: h.WorkspacePath, UID: testUID, OtherUID: otherUID}
}

func TestBounds(t *testing.T) {
	asRoot(t)
	groups := sandboxtest.AllGroups(t)
	sandboxtest.Bounds(t, bounded(t, groups.Parent), groups)
}

func TestBoundsWithoutCgroups(t *testing.T) {
	asRoot(t)
	sandboxtest.BoundsAlone(t, bounded(t, nil))
}
