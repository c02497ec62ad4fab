package directory_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"envapi/internal/require"
	"envapi/internal/testbin"
	"envapi/sandbox"
	"envapi/sandbox/cgroup"
	"envapi/sandbox/directory"
	"envapi/sandbox/landlock"
	"envapi/sandbox/proctree"
	"envapi/sandbox/sandboxtest"
	"envapi/sandbox/supervisor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testbin.Tests{M: m}) }

func newHost(t *testing.T, abi int) *directory.Host {
	t.Helper()
	return newHostIn(t, abi, nil)
}

func newHostIn(t *testing.T, abi int, groups *cgroup.Parent) *directory.Host {
	t.Helper()
	sandboxtest.Leak(t)
	launcher, err := supervisor.NewLauncher(testbin.Init(t))
	if err != nil {
		t.Fatal(err)
	}
	h := directory.New(directory.Config{
		Launcher: launcher, Private: t.TempDir(), Landlock: abi, Groups: groups, Log: slog.New(slog.DiscardHandler),
	})
	t.Cleanup(func() {
		_ = h.Close()
		_ = launcher.Close()
	})
	return h
}

func asUser(t *testing.T) {
	t.Helper()
	if os.Geteuid() == 0 {
		t.Skip("the directory tier is for a service that is not root; the user's pass runs this")
	}
}

func TestConformanceWithLandlock(t *testing.T) {
	asUser(t)
	abi := landlock.ABI()
	if abi < landlock.ABIScopes {
		require.Feature(t, "landlock", "its ABI is below 6")
	}
	h := newHost(t, abi)
	sandboxtest.Conform(t, sandboxtest.Tier{Open: h.Open, WorkspacePath: h.WorkspacePath, Confined: true})
}

func TestConformanceWithoutLandlock(t *testing.T) {
	asUser(t)
	h := newHost(t, 0)
	sandboxtest.Conform(t, sandboxtest.Tier{Open: h.Open, WorkspacePath: h.WorkspacePath})
}

func TestNoBoxAsRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root is refused; root's pass runs this")
	}
	_, err := newHost(t, landlock.ABI()).Open(t.Context(), sandbox.Spec{ID: "x", Workspace: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "uid 0") {
		t.Errorf("got %v", err)
	}
}

func TestControlsSayWhatLandlockHolds(t *testing.T) {
	for abi, want := range map[int]string{0: "", 1: "files", 4: "files", 6: "files signals"} {
		var held []string
		for _, c := range directory.New(directory.Config{Landlock: abi}).Controls() {
			if c.Enforced && (c.Name == "files" || c.Name == "signals") {
				held = append(held, c.Name)
			}
		}
		if got := strings.Join(held, " "); got != want {
			t.Errorf("ABI %d: got %q, want %q", abi, got, want)
		}
	}
}

// runs says whether a process is there and has not ended: whoever inherits it
// may wait for it late.
func runs(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !bytes.Contains(stat, []byte(") Z "))
}

// The init of this tier has no pid namespace to end with it: its reapers, and
// through them the leaders, are tied to it one by one. What else there is becomes
// the service's child, which ends it before the box is said to be gone.
func TestNothingOutlivesAnInitThatIsKilled(t *testing.T) {
	asUser(t)
	h := newHost(t, 0)
	before, err := proctree.Children(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	box, err := h.Open(t.Context(), sandbox.Spec{ID: "x", Workspace: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	p, err := box.Start(t.Context(), sandbox.Command{Script: hiding, Stdout: &bytes.Buffer{}})
	if err != nil {
		t.Fatal(err)
	}
	after, err := proctree.Children(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	init := slices.DeleteFunc(after, func(pid int) bool { return slices.Contains(before, pid) })
	var below []int
	for deadline := time.Now().Add(30 * time.Second); len(below) < 12; time.Sleep(time.Millisecond) {
		if below, err = proctree.Descendants(init[0]); err != nil || len(init) != 1 || time.Now().After(deadline) {
			t.Fatalf("init %v, below it %v, %v", init, below, err)
		}
	}
	if err := unix.Kill(init[0], unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	if !p.Result().Lost {
		t.Errorf("got %+v", p.Result())
	}
	select {
	case <-box.Done():
	case <-time.After(30 * time.Second):
		t.Fatal("the box lives on without its init")
	}
	if alive := slices.DeleteFunc(below, func(pid int) bool { return !runs(pid) }); len(alive) != 0 {
		t.Errorf("%v live on", alive)
	}
}

// hiding starts five processes, deaf to signals and without ties to the leader,
// each with a child.
const hiding = `for i in 1 2 3 4 5; do setsid env -i bash -c 'trap "" TERM HUP INT; while :; do sleep 300 & wait; done' & done; wait`
