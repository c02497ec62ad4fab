package sandboxtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"envapi/sandbox"
	"envapi/sandbox/proctree"
)

// processesRuled: one process or a tree is signalled, and waited for, and nothing
// that is not the box's or not meant.
func processesRuled(t *testing.T, tier Tier) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, fixture)
	}{
		{"one is signalled", oneSignalled},
		{"a tree is signalled", treeSignalled},
		{"a kill of a tree ends it, and only that", treeKilled},
		{"what is stopped can be killed", stoppedKilled},
		{"what has ended cannot be signalled", endedSignalled},
		{"D20 another process with the pid is not meant", replaced},
		{"an end is waited for", waited},
		{"an end that nobody waits for inside is one", waitedZombie},
		{"threads are no processes", threadsAreNone},
		{"who waits no more lets go", waitCancelled},
		{"only so many wait", manyWaits},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, tier.box(t)) })
	}
	t.Run("a runaway forker cannot outrun a kill of its tree", func(t *testing.T) { forkerKilled(t, tier) })
	t.Run("D14 what is not of the box is nothing", func(t *testing.T) { strangers(t, tier) })
	t.Run("with the box all have ended", func(t *testing.T) { waitedForBox(t, tier) })
}

func ref(p sandbox.ProcessInfo) sandbox.ProcessRef {
	return sandbox.ProcessRef{PID: p.PID, StartedAt: p.StartedAt}
}

// signal signals, and wants so many to be reached.
func (f fixture) signal(t *testing.T, r sandbox.ProcessRef, name string, tree bool, want int) {
	t.Helper()
	if n, err := f.box.SignalProcess(t.Context(), r, name, tree); err != nil || n != want {
		t.Errorf("%s to %d: got %d, %v, want %d", name, r.PID, n, err, want)
	}
}

// wait waits for an end, and wants it to be this.
func (f fixture) wait(t *testing.T, r sandbox.ProcessRef, want sandbox.ProcessEnd) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if end, err := f.box.WaitProcess(ctx, r); err != nil || end != want {
		t.Errorf("the end of %d: got %+v, %v, want %+v", r.PID, end, err, want)
	}
}

// killedByUs and exited are ends.
var killedByUs = sandbox.ProcessEnd{Known: true, Signal: "KILL"}

func exited(code int) sandbox.ProcessEnd { return sandbox.ProcessEnd{Known: true, ExitCode: code} }

// trapping is a bash that says what it gets, and what it has.
const trapping = `trap "echo got $1; exit 7" USR1; echo ready $1; while :; do sleep 0.05; done`

func oneSignalled(t *testing.T, f fixture) {
	// Their parent is a sleep, which waits for none: how the child ended can still be
	// asked when it has.
	p, stdout, _ := f.start(sandbox.Command{Script: `bash -c '` + trapping + `' child child & bash -c '` + trapping + `' other other & exec sleep 401`})
	eventually(t, "both are ready", func() bool { return strings.Count(stdout.String(), "ready") == 2 })
	child := f.findThat(t, "it is the child", func(p sandbox.ProcessInfo) bool { return strings.HasSuffix(p.Command, " child child") })
	f.signal(t, ref(child), "USR1", false, 1)
	f.wait(t, sandbox.ProcessRef{PID: child.PID}, exited(7))
	eventually(t, "it has got it", func() bool { return strings.Contains(stdout.String(), "got child") })
	if strings.Contains(stdout.String(), "got other") {
		t.Error("another one has got it too")
	}
	if _, err := f.box.SignalProcess(t.Context(), ref(child), "NOSUCH", false); err == nil {
		t.Error("a signal of no name was sent")
	}
	kill(t, p)
}

func treeSignalled(t *testing.T, f fixture) {
	p, stdout, _ := f.start(sandbox.Command{Script: `
		child() { trap "echo got $1; exit 0" USR1; echo ready; while :; do sleep 0.05; done; }
		top() { trap "echo got top" USR1; child 1 & setsid bash -c "$(declare -f child); child 2" & echo ready; wait; wait; wait; sleep 300; }
		top & echo "<$!>"; child other & wait; wait; sleep 300`})
	eventually(t, "all are ready", func() bool { return strings.Count(stdout.String(), "ready") == 4 })
	_, after, _ := strings.Cut(stdout.String(), "<")
	top, _, _ := strings.Cut(after, ">")
	pid, err := strconv.Atoi(top)
	if err != nil {
		t.Fatal(err)
	}
	n, err := f.box.SignalProcess(t.Context(), sandbox.ProcessRef{PID: pid}, "USR1", true)
	if err != nil || n < 3 {
		t.Errorf("got %d, %v", n, err)
	}
	eventually(t, "all have got it", func() bool { return strings.Count(stdout.String(), "got") == 3 })
	if strings.Contains(stdout.String(), "got other") {
		t.Error("another one has got it too")
	}
	kill(t, p)
}

