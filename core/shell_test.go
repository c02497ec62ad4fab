package core_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"envapi/core"
	"envapi/sandbox"
)

// shellIn opens a shell of alice's.
func (w *world) shellIn(env string, change ...func(*core.OpenShellInput)) core.Shell {
	w.t.Helper()
	in := core.OpenShellInput{EnvironmentID: env}
	for _, c := range change {
		c(&in)
	}
	sh, err := w.OpenShell(context.Background(), alice, in)
	must(w.t, err)
	return sh
}

func asTerminal(in *core.OpenShellInput) { in.Kind = "terminal" }

// inShell runs a script of the fake sandbox in a shell.
func (w *world) inShell(id, script string, change ...func(*core.RunInShellInput)) core.Command {
	w.t.Helper()
	c, err := w.RunInShell(context.Background(), alice, runInput(id, script, change...))
	must(w.t, err)
	return c
}

func runInput(id, script string, change ...func(*core.RunInShellInput)) core.RunInShellInput {
	in := core.RunInShellInput{ShellRef: core.ShellRef{ShellID: id}, Command: script}
	for _, c := range change {
		c(&in)
	}
	return in
}

func atOnce(in *core.RunInShellInput) { in.WaitMS = ptr(int64(0)) }
func queued(in *core.RunInShellInput) { in.Queue, in.WaitMS = true, ptr(int64(0)) }

func timeout(ms int64) func(*core.RunInShellInput) {
	return func(in *core.RunInShellInput) { in.TimeoutMS = &ms }
}

func (w *world) shell(id string) core.Shell {
	w.t.Helper()
	sh, err := w.GetShell(context.Background(), alice, core.ShellRef{ShellID: id})
	must(w.t, err)
	return sh
}

func (w *world) closeShell(id string, keep bool) core.Shell {
	w.t.Helper()
	sh, err := w.CloseShell(context.Background(), alice, core.CloseShellInput{ShellRef: core.ShellRef{ShellID: id}, KeepBackground: keep})
	must(w.t, err)
	return sh
}

// fakeShell gives the n-th shell that was opened.
func (w *world) fakeShell(n int) *fakeShell {
	w.host.mu.Lock()
	defer w.host.mu.Unlock()
	return w.host.shells[n]
}

// wantClosed fails unless a use of the shell says that it is closed, and why.
func (w *world) wantClosed(id, reason string) {
	w.t.Helper()
	_, err := w.RunInShell(context.Background(), alice, runInput(id, "exit 0"))
	if e := wantCode(w.t, err, core.CodeShellClosed); e.Facts["reason"] != reason {
		w.t.Fatalf("got the reason %v, want %s", e.Facts["reason"], reason)
	}
	if sh := w.shell(id); sh.State != core.ShellClosed || sh.CloseReason != reason || sh.ClosedAt == nil || sh.WaitingForInput == nil || *sh.WaitingForInput {
		w.t.Fatalf("got %+v", sh)
	}
}

func TestAShellIsShownAsItIs(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	sh := w.shellIn(env.ID, func(in *core.OpenShellInput) {
		in.Name, in.Cols, in.Cwd, in.Env = "work", ptr(100), "sub", map[string]string{"A": "1"}
	})
	if !strings.HasPrefix(sh.ID, "sh_") || sh.Name != "work" || sh.Kind != core.ShellCommand || sh.State != core.ShellOpen ||
		sh.Cols != 100 || sh.Rows != 24 || sh.Cwd != "/workspace/sub" || sh.WaitingForInput == nil || *sh.WaitingForInput || !strings.Contains(sh.Next, "run_in_shell") {
		t.Fatalf("got %+v", sh)
	}
	spec := w.fakeShell(0).spec
	if spec.Interactive || spec.Dir != "/workspace/sub" || spec.Size != (sandbox.Size{Cols: 100, Rows: 24}) || spec.Env["A"] != "1" {
		t.Fatalf("the sandbox got %+v", spec)
	}
	if got, err := w.GetEnvironment(t.Context(), alice, core.EnvironmentRef{EnvironmentID: env.ID}); err != nil || *got.Usage.Shells.Used != 1 || *got.Usage.Shells.Allowed != 3 {
		t.Fatalf("got %+v, %v", got.Usage.Shells, err)
	}

	c := w.inShell(sh.ID, "cd /elsewhere")
	if c.ShellID != sh.ID || c.Cwd != "/elsewhere" || outcomeOf(c) != "exited 0" || c.ShellClosed {
		t.Fatalf("got %+v", c)
	}
	running := w.inShell(sh.ID, "wait", atOnce)
	if got := w.shell(sh.ID); got.RunningCommandID != running.ID || got.Cwd != "/elsewhere" || running.Cwd != "/elsewhere" {
		t.Fatalf("got %+v, %+v", got, running)
	}
	w.signal(running.ID, "KILL")
	if closed := w.closeShell(sh.ID, false); closed.CloseReason != core.CloseByCaller || closed.Cwd != "/elsewhere" {
		t.Fatalf("got %+v", closed)
	}
	w.wantClosed(sh.ID, core.CloseByCaller)
	if again := w.closeShell(sh.ID, false); again.CloseReason != core.CloseByCaller {
		t.Fatalf("closed again: %+v", again)
	}
	w.restart()
	w.wantClosed(sh.ID, core.CloseByCaller)
}

