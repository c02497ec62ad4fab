package cgroup_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"envapi/sandbox/cgroup"
)

// fake is a file tree that stands for mounted cgroups. What the kernel would do
// beyond keeping what is written, a test does.
type fake struct {
	t        *testing.T
	proc     string
	root     string            // where a hierarchy is mounted
	files    map[string]string // of a new group
	readOnly string            // the one of them that cannot be written
	failing  map[string]error  // by the base name of a folder that cannot be made
	written  func(path, value string) error
}

// filesV2 are those of a new group of version 2.
var filesV2 = map[string]string{
	"cgroup.procs": "", "cgroup.subtree_control": "", "cgroup.kill": "",
	"memory.max": "max\n", "memory.swap.max": "max\n", "memory.current": "0\n", "memory.peak": "0\n",
	"memory.events.local": "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n", "memory.stat": "anon 0\ninactive_file 0\n",
	"pids.max": "max\n", "pids.peak": "0\n", "cpu.max": "max 100000\n", "cpu.stat": "usage_usec 0\nuser_usec 0\n",
}

// filesV1 are those of a new group of version 1 with all controllers together, on
// an old kernel without a count of swap.
var filesV1 = map[string]string{
	"cgroup.procs": "", "tasks": "", "memory.use_hierarchy": "0\n",
	"memory.limit_in_bytes": "-1\n", "memory.usage_in_bytes": "0\n", "memory.max_usage_in_bytes": "0\n",
	"memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n", "memory.stat": "total_inactive_file 0\n",
	"pids.max": "max\n", "pids.peak": "0\n", "cpu.cfs_quota_us": "-1\n", "cpu.shares": "1024\n", "cpuacct.usage": "0\n",
}

// newFake makes a tree of which hierarchyRoot is mounted, as mounted has it behind
// the mount point. The service's own groups are as in /proc/self/cgroup.
func newFake(t *testing.T, hierarchyRoot, mounted, own string, files map[string]string) *fake {
	t.Helper()
	f := &fake{t: t, proc: t.TempDir(), root: filepath.Join(t.TempDir(), "with space"), files: files, failing: map[string]error{}}
	f.must(f.mkdir(f.root))
	f.set(filepath.Join(f.proc, "mountinfo"), "31 23 0:28 / / rw - ext4 /dev/x rw\n"+
		"41 31 0:38 "+hierarchyRoot+" "+strings.ReplaceAll(f.root, " ", `\040`)+" rw,relatime shared:1 - "+mounted+"\n")
	f.set(filepath.Join(f.proc, "cgroup"), own)
	return f
}

// newFakeV2 is one of version 2 where the service is in own.
func newFakeV2(t *testing.T, own, offered string) *fake {
	t.Helper()
	f := newFake(t, "/", "cgroup2 cgroup2 rw", "3:memory:/elsewhere\n0::/"+own+"\n", filesV2)
	f.must(f.mkdir(f.path("own")))
	f.set(f.path("own/cgroup.controllers"), offered)
	return f
}

func (f *fake) open() *cgroup.Parent {
	return cgroup.OpenFake(cgroup.Fake{Proc: f.proc, Mkdir: f.mkdir, Rmdir: f.rmdir, Write: f.write}, "envapi-x")
}

func (f *fake) path(name string) string { return filepath.Join(f.root, name) }

func (f *fake) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fake) set(path, content string) {
	f.t.Helper()
	f.must(os.WriteFile(path, []byte(content), 0o600))
}

// expect compares what is in the files of the tree.
func (f *fake) expect(want map[string]string) {
	f.t.Helper()
	for name, value := range want {
		content, err := os.ReadFile(f.path(name))
		f.must(err)
		if got := strings.TrimSpace(string(content)); got != value {
			f.t.Errorf("%s: got %q, want %q", name, got, value)
		}
	}
}

// mkdir makes a group with its files.
func (f *fake) mkdir(path string) error {
	if err := f.failing[filepath.Base(path)]; err != nil {
		return err
	}
	if err := unix.Mkdir(path, 0o755); err != nil {
		return err
	}
	for name, content := range f.files {
		f.set(filepath.Join(path, name), content)
		if name == f.readOnly {
			f.must(os.Chmod(filepath.Join(path, name), 0o400))
		}
	}
	return nil
}

// rmdir removes a group, which must have none below it.
func (f *fake) rmdir(path string) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		return unix.ENOENT
	}
	for _, e := range entries {
		if e.IsDir() {
			return unix.EBUSY
		}
	}
	return os.RemoveAll(path)
}

func (f *fake) write(path, value string) error {
	if f.written != nil {
		if err := f.written(path, value); err != nil {
			return err
		}
	}
	if _, err := os.Stat(path); err != nil {
		return unix.ENOENT
	}
	return os.WriteFile(path, []byte(value), 0o600)
}

// inWords says what was used.
func inWords(u cgroup.Used) string {
	text := ""
	if u.OutOfMemory {
		text = "killed, "
	}
	if u.CPU == nil {
		text += "no cpu, "
	} else {
		text += u.CPU.String() + ", "
	}
	number := func(n *int64, what string) string {
		if n == nil {
			return "no " + what
		}
		return fmt.Sprintf("%d %s", *n, what)
	}
	return text + number(u.PeakMemoryBytes, "bytes") + ", " + number(u.Processes, "processes")
}

// holds says which controls there are.
func holds(p *cgroup.Parent) string {
	var held []string
	for _, c := range []cgroup.Control{cgroup.Memory, cgroup.Processes, cgroup.CPU, cgroup.CPUTime} {
		if how, ok := p.Holds(c); ok {
			held = append(held, fmt.Sprintf("%s: %s", c, how))
		}
	}
	return strings.Join(held, ", ")
}
