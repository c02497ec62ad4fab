package sandboxtest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"envapi/internal/require"
	"envapi/sandbox"
	"envapi/sandbox/cgroup"
)

// Groups are cgroups of a test's own.
type Groups struct {
	*cgroup.Parent
	name string
}

// groupsMade tells the names of a test program's groups apart.
var groupsMade atomic.Int64

// OpenGroups finds the cgroups that a test may have, which can be none. They must
// be gone at its end, when whatever used them was closed.
func OpenGroups(t testing.TB) Groups {
	t.Helper()
	g := Groups{name: fmt.Sprintf("%s-%d-%d", groupsOf(os.Getenv(RunVariable)), os.Getpid(), groupsMade.Add(1))}
	g.Parent = cgroup.Open(cgroup.Options{Name: g.name, Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		if left := g.folders(t); len(left) > 0 {
			t.Errorf("cgroups are left: %q", left)
		}
	})
	return g
}

// AllGroups is OpenGroups for a test that needs every control.
func AllGroups(t testing.TB) Groups {
	t.Helper()
	g := OpenGroups(t)
	for _, c := range []cgroup.Control{cgroup.Memory, cgroup.Processes, cgroup.CPU, cgroup.CPUTime} {
		if why, ok := g.Holds(c); !ok {
			require.Feature(t, "cgroup", fmt.Sprintf("%s: %s", c, why))
		}
	}
	return g
}

// RunVariable is what the environment of test programs calls their run, for who is
// to find what they leave behind.
const RunVariable = "ENVAPI_TEST_RUN"

// groupsOf begins the names of the groups of a run, which has no name by itself.
func groupsOf(run string) string { return strings.TrimSuffix("envapi-test-"+run, "-") }