func treeKilled(t *testing.T, f fixture) {
	p, _, _ := f.start(sandbox.Command{Script: `sh -c 'sleep 411 & setsid sh -c "sleep 411 & wait" & (trap "" TERM; sleep 411; :) & wait; :' top & sleep 412; sleep 413`})
	eventually(t, "all run", func() bool {
		n := 0
		for _, p := range f.list(t) {
			if p.Command == "sleep 411" || p.Command == "sleep 412" {
				n++
			}
		}
		return n == 4
	})
	leader := leaderOf(f.list(t))
	top := f.findThat(t, "it is the top", func(p sandbox.ProcessInfo) bool {
		return strings.HasSuffix(p.Command, " top") && p.PPID == leader.PID
	})
	f.signal(t, ref(top), "KILL", true, len(f.list(t))-2)
	eventually(t, "the shell has waited for what ended", func() bool { // a zombie has ended too
		left := slices.DeleteFunc(f.list(t), func(p sandbox.ProcessInfo) bool { return p.State == sandbox.ProcessZombie })
		return len(left) == 2 && slices.ContainsFunc(left, func(p sandbox.ProcessInfo) bool { return p.Command == "sleep 412" })
	})
	kill(t, p)
}

func forkerKilled(t *testing.T, tier Tier) {
	f := tier.boxOf(t, sandbox.Limits{Processes: 3000})
	// It ends its race by itself, far below the limit: there a bash that cannot fork
	// ends, and what it has started leaves the tree.
	p, stdout, _ := f.start(sandbox.Command{Script: `bash -c 'f() { sleep 300 & (($1 < 400)) && f $(($1 + 1)) & wait; }; f 0' & echo $!; wait; sleep 421`})
	eventually(t, "it forks", func() bool { return f.count() > 100 })
	pid, err := strconv.Atoi(strings.TrimSpace(stdout.String()))
	if err != nil {
		t.Fatal(err)
	}
	n, err := f.box.SignalProcess(t.Context(), sandbox.ProcessRef{PID: pid}, "KILL", true)
	if err != nil || n < 50 {
		t.Errorf("got %d, %v", n, err)
	}
	eventually(t, "only the leader goes on", func() bool { return f.count() == 1 && f.find(t, "sleep 421").PID > 0 })
	kill(t, p)
}

func stoppedKilled(t *testing.T, f fixture) {
	p, _, _ := f.start(sandbox.Command{Script: "exec sleep 431"})
	sleep := f.find(t, "sleep 431")
	f.signal(t, ref(sleep), "STOP", false, 1)
	eventually(t, "it is stopped", func() bool { return f.find(t, "sleep 431").State == sandbox.ProcessStopped })
	f.signal(t, ref(sleep), "CONT", true, 1)
	eventually(t, "it goes on", func() bool { return f.find(t, "sleep 431").State == sandbox.ProcessSleeping })
	f.signal(t, ref(sleep), "STOP", true, 1)
	f.signal(t, ref(sleep), "KILL", false, 1)
	await(t, p.Done(), "a killed leader's command is not done")
	if r := p.Result(); r.Signal != "KILL" {
		t.Errorf("got %+v", r)
	}
}

func endedSignalled(t *testing.T, f fixture) {
	p, _, _ := f.start(sandbox.Command{Script: "exec sleep 441"})
	sleep := f.find(t, "sleep 441")
	kill(t, p)
	for _, tree := range []bool{false, true} {
		for _, name := range []string{"KILL", "TERM"} {
			if _, err := f.box.SignalProcess(t.Context(), ref(sleep), name, tree); !errors.Is(err, sandbox.ErrNoProcess) {
				t.Errorf("%s, tree %v: got %v", name, tree, err)
			}
		}
	}
	if _, err := f.box.WaitProcess(t.Context(), ref(sleep)); !errors.Is(err, sandbox.ErrNoProcess) {
		t.Errorf("its end: got %v", err)
	}
}

