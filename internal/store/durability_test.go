package store

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"envapi/core"
)

// commitAndPrintEnv has the test binary be commitAndPrint on this file.
const commitAndPrintEnv = "ENVAPI_TEST_COMMIT_AND_PRINT"

// commitAndPrint is started by TestKill9, which kills it. Each line that it
// prints names what was answered.
func commitAndPrint(path string) {
	ctx := context.Background()
	s, err := Open(ctx, path)
	for i := 0; err == nil; i++ {
		e, c := fmt.Sprint("env_", i), fmt.Sprint("cmd_", i)
		_, _, err = s.CreateEnvironment(ctx, env(alice, e), plenty, core.UIDRange{First: 1, End: 1 << 20}, key(e, "f"))
		if err == nil {
			fmt.Println("environment", e)
			_, _, _, err = s.CreateCommand(ctx, cmd(alice, e, c), 1, key(c, "f"))
		}
		if err == nil {
			fmt.Println("command", c)
			err = s.FinishCommand(ctx, c, exited(i))
		}
		if err == nil {
			fmt.Println("end", c, i)
		}
	}
	fmt.Println("error", err)
	os.Exit(1)
}

func TestKill9LosesNothingThatWasAnswered(t *testing.T) {
	path := filepath.Join(t.TempDir(), "envapi.db")
	for round := range 3 {
		path := fmt.Sprint(path, round)
		lines := killedAfter(t, path, 100+50*round)
		s := openAt(t, path)
		for _, line := range lines {
			checkAnswered(t, s, line)
		}
		var result string
		if err := s.reads.row(context.Background(), `PRAGMA integrity_check`).Scan(&result); err != nil || result != "ok" {
			t.Errorf("integrity: %q, %v", result, err)
		}
	}
}

// killedAfter gives what commitAndPrint had printed when it was killed, which
// was after n lines or more.
func killedAfter(t *testing.T, path string, n int) []string {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), commitAndPrintEnv+"="+path)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for scan := bufio.NewScanner(out); scan.Scan(); {
		if lines = append(lines, scan.Text()); len(lines) == n {
			if err := child.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := child.Wait(); err == nil || !strings.Contains(err.Error(), "killed") || len(lines) < n {
		t.Fatalf("it ended with %v after %q", err, lines)
	}
	return lines
}

func checkAnswered(t *testing.T, s *Store, line string) {
	t.Helper()
	ctx := context.Background()
	var what, id string
	var code int
	_, _ = fmt.Sscan(line, &what, &id, &code) // the code is in some lines only
	switch what {
	case "environment":
		e, again, err := s.CreateEnvironment(ctx, env(alice, "new"), plenty, noUIDs, key(id, "f"))
		if err != nil || !again || e.ID != id || e.HostUID == 0 {
			t.Errorf("after %q: %+v, %v, %v", line, e, again, err)
		}
	case "command":
		if _, err := s.Command(ctx, alice, id); err != nil {
			t.Errorf("after %q: %v", line, err)
		}
	case "end":
		c, err := s.Command(ctx, alice, id)
		if err != nil || c.ExitCode == nil || *c.ExitCode != code {
			t.Errorf("after %q: %+v, %v", line, c, err)
		}
	default:
		t.Errorf("it printed %q", line)
	}
}

// Within a second after the commits of commands there is one that syncs.
func TestCommandsAreFlushed(t *testing.T) {
	s := openNew(t)
	mustCreate(t, s, alice, "env_1")
	flushes := func() (n int) {
		if err := s.reads.row(context.Background(), `SELECT flushes FROM deployment`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for round := range 3 {
		before := flushes()
		mustRun(t, s, alice, "env_1", fmt.Sprint("cmd_", round))
		eventually(t, "a flush", func() bool { return flushes() > before })
	}
}
