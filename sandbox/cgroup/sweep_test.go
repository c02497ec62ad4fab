package cgroup_test

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"envapi/internal/require"
	"envapi/sandbox"
	"envapi/sandbox/cgroup"
)

// serviceVariable makes this test program the service that is killed below.
const serviceVariable = "ENVAPI_TEST_CGROUP"

func TestMain(m *testing.M) {
	if name := os.Getenv(serviceVariable); name != "" {
		if err := serve(name); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// serve starts a process in a slot, says its pid, and is killed.
func serve(name string) error {
	p := cgroup.Open(cgroup.Options{Name: name, Log: discard})
	g, err := p.Take("alice", sandbox.Limits{Processes: 8, MemoryBytes: 64 << 20})
	if err != nil || g == nil {
		return fmt.Errorf("no group: %v", err) //nolint:errorlint // for a person
	}
	slot, err := g.Acquire()
	if err != nil {
		return err
	}
	var files []*os.File
	for _, fd := range slot.Entries() {
		files = append(files, os.NewFile(uintptr(fd), "entry"))
	}
	child, err := start(files)
	if err != nil {
		return err
	}
	fmt.Println(child.Process.Pid)
	select {}
}

// start starts a process that writes itself into the files, and says when it has.
func start(files []*os.File) (*exec.Cmd, error) { return startDoing(files, "exec sleep 600 >&-") }

// startDoing is start for a process that then does something else than to sleep.
func startDoing(files []*os.File, script string) (*exec.Cmd, error) {
	c := exec.Command("sh", "-c", `for i in "$@"; do eval "printf 0 >&$i" || exit 1; done; echo in; `+script, "sh")
	for i := range files {
		c.Args = append(c.Args, strconv.Itoa(3+i))
	}
	c.ExtraFiles = files
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "in\n" {
		return nil, fmt.Errorf("it said %q: %w", line, err)
	}
	return c, nil
}

var discard = slog.New(slog.DiscardHandler)

// needs ends a test where this host does not give it a control.
func needs(t *testing.T, p *cgroup.Parent, controls ...cgroup.Control) {
	t.Helper()
	for _, c := range controls {
		if why, ok := p.Holds(c); !ok {
			require.Feature(t, "cgroup", fmt.Sprintf("%s: %s", c, why))
		}
	}
}

func startIn(t *testing.T, procs string) int {
	t.Helper()
	f, err := os.OpenFile(procs, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c, err := start([]*os.File{f})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	return c.Process.Pid
}

// awaitGone waits until a process has ended, whoever has to wait for it.
func awaitGone(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
	}
	t.Errorf("process %d lives", pid)
}

func TestWhatAKilledServiceLeftIsSwept(t *testing.T) {
	name := fmt.Sprintf("envapi-test-%d-sweep", os.Getpid())
	probe := cgroup.Open(cgroup.Options{Name: name, Log: discard})
	needs(t, probe, cgroup.Memory, cgroup.Processes)
	if err := probe.Close(); err != nil {
		t.Fatal(err)
	}
	other := cgroup.Open(cgroup.Options{Name: name + "0", Log: discard})
	defer other.Close()
	if _, err := other.Take("alice", sandbox.Limits{}); err != nil {
		t.Fatal(err)
	}
	sleeper := killedService(t, name)

	again := cgroup.Open(cgroup.Options{Name: name, Log: discard})
	awaitGone(t, sleeper)
	if left := groupsOf(t, name); len(left) > 0 {
		t.Errorf("groups are left: %q", left)
	}
	if len(groupsOf(t, name+"0")) == 0 {
		t.Error("another service's groups were swept")
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

// killedService kills a service and gives the pid of what it left.
func killedService(t *testing.T, name string) int {
	t.Helper()
	service := exec.Command(os.Args[0])
	service.Env = append(os.Environ(), serviceVariable+"="+name)
	out, err := service.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := service.Start(); err != nil {
		t.Fatal(err)
	}
	said, err := bufio.NewReader(out).ReadString('\n')
	if err2 := service.Process.Kill(); err != nil || err2 != nil {
		t.Fatalf("it said %q: %v, %v", said, err, err2)
	}
	_ = service.Wait() // it was killed
	pid, err := strconv.Atoi(strings.TrimSpace(said))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Kill(pid, unix.SIGKILL) }) // it is gone, unless the test fails
	if unix.Kill(pid, 0) != nil || len(groupsOf(t, name)) == 0 {
		t.Fatal("a service that was killed leaves nothing: there is nothing to sweep")
	}
	return pid
}

// groupsOf gives the groups of boxes below the service's of a name.
func groupsOf(t *testing.T, name string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir("/sys/fs/cgroup", func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) || errors.Is(err, fs.ErrPermission) {
			return fs.SkipDir
		}
		if err == nil && e.IsDir() && strings.Contains(path, "/"+name+"/") {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestRealV2GroupsAreEmptiedAtOnce: what a version 2 without controllers can show.
func TestRealV2GroupsAreEmptiedAtOnce(t *testing.T) {
	folder := realV2(t)
	first := startIn(t, filepath.Join(folder, "cgroup.procs"))
	second := startIn(t, filepath.Join(folder, "below", "cgroup.procs"))
	if err := cgroup.EmptyV2(folder); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, first)
	awaitGone(t, second)
}

// realV2 makes a group, with one below it, in the version 2 that is mounted here.
func realV2(t *testing.T) string {
	t.Helper()
	for _, point := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		if _, err := os.Stat(filepath.Join(point, "cgroup.controllers")); err != nil {
			continue
		}
		folder := filepath.Join(point, fmt.Sprintf("envapi-test-%d-v2", os.Getpid()))
		if err := unix.Mkdir(folder, 0o755); err != nil {
			t.Skipf("only who may make a group of version 2 can run this: %v", err)
		}
		below := filepath.Join(folder, "below")
		t.Cleanup(func() {
			for _, f := range []string{below, folder} {
				if err := unix.Rmdir(f); err != nil {
					t.Error(err)
				}
			}
		})
		if err := unix.Mkdir(below, 0o755); err != nil {
			t.Fatal(err)
		}
		return folder
	}
	t.Skip("no version 2 is mounted here")
	return ""
}
