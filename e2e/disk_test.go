package e2e

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"envapi/internal/require"
)

// smallDisk mounts a file system of so many bytes until the end of the test.
func smallDisk(t *testing.T, bytes int64) string {
	t.Helper()
	dir := t.TempDir()
	err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0755", bytes))
	if errors.Is(err, unix.EPERM) {
		require.Feature(t, "mounts", "this process may not mount: "+err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// filled waits until nothing can be made any more.
func (s *service) filled(t *testing.T) {
	t.Helper()
	err := eventually(func() error {
		_, err := s.call(context.Background(), "create_environment", object{})
		var p *problem
		switch {
		case err == nil:
			return errors.New("create_environment succeeds")
		case errors.As(err, &p) && p.Code == "disk_full":
			return nil
		}
		return fmt.Errorf("create_environment fails otherwise: %w", err)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// usable waits until a command runs to its end.
func (p place) usable(t *testing.T) {
	t.Helper()
	err := eventually(func() error {
		answer, err := p.call(context.Background(), "exec", p.in(object{"command": "echo hi > hi; cat hi"}))
		if err != nil {
			return err
		}
		if c := as[command](t, answer); c.exit() != 0 || c.Stdout.Text != "hi\n" {
			return fmt.Errorf("exec gives %+v", c)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// fillers fill the disk: one time, or again with whatever is freed.
var fillers = map[string]string{
	"a command that ends":       "cat /dev/zero > big; echo failed",
	"a command that never does": "while :; do cat /dev/zero >> big; done",
}

func TestD12AFullDiskIsFreedByResetAndDelete(t *testing.T) {
	for name, filler := range fillers {
		for _, cure := range []string{"reset_environment", "delete_environment"} {
			t.Run(name+", "+cure, func(t *testing.T) {
				s := start(t, config{data: filepath.Join(smallDisk(t, 24<<20), "data")})
				other, p := s.place(t), s.place(t)
				sleeper := other.background(t, "sleep 1; echo late")
				p.exec(t, object{"command": filler, "wait_ms": 2000})
				s.filled(t)
				if c := s.rest.get(t, sleeper.ID, 20000); c.exit() != 0 {
					t.Errorf("what ended on the full disk is %+v", c)
				}
				p.must(t, cure, p.in(nil))
				other.usable(t)
				if cure == "reset_environment" {
					p.usable(t)
				}
			})
		}
	}
}

// sendsAway writes to deleted files whose descriptors are on their way through a
// socket, where nothing can be counted.
const sendsAway = `exec python3 -c '
import array, os, socket, time
a, b = socket.socketpair()
for i in range(250):
    fd = os.open("f", os.O_RDWR | os.O_CREAT)
    os.unlink("f")
    os.write(fd, bytes(1 << 20))
    a.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))])
    os.close(fd)
    time.sleep(.01)
time.sleep(1000)'`

func TestD12WhoFillsTheDiskIsStoppedBeforeItIsFull(t *testing.T) {
	const size, reserve = 256 << 20, 64 << 20
	for name, filler := range map[string]string{
		"files":                    "for i in $(seq 250); do head -c 1M /dev/zero > f$i; sleep .01; done; sleep 1000",
		"descriptors on their way": sendsAway,
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, config{
				data: filepath.Join(smallDisk(t, size), "data"),
				env:  map[string]string{"ENVAPI_MIN_FREE_DISK_BYTES": strconv.Itoa(reserve)},
			})
			other, p := s.place(t), s.place(t)
			bystander := other.background(t, "while :; do echo on > beat; sleep .05; done")
			c := p.exec(t, object{"command": filler})
			if c.Status != "killed" || c.Reason != "disk_full" {
				t.Fatalf("it is %s %s: %s; stderr %s", c.Status, c.Reason, c.Next, c.Stderr.Text)
			}
			if used, _ := p.usage(t, "disk_bytes"); used > size-reserve/2 {
				t.Errorf("it has %d of %d bytes", used, size)
			}
			other.usable(t)
			if c := other.rest.get(t, bystander.ID, 0); c.Status != "running" {
				t.Errorf("the command of another environment is %s %s", c.Status, c.Reason)
			}
			p.sh(t, "rm -f f*; echo more > less; sleep .5")
		})
	}
}

func TestD12AServiceStartsOnAFullDisk(t *testing.T) {
	s := start(t, config{data: filepath.Join(smallDisk(t, 24<<20), "data")})
	p := s.place(t)
	p.exec(t, object{"command": fillers["a command that never does"], "wait_ms": 2000})
	s.filled(t)
	s.kill()
	again := s.restart(t)
	p.rest = again.rest
	p.must(t, "reset_environment", p.in(nil))
	p.usable(t)
}
