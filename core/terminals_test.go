package core_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"envapi/core"
	"envapi/sandbox"
)

// withTerminals makes a world whose accounts may have so many terminals.
func withTerminals(t *testing.T, n int) *world {
	t.Helper()
	return newWorld(t, func(w *world) {
		w.config.Limits.TerminalsPerAccount = n
		w.config.Limits.Shells, w.config.Limits.RunningCommands = 100, 100
	})
}

// wantTerminals fails unless an account comes to have so many.
func (w *world) wantTerminals(c core.Caller, n int64) {
	w.t.Helper()
	eventually(w.t, "the terminals are counted", func() bool {
		status, err := w.GetStatus(context.Background(), c, core.Nothing{})
		must(w.t, err)
		return *status.Usage.TerminalsPerAccount.Used == n
	})
}

func (w *world) tooManyTerminals(env string) {
	w.t.Helper()
	_, err := w.OpenShell(context.Background(), alice, core.OpenShellInput{EnvironmentID: env})
	if e := wantCode(w.t, err, core.CodeRateLimited); e.Facts["retry_after_ms"] == nil {
		w.t.Fatalf("got %+v", e)
	}
	_, err = w.Exec(context.Background(), alice, execInput(env, "wait", noWait, withTTY))
	wantCode(w.t, err, core.CodeRateLimited)
}

func TestTerminalsOfAnAccountAreBounded(t *testing.T) {
	w := withTerminals(t, 3)
	one, two := w.create().ID, w.create().ID // the bound is not an environment's
	sh, terminal, c := w.shellIn(one), w.shellIn(two, asTerminal), w.run(one, "wait", noWait, withTTY)
	w.wantTerminals(alice, 3)
	w.tooManyTerminals(two)
	w.run(two, "exit 0") // which has none
	inShell := w.inShell(sh.ID, "exit 0", func(in *core.RunInShellInput) { in.TTY = true })
	if inShell.Status != core.CommandExited { // it has the shell's
		t.Errorf("got %+v", inShell)
	}
	other, err := w.CreateEnvironment(t.Context(), bob, core.CreateEnvironmentInput{})
	must(t, err)
	_, err = w.OpenShell(t.Context(), bob, core.OpenShellInput{EnvironmentID: other.ID})
	must(t, err)

	w.closeShell(sh.ID, false)
	w.wantTerminals(alice, 2)
	sh = w.shellIn(two)
	w.tooManyTerminals(one)
	_, err = w.SignalCommand(t.Context(), alice, core.SignalCommandInput{CommandID: c.ID, Signal: "KILL"})
	must(t, err)
	w.wantTerminals(alice, 2)
	w.run(one, "exit 0", withTTY)
	w.wantTerminals(alice, 2)
	w.closeShell(terminal.ID, false)
	w.closeShell(sh.ID, false)
	w.wantTerminals(alice, 0)
	w.wantTerminals(bob, 1)
}

func TestWhatIsNotStartedHasNoTerminal(t *testing.T) {
	w := withTerminals(t, 2)
	env := w.create().ID
	for _, fail := range []error{errors.New("the inside"), sandbox.ErrNoTerminal, sandbox.ErrStartUnknown} {
		w.host.failStarts(fail)
		for range 5 {
			_, _ = w.OpenShell(t.Context(), alice, core.OpenShellInput{EnvironmentID: env})
			_, _ = w.Exec(t.Context(), alice, execInput(env, "wait", noWait, withTTY))
		}
		w.host.failStarts(nil)
		w.wantTerminals(alice, 0)
	}
	for range 5 { // refused before it is started
		_, err := w.OpenShell(t.Context(), alice, core.OpenShellInput{EnvironmentID: "env_none"})
		wantCode(t, err, core.CodeNotFound)
	}
	w.shellIn(env)
	w.shellIn(env)
	w.tooManyTerminals(env)
	page, err := w.ListShells(t.Context(), alice, core.ListShellsInput{EnvironmentID: env})
	must(t, err)
	commands, err := w.ListCommands(t.Context(), alice, core.ListCommandsInput{EnvironmentID: env})
	must(t, err)
	for _, c := range commands.Items {
		if c.Status == core.CommandRunning {
			t.Errorf("left is %+v", c)
		}
	}
	if len(page.Items) != 2 {
		t.Errorf("%d shells are left", len(page.Items))
	}
}

func TestARetryOfWhatWasStartedNeedsNoTerminal(t *testing.T) {
	w := withTerminals(t, 1)
	env := w.create().ID
	keyed := func(in *core.ExecInput) { in.IdempotencyKey = "k" }
	first := w.run(env, "wait", noWait, withTTY, keyed)
	if again := w.run(env, "wait", noWait, withTTY, keyed); again.ID != first.ID {
		t.Errorf("got %s and %s", first.ID, again.ID)
	}
	w.wantTerminals(alice, 1)
}

func TestTerminalsAreExactWhenManyAreOpenedAtOnce(t *testing.T) {
	const most = 7
	w := withTerminals(t, most)
	env := w.create().ID
	var opened atomic.Int64
	together(40, func(i int) {
		var err error
		if i%2 == 0 {
			_, err = w.OpenShell(context.Background(), alice, core.OpenShellInput{EnvironmentID: env})
		} else {
			_, err = w.Exec(context.Background(), alice, execInput(env, "wait", noWait, withTTY))
		}
		if err == nil {
			opened.Add(1)
		}
	})
	if opened.Load() != most {
		t.Errorf("%d were opened", opened.Load())
	}
	_, err := w.ResetEnvironment(t.Context(), alice, core.EnvironmentRef{EnvironmentID: env})
	must(t, err)
	w.wantTerminals(alice, 0)
}