func TestShellsAreTheirOwnersAlone(t *testing.T) {
	w := newWorld(t)
	sh := w.shellIn(w.create().ID)
	ref := core.ShellRef{ShellID: sh.ID}
	ctx := t.Context()
	for name, call := range map[string]func() error{
		"get": func() error { _, err := w.GetShell(ctx, bob, ref); return err },
		"run": func() error { _, err := w.RunInShell(ctx, bob, runInput(sh.ID, "exit 0")); return err },
		"write": func() error {
			_, err := w.WriteShell(ctx, bob, core.WriteShellInput{ShellRef: ref, Data: "x"})
			return err
		},
		"read":  func() error { _, err := w.ReadShell(ctx, bob, core.ReadShellInput{ShellRef: ref}); return err },
		"close": func() error { _, err := w.CloseShell(ctx, bob, core.CloseShellInput{ShellRef: ref}); return err },
		"list":  func() error { _, err := w.ListCommands(ctx, bob, core.ListCommandsInput{ShellID: sh.ID}); return err },
		"open": func() error {
			_, err := w.OpenShell(ctx, bob, core.OpenShellInput{EnvironmentID: sh.EnvironmentID})
			return err
		},
		"shells": func() error {
			_, err := w.ListShells(ctx, bob, core.ListShellsInput{EnvironmentID: sh.EnvironmentID})
			return err
		},
		"resize": func() error {
			_, err := w.ResizeShell(ctx, bob, core.ResizeShellInput{ShellRef: ref, TerminalSize: core.TerminalSize{Cols: 1, Rows: 1}})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) { wantCode(t, call(), core.CodeNotFound) })
	}
	if page, err := w.ListShells(ctx, bob, core.ListShellsInput{}); err != nil || len(page.Items) != 0 {
		t.Fatalf("bob sees %v, %v", page, err)
	}
}

func TestWhatNoShellCanBeMadeOf(t *testing.T) {
	w := newWorld(t)
	env := w.create().ID
	for field, change := range map[string]func(*core.OpenShellInput){
		"kind": func(in *core.OpenShellInput) { in.Kind = "fish" },
		"cols": func(in *core.OpenShellInput) { in.Cols = ptr(0) },
		"rows": func(in *core.OpenShellInput) { in.Rows = ptr(1001) },
		"name": func(in *core.OpenShellInput) { in.Name = "a\nb" },
		"env":  func(in *core.OpenShellInput) { in.Env = map[string]string{"=": ""} },
		"cwd":  func(in *core.OpenShellInput) { in.Cwd = "/nowhere" },
	} {
		t.Run(field, func(t *testing.T) {
			in := core.OpenShellInput{EnvironmentID: env}
			change(&in)
			_, err := w.OpenShell(t.Context(), alice, in)
			wantField(t, err, field)
		})
	}
	if page, err := w.ListShells(t.Context(), alice, core.ListShellsInput{}); err != nil || len(page.Items) != 0 {
		t.Fatalf("a shell was left: %v, %v", page, err)
	}
	w.wantWhole()
}

