package core_test

import (
	"strings"
	"testing"

	"envapi/core"
)

// A prompt for a password is on the terminal alone, in neither output that the
// answer has.
func TestAPromptOnTheTerminalAloneIsPointedTo(t *testing.T) {
	w := newWorld(t)
	sh := w.shellIn(w.create().ID)
	for script, beside := range map[string]bool{"ask Password:": true, "read": false} {
		c := w.inShell(sh.ID, script)
		if c.WaitingForInput == nil || !*c.WaitingForInput {
			t.Fatalf("%s: got %+v", script, c)
		}
		if got := strings.Contains(c.Next, `read_output with stream "tty"`); got != beside {
			t.Errorf("%s: it says %q", script, c.Next)
		}
		_, err := w.WriteShell(t.Context(), alice, core.WriteShellInput{ShellRef: core.ShellRef{ShellID: sh.ID}, Data: "x\n"})
		must(t, err)
		w.await(c.ID)
	}
}

func TestATimeoutSaysWhatItWas(t *testing.T) {
	w := newWorld(t)
	c := w.inShell(w.shellIn(w.create().ID).ID, "wait", timeout(50))
	if c.Status != core.CommandTimedOut || !strings.Contains(c.Next, "timeout_ms of 50:") {
		t.Errorf("got %+v", c)
	}
}

func TestAnIDOfAnotherKindIsToldForWhatItIs(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	sh := w.shellIn(env.ID)
	_, err := w.GetCommand(t.Context(), alice, core.GetCommandInput{CommandID: sh.ID})
	if e := wantCode(t, err, core.CodeNotFound); !strings.Contains(e.Detail, "another kind, shell") {
		t.Errorf("it says %q", e.Detail)
	}
	_, err = w.GetShell(t.Context(), alice, core.ShellRef{ShellID: "sh_nothing"})
	if e := wantCode(t, err, core.CodeNotFound); !strings.Contains(e.Detail, "list_shells gives") {
		t.Errorf("it says %q", e.Detail)
	}
}

func TestAQuotaSaysWhatToDo(t *testing.T) {
	w := newWorld(t)
	env := w.create().ID
	one := 1
	_, err := w.UpdateEnvironment(t.Context(), alice, core.UpdateEnvironmentInput{EnvironmentRef: core.EnvironmentRef{EnvironmentID: env}, Limits: &core.EnvironmentLimits{Shells: &one, RunningCommands: &one}})
	must(t, err)
	w.shellIn(env)
	_, err = w.OpenShell(t.Context(), alice, core.OpenShellInput{EnvironmentID: env})
	if e := wantCode(t, err, core.CodeQuotaExceeded); !strings.Contains(e.Detail, "(1 of 1): close one with close_shell") {
		t.Errorf("it says %q", e.Detail)
	}
	w.run(env, "wait", noWait)
	_, err = w.Exec(t.Context(), alice, execInput(env, "exit 0"))
	if e := wantCode(t, err, core.CodeQuotaExceeded); !strings.Contains(e.Detail, "(1 of 1): wait for one to end") {
		t.Errorf("it says %q", e.Detail)
	}
}
