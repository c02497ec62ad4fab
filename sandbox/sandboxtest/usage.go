package sandboxtest

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"envapi/sandbox"
)

// shellsAreCounted: what a command of a shell has used is told apart from what the
// commands before it did, or not told.
func shellsAreCounted(t *testing.T, tier Tier, _ Groups) {
	sh := tier.bounded(t, sandbox.Limits{}).shell(sandbox.ShellSpec{})
	const work, block = 50 * time.Millisecond, 48 << 20
	for _, c := range []struct {
		script      string
		cpu, memory bool // much of it
		killed      bool // for want of memory
		told        bool
	}{
		{script: "i=0; while ((i < 200000)); do ((++i)); done", cpu: true, told: true},
		{script: "true", told: true},
		{script: "x=$(head -c 50331648 /dev/zero | tr '\\0' x); unset x", cpu: true, memory: true, told: true},
		{script: "true", told: true},
		{script: hungry, cpu: true, memory: true, killed: true, told: true},
		{script: "true", told: true},
		{script: "sleep 300 &", told: true},
		{script: "true"},
		{script: "kill %1; wait"},
		{script: "true", told: true},
	} {
		r := sh.run(c.script)
		u := r.Used
		if r.Shell.Shared == c.told || (u.CPU != nil) != c.told || (u.PeakMemoryBytes != nil) != c.told || u.Processes != nil {
			t.Errorf("%s: got %+v, %+v", c.script, u, r.Shell)
			continue
		}
		if c.told && !c.killed && ((*u.CPU >= work) != c.cpu || (*u.PeakMemoryBytes >= block) != c.memory) {
			t.Errorf("%s: got cpu %v, memory %d", c.script, *u.CPU, *u.PeakMemoryBytes)
		}
		if r.OutOfMemory != c.killed {
			t.Errorf("%s: got %+v", c.script, r.Result)
		}
	}
}

// What an idle shell may cost the service. Seven descriptors are its own; in version
// 1 of cgroups there are nine more, to enter four hierarchies and for five counts.
// It has no inotify watch: a command has one while it runs.
const (
	idleRoutines    = 3
	idleDescriptors = 16
	idleWatches     = 0
)

// idleShells: what one costs that nobody uses, beside its processes.
func idleShells(t *testing.T, tier Tier) {
	f := tier.box(t)
	use := func() {
		if r := f.shell(sandbox.ShellSpec{}).run("true"); r.ExitCode != 0 {
			t.Fatalf("got %+v", r)
		}
	}
	use() // the first has what all of them share
	const n = 10
	before := atRest(t)
	for range n {
		use()
	}
	after := atRest(t)
	each := func(before, after int) float64 { return float64(after-before) / n }
	routines, files, watches := each(before.routines, after.routines), each(before.files, after.files), each(before.watches, after.watches)
	t.Logf("a shell has %.1f goroutines, %.1f descriptors, %.1f inotify watches", routines, files, watches)
	if routines > idleRoutines || files > idleDescriptors || watches > idleWatches {
		t.Errorf("at most %d, %d and %d are allowed", idleRoutines, idleDescriptors, idleWatches)
	}
}

// holding is what this program has of the system.
type holding struct{ routines, files, watches int }

// atRest looks until nothing changes any more.
func atRest(t *testing.T) holding {
	t.Helper()
	var last holding
	same := 0
	eventually(t, "nothing changes any more", func() bool {
		now := holding{runtime.NumGoroutine(), descriptors(t), watches(t)}
		if same++; now != last {
			last, same = now, 0
		}
		return same == 20
	})
	return last
}

// watches counts the inotify watches of this program.
func watches(t *testing.T) int {
	t.Helper()
	paths, err := filepath.Glob("/proc/self/fdinfo/*")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, path := range paths {
		if info, err := os.ReadFile(path); err == nil { // else it was closed
			n += bytes.Count(info, []byte("\ninotify wd:"))
		}
	}
	return n
}
