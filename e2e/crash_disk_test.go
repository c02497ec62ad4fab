package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"envapi/internal/testbin"
)

// fill has a file take what is free on a disk but for so many bytes.
func fill(t *testing.T, disk string, but int64) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(disk, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	err = eventually(func() error { // whoever writes meanwhile takes what was free
		var is unix.Statfs_t
		if err := errors.Join(f.Truncate(0), unix.Statfs(disk, &is)); err != nil {
			return final{err}
		}
		if n := int64(is.Bavail)*is.Bsize - but; n > 0 {
			return unix.Fallocate(int(f.Fd()), 0, 0, n)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestNothingAnsweredIsLostOnAFullDisk: what does not fit is refused and not done, what was
// answered is there, also after a kill and a start on the full disk; and when there is
// room again, all goes on.
func TestNothingAnsweredIsLostOnAFullDisk(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t, 64<<20)
	x := underLoad(t, config{data: filepath.Join(disk, "data")}, 4)
	defer x.tell(t)
	for _, w := range x.witnesses {
		w.files = true
	}
	for _, but := range []int64{1 << 20, 0, 8 << 20} {
		x.allow(false)
		x.work(t, 10)
		filler := fill(t, disk, but)
		x.allow(false, "disk_full")
		x.work(t, 10)
		x.crash(t)
		x.begin(t)
		x.verify(t)
		x.work(t, 5)
		if err := os.Remove(filler.Name()); err != nil {
			t.Fatal(err)
		}
		x.roomAgain(t)
	}
	x.wasRefused(t, "disk_full")
}

// wasRefused sees that something was, or the test has tried nothing.
func (x *crashes) wasRefused(t *testing.T, code string) {
	t.Helper()
	for _, w := range x.witnesses {
		if w.refusals[code] > 0 {
			return
		}
	}
	t.Errorf("nothing was refused as %s", code)
}

// roomAgain waits until something can be made: what is free is looked at now and then.
func (x *crashes) roomAgain(t *testing.T) {
	t.Helper()
	err := eventually(func() error {
		w := x.witnesses[0]
		before := w.refusals["disk_full"]
		if err := w.take(w.create()); err != nil {
			return final{err}
		}
		if w.refusals["disk_full"] > before {
			return os.ErrNotExist
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// failing has a service with fault points read a line, see package faults, or none.
func (x *crashes) failing(t *testing.T, file, what string) {
	t.Helper()
	for _, w := range x.witnesses {
		w.failing = what != ""
	}
	if what == "" {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		return
	}
	armFaults(t, file, what)
}

// TestNothingAnsweredIsLostWithAFailingStore: what was answered with success is true,
// what was not is done or not, and nothing half; it goes on when the failing ends.
func TestNothingAnsweredIsLostWithAFailingStore(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "faults")
	faulty := config{program: testbin.WithFaults, env: map[string]string{"FAULTS_FILE": file}}
	x := underLoad(t, faulty, 4)
	defer x.tell(t)
	for _, what := range []string{"fail store. 7", "fail store.commit 3", "fail store. 2"} {
		x.allow(false)
		x.work(t, 8)
		x.allow(true, "internal", "unavailable", "environment_busy", "shell_closed", "input_closed")
		x.failing(t, file, what)
		var killed atomic.Bool
		end := x.load(&killed)
		time.Sleep(time.Duration(x.rng.Int64N(int64(time.Second)))) // anywhere in it
		if err := end(); err != nil {
			t.Fatalf("%s: %v\n%s", what, err, x.service.output)
		}
		x.failing(t, file, "")
		if err := x.each(func(w *witness) error { return w.settled(t.Context()) }); err != nil {
			t.Fatalf("%s: %v\n%s", what, err, x.service.output)
		}
		x.work(t, 8)
		x.service.kill()
		noProcess(t, x.mark)
		x.service.program = ""
		x.begin(t)
		x.verify(t)
		x.service.program = testbin.WithFaults
		x.service.stop(t)
		x.service = x.service.restart(t)
		x.connect()
	}
	x.wasRefused(t, "internal")
}