// GroupsOf gives the names of the groups that the test programs of a run have left.
func GroupsOf(t testing.TB, run string) []string {
	t.Helper()
	prefix, names := groupsOf(run)+"-", []string(nil)
	for _, folder := range foldersOf(t, "/"+prefix) {
		if name := filepath.Base(folder); strings.HasPrefix(name, prefix) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// folders gives every cgroup of the test's.
func (g Groups) folders(t testing.TB) []string {
	t.Helper()
	return foldersOf(t, "/"+g.name)
}

// foldersOf gives the cgroups that have a text in their paths.
func foldersOf(t testing.TB, text string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir("/sys/fs/cgroup", func(path string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENODEV), errors.Is(err, fs.ErrPermission):
			return fs.SkipDir // somebody else's went away
		case err == nil && e.IsDir() && strings.Contains(path, text):
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// Bounds runs the suite of what a tier with all cgroups holds.
func Bounds(t *testing.T, tier Tier, g Groups) {
	for _, c := range []struct {
		name string
		test func(*testing.T, Tier, Groups)
	}{
		{"D12 memory", memoryIsBounded},
		{"want of memory is told of nobody else", outOfMemoryIsOnesOwn},
		{"D12 a fork bomb", processesAreBounded},
		{"cpu", cpuIsBounded},
		{"boxes are weighed with those of their account", accountsAreWeighed},
		{"a command is counted with all that descends from it", descendantsAreCounted},
		{"the most processes of a command are counted", processesAreCounted},
		{"the commands of a shell are counted apart", shellsAreCounted},
		{"commands leave no cgroups", cgroupsAreUsedAgain},
		{"a command that cannot be bounded is not started", boundOrNotStarted},
		{"files have a longest length", filesAreBounded},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, tier, g) })
	}
}

// memory is what the boxes of this suite may use, unless a test says otherwise.
const memory = 128 << 20

// hungry uses as much memory as there is: tail keeps a line that does not end.
const hungry = "tail /dev/zero"

func (tier Tier) bounded(t *testing.T, l sandbox.Limits) fixture {
	t.Helper()
	l.MemoryBytes = max(l.MemoryBytes, memory)
	if l.Processes == 0 {
		l.Processes = 64
	}
	return tier.boxOf(t, l)
}

func memoryIsBounded(t *testing.T, tier Tier, _ Groups) {
	f := tier.bounded(t, sandbox.Limits{})
	for _, c := range []sandbox.Command{{Argv: strings.Fields(hungry)}, {Script: hungry + "; echo the leader lives"}} {
		r := f.run(c)
		if !r.OutOfMemory {
			t.Fatalf("%v: got %+v", c, r.Result)
		}
		if c.Argv != nil && r.Signal != "KILL" {
			t.Errorf("it was not killed: %+v", r.Result)
		}
		// A reaper counts pages of programs too that are another's memory.
		if peak := *r.Used.PeakMemoryBytes; peak < memory/2 || peak > memory+memory/8 {
			t.Errorf("it is said to have used %d bytes of %d", peak, memory)
		}
	}
	if r := f.script("echo again"); r.stdout != "again\n" || r.OutOfMemory {
		t.Errorf("the box is of no use afterwards: %+v", r)
	}
}

func outOfMemoryIsOnesOwn(t *testing.T, tier Tier, _ Groups) {
	f := tier.bounded(t, sandbox.Limits{})
	beside, _, _ := f.start(sandbox.Command{Script: "while [ ! -e go ]; do sleep 0.01; done"})
	for range 3 {
		if r := f.script(hungry); !r.OutOfMemory {
			t.Fatalf("got %+v", r.Result)
		}
		if r := f.script("true"); r.OutOfMemory { // in the same cgroup
			t.Error("it is told of the next command")
		}
	}
	if r := f.script("touch go"); r.ExitCode != 0 {
		t.Fatal(r.stderr)
	}
	await(t, beside.Done(), "the command beside it does not end")
	if r := beside.Result(); r.OutOfMemory || r.ExitCode != 0 || r.Signal != "" {
		t.Errorf("it is told of the command beside: %+v", r)
	}
}

// processesAreBounded shows the cgroup and no rlimit at work, which allows more. A
// count is no picture of one moment: it can see a few that are there no more.
func processesAreBounded(t *testing.T, tier Tier, _ Groups) {
	const allowed = 40
	f := tier.bounded(t, sandbox.Limits{Processes: allowed})
	bomb, _, _ := f.start(sandbox.Command{Script: "bomb() { bomb | bomb & sleep 1000; }; bomb"})
	most := 0
	eventually(t, "the bomb fills the box", func() bool {
		most = max(most, f.count())
		return most >= allowed-1 // a shell that waits to fork again is one of them
	})
	if r := f.run(sandbox.Command{Argv: []string{"true"}}); r.ExitCode != 0 { // it needs no fork of its own
		t.Errorf("nothing can be started beside it: %+v", r)
	}
	for range 50 {
		most = max(most, f.count())
	}
	if most > allowed+allowed/4 {
		t.Errorf("%d processes live, %d are allowed", most, allowed)
	}
	if err := bomb.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := f.script("for i in 1 2 3; do /bin/echo $i; done | cat"); r.stdout != "1\n2\n3\n" {
		t.Errorf("the box is of no use afterwards: %+v", r)
	}
}

func cpuIsBounded(t *testing.T, tier Tier, _ Groups) {
	const percent = 5
	f := tier.bounded(t, sandbox.Limits{CPUPercent: percent})
	begun := time.Now()
	r := f.script("end=$((SECONDS + 2)); while ((SECONDS < end)); do :; done")
	share := 100 * r.Used.CPU.Seconds() / time.Since(begun).Seconds()
	if share > 2*percent { // much more without the quota, also on a busy host
		t.Errorf("it had %.0f%% of a core, %d%% are allowed", share, percent)
	}
}

func descendantsAreCounted(t *testing.T, tier Tier, _ Groups) {
	f := tier.bounded(t, sandbox.Limits{})
	// Nobody waits for the one that works, so that no reaper's count has it.
	r := f.script("setsid bash -c 'end=$((SECONDS + 2)); while ((SECONDS < end)); do :; done; touch done' & " +
		"while [ ! -e done ]; do sleep 0.01; done; disown")
	if *r.Used.CPU < 200*time.Millisecond {
		t.Errorf("only %s of cpu time are counted", *r.Used.CPU)
	}
	usage, err := f.box.Usage(t.Context())
	if err != nil || usage.MemoryBytes == nil || *usage.MemoryBytes > memory {
		t.Errorf("got %+v, %v", usage, err)
	}
}

// processesAreCounted: one command after another is in the same few cgroups, and
// none is said to have had the processes of one before.
func processesAreCounted(t *testing.T, tier Tier, _ Groups) {
	f := tier.bounded(t, sandbox.Limits{})
	for round := range 10 {
		for _, c := range []struct {
			what    string
			command sandbox.Command
			want    int64
		}{
			{"nothing but its leader", sandbox.Command{Argv: []string{"true"}}, 1},
			{"three at a time", sandbox.Command{Script: "sleep 1000 & a=$!; sleep 1000 & kill $a $!; wait"}, 3},
			{"one after another", sandbox.Command{Script: "/bin/true; /bin/true; /bin/true; :"}, 2},
			{"eleven at a time", sandbox.Command{Script: "all=(); for i in {1..10}; do sleep 1000 & all+=($!); done; kill ${all[@]}; wait"}, 11},
			{"five threads", sandbox.Command{Argv: []string{"python3", "-c", threads}}, 5},
			{"a shell alone", sandbox.Command{Script: "true"}, 1},
		} {
			r := f.run(c.command)
			if n := r.Used.Processes; n == nil || *n != c.want {
				t.Fatalf("round %d, %s: want %d, got %s", round, c.what, c.want, inWords(n))
			}
		}
	}
}

// threads are five at one time, the first among them.
const threads = `
import threading
meet = threading.Barrier(5)
all = [threading.Thread(target=meet.wait) for _ in range(4)]
for t in all: t.start()
meet.wait()
for t in all: t.join()`

func inWords(n *int64) string {
	if n == nil {
		return "none"
	}
	return strconv.FormatInt(*n, 10)
}

func cgroupsAreUsedAgain(t *testing.T, tier Tier, g Groups) {
	memory, pids := cgroupsOf(t, "memory"), cgroupsOf(t, "pids")
	kept, most := len(g.folders(t)), 0
	for range 5 {
		f := tier.bounded(t, sandbox.Limits{})
		for range 50 { // the second makes the count of processes begin anew
			for _, c := range []sandbox.Command{{Argv: []string{"true"}}, {Script: "/bin/true; exit 0"}} {
				if r := f.run(c); r.ExitCode != 0 {
					t.Fatalf("got %+v", r)
				}
			}
		}
		most = max(most, len(g.folders(t)))
		if err := f.box.Close(); err != nil {
			t.Fatal(err)
		}
	}
	// Beside what is kept of the boxes of other tests, in four hierarchies at most: the
	// parent, one account, one box, and of commands the one that runs and those whose
	// last process is just dying.
	if most > kept+4*(1+1+1+8) {
		t.Errorf("there were %d cgroups for one command at a time", most)
	}
	// Other tests may run beside this one.
	if after := cgroupsOf(t, "memory"); after > memory+100 {
		t.Errorf("the kernel had %d memory cgroups before 500 commands, and %d after them", memory, after)
	}
	eventually(t, "the kernel forgets removed groups of pids", func() bool { return cgroupsOf(t, "pids") <= pids+100 })
}

// cgroupsOf is how many of a controller's the kernel has, removed ones that live
// on included; 0 where it does not say so.
func cgroupsOf(t *testing.T, controller string) int {
	t.Helper()
	content, err := os.ReadFile("/proc/cgroups")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		var name string
		var hierarchy, n int
		if _, err := fmt.Sscan(line, &name, &hierarchy, &n); err == nil && name == controller {
			return n
		}
	}
	return 0
}

