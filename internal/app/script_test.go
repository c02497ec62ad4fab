package app

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"envapi/internal/testbin"
)

// TestScripts runs the real programs, as testdata/script/*.txt says.
func TestScripts(t *testing.T) {
	bin := filepath.Dir(testbin.Path(t, "envapi-http"))
	testbin.Path(t, "envapi-mcp")
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("PATH", bin+string(filepath.ListSeparator)+e.Getenv("PATH"))
			e.Setenv("ENVAPI_ADDR", "127.0.0.1:0")
			e.Setenv("ENVAPI_DATA_DIR", filepath.Join(e.WorkDir, "data"))
			e.Setenv("ENVAPI_UID_RANGE", testbin.UIDRange())
			e.Setenv("ENVAPI_STOP_GRACE_MS", "0")
			return nil
		},
		Condition: func(condition string) (bool, error) {
			if condition != "root" {
				return false, errors.New("there is no condition " + condition)
			}
			return os.Geteuid() == 0, nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"await": await, "mode": mode, "setenvfrom": setenvFrom, "terminate": terminate},
	})
}

// await waits until a file matches a pattern: await FILE PATTERN.
func await(ts *testscript.TestScript, _ bool, args []string) {
	pattern := regexp.MustCompile(args[1])
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if text, err := os.ReadFile(ts.MkAbs(args[0])); err == nil && pattern.Match(text) {
			return
		}
	}
	ts.Fatalf("%s does not match %q within 30 s", args[0], args[1])
}

// mode checks the permissions of a file: mode FILE -rw-------.
func mode(ts *testscript.TestScript, _ bool, args []string) {
	info, err := os.Stat(ts.MkAbs(args[0]))
	ts.Check(err)
	if got := info.Mode().String(); got != args[1] {
		ts.Fatalf("%s has the mode %s", args[0], got)
	}
}

// setenvFrom sets a variable from a file: setenvfrom NAME FILE PATTERN, whose
// first group is the value.
func setenvFrom(ts *testscript.TestScript, _ bool, args []string) {
	found := regexp.MustCompile(args[2]).FindStringSubmatch(ts.ReadFile(args[1]))
	if found == nil {
		ts.Check(errors.New("no match in " + args[1]))
	}
	ts.Setenv(args[0], strings.TrimSpace(found[1]))
}

// terminate sends a signal to the process that a lock file names:
// terminate FILE TERM or HUP.
func terminate(ts *testscript.TestScript, _ bool, args []string) {
	signals := map[string]syscall.Signal{"TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP}
	var holder struct{ PID int }
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &holder))
	ts.Check(syscall.Kill(holder.PID, signals[args[1]]))
}
