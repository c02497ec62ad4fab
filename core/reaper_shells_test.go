package core_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"envapi/core"
	"envapi/sandbox"
)

const almost = 59 * time.Minute // an hour is how long a shell may be idle here

func TestAShellThatNobodyUsesIsClosed(t *testing.T) {
	w := newAged(t)
	env := w.create()
	sh := w.shellIn(env.ID)
	w.after(almost)
	if got := w.shell(sh.ID); got.State != core.ShellOpen {
		t.Fatalf("closed early: %+v", got)
	}
	w.after(time.Minute)
	w.wantClosed(sh.ID, core.CloseIdle)
	if fake := w.fakeShell(0); !fake.left || fake.killed {
		t.Error("what it left in the background is killed")
	}
	if w.log.count(sh.ID) != 1 {
		t.Error("it is not logged once")
	}
	w.restart()
	w.wantClosed(sh.ID, core.CloseIdle)
	w.wantState(env.ID, core.StateActive)
}

func TestWhatIsUseOfAShell(t *testing.T) {
	ctx := context.Background()
	for name, use := range map[string]func(w *aged, sh core.Shell) (end func()){
		"a command":       func(w *aged, sh core.Shell) func() { w.inShell(sh.ID, "exit 0"); return nil },
		"one that failed": func(w *aged, sh core.Shell) func() { w.inShell(sh.ID, "exit 1"); return nil },
		"a resize": func(w *aged, sh core.Shell) func() {
			_, err := w.ResizeShell(ctx, alice, core.ResizeShellInput{ShellRef: core.ShellRef{ShellID: sh.ID}, TerminalSize: core.TerminalSize{Cols: 9, Rows: 9}})
			must(w.t, err)
			return nil
		},
		"reading": func(w *aged, sh core.Shell) func() {
			_, err := w.ReadShell(ctx, alice, core.ReadShellInput{ShellRef: core.ShellRef{ShellID: sh.ID}})
			must(w.t, err)
			return nil
		},
		"the end of a command": func(w *aged, sh core.Shell) func() {
			c := w.inShell(sh.ID, "wait", atOnce, timeout(3_600_000))
			w.after(5 * time.Hour)
			w.signal(c.ID, "TERM")
			w.await(c.ID)
			return nil
		},
		"an attachment": func(w *aged, sh core.Shell) func() {
			a, err := w.Attach(ctx, alice, core.AttachInput{ShellRef: core.ShellRef{ShellID: sh.ID}})
			must(w.t, err)
			return a.Close
		},
		"a stream": func(w *aged, sh core.Shell) func() {
			s, err := w.StreamShell(ctx, alice, core.ReadShellInput{ShellRef: core.ShellRef{ShellID: sh.ID}})
			must(w.t, err)
			return s.Close
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newAged(t)
			sh := w.shellIn(w.create().ID)
			w.after(almost)
			end := use(w, sh)
			if end != nil { // it goes on
				w.after(5 * time.Hour)
				end()
			}
			w.after(almost)
			if got := w.shell(sh.ID); got.State != core.ShellOpen {
				t.Fatalf("closed: %+v", got)
			}
			w.after(2 * time.Minute)
			w.wantClosed(sh.ID, core.CloseIdle)
		})
	}
}

func TestLookingAtAShellIsNoUse(t *testing.T) {
	w := newAged(t)
	sh := w.shellIn(w.create().ID)
	w.clock.pass(almost)
	w.shell(sh.ID)
	_, err := w.ListShells(t.Context(), alice, core.ListShellsInput{})
	must(t, err)
	w.after(time.Minute)
	w.wantClosed(sh.ID, core.CloseIdle)
}

func TestACommandInAShellIsUse(t *testing.T) {
	w := newAged(t)
	sh := w.shellIn(w.create().ID)
	c := w.inShell(sh.ID, "wait", atOnce)
	line := w.inShell(sh.ID, "exit 4", queued)
	w.after(1000 * time.Hour)
	if got := w.shell(sh.ID); got.RunningCommandID != c.ID || got.Queued != 1 {
		t.Fatalf("got %+v", got)
	}
	w.signal(c.ID, "TERM")
	if got := w.await(line.ID); outcomeOf(got) != "exited 4" {
		t.Fatalf("got %+v", got)
	}
}