func TestTheEndOfAShellIsWhatTheSystemSaid(t *testing.T) {
	for _, test := range []struct {
		name, script string
		do           func(w *world, c core.Command)
		command      string
		reason       string
		end          string // exit code or signal of bash
	}{
		{"A4 exit", "quit 5", nil, "exited 5", "exited", "5"},
		{"A55 kill -9 $$", "suicide", nil, "signaled KILL", "exited", "KILL"},
		{"A55 it cannot say how it ended", "corrupt", nil, "killed shell_closed", "corrupt", ""},
		{"a timeout from which bash does not come back", "deaf", nil, "timed_out", "timed_out", ""},
		{"a kill from which bash does not come back", "deaf", func(w *world, c core.Command) { w.signal(c.ID, "KILL") }, "killed signal", "killed", ""},
		{"close", "wait", func(w *world, c core.Command) { w.closeShell(c.ShellID, false) }, "killed shell_closed", "closed", ""},
		{"close, but for the background", "wait", func(w *world, c core.Command) { w.closeShell(c.ShellID, true) }, "killed shell_closed", "closed", ""},
		{"reset", "wait", func(w *world, c core.Command) { w.reset(c.EnvironmentID) }, "killed environment_reset", "environment_reset", ""},
		{"box gone", "wait", func(w *world, _ core.Command) { must(w.t, w.host.opened()[0].Close()) }, "lost sandbox_failed", "sandbox_failed", ""},
		{"stop of the service", "wait", func(w *world, _ core.Command) { w.restart() }, "lost service_stopped", "service_restarted", ""},
		{"crash of the service", "wait", func(w *world, _ core.Command) { w.crash() }, "lost service_stopped", "service_restarted", ""},
		{"bash dies by itself", "wait", func(w *world, _ core.Command) {
			p := w.fakeShell(0)
			p.now().end(sandbox.Result{Signal: "HUP", Shell: &sandbox.ShellState{Ended: true}})
			p.end(sandbox.Result{Signal: "HUP"})
		}, "signaled HUP", "exited", "HUP"},
		{"bash is killed for memory", "wait", func(w *world, _ core.Command) {
			p := w.fakeShell(0)
			p.now().end(sandbox.Result{Signal: "KILL", OutOfMemory: true, Shell: &sandbox.ShellState{Ended: true}})
			p.end(sandbox.Result{Signal: "KILL", OutOfMemory: true})
		}, "out_of_memory", "out_of_memory", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			sh := w.shellIn(w.create().ID)
			limit := int64(60_000)
			if test.command == "timed_out" {
				limit = 50
			}
			c := w.inShell(sh.ID, test.script, atOnce, timeout(limit))
			if test.do != nil {
				test.do(w, c)
			}
			got := w.await(c.ID)
			if outcomeOf(got) != test.command {
				t.Fatalf("got %+v, want %s", got, test.command)
			}
			if stopped := got.Reason == core.ReasonServiceStopped; stopped && (!got.ShellClosed || !strings.Contains(got.Next, "open_shell")) {
				t.Fatalf("got %+v", got)
			}
			w.wantClosed(sh.ID, test.reason) // no wait: who is told of the command's end finds the shell closed
			w.restart()
			w.wantClosed(sh.ID, test.reason)
			if end := endOf(w.shell(sh.ID)); end != test.end {
				t.Fatalf("bash ended by %q, want %q", end, test.end)
			}
			w.wantWhole()
		})
	}
}

func endOf(sh core.Shell) string {
	if sh.ExitCode != nil {
		return fmt.Sprint(*sh.ExitCode)
	}
	return sh.Signal
}

func TestTheAdviceOfACommandThatEndedItsShell(t *testing.T) {
	w := newWorld(t)
	env := w.create().ID
	for script, words := range map[string]string{"quit 1": "open_shell", "corrupt": "could not say", "cd gone": "directory was deleted"} {
		sh := w.shellIn(env)
		if c := w.inShell(sh.ID, script); !strings.Contains(c.Next, words) || c.ShellClosed == (script == "cd gone") {
			t.Errorf("%s: got %+v", script, c)
		}
		w.closeShell(sh.ID, false)
	}
}

