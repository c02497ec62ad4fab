package namespace_test

import (
	"bytes"
	"log/slog"
	"os"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"envapi/internal/require"
	"envapi/internal/testbin"
	"envapi/sandbox"
	"envapi/sandbox/cgroup"
	"envapi/sandbox/namespace"
	"envapi/sandbox/sandboxtest"
	"envapi/sandbox/supervisor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testbin.Tests{M: m}) }

// testUID is the host uid of the boxes of these tests, as root.
const testUID = 65532

func newTier(t testing.TB) (*namespace.Host, sandboxtest.Tier) {
	t.Helper()
	sandboxtest.Leak(t)
	return newTierIn(t, sandboxtest.OpenGroups(t).Parent)
}

func newTierIn(t testing.TB, groups *cgroup.Parent) (*namespace.Host, sandboxtest.Tier) {
	t.Helper()
	launcher, err := supervisor.NewLauncher(testbin.Init(t))
	if err != nil {
		t.Fatal(err)
	}
	h := namespace.New(namespace.Config{Launcher: launcher, Private: t.TempDir(), Groups: groups, Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() {
		_ = h.Close()
		_ = launcher.Close()
	})
	tier := sandboxtest.Tier{Open: h.Open, WorkspacePath: h.WorkspacePath, Namespaces: true, Confined: true}
	if h.NeedsUID() {
		tier.UID = testUID
	}
	spec := sandbox.Spec{ID: "probe", Workspace: t.TempDir(), UID: tier.UID}
	if err := os.Chown(spec.Workspace, max(tier.UID, os.Geteuid()), -1); err != nil {
		t.Fatal(err)
	}
	box, err := h.Open(t.Context(), spec)
	if err != nil {
		require.Feature(t, "userns", err.Error())
	}
	if err := box.Close(); err != nil {
		t.Fatal(err)
	}
	return h, tier
}

func TestConformance(t *testing.T) {
	_, tier := newTier(t)
	sandboxtest.Conform(t, tier)
}

func TestABoxOfUIDZeroIsRefused(t *testing.T) {
	h, tier := newTier(t)
	wrong := 0
	if tier.UID == 0 {
		wrong = testUID // a user cannot give other uids away
	}
	if _, err := h.Open(t.Context(), sandbox.Spec{ID: "x", Workspace: t.TempDir(), UID: wrong}); err == nil {
		t.Error("it was made")
	}
}

func TestTheServicesGroupsAreDroppedAsRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can drop groups; root's pass runs this")
	}
	before, err := syscall.Getgroups()
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setgroups([]int{4, 65531}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Setgroups(before); err != nil {
			t.Error(err)
		}
	}()
	h, tier := newTier(t)
	workspace := t.TempDir()
	if err := os.Chown(workspace, tier.UID, tier.UID); err != nil {
		t.Fatal(err)
	}
	box, err := h.Open(t.Context(), sandbox.Spec{ID: "groups", Workspace: workspace, UID: tier.UID, Limits: sandbox.Limits{Processes: 64}})
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	var out bytes.Buffer
	p, err := box.Start(t.Context(), sandbox.Command{Script: "id -G; grep Groups: /proc/self/status", Stdout: &out})
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	if out.String() != "1000\nGroups:\t \n" {
		t.Errorf("got %q", out.String())
	}
}
