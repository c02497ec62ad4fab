package sandboxtest

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"envapi/internal/require"
	"envapi/sandbox"
)

// floods: however much a command writes, starts or is started, nothing grows.
func floods(t *testing.T, tier Tier) {
	if tier.Confined && !tier.Namespaces {
		t.Skip("it is the same without Landlock, and takes its time")
	}
	f := tier.box(t)
	t.Run("A28 three GiB are counted to the byte", func(t *testing.T) { muchOutput(t, f) })
	t.Run("A28 who writes for ever is killed at any moment", func(t *testing.T) { endlessOutput(t, f) })
	t.Run("A27 orphans leave no zombies", func(t *testing.T) { orphans(t, f) })
	t.Run("B13 many commands leave nothing", func(t *testing.T) { manyCommands(t, f) })
}

// tally counts what is written to it.
type tally struct{ bytes atomic.Int64 }

func (c *tally) Write(p []byte) (int, error) {
	c.bytes.Add(int64(len(p)))
	return len(p), nil
}

// flat fails where the test's program holds more memory at the end of do than at
// its beginning.
func flat(t *testing.T, most uint64, do func()) {
	t.Helper()
	held := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.Sys - m.HeapReleased
	}
	before := held()
	do()
	if after := held(); after > before+most {
		t.Errorf("%d bytes were held, then %d", before, after)
	}
}

func muchOutput(t *testing.T, f fixture) {
	const size = 3 << 30
	flat(t, 16<<20, func() {
		var out tally
		p, err := f.box.Start(t.Context(), sandbox.Command{Script: "head -c " + strconv.Itoa(size) + " /dev/zero", Stdout: &out})
		if err != nil {
			t.Fatal(err)
		}
		select {
		case <-p.Done():
		case <-time.After(4 * patience): // as long as a busy host needs for them
			t.Fatalf("after %d bytes it has not ended", out.bytes.Load())
		}
		if r := p.Result(); r.ExitCode != 0 || out.bytes.Load() != size {
			t.Errorf("%+v, and %d bytes", r, out.bytes.Load())
		}
	})
}

// endlessOutput kills yes when it has written nothing yet, or little, or for a
// while.
func endlessOutput(t *testing.T, f fixture) {
	flat(t, 16<<20, func() {
		for _, moment := range []int64{0, 1, 4 << 10, 64 << 10, 1 << 20, 256 << 20} {
			var out, complaint tally
			p, err := f.box.Start(t.Context(), sandbox.Command{Script: "yes; yes >&2", Stdout: &out, Stderr: &complaint})
			if err != nil {
				t.Fatal(err)
			}
			eventually(t, "it writes", func() bool { return out.bytes.Load() >= moment })
			kill(t, p)
			await(t, p.Quiet(), "a killed command can write")
			if n := f.count(); n != 0 || p.Result().Signal != "KILL" {
				t.Errorf("after %d bytes: %+v, %d processes live", moment, p.Result(), n)
			}
		}
	})
}

func orphans(t *testing.T, f fixture) {
	for _, script := range []string{
		"for i in $(seq 500); do (sleep 0 &); done",
		// A box may have some hundreds at one time.
		"for i in $(seq 1000); do sh -c 'sleep .1 &'; ((i % 200)) || sleep .2; done",
	} {
		if r := f.script(script); r.ExitCode != 0 || r.stderr != "" {
			t.Errorf("%s: %+v", script, r)
		}
		eventually(t, "all are gone, and waited for", func() bool { return f.count() == 0 && zombies() == 0 })
	}
}

// zombies counts the processes below this one that nobody has waited for.
func zombies() int {
	parents, states := map[string]string{}, map[string]string{}
	paths, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is well-formed
	for _, path := range paths {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it is gone
		}
		// The name, in parentheses, may hold anything.
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		pid := filepath.Base(filepath.Dir(path))
		states[pid], parents[pid] = fields[0], fields[1]
	}
	n, own := 0, strconv.Itoa(os.Getpid())
	for pid, state := range states {
		if state != "Z" {
			continue
		}
		for p := parents[pid]; p != ""; p = parents[p] {
			if p == own {
				n++
				break
			}
		}
	}
	return n
}

func manyCommands(t *testing.T, f fixture) {
	many := func(n int) {
		for range n {
			if r := f.run(sandbox.Command{Argv: []string{"true"}}); r.ExitCode != 0 {
				t.Fatalf("got %+v", r)
			}
		}
	}
	// A box keeps the cgroups of eight commands for the next ones; how many it has
	// after some is by chance.
	const kept = 8 * 9
	many(50)
	routines, files := runtime.NumGoroutine(), descriptors(t)
	flat(t, 16<<20, func() { many(require.Rounds(t, 1000)) })
	eventually(t, "goroutines and descriptors are as many as before", func() bool {
		return runtime.NumGoroutine() <= routines+2 && descriptors(t) <= files+kept
	})
	if n := f.count(); n != 0 {
		t.Errorf("%d processes live", n)
	}
}

func descriptors(t *testing.T) int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