func TestWhatBashLeavesIsKilled(t *testing.T) { // A3
	for _, keep := range []bool{false, true} {
		w := newWorld(t)
		sh := w.shellIn(w.create().ID)
		w.fakeShell(0).background.Store(true) // a child lives on after bash
		if !keep {
			if c := w.inShell(sh.ID, "quit 3"); outcomeOf(c) != "exited 3" || !c.ShellClosed {
				t.Fatalf("got %+v", c)
			}
		} else if got := w.closeShell(sh.ID, true); got.CloseReason != core.CloseByCaller {
			t.Fatalf("got %+v", got)
		}
		if alive := !isClosed(w.fakeShell(0).quiet); alive != keep {
			t.Fatalf("keep %v: the child lives: %v", keep, alive)
		}
		w.fakeShell(0).fallSilent()
		eventually(t, "forgotten", func() bool { runs, _, _ := w.InMemory(); return runs == 0 && w.ShellsInMemory() == 0 })
	}
}

func TestOneCommandAtATime(t *testing.T) { // A52
	w := newWorld(t)
	sh := w.shellIn(w.create().ID)
	first := w.inShell(sh.ID, "wait", atOnce)
	_, err := w.RunInShell(t.Context(), alice, runInput(sh.ID, "exit 1"))
	if e := wantCode(t, err, core.CodeShellBusy); e.Facts["command_id"] != first.ID {
		t.Fatalf("got %v", e.Facts)
	}
	second := w.inShell(sh.ID, "exit 2", queued)
	third := w.inShell(sh.ID, "exit 3", queued)
	for _, c := range []struct{ got, behind core.Command }{{second, first}, {third, second}} {
		if c.got.Status != core.CommandRunning || !strings.Contains(c.got.Next, c.behind.ID) || c.got.WaitingForInput == nil || *c.got.WaitingForInput {
			t.Fatalf("got %+v", c.got)
		}
	}
	if got := w.shell(sh.ID); got.RunningCommandID != first.ID || got.Queued != 2 {
		t.Fatalf("got %+v", got)
	}
	w.signal(first.ID, "KILL")
	if a, b := w.await(second.ID), w.await(third.ID); outcomeOf(a) != "exited 2" || outcomeOf(b) != "exited 3" || a.StartedAt.Before(second.StartedAt.Time) {
		t.Fatalf("got %+v, %+v", a, b)
	}
	w.restart()
	if got := w.await(third.ID); outcomeOf(got) != "exited 3" {
		t.Fatalf("got %+v", got)
	}
}

func TestTheLineIsServedInOrder(t *testing.T) {
	w := newWorld(t, func(w *world) { w.config.Limits.RunningCommands = 100 })
	sh := w.shellIn(w.create().ID)
	first := w.inShell(sh.ID, "wait", atOnce)
	var ids, want []string
	for i := range 50 {
		want = append(want, fmt.Sprint("exit ", i))
		ids = append(ids, w.inShell(sh.ID, want[i], queued).ID)
	}
	w.signal(first.ID, "TERM")
	for i, id := range ids {
		if got := outcomeOf(w.await(id)); got != fmt.Sprint("exited ", i) {
			t.Fatalf("%d: %s", i, got)
		}
	}
	if ran := strings.Join(w.fakeShell(0).ran[1:], ","); ran != strings.Join(want, ",") {
		t.Fatalf("ran %s", ran)
	}
}

func TestTheLineIsBoundedByTheLimitOfCommands(t *testing.T) {
	w := newWorld(t)
	sh := w.shellIn(w.create().ID)
	for range testLimits.RunningCommands {
		w.inShell(sh.ID, "wait", queued)
	}
	_, err := w.RunInShell(t.Context(), alice, runInput(sh.ID, "exit 0", queued))
	wantCode(t, err, core.CodeQuotaExceeded)
	if got := w.shell(sh.ID); got.Queued != testLimits.RunningCommands-1 {
		t.Fatalf("got %+v", got)
	}
}