// In a shell for people what runs is no command of ours.
func TestAProgramInAShellForPeopleIsUse(t *testing.T) {
	host := &listing{}
	w := newAged(t, func(w *world) {
		host.fakeHost = w.host
		w.config.Sandbox = host
	})
	sh := w.shellIn(w.create().ID, asTerminal)
	bash := sandbox.ProcessInfo{PID: 2, Of: sh.ID}
	for _, test := range []struct {
		name      string
		err       error
		processes []sandbox.ProcessInfo
		open      bool
	}{
		{"vim", nil, []sandbox.ProcessInfo{bash, {PID: 3, Of: sh.ID}}, true},
		{"not known", errors.New("the box does not say"), nil, true},
		{"another's", nil, []sandbox.ProcessInfo{bash, {PID: 3, Of: "cmd_other"}, {PID: 4, Of: sh.ID, State: sandbox.ProcessZombie}}, false},
	} {
		host.set(test.err, test.processes...)
		w.after(2 * time.Hour)
		if got := w.shell(sh.ID); (got.State == core.ShellOpen) != test.open {
			t.Fatalf("%s: %+v", test.name, got)
		}
	}
	w.wantClosed(sh.ID, core.CloseIdle)
}

func TestHowLongAShellMayBeIdleIsItsOwnersWordWithinBounds(t *testing.T) {
	for _, test := range []struct {
		name       string
		asked      core.IdleTimes
		open, shut time.Duration
	}{
		{"nothing", core.IdleTimes{}, almost, time.Hour},
		{"longer", core.IdleTimes{Shell: ptr(5 * time.Hour)}, 5*time.Hour - 1, 5 * time.Hour},
		{"shorter", core.IdleTimes{Shell: ptr(5 * time.Minute)}, 5*time.Minute - time.Millisecond, 5 * time.Minute},
		{"too long", core.IdleTimes{Shell: ptr(1000 * time.Hour)}, 24*time.Hour - 1, 24 * time.Hour},
		{"too short", core.IdleTimes{Shell: ptr(time.Second)}, time.Minute - time.Millisecond, time.Minute},
		{"not known", core.IdleTimes{Never: true}, 10_000 * time.Hour, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newAged(t)
			w.times.set(test.asked)
			sh := w.shellIn(w.create().ID)
			w.after(test.open)
			if got := w.shell(sh.ID); got.State != core.ShellOpen {
				t.Fatalf("closed: %+v", got)
			}
			if test.shut > 0 {
				w.after(test.shut - test.open)
				w.wantClosed(sh.ID, core.CloseIdle)
			}
		})
	}
}

// A command that comes while its shell is being closed for being idle either runs to
// its end or finds the shell closed: it is never killed.
func TestARunThatRacesTheReaperWinsOrIsTold(t *testing.T) {
	w := newAged(t)
	env := w.create().ID
	var ran, told atomic.Int32
	for range 200 {
		sh := w.shellIn(env)
		w.clock.pass(time.Hour)
		together(2, func(i int) {
			if i == 0 {
				w.Reap()
				return
			}
			c, err := w.RunInShell(context.Background(), alice, runInput(sh.ID, "exit 7"))
			if err != nil {
				if e := core.AsError(err); e.Code != core.CodeShellClosed || e.Facts["reason"] != core.CloseIdle {
					t.Errorf("got %v", err)
				}
				told.Add(1)
				return
			}
			if outcomeOf(c) != "exited 7" {
				t.Errorf("got %+v", c)
			}
			ran.Add(1)
		})
		w.closeShell(sh.ID, false)
	}
	t.Logf("%d ran, %d were told", ran.Load(), told.Load())
}

// What is typed into a shell that was closed for being idle is not lost in silence.
func TestWhoTypesIntoAnIdleShellWinsOrIsTold(t *testing.T) {
	host := &listing{}
	w := newAged(t, func(w *world) {
		host.fakeHost = w.host
		w.config.Sandbox = host
	})
	env := w.create().ID
	for range 100 {
		sh := w.shellIn(env, asTerminal)
		w.clock.pass(time.Hour)
		together(2, func(i int) {
			if i == 0 {
				w.Reap()
				return
			}
			_, err := w.WriteShell(context.Background(), alice, core.WriteShellInput{ShellRef: core.ShellRef{ShellID: sh.ID}, Data: "x"})
			switch got := w.shell(sh.ID); {
			case err == nil && got.State != core.ShellOpen:
				t.Errorf("it was taken, and the shell is %+v", got)
			case err != nil && core.AsError(err).Code != core.CodeShellClosed:
				t.Errorf("got %v", err)
			}
		})
		w.closeShell(sh.ID, false)
	}
}
