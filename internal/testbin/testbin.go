// Package testbin gives tests the programs of this module. They come ready
// from the folder that ENVAPI_TEST_BIN names, or are built once a process.
//
// It does not check that ready ones are of this source: who sets the variable
// has just built them.
package testbin

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

// Variable names the environment variable with the folder of ready programs.
const Variable = "ENVAPI_TEST_BIN"

// WithFaults names the envapi-http that is built with the tag "faults".
const WithFaults = "envapi-http-faults"

// packages says where the source of each program is.
var packages = map[string]string{
	"envapi-http": "./cmd/envapi-http",
	// The same, which a test can kill or fail at a step; see package faults.
	WithFaults:    "./cmd/envapi-http",
	"envapi-mcp":  "./cmd/envapi-mcp",
	"envapi-init": "./cmd/envapi-init",
	"attacker":    "./sandbox/attack/attacker",
	"devkeyring":  "./scripts/devkeyring",
	"smoke":       "./scripts/smoke",
}

var (
	mu     sync.Mutex
	folder string               // of the programs built by this process
	built  = map[string]error{} // by name
)

// Run runs the tests of a package and removes what was built for them; it
// gives the exit code for TestMain.
func Run(m *testing.M) int {
	defer func() {
		mu.Lock()
		defer mu.Unlock()
		if folder != "" {
			_ = os.RemoveAll(folder)
			folder, built = "", map[string]error{}
		}
	}()
	return m.Run()
}

// Tests are the tests of a package, with Run as the method that goleak.VerifyTestMain
// calls.
type Tests struct{ M *testing.M }

// Run runs them.
func (t Tests) Run() int { return Run(t.M) }

// Path gives the path of a program, for example "envapi-http".
func Path(t testing.TB, name string) string {
	t.Helper()
	if dir := os.Getenv(Variable); dir != "" {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err != nil {
			t.Fatalf("cannot find a program that %s promises: %v", Variable, err)
		}
		return path
	}
	path, err := build(name)
	if err != nil {
		t.Fatalf("cannot build %s: %v", name, err)
	}
	return path
}

// Init gives the path of the box init, the program that a sandbox starts as
// process 1.
func Init(t testing.TB) string {
	t.Helper()
	return Path(t, "envapi-init")
}

// UIDRange gives an ENVAPI_UID_RANGE that no other service has, of this process
// or another one's tests: a service is refused what another has. As an ordinary
// user it is "", which is the default: there are none.
func UIDRange() string {
	if os.Geteuid() != 0 {
		return ""
	}
	first := 100_000_000 + os.Getpid()%10_000*100_000 + int(uidRanges.Add(1))*200
	return fmt.Sprintf("%d-%d", first, first+199)
}

var uidRanges atomic.Int32

// build builds a program, once.
func build(name string) (string, error) {
	mu.Lock()
	defer mu.Unlock()
	if folder == "" {
		dir, err := os.MkdirTemp("", "envapi-testbin-")
		if err != nil {
			return "", err
		}
		folder = dir
	}
	err, done := built[name]
	if !done {
		err = compile(name)
		built[name] = err
	}
	return filepath.Join(folder, name), err
}

// compile builds a program into folder: static, as it is shipped, also where
// the tests run with -race. The services carry the box init inside; they get
// one of this source, and the checkout is left as it is.
func compile(name string) error {
	source, known := packages[name]
	if !known {
		return fmt.Errorf("no program of this module is called %q", name)
	}
	dir, err := root()
	if err != nil {
		return err
	}
	args := []string{"build", "-trimpath", "-o", filepath.Join(folder, name)}
	if name == WithFaults {
		args = append(args, "-tags", "faults")
	}
	if name == "envapi-http" || name == "envapi-mcp" || name == WithFaults {
		overlay, err := embedInit(dir)
		if err != nil {
			return err
		}
		args = append(args, "-overlay", overlay)
	}
	cmd := exec.Command("go", append(args, source)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// embedInit builds the box init and gives a go overlay that puts it where the
// services embed it from.
func embedInit(dir string) (string, error) {
	if err := compile("envapi-init"); err != nil {
		return "", err
	}
	replace := map[string]string{
		filepath.Join(dir, "sandbox", "initbin", "envapi-init"): filepath.Join(folder, "envapi-init"),
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(folder, "overlay.json")
	return path, os.WriteFile(path, data, 0o600)
}

// root is the module's folder: the nearest above the test's own with a go.mod.
func root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod here or above")
		}
		dir = parent
	}
}
