package proctree_test

import (
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"envapi/sandbox/proctree"
)

func hold(t *testing.T, pid int) proctree.Held {
	t.Helper()
	handle, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(handle) })
	return proctree.Held{PID: pid, Handle: handle}
}

func TestAZombieHasEndedAndIsNotReaped(t *testing.T) {
	cmd := exec.Command("true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	held := hold(t, cmd.Process.Pid)
	for deadline := time.Now().Add(30 * time.Second); !held.Ended(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not end")
		}
	}
	if held.Reaped() {
		t.Error("a zombie is said to be waited for")
	}
	if reached, err := held.Signal(unix.SIGKILL); reached || err != nil {
		t.Errorf("a zombie was reached: %v", err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if !held.Reaped() || !held.Ended() {
		t.Error("it was waited for, and is not said to be")
	}
}

// What is below a pid is another's where that was waited for.
func TestATreeOfWhatIsGoneIsEmpty(t *testing.T) {
	gone := exec.Command("true")
	if err := gone.Start(); err != nil {
		t.Fatal(err)
	}
	held := hold(t, gone.Process.Pid)
	if err := gone.Wait(); err != nil {
		t.Fatal(err)
	}
	other := start(t, "sleep 300 & echo r; wait")
	held.PID = other.Process.Pid // as if that had the pid now
	if n, err := held.SignalTree(unix.SIGKILL); err != nil || n != 0 {
		t.Errorf("signalled: got %d, %v", n, err)
	}
	if n, below, err := held.KillTree(time.Second); err != nil || n != 0 || len(below) != 0 {
		t.Errorf("killed: got %d, %v, %v", n, below, err)
	}
	below(t, other.Process.Pid, 1)
	if err := unix.Kill(other.Process.Pid, 0); err != nil {
		t.Errorf("another one was killed: %v", err)
	}
}

func TestATreeIsKilledWithItsTop(t *testing.T) {
	cmd := start(t, "for i in 1 2 3; do sh -c 'sleep 300 & setsid sleep 300' & done; sleep 0.1; echo r; wait")
	below(t, cmd.Process.Pid, 9)
	held := hold(t, cmd.Process.Pid)
	n, all, err := held.KillTree(30 * time.Second)
	if err != nil || n != 10 || len(all) != 9 {
		t.Errorf("got %d, %d, %v", n, len(all), err)
	}
	wantEnded(t, all...)
	for deadline := time.Now().Add(30 * time.Second); !held.Ended(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("its top lives")
		}
	}
}
