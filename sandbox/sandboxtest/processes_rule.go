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
	p, stdout, _ := f.start(sandbox.Command{Script: `bash -c '` + trapping + `' child child & bash -c '` + trapping + `' other other & wait; wait`})
	eventually(t, "both are ready", func() bool { return strings.Count(stdout.String(), "ready") == 2 })
	var child sandbox.ProcessInfo
	for _, p := range f.list(t) {
		if strings.HasSuffix(p.Command, " child child") {
			child = p
		}
	}
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
	all := f.list(t)
	i := slices.IndexFunc(all, func(p sandbox.ProcessInfo) bool {
		return strings.HasSuffix(p.Command, ":  top") || strings.HasSuffix(p.Command, " top")
	})
	f.signal(t, ref(all[i]), "KILL", true, len(all)-2)
	eventually(t, "the shell has waited for what ended", func() bool { // a zombie has ended too
		left := slices.DeleteFunc(f.list(t), func(p sandbox.ProcessInfo) bool { return p.State == sandbox.ProcessZombie })
		return len(left) == 2 && slices.ContainsFunc(left, func(p sandbox.ProcessInfo) bool { return p.Command == "sleep 412" })
	})
	kill(t, p)
}

func forkerKilled(t *testing.T, tier Tier) {
	f := tier.boxOf(t, sandbox.Limits{Processes: 3000})
	// At the limit a bash that cannot fork ends, and what it has started leaves the tree.
	p, stdout, _ := f.start(sandbox.Command{Script: `bash -c 'f() { sleep 300 & f & wait; }; f' & echo $!; wait; sleep 421`})
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

func waited(t *testing.T, f fixture) {
	for _, c := range []struct {
		name, script, command string
		parent                bool // the one that has started it is waited for
		signal                string
		want                  sandbox.ProcessEnd
	}{
		{"killed", "sleep 461 & wait; sleep 462", "sleep 461", false, "KILL", killedByUs},
		{"terminated", "sleep 461 & wait; sleep 462", "sleep 461", false, "TERM", sandbox.ProcessEnd{Known: true, Signal: "TERM"}},
		{"exited", "(sleep 461; exit 5) & wait; sleep 462", "sleep 461", true, "TERM", exited(5)},
		{"an orphan", "(setsid sh -c 'sleep 461; exit 6' &); sleep 462", "sleep 461", true, "TERM", exited(6)},
		{"a leader", "sleep 461; exit 7", "sleep 461", true, "TERM", exited(7)},
		{"a killed leader", "exec sleep 461", "sleep 461", false, "KILL", killedByUs},
	} {
		t.Run(c.name, func(t *testing.T) {
			eventually(t, "it was waited for before it ended", func() bool {
				p, _, _ := f.start(sandbox.Command{Script: c.script})
				defer kill(t, p)
				sleep := f.find(t, c.command)
				r := ref(sleep)
				if c.parent {
					r = sandbox.ProcessRef{PID: sleep.PPID}
				}
				end, err := f.waitWhile(t, r, func() { f.signal(t, ref(sleep), c.signal, false, 1) })
				if err == nil && end != c.want {
					t.Errorf("got %+v, want %+v", end, c.want)
				}
				return err == nil
			})
		})
	}
}

// waitWhile waits for an end while something is done to bring it. Where that came
// first, it fails with sandbox.ErrNoProcess.
func (f fixture) waitWhile(t *testing.T, r sandbox.ProcessRef, do func()) (sandbox.ProcessEnd, error) {
	t.Helper()
	type result struct {
		end sandbox.ProcessEnd
		err error
	}
	results, begun := make(chan result, 1), make(chan struct{})
	go func() {
		close(begun)
		end, err := f.box.WaitProcess(t.Context(), r)
		results <- result{end, err}
	}()
	<-begun
	do()
	select {
	case got := <-results:
		if got.err != nil && !errors.Is(got.err, sandbox.ErrNoProcess) && !errors.Is(got.err, sandbox.ErrBoxClosed) {
			t.Fatalf("cannot wait: %v", got.err)
		}
		return got.end, got.err
	case <-time.After(patience):
		t.Fatal("the end is not told")
		panic("unreachable")
	}
}

func waitedZombie(t *testing.T, f fixture) {
	f.needsPython(t)
	p, _, _ := f.start(sandbox.Command{Argv: []string{"python3", "-c", `
import os, time
if os.fork() == 0: os._exit(9)
time.sleep(471)`}})
	var zombie sandbox.ProcessInfo
	eventually(t, "there is a zombie", func() bool {
		all := f.list(t)
		i := slices.IndexFunc(all, func(p sandbox.ProcessInfo) bool { return p.State == sandbox.ProcessZombie })
		if i >= 0 {
			zombie = all[i]
		}
		return i >= 0
	})
	f.wait(t, ref(zombie), exited(9))
	f.signal(t, ref(zombie), "KILL", false, 0)
	f.signal(t, ref(zombie), "KILL", true, 0)
	kill(t, p)
}

func threadsAreNone(t *testing.T, f fixture) {
	f.needsPython(t)
	p, stdout, _ := f.start(sandbox.Command{Argv: []string{"python3", "-c", `
import ctypes, os, threading, time
def run():
    print(threading.get_native_id(), flush=True)
    while not os.path.exists("go"): time.sleep(0.01)
    os._exit(11)
threading.Thread(target=run).start()
ctypes.CDLL(None).pthread_exit(None)`}})
	eventually(t, "it runs", func() bool { return strings.HasSuffix(stdout.String(), "\n") })
	tid, err := strconv.Atoi(strings.TrimSpace(stdout.String()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.box.SignalProcess(t.Context(), sandbox.ProcessRef{PID: tid}, "KILL", false); !errors.Is(err, sandbox.ErrNoProcess) {
		t.Errorf("a thread: got %v", err)
	}
	process := f.list(t)[0]
	end, err := f.waitWhile(t, ref(process), func() {
		_, _ = f.box.WaitProcess(t.Context(), sandbox.ProcessRef{PID: 1 << 21}) // the first is on its way
		f.script(": >go")
	})
	if err != nil || end != exited(11) {
		t.Errorf("got %+v, %v", end, err)
	}
	await(t, p.Done(), "it did not end")
}

func waitCancelled(t *testing.T, f fixture) {
	p, _, _ := f.start(sandbox.Command{Script: "exec sleep 481"})
	sleep := f.find(t, "sleep 481")
	// More of them than can wait at one time.
	for i := range 200 {
		ctx, cancel := context.WithCancel(t.Context())
		if i%2 == 0 {
			cancel() // one that only looks
		} else {
			time.AfterFunc(time.Millisecond, cancel)
		}
		if _, err := f.box.WaitProcess(ctx, ref(sleep)); !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v", err)
		}
		cancel()
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.box.WaitProcess(ctx, sandbox.ProcessRef{PID: 1 << 21}); !errors.Is(err, sandbox.ErrNoProcess) {
		t.Errorf("a look at nothing: got %v", err)
	}
	kill(t, p)
}

func manyWaits(t *testing.T, f fixture) {
	p, _, _ := f.start(sandbox.Command{Script: "exec sleep 491"})
	sleep := f.find(t, "sleep 491")
	const n = 200
	results := make(chan error, n)
	for range n {
		go func() {
			_, err := f.box.WaitProcess(t.Context(), ref(sleep))
			results <- err
		}()
	}
	for range n - 128 { // the others wait
		select {
		case err := <-results:
			if !errors.Is(err, sandbox.ErrTooManyWaits) {
				t.Errorf("got %v", err)
			}
		case <-time.After(patience):
			t.Fatal("more wait than may")
		}
	}
	kill(t, p)
	for range 128 {
		if err := <-results; err != nil && !errors.Is(err, sandbox.ErrNoProcess) { // it may just have begun
			t.Errorf("got %v", err)
		}
	}
	if _, err := f.box.WaitProcess(t.Context(), ref(sleep)); !errors.Is(err, sandbox.ErrNoProcess) {
		t.Errorf("afterwards: got %v", err)
	}
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

func waitedForBox(t *testing.T, tier Tier) {
	f := tier.box(t)
	f.start(sandbox.Command{Script: "exec sleep 511"})
	sleep := f.find(t, "sleep 511")
	end, err := f.waitWhile(t, ref(sleep), func() {
		f.count()
		if err := f.box.Close(); err != nil {
			t.Fatal(err)
		}
	})
	// It may have been closed before it was known that the process was there.
	if err != nil && !errors.Is(err, sandbox.ErrBoxClosed) || end.ExitCode != 0 || end.Known && end.Signal != "KILL" {
		t.Errorf("got %+v, %v", end, err)
	}
	if _, err := f.box.WaitProcess(t.Context(), ref(sleep)); !errors.Is(err, sandbox.ErrBoxClosed) {
		t.Errorf("wait: got %v", err)
	}
	if _, err := f.box.SignalProcess(t.Context(), ref(sleep), "KILL", true); !errors.Is(err, sandbox.ErrBoxClosed) {
		t.Errorf("signal: got %v", err)
	}
}