func TestASignalTakesACommandOutOfTheLine(t *testing.T) {
	w := newWorld(t)
	sh := w.shellIn(w.create().ID)
	first := w.inShell(sh.ID, "wait", atOnce)
	second, third := w.inShell(sh.ID, "exit 2", queued), w.inShell(sh.ID, "exit 3", queued)
	if got := outcomeOf(w.signal(second.ID, "USR1")); got != "killed signal" {
		t.Fatalf("got %q", got)
	}
	w.signal(first.ID, "TERM")
	if got := outcomeOf(w.await(third.ID)); got != "exited 3" || len(w.fakeShell(0).ran) != 2 {
		t.Fatalf("got %q, ran %v", got, w.fakeShell(0).ran)
	}
	if got := w.shell(sh.ID); got.State != core.ShellOpen {
		t.Fatalf("got %+v", got)
	}
}

func TestTheLineEndsWithTheShell(t *testing.T) {
	for name, do := range map[string]func(w *world, sh core.Shell){
		"closed":            func(w *world, sh core.Shell) { w.closeShell(sh.ID, false) },
		"exited":            func(w *world, _ core.Shell) { w.fakeShell(0).end(sandbox.Result{}) },
		"environment_reset": func(w *world, sh core.Shell) { w.reset(sh.EnvironmentID) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			sh := w.shellIn(w.create().ID)
			first := w.inShell(sh.ID, "wait", atOnce)
			second := w.inShell(sh.ID, "exit 2", queued)
			if name == "exited" { // bash does not die without what it runs
				w.fakeShell(0).now().end(sandbox.Result{Shell: &sandbox.ShellState{Ended: true}})
			}
			do(w, sh)
			want := "killed shell_closed"
			if name == "environment_reset" {
				want = "killed environment_reset"
			}
			w.await(first.ID)
			if got := w.await(second.ID); outcomeOf(got) != want || !got.ShellClosed {
				t.Fatalf("got %+v", got)
			}
			w.wantClosed(sh.ID, name)
		})
	}
}

func TestTheTimeoutOfWhoWaitsInLineCountsFromItsTurn(t *testing.T) {
	w := newWorld(t)
	sh := w.shellIn(w.create().ID)
	first := w.inShell(sh.ID, "wait", atOnce)
	second := w.inShell(sh.ID, "wait", queued, timeout(1))
	third := w.inShell(sh.ID, "wait", queued, timeout(1))
	w.signal(first.ID, "TERM")
	for _, c := range []core.Command{second, third} {
		if got := w.await(c.ID); outcomeOf(got) != "timed_out" || got.ShellClosed {
			t.Fatalf("got %+v", got)
		}
	}
	if got := w.shell(sh.ID); got.State != core.ShellOpen {
		t.Fatalf("got %+v", got)
	}
}

func TestACommandThatCannotBeStartedInAShell(t *testing.T) {
	w := newWorld(t)
	sh := w.shellIn(w.create().ID)
	w.fakeShell(0).failRun = fmt.Errorf("no room for it")
	_, err := w.RunInShell(t.Context(), alice, runInput(sh.ID, "exit 0"))
	if err == nil || len(w.list()) != 0 {
		t.Fatalf("got %v, and %v", err, w.list())
	}
	w.fakeShell(0).failRun = nil
	first := w.inShell(sh.ID, "wait", atOnce)
	second := w.inShell(sh.ID, "exit 0", queued)
	w.fakeShell(0).shellMu.Lock()
	w.fakeShell(0).failRun = fmt.Errorf("no room for it")
	w.fakeShell(0).shellMu.Unlock()
	w.signal(first.ID, "TERM")
	if got := w.await(second.ID); outcomeOf(got) != "lost sandbox_failed" || !strings.Contains(got.Next, "run it again") {
		t.Fatalf("got %+v", got)
	}
}

func TestRunInShellIsForShellsOfKindCommand(t *testing.T) {
	w := newWorld(t)
	sh := w.shellIn(w.create().ID, asTerminal)
	_, err := w.RunInShell(t.Context(), alice, runInput(sh.ID, "exit 0"))
	wantField(t, err, "shell_id")
	_, err = w.RunInShell(t.Context(), alice, runInput(sh.ID, "a\x00b"))
	wantField(t, err, "command")
	_, err = w.RunInShell(t.Context(), alice, runInput(sh.ID, "x", timeout(0)))
	wantField(t, err, "timeout_ms")
	_, err = w.RunInShell(t.Context(), alice, runInput(sh.ID, long(core.MaxCommandBytes+1)))
	wantCode(t, err, core.CodeTooLarge)
}