func replaced(t *testing.T, f fixture) {
	p, _, _ := f.start(sandbox.Command{Script: "exec sleep 451"})
	sleep := f.find(t, "sleep 451")
	for _, off := range []time.Duration{10 * time.Millisecond, -10 * time.Millisecond, time.Hour, -10 * 365 * 24 * time.Hour, 280 * 365 * 24 * time.Hour} {
		r := ref(sleep)
		r.StartedAt = r.StartedAt.Add(off)
		for _, tree := range []bool{false, true} {
			if _, err := f.box.SignalProcess(t.Context(), r, "KILL", tree); !errors.Is(err, sandbox.ErrProcessReplaced) {
				t.Errorf("%v off, tree %v: got %v", off, tree, err)
			}
		}
		look, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := f.box.WaitProcess(look, r); !errors.Is(err, sandbox.ErrProcessReplaced) {
			t.Errorf("%v off, its end: got %v", off, err)
		}
	}
	// As callers are told, who are told of milliseconds.
	told := sandbox.ProcessRef{PID: sleep.PID, StartedAt: sleep.StartedAt.UTC().Truncate(time.Millisecond)}
	f.signal(t, told, "KILL", false, 1)
	await(t, p.Done(), "it was not killed")
}

// strangers: no pid but of the box's own processes is anything.
func strangers(t *testing.T, tier Tier) {
	f, neighbour := tier.box(t), tier.other().box(t)
	p, stdout, _ := f.start(sandbox.Command{Script: "echo $PPID; exec sleep 501"})
	q, _, _ := neighbour.start(sandbox.Command{Script: "sleep 502; :"})
	r, _, _ := neighbour.start(sandbox.Command{Script: "sleep 503; :"})
	own := f.find(t, "sleep 501")
	neighbour.find(t, "sleep 503")
	reaper, err := strconv.Atoi(strings.TrimSpace(stdout.String()))
	if err != nil || reaper != own.PPID {
		t.Fatalf("its parent is %q, %v, and %+v", stdout.String(), err, own)
	}
	stranger := exec.CommandContext(t.Context(), "sleep", "504")
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stranger.Wait() }()
	defer func() { _ = stranger.Process.Kill() }()
	pids := map[string]int{
		"init of the host": 1, "the reaper": reaper, "nothing": 0, "everybody": -1, "a group": -own.PID, "the largest": math.MaxInt, "the smallest": math.MinInt,
		"one that wraps": 1<<32 + own.PID, "nobody": 1<<22 - 1, "the service": os.Getpid(), "a process of the host": stranger.Process.Pid,
	}
	init := f.initOf(t, reaper)
	pids["the init"] = init
	mine := map[int]bool{}
	for _, p := range f.list(t) {
		mine[p.PID] = true
	}
	for i, p := range neighbour.list(t) {
		pids[fmt.Sprintf("of another box %d", i)] = p.PID
	}
	for name, pid := range pids {
		if !mine[pid] { // in a pid namespace the same number
			f.nothing(t, name, pid)
		}
	}
	for _, p := range []sandbox.Process{p, q, r} {
		select {
		case <-p.Done():
			t.Error("a command was ended")
		default:
		}
	}
	if stat, err := proctree.StatOf(stranger.Process.Pid); err != nil || stat.Ended() {
		t.Errorf("a process of the host was ended: %v", err)
	}
	for _, p := range []sandbox.Process{p, q, r} {
		kill(t, p)
	}
}

// nothing: there is no process of the box with a pid.
func (f fixture) nothing(t *testing.T, name string, pid int) {
	t.Helper()
	r := sandbox.ProcessRef{PID: pid}
	for _, tree := range []bool{false, true} {
		if n, err := f.box.SignalProcess(t.Context(), r, "KILL", tree); !errors.Is(err, sandbox.ErrNoProcess) || n != 0 {
			t.Errorf("%s, tree %v: got %d, %v", name, tree, n, err)
		}
	}
	look, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.box.WaitProcess(look, r); !errors.Is(err, sandbox.ErrNoProcess) {
		t.Errorf("the end of %s: got %v", name, err)
	}
}

// initOf gives the pid of the box's init, as seen inside.
func (f fixture) initOf(t *testing.T, reaper int) int {
	t.Helper()
	got := f.script(fmt.Sprintf(`while read -r key value; do [ "$key" = PPid: ] && echo $value; done </proc/%d/status`, reaper))
	pid, err := strconv.Atoi(strings.TrimSpace(got.stdout))
	if err != nil {
		t.Fatalf("cannot tell the init: %v", got)
	}
	return pid
}
