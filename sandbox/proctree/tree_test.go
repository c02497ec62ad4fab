package proctree_test

import (
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"envapi/sandbox/proctree"
)

// wantEnded waits until processes have ended.
func wantEnded(t *testing.T, all ...proctree.Born) {
	t.Helper()
	for _, b := range all {
		deadline := time.Now().Add(30 * time.Second)
		for ended := false; !ended; time.Sleep(time.Millisecond) {
			var err error
			if ended, err = b.Ended(); err != nil {
				t.Fatal(err)
			}
			if time.Now().After(deadline) {
				t.Fatalf("%d lives", b.PID)
			}
		}
	}
}

// spareDescriptors leaves this process so many descriptors that it may still open, until
// the function that it gives is called.
func spareDescriptors(t *testing.T, spare int) (restore func()) {
	t.Helper()
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	now := before
	now.Cur = 128
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &now); err != nil {
		t.Fatal(err)
	}
	var taken []int
	for {
		fd, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			break
		}
		taken = append(taken, fd)
	}
	for _, fd := range taken[:spare] {
		_ = unix.Close(fd)
	}
	taken = taken[spare:]
	return func() {
		for _, fd := range taken {
			_ = unix.Close(fd)
		}
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
			t.Error(err)
		}
	}
}

// born gives all below a process, as they are now.
func born(t *testing.T, top int) (all []proctree.Born) {
	t.Helper()
	births, err := proctree.Births(top, 0)
	if err != nil {
		t.Fatal(err)
	}
	for pid, birth := range births {
		all = append(all, proctree.Born{PID: pid, Birth: birth})
	}
	return all
}

// More processes than there are descriptors, as a runaway forker has.
const many = `for i in 1 2 3 4 5 6 7 8; do sh -c 'sleep 300 & sleep 300 & sleep 300; :' & done; sleep 0.1; echo r; wait; sleep 300`

func TestAllAreKilledWithFewDescriptors(t *testing.T) {
	for name, kill := range map[string]func(pid int, held proctree.Held) error{
		"all":   func(pid int, _ proctree.Held) error { return proctree.Kill(pid) },
		"fresh": func(pid int, _ proctree.Held) error { _, err := proctree.Fresh{Top: pid}.Kill(); return err },
		"a tree": func(_ int, held proctree.Held) error {
			_, _, err := held.KillTree(30 * time.Second)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := start(t, many)
			below(t, cmd.Process.Pid, 32)
			all, held := born(t, cmd.Process.Pid), hold(t, cmd.Process.Pid)
			restore := spareDescriptors(t, 4)
			err := kill(cmd.Process.Pid, held)
			restore()
			if err != nil {
				t.Errorf("with four descriptors: %v", err)
			}
			wantEnded(t, all...)
		})
	}
}

// What cannot be looked at has not ended: who asked for its end must be told.
func TestAShortageOfDescriptorsIsToldAndLeavesNobodyOut(t *testing.T) {
	cmd := start(t, many)
	pid := cmd.Process.Pid
	below(t, pid, 32)
	all, held := born(t, pid), hold(t, pid)
	for name, try := range map[string]func() error{
		"Signal":         func() error { return proctree.Signal(pid, unix.SIGWINCH) },
		"Births":         func() error { _, err := proctree.Births(pid, 0); return err },
		"Fresh.Signal":   func() error { _, err := proctree.Fresh{Top: pid}.Signal(unix.SIGWINCH); return err },
		"SignalTree":     func() error { _, err := held.SignalTree(unix.SIGWINCH); return err },
		"SignalChild":    func() error { return proctree.SignalChild(pid, all[0].PID, unix.SIGWINCH) },
		"whether it has": func() error { _, err := all[0].Ended(); return err },
	} {
		restore := spareDescriptors(t, 0)
		err := try()
		restore()
		if !errors.Is(err, unix.EMFILE) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	// Each of the descriptors that it takes is once the one that is missing.
	for spare := 0; ; spare++ {
		restore := spareDescriptors(t, spare)
		err := proctree.Kill(pid)
		restore()
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EMFILE) || spare == 8 {
			t.Fatalf("with %d descriptors: %v", spare, err)
		}
	}
	wantEnded(t, all...)
}

// At each single step the descriptor may be the one that is missing: then it is told, or
// nobody was left out.
func TestNobodyIsLeftOutInAPassingShortage(t *testing.T) {
	cmd := start(t, many)
	pid := cmd.Process.Pid
	below(t, pid, 32)
	old, err := proctree.Births(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	held := hold(t, pid)
	for name, do := range map[string]func() (int, error){
		"all are signalled":           func() (int, error) { return proctree.Fresh{Top: pid}.Signal(unix.SIGWINCH) },
		"its tree is signalled":       func() (int, error) { return held.SignalTree(unix.SIGWINCH) },
		"what was there is not fresh": func() (int, error) { return proctree.Fresh{Top: pid, Old: old}.Signal(unix.SIGWINCH) },
		"all are seen":                func() (int, error) { all, err := proctree.Births(pid, 0); return len(all), err },
	} {
		opens := proctree.FailOpen(-1)
		want, err := do()
		if err != nil || want == 0 && name != "what was there is not fresh" {
			t.Fatalf("%s: %d, %v", name, want, err)
		}
		for n := range opens() {
			done := proctree.FailOpen(n)
			got, err := do()
			done()
			if !errors.Is(err, unix.EMFILE) {
				t.Errorf("%s, without its open number %d: %d of %d, %v", name, n, got, want, err)
			}
		}
	}
}

// As one that ends a command does: what it could not do now it does the next time, and
// says so. Its top is a subreaper, so that nobody gets away meanwhile.
func TestAKillThatFailedIsFinishedByTheNext(t *testing.T) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) }()
	cmd := start(t, "for i in 1 2; do sh -c 'sleep 300 & sleep 300; :' & done; sleep 0.1; echo r; wait; sleep 300")
	below(t, cmd.Process.Pid, 6)
	all := born(t, os.Getpid())
	for n, failed := 0, true; failed; n++ {
		done := proctree.FailOpen(n)
		err := proctree.Kill(os.Getpid())
		if failed = done() > n; failed != (err != nil) {
			t.Fatalf("without its open number %d: %v", n, err)
		}
	}
	wantEnded(t, all...)
	for _, b := range all {
		if b.PID != cmd.Process.Pid {
			_, _ = unix.Wait4(b.PID, nil, 0, nil) // those that came to this process
		}
	}
}

func TestWhatEndedIsNotSignalledUnderAnothersPID(t *testing.T) {
	b := proctree.Born{PID: os.Getpid(), Birth: 1} // this pid, of one that began before
	if ended, err := b.Ended(); err != nil || !ended {
		t.Errorf("got %v, %v", ended, err)
	}
	b.PID = 1 << 30
	if ended, err := b.Ended(); err != nil || !ended {
		t.Errorf("got %v, %v", ended, err)
	}
}
