package proctree_test

import (
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"envapi/sandbox/proctree"
)

// session is a shell with a leader below it, an old process with a child of its
// own to come, and fresh ones to come, at the lines that it reads.
func session(t *testing.T) (cmd *exec.Cmd, leader int, next func()) {
	t.Helper()
	cmd = exec.Command("sh", "-c", `sh -c 'sh -c "read x; sleep 300 & echo r; wait" <&3 & read x; sleep 300 & setsid sleep 300 & echo r; wait' 3<&0; wait`)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
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
	below(t, cmd.Process.Pid, 2)
	children, err := proctree.Children(cmd.Process.Pid)
	if err != nil || len(children) != 1 {
		t.Fatalf("got %v, %v", children, err)
	}
	return cmd, children[0], func() {
		if _, err := in.Write([]byte("x\n")); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 2)); err != nil {
			t.Fatal(err)
		}
	}
}

// below waits until there are so many processes that have not ended.
func below(t *testing.T, top, want int) {
	t.Helper()
	n := 0
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		births, err := proctree.Births(top, 0)
		if err != nil {
			t.Fatal(err)
		}
		if n = len(births); n == want {
			return
		}
	}
	t.Fatalf("there are %d processes, not %d", n, want)
}

func TestFreshIsWhatCameAfterwards(t *testing.T) {
	cmd, leader, next := session(t)
	top := cmd.Process.Pid
	old, err := proctree.Births(top, leader)
	if err != nil || len(old) != 1 {
		t.Fatalf("got %v, %v", old, err)
	}
	fresh := proctree.Fresh{Top: top, Leader: leader, Old: old}
	if n, err := fresh.Signal(unix.SIGWINCH); err != nil || n != 0 {
		t.Errorf("before it: got %d, %v", n, err)
	}
	next()
	next()
	below(t, top, 5)
	if n, err := fresh.Signal(unix.SIGWINCH); err != nil || n != 2 {
		t.Errorf("after it: got %d, %v", n, err)
	}
	if n, err := fresh.Kill(); err != nil || n != 2 {
		t.Errorf("killed: got %d, %v", n, err)
	}
	below(t, top, 3) // the leader, the old one and its child
	if n, err := fresh.Kill(); err != nil || n != 0 {
		t.Errorf("killed again: got %d, %v", n, err)
	}
}

func TestAnotherProcessWithThePidOfAnOldOneIsFresh(t *testing.T) {
	cmd, leader, _ := session(t)
	old, err := proctree.Births(cmd.Process.Pid, leader)
	if err != nil {
		t.Fatal(err)
	}
	for pid := range old {
		old[pid]-- // of one that began before
	}
	fresh := proctree.Fresh{Top: cmd.Process.Pid, Leader: leader, Old: old}
	if n, err := fresh.Signal(unix.SIGWINCH); err != nil || n != 1 {
		t.Errorf("got %d, %v", n, err)
	}
}

func TestWhatBeganBeforeIsOld(t *testing.T) {
	cmd, leader, next := session(t)
	fresh := proctree.Fresh{Top: cmd.Process.Pid, Leader: leader, Since: proctree.Now()}
	if n, err := fresh.Signal(unix.SIGWINCH); err != nil || n > 1 { // in the same tick it is not told
		t.Errorf("before it: got %d, %v", n, err)
	}
	for start := proctree.Now(); proctree.Now() < start+2; {
		time.Sleep(time.Millisecond)
	}
	fresh.Since = proctree.Now()
	if n, err := fresh.Signal(unix.SIGWINCH); err != nil || n != 0 {
		t.Errorf("before it: got %d, %v", n, err)
	}
	next()
	next()
	below(t, cmd.Process.Pid, 5)
	if n, err := fresh.Signal(unix.SIGWINCH); err != nil || n != 2 {
		t.Errorf("after it: got %d, %v", n, err)
	}
}

func TestOnlyAChildIsSignalled(t *testing.T) {
	cmd, leader, _ := session(t)
	if err := proctree.SignalChild(cmd.Process.Pid, leader, unix.SIGWINCH); err != nil {
		t.Errorf("a child: %v", err)
	}
	grandchildren, err := proctree.Children(leader)
	if err != nil || len(grandchildren) != 1 {
		t.Fatalf("got %v, %v", grandchildren, err)
	}
	if err := proctree.SignalChild(cmd.Process.Pid, grandchildren[0], unix.SIGKILL); err == nil {
		t.Error("a grandchild was signalled")
	}
}