func boundOrNotStarted(t *testing.T, tier Tier, g Groups) {
	f := tier.bounded(t, sandbox.Limits{})
	if r := f.script("true"); r.ExitCode != 0 {
		t.Fatalf("got %+v", r)
	}
	eventually(t, "the cgroups of commands are removed", func() bool {
		left := 0
		for _, folder := range g.folders(t) {
			if strings.HasPrefix(filepath.Base(folder), "c") && unix.Rmdir(folder) != nil {
				left++
			}
		}
		return left == 0
	})
	_, err := f.box.Start(t.Context(), sandbox.Command{Script: "true"})
	var refused *sandbox.StartError
	if !errors.As(err, &refused) || !errors.Is(err, unix.ENODEV) {
		t.Errorf("it was started outside of its cgroup: %v", err)
	}
	eventually(t, "the box has new ones", func() bool { // it may have kept more than one of those
		p, err := f.box.Start(t.Context(), sandbox.Command{Script: "true", Stdout: io.Discard})
		if err == nil {
			await(t, p.Done(), "the command does not end")
		}
		return err == nil
	})
}

func filesAreBounded(t *testing.T, tier Tier, _ Groups) {
	f := tier.bounded(t, sandbox.Limits{FileBytes: 1 << 20})
	if r := f.script("head -c 2M /dev/zero >file"); r.ExitCode == 0 {
		t.Errorf("a longer file was written: %+v", r)
	}
	info, err := os.Stat(filepath.Join(f.workspace, "file"))
	if err != nil || info.Size() != 1<<20 {
		t.Errorf("got %v, %v", info, err)
	}
}

// BoundsAlone runs the suite of what a tier without any cgroup holds.
func BoundsAlone(t *testing.T, tier Tier) {
	f := tier.bounded(t, sandbox.Limits{})
	if r := f.script(hungry); r.ExitCode == 0 || r.OutOfMemory {
		t.Errorf("a process uses more memory than the box may: %+v", r)
	}
	// The kernel reserves nothing for it, so that only the limit is in its way.
	if r := f.script("python3 -c 'import mmap; mmap.mmap(-1, 20 << 30, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | 0x4000)'"); !strings.Contains(r.stderr, "Cannot allocate memory") {
		t.Errorf("a process shares more memory than there is: %+v", r)
	}
	if r := f.script("node -e 'console.log(1)' && go version >&2"); r.stdout != "1\n" && !strings.Contains(r.stderr, "not found") {
		t.Errorf("runtimes that reserve much cannot run: %+v", r)
	}
	if usage, err := f.box.Usage(t.Context()); err != nil || usage.MemoryBytes != nil {
		t.Errorf("memory is counted by nobody: %+v, %v", usage, err)
	}
	if u := f.script("true").Used; u.CPU == nil || u.PeakMemoryBytes == nil || u.Processes != nil {
		t.Errorf("what nobody counts is said to be used: %+v", u)
	}
	if u := f.shell(sandbox.ShellSpec{}).run("true").Used; u != (sandbox.Used{}) {
		t.Errorf("likewise in a shell: %+v", u)
	}
}
