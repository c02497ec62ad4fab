package proctree_test

import (
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"envapi/sandbox/proctree"
)

// start starts a shell whose pipe of output tells when it is ready, and that
// is ended with the test.
func start(t *testing.T, script string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sh", "-c", script)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = proctree.Kill(cmd.Process.Pid)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return cmd
}

func TestDescendantsAreFoundAcrossSessions(t *testing.T) {
	cmd := start(t, "sleep 300 & setsid sh -c 'sleep 300 & wait' & env -i sleep 300 & sleep 0.1; echo r; wait")
	pids, err := proctree.Descendants(cmd.Process.Pid)
	if err != nil || len(pids) != 4 {
		t.Errorf("got %v, %v", pids, err)
	}
	children, err := proctree.Children(cmd.Process.Pid)
	if err != nil || len(children) != 3 {
		t.Errorf("got %v, %v", children, err)
	}
	if own, err := proctree.Children(os.Getpid()); err != nil || !slices.Contains(own, cmd.Process.Pid) {
		t.Errorf("got %v, %v", own, err)
	}
}

func TestWhatIsGoneHasNoChildren(t *testing.T) {
	if pids, err := proctree.Descendants(1 << 30); err != nil || len(pids) != 0 {
		t.Errorf("got %v, %v", pids, err)
	}
}

func TestKillEndsAllBelowAndNotTheTopItself(t *testing.T) {
	cmd := start(t, "for i in 1 2 3 4 5 6 7 8; do sh -c 'sleep 300 & sleep 300' & done; sleep 0.1; echo r; wait; echo top; sleep 300")
	if err := proctree.Kill(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(30 * time.Second)
	for {
		pids, err := proctree.Descendants(cmd.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		if len(pids) == 1 { // the sleep that the top goes on with
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%v are left", pids)
		}
		time.Sleep(time.Millisecond)
	}
	if err := unix.Kill(cmd.Process.Pid, 0); err != nil {
		t.Errorf("the top is gone: %v", err)
	}
}

// A shell that sees its child stop before it is stopped itself takes that for a
// result, and goes on.
func TestParentsAreSignalledBeforeTheirChildren(t *testing.T) {
	cmd := start(t, `for i in 1 2 3; do sh -c 'sh -c "sleep 300; :"; :' & done; echo; wait`)
	below(t, cmd.Process.Pid, 9)
	order, err := proctree.Order(cmd.Process.Pid)
	if err != nil || len(order) != 9 {
		t.Fatalf("got %v, %v", order, err)
	}
	seen := map[int]bool{}
	for _, pid := range order {
		children, err := proctree.Children(pid)
		if err != nil {
			t.Fatal(err)
		}
		for _, child := range children {
			if seen[child] {
				t.Errorf("%d comes before its parent %d", child, pid)
			}
		}
		seen[pid] = true
	}
}