func TestOutputOfAShellAndOfItsCommands(t *testing.T) {
	w := newWorld(t)
	sh := w.shellIn(w.create().ID)
	c := w.inShell(sh.ID, "tty on the terminal")
	w.inShell(sh.ID, "print into a pipe")
	for range 2 {
		page, err := w.ReadShell(t.Context(), alice, core.ReadShellInput{ShellRef: core.ShellRef{ShellID: sh.ID}})
		must(t, err)
		if page.Data != "on the terminal" {
			t.Fatalf("got %+v", page)
		}
		out, err := w.ReadOutput(t.Context(), alice, core.ReadOutputInput{CommandID: c.ID, Stream: "tty"})
		must(t, err)
		if out.Data != "on the terminal" || !out.EOF || w.shell(sh.ID).TotalBytes != 15 {
			t.Fatalf("got %+v", out)
		}
		w.restart() // what was written is kept
	}
}

func TestReadShellWaitsForTheEnd(t *testing.T) {
	w := newWorld(t)
	sh := w.shellIn(w.create().ID)
	go func() {
		eventually(t, "it waits", func() bool { return true })
		_, _ = w.CloseShell(context.Background(), alice, core.CloseShellInput{ShellRef: core.ShellRef{ShellID: sh.ID}})
	}()
	page, err := w.ReadShell(t.Context(), alice, core.ReadShellInput{ShellRef: core.ShellRef{ShellID: sh.ID}, WaitMS: ptr(int64(40_000))})
	must(t, err)
	if !page.EOF {
		t.Fatalf("got %+v", page)
	}
}

func TestShellsAreLimitedExactly(t *testing.T) {
	w := newWorld(t)
	env := w.create().ID
	opened := make([]bool, 30)
	together(len(opened), func(i int) {
		_, err := w.OpenShell(context.Background(), alice, core.OpenShellInput{EnvironmentID: env})
		if opened[i] = err == nil; err != nil {
			if e := wantCode(t, err, core.CodeQuotaExceeded); e.Facts["limit"] != "shells" {
				t.Errorf("got %v", e.Facts)
			}
		}
	})
	page, err := w.ListShells(t.Context(), alice, core.ListShellsInput{EnvironmentID: env, State: "open"})
	must(t, err)
	if len(page.Items) != testLimits.Shells {
		t.Fatalf("%d are open", len(page.Items))
	}
	w.closeShell(page.Items[0].ID, false)
	_, err = w.UpdateEnvironment(t.Context(), alice, core.UpdateEnvironmentInput{
		EnvironmentRef: core.EnvironmentRef{EnvironmentID: env}, Limits: &core.EnvironmentLimits{Shells: ptr(2)},
	})
	must(t, err)
	_, err = w.OpenShell(t.Context(), alice, core.OpenShellInput{EnvironmentID: env})
	wantCode(t, err, core.CodeQuotaExceeded)
}

func TestRacesAroundTheEndOfAShell(t *testing.T) {
	w := newWorld(t, func(w *world) { w.config.Limits.RunningCommands = 100 })
	for i := range 30 {
		env := w.create().ID
		sh := w.shellIn(env)
		together(6, func(n int) {
			ctx := context.Background()
			var err error
			switch {
			case n < 3:
				_, err = w.RunInShell(ctx, alice, runInput(sh.ID, []string{"wait", "quit 1", "exit 0"}[n], queued))
			case n == 3:
				_, err = w.CloseShell(ctx, alice, core.CloseShellInput{ShellRef: core.ShellRef{ShellID: sh.ID}, KeepBackground: i%2 == 0})
			case n == 4:
				_, err = w.ResetEnvironment(ctx, alice, core.EnvironmentRef{EnvironmentID: env})
			default:
				_, err = w.WriteShell(ctx, alice, core.WriteShellInput{ShellRef: core.ShellRef{ShellID: sh.ID}, Data: "x", WaitMS: ptr(int64(0))})
			}
			if err != nil && core.AsError(err).Code == core.CodeInternal {
				t.Errorf("%d: %v", n, err)
			}
		})
		_, err := w.DeleteEnvironment(t.Context(), alice, core.EnvironmentRef{EnvironmentID: env})
		must(t, err)
		if _, err := w.GetShell(t.Context(), alice, core.ShellRef{ShellID: sh.ID}); core.AsError(err).Code != core.CodeNotFound {
			t.Fatalf("after the deletion: %v", err)
		}
	}
	if n := w.ShellsInMemory(); n != 0 {
		t.Fatalf("%d shells are in memory", n)
	}
	w.wantWhole()
}

