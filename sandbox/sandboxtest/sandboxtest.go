// Package sandboxtest is the suite that every tier runs: what a box does, and
// what it holds. A tier's test calls Conform with what the tier promises.
//
// It is for tests only. It does not prove the absence of escapes; it proves
// that the controls which a tier names are on.
package sandboxtest

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"envapi/sandbox"
)

// patience bounds every wait of the suite; it is reached only by a failure.
const patience = 2 * time.Minute // a compiler on a machine that others keep busy takes half of it

// Tier is a tier under test.
type Tier struct {
	// Open makes a box with the workspace, which the suite made.
	Open func(ctx context.Context, spec sandbox.Spec) (sandbox.Box, error)
	// WorkspacePath is the workspace as commands see it, from the host's path.
	WorkspacePath func(path string) string
	// UID is the host uid to give to boxes; 0 where the tier takes none.
	UID int
	// OtherUID is the host uid of a box beside it, where two cannot have the same.
	OtherUID int
	// Namespaces is true where a box has a process tree and a network of its
	// own.
	Namespaces bool
	// Confined is true where commands cannot touch the host's files.
	Confined bool
}

// Conform runs the suite.
func Conform(t *testing.T, tier Tier) {
	for _, suite := range []struct {
		name string
		run  func(*testing.T, Tier)
	}{
		{"results", results},
		{"streams", streams},
		{"terminals", terminals},
		{"inputs", inputs},
		{"trees", trees},
		{"processes", processes},
		{"holds", holds},
		{"shells", shells},
		{"programs", programs},
		{"ends", ends},
		{"floods", floods},
		{"idle shells", idleShells},
		{"prompts", prompts},
		{"agreement", agreement},
		{"attacks", attacks},
		{"D7 D9 neighbours", neighbours},
		{"D3 a hostile workspace", hostileWorkspace},
	} {
		t.Run(suite.name, func(t *testing.T) { suite.run(t, tier) })
	}
}

// fixture is a box of its own with its workspace.
type fixture struct {
	t         *testing.T
	box       sandbox.Box
	workspace string // on the host
	inside    string // as commands see it
	uid       int    // whose it is, where it is not the test's
}

// other is the tier for a box beside the first.
func (tier Tier) other() Tier {
	if tier.OtherUID != 0 {
		tier.UID = tier.OtherUID
	}
	return tier
}

func (tier Tier) box(t *testing.T) fixture {
	t.Helper()
	return tier.boxOf(t, sandbox.Limits{Processes: 512})
}

func (tier Tier) boxOf(t *testing.T, l sandbox.Limits) fixture {
	t.Helper()
	f := fixture{t: t, workspace: Workspace(t, tier.UID), uid: tier.UID}
	f.inside = tier.WorkspacePath(f.workspace)
	box, err := tier.Open(t.Context(), sandbox.Spec{ID: "test", Workspace: f.workspace, UID: tier.UID, Limits: l})
	if err != nil {
		t.Fatalf("cannot open a box: %v", err)
	}
	f.box = box
	t.Cleanup(func() {
		if err := box.Close(); err != nil {
			t.Errorf("cannot close the box: %v", err)
		}
	})
	return f
}

// outcome is what a command left.
type outcome struct {
	sandbox.Result
	stdout, stderr string
}

// capture is a writer that can be read at any time.
type capture struct {
	mu   sync.Mutex
	data bytes.Buffer
}

func (c *capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.data.Write(p)
}

func (c *capture) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.data.String()
}

// start starts a command and gives its captured streams.
func (f fixture) start(c sandbox.Command) (p sandbox.Process, stdout, stderr *capture) {
	f.t.Helper()
	stdout, stderr = &capture{}, &capture{}
	c.Stdout, c.Stderr = stdout, stderr
	p, err := f.box.Start(f.t.Context(), c)
	if err != nil {
		f.t.Fatalf("cannot start %q: %v", c.Script, err)
	}
	return p, stdout, stderr
}

// run runs a command to its end.
func (f fixture) run(c sandbox.Command) outcome {
	f.t.Helper()
	p, stdout, stderr := f.start(c)
	await(f.t, p.Done(), "the command did not end: "+c.Script)
	return outcome{p.Result(), stdout.String(), stderr.String()}
}

func (f fixture) script(script string) outcome {
	f.t.Helper()
	return f.run(sandbox.Command{Script: script})
}

// input is a standard input.
func input(s string) io.Reader { return strings.NewReader(s) }

func await(t *testing.T, done <-chan struct{}, failure string) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatal(failure)
	}
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatalf("it did not come to be: %s", what)
}
