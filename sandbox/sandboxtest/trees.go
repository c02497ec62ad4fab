package sandboxtest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"envapi/sandbox"
)

// hiding starts fifteen processes that hide from their ancestors: a session of
// their own, an empty environment, a double fork, deaf to signals.
const hiding = `
for i in 1 2 3 4 5; do
  setsid env -i sleep 301 &
  (setsid sh -c 'trap "" TERM HUP INT; env -i sleep 302 & wait' &)
done
echo started
wait; sleep 303`

// trees: a command is everything that descends from it, and nothing else.
func trees(t *testing.T, tier Tier) {
	f := tier.box(t)
	t.Run("A24 A58 D13 kill ends the whole tree, and only that", func(t *testing.T) {
		other, _, _ := f.start(sandbox.Command{Script: "sleep 300"})
		p, stdout, _ := f.start(sandbox.Command{Script: hiding})
		eventually(t, "the tree runs", func() bool { return stdout.String() == "started\n" && f.count() >= 12 })
		kill(t, p)
		if got := p.Result(); got.Signal != "KILL" {
			t.Errorf("got %+v", got)
		}
		if n := f.count(); n != 1 {
			t.Errorf("%d processes are left, not the other one alone", n)
		}
		select {
		case <-other.Done():
			t.Error("another command was ended")
		default:
		}
		kill(t, other)
	})
	t.Run("a runaway forker cannot outrun a kill", func(t *testing.T) {
		// Where the tier has no limit of processes, this one spares a busy host.
		p, _, _ := f.start(sandbox.Command{Script: "ulimit -u 2000 2>/dev/null; f() { sleep 300 & f & wait; }; f"})
		eventually(t, "it forks", func() bool { return f.count() > 100 })
		kill(t, p)
		if n := f.count(); n != 0 {
			t.Errorf("%d processes are left", n)
		}
	})
	t.Run("B15 a kill after the end is no error", func(t *testing.T) {
		p, _, _ := f.start(sandbox.Command{Script: "exit 4"})
		await(t, p.Done(), "it did not end")
		kill(t, p)
		if err := p.Signal(t.Context(), "TERM"); err != nil || p.Result().ExitCode != 4 {
			t.Errorf("got %v %+v", err, p.Result())
		}
	})
	t.Run("a signal reaches every process of the tree", func(t *testing.T) { signalTree(t, f) })
	t.Run("a command that kills its reaper ends with it", func(t *testing.T) {
		got := f.script("sleep 300 & setsid sleep 300 & kill -9 $PPID; sleep 300")
		if got.Signal != "KILL" {
			t.Errorf("got %+v", got)
		}
		eventually(t, "its children are gone", func() bool { return f.count() == 0 })
	})
	t.Run("a command that stops its reaper can be killed", func(t *testing.T) {
		p, stdout, _ := f.start(sandbox.Command{Script: "kill -STOP $PPID; echo stopped; sleep 300"})
		eventually(t, "it is stopped", func() bool { return stdout.String() != "" })
		kill(t, p)
	})
}

func signalTree(t *testing.T, f fixture) {
	p, stdout, _ := f.start(sandbox.Command{Script: `
		child() { trap "echo got $1; exit 0" USR1; echo ready; while :; do sleep 0.05; done; }
		child 1 & (child 2 &) ; setsid bash -c "$(declare -f child); child 3" &
		trap "echo got 0" USR1; echo ready; wait; wait; sleep 0.1 & wait; exit 9`})
	eventually(t, "all are ready", func() bool { return strings.Count(stdout.String(), "ready") == 4 })
	if err := p.Signal(t.Context(), "USR1"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all have got it", func() bool { return strings.Count(stdout.String(), "got") == 4 })
	if err := p.Signal(t.Context(), "NOSUCH"); err == nil {
		t.Error("a signal of no name was sent")
	}
	kill(t, p)
}

func (f fixture) count() int {
	usage, err := f.box.Usage(context.WithoutCancel(f.t.Context()))
	if err != nil {
		f.t.Fatal(err)
	}
	return usage.Processes
}

func kill(t *testing.T, p sandbox.Process) {
	t.Helper()
	if err := p.Kill(t.Context()); err != nil {
		t.Fatalf("cannot kill: %v", err)
	}
	select {
	case <-p.Done():
	default:
		t.Error("a killed command is not done")
	}
}

// ends: with a box all is gone, however it ends.
func ends(t *testing.T, tier Tier) {
	t.Run("A23 close ends background processes", func(t *testing.T) {
		f := tier.box(t)
		running, _, _ := f.start(sandbox.Command{Script: "sleep 300"})
		f.script("nohup setsid sh -c 'while :; do echo alive >>beat; sleep 0.01; done' >/dev/null 2>&1 &")
		beats := func() int64 {
			info, err := os.Stat(filepath.Join(f.workspace, "beat"))
			if err != nil {
				return 0
			}
			return info.Size()
		}
		eventually(t, "the background lives", func() bool { return beats() > 0 })
		if err := f.box.Close(); err != nil {
			t.Fatal(err)
		}
		last := beats()
		await(t, running.Done(), "a closed box leaves a command running")
		if r := running.Result(); !r.Lost && r.Signal != "KILL" {
			t.Errorf("got %+v", running.Result())
		}
		time.Sleep(50 * time.Millisecond) // five beats of what would have to be dead
		if beats() != last {
			t.Error("the background lives on")
		}
	})
	t.Run("D13 however much resists, every command becomes quiet", func(t *testing.T) {
		for range 10 { // reapers, leaders and orphans die in any order
			f := tier.box(t)
			var running []sandbox.Process
			for range 8 {
				p, stdout, _ := f.start(sandbox.Command{Script: hiding})
				eventually(t, "the tree runs", func() bool { return stdout.String() != "" })
				running = append(running, p)
			}
			f.script("sleep 300 & exit 3")
			if err := f.box.Close(); err != nil {
				t.Fatal(err)
			}
			for _, p := range running {
				await(t, p.Quiet(), "a command of a closed box is not quiet")
			}
		}
	})
	t.Run("a closed box refuses", func(t *testing.T) {
		f := tier.box(t)
		if err := f.box.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := f.box.Start(t.Context(), sandbox.Command{Script: "true", Stdout: &capture{}}); !errors.Is(err, sandbox.ErrBoxClosed) {
			t.Errorf("got %v", err)
		}
		if _, err := f.box.Usage(t.Context()); !errors.Is(err, sandbox.ErrBoxClosed) {
			t.Errorf("got %v", err)
		}
	})
}