func TestManyMayWaitForOnePrompt(t *testing.T) {
	w := newWorld(t)
	sh := w.shellIn(w.create().ID)
	c := w.inShell(sh.ID, "wait", atOnce)
	terminal, release := w.fakeShell(0).terminal, make(chan struct{})
	terminal.mu.Lock()
	terminal.onLook = func() { <-release }
	terminal.mu.Unlock()
	before := runtime.NumGoroutine()
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{}, 500)
	for range cap(over) {
		go func() {
			_, _ = w.GetCommand(ctx, alice, core.GetCommandInput{CommandID: c.ID, WaitMS: ptr(int64(40_000))})
			over <- struct{}{}
		}()
	}
	eventually(t, "all wait", func() bool { return runtime.NumGoroutine() > before+2*cap(over)-10 })
	cancel()
	close(release)
	for range cap(over) {
		<-over
	}
	if terminal.together.Load() {
		t.Fatal("more than one looks at a time")
	}
}

func TestKeepBackgroundHoldsWhereTheCommandTakesBashWithIt(t *testing.T) {
	w := newWorld(t)
	sh := w.shellIn(w.create().ID)
	w.fakeShell(0).onDeath = func() {
		eventually(t, "the end is recorded", func() bool { return w.shell(sh.ID).State == core.ShellClosed })
	}
	c := w.inShell(sh.ID, "deaf", atOnce)
	if got := w.closeShell(sh.ID, true); got.CloseReason != core.CloseByCaller {
		t.Fatalf("got %+v", got)
	}
	if got := w.await(c.ID); outcomeOf(got) != "killed shell_closed" || !got.ShellClosed {
		t.Fatalf("got %+v", got)
	}
	w.fakeShell(0).shellMu.Lock()
	defer w.fakeShell(0).shellMu.Unlock()
	if w.fakeShell(0).killed {
		t.Fatal("what the shell had started in the background was killed")
	}
}

func TestWhatIsAskedIsInTheAnswerThatSaysItWaits(t *testing.T) {
	w := newWorld(t)
	sh := w.shellIn(w.create().ID)
	terminal := w.fakeShell(0).terminal
	terminal.mu.Lock()
	asked := false
	terminal.onLook = func() { // the program comes to its question while it is looked at
		if command := w.fakeShell(0).now(); command != nil && !asked {
			asked = true
			command.print("Name? ")
		}
	}
	terminal.mu.Unlock()
	c := w.inShell(sh.ID, "read", atOnce)
	if c.Stdout.Text != "Name? " {
		t.Fatalf("got %+v", c.Stdout)
	}
	w.writeShell(sh.ID, "it\n")
	w.await(c.ID)
}

func TestTheLastActivityOfAShellIsThatOfItsCommandsToo(t *testing.T) {
	w := newWorld(t)
	sh := w.shellIn(w.create().ID)
	var c core.Command
	eventually(t, "a later moment", func() bool {
		c = w.inShell(sh.ID, "exit 0")
		return c.EndedAt.After(sh.OpenedAt.Time)
	})
	if got := w.shell(sh.ID); !got.LastActivityAt.Equal(c.EndedAt.Time) {
		t.Fatalf("got %v, want %v", got.LastActivityAt, c.EndedAt)
	}
	closed := w.closeShell(sh.ID, false)
	if !closed.LastActivityAt.Equal(closed.ClosedAt.Time) {
		t.Fatalf("got %v, want %v", closed.LastActivityAt, closed.ClosedAt)
	}
	w.restart()
	if got := w.shell(sh.ID); !got.LastActivityAt.Equal(closed.ClosedAt.Time) {
		t.Fatalf("after a restart: %v, want %v", got.LastActivityAt, closed.ClosedAt)
	}
}
