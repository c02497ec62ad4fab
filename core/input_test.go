package core_test

import (
	"context"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"envapi/core"
	"envapi/sandbox"
)

func withTTY(in *core.ExecInput)       { in.TTY = &core.TerminalSize{Cols: 80, Rows: 24} }
func withOpenStdin(in *core.ExecInput) { in.StdinOpen = true }

func (w *world) writeInput(id, data string) core.InputTaken {
	w.t.Helper()
	got, err := w.WriteInput(context.Background(), alice, core.WriteInputInput{CommandID: id, Data: data, WaitMS: ptr(int64(0))})
	must(w.t, err)
	return got
}

func (w *world) writeShell(id, data string, keys ...string) core.ShellInputTaken {
	w.t.Helper()
	got, err := w.WriteShell(context.Background(), alice, core.WriteShellInput{ShellRef: core.ShellRef{ShellID: id}, Data: data, Keys: keys, WaitMS: ptr(int64(0))})
	must(w.t, err)
	return got
}

func TestAPromptEndsTheWait(t *testing.T) { // A18, A20
	w := newWorld(t)
	env := w.create().ID
	sh := w.shellIn(env)
	for name, start := range map[string]func() core.Command{
		"exec": func() core.Command {
			return w.run(env, "read", withTTY, func(in *core.ExecInput) { in.WaitMS = ptr(int64(40_000)) })
		},
		"run_in_shell": func() core.Command {
			return w.inShell(sh.ID, "read", func(in *core.RunInShellInput) { in.WaitMS = ptr(int64(40_000)) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			begun := time.Now()
			c := start()
			if c.Status != core.CommandRunning || c.WaitingForInput == nil || !*c.WaitingForInput || !strings.Contains(c.Next, "waits for input") || time.Since(begun) > 20*time.Second {
				t.Fatalf("got %+v", c)
			}
			got, err := w.GetCommand(t.Context(), alice, core.GetCommandInput{CommandID: c.ID, WaitMS: ptr(int64(40_000))})
			must(t, err)
			if got.Status != core.CommandRunning || time.Since(begun) > 20*time.Second {
				t.Fatalf("asked again: %+v", got)
			}
			if name == "exec" {
				w.writeInput(c.ID, "hello\n")
			} else if sh := w.shell(sh.ID); !*sh.WaitingForInput || !strings.Contains(sh.Next, c.ID) {
				t.Fatalf("the shell is %+v", sh)
			} else {
				w.writeShell(sh.ID, "hello", "ctrl-d")
			}
			if got := w.await(c.ID); outcomeOf(got) != "exited 0" || got.Stdout.Text != "hello" || *got.WaitingForInput {
				t.Fatalf("got %+v", got)
			}
		})
	}
}

func TestWhereNothingIsReadOrNobodyCanTell(t *testing.T) {
	w := newWorld(t)
	env := w.create().ID
	if c := w.run(env, "wait", noWait); c.WaitingForInput == nil || *c.WaitingForInput {
		t.Fatalf("without a terminal: %+v", c)
	}
	c := w.run(env, "wait", noWait, withTTY)
	if c.WaitingForInput == nil || *c.WaitingForInput {
		t.Fatalf("it reads nothing: %+v", c)
	}
	w.process(1).reads.mu.Lock()
	w.process(1).reads.blind = true
	w.process(1).reads.mu.Unlock()
	got, err := w.GetCommand(t.Context(), alice, core.GetCommandInput{CommandID: c.ID, WaitMS: ptr(int64(200))})
	must(t, err)
	if got.WaitingForInput != nil || *got.WaitedMS < 200 {
		t.Fatalf("where nobody can tell: %+v", got)
	}
	for _, listed := range w.list() {
		if listed.WaitingForInput != nil {
			t.Fatalf("listed %+v", listed)
		}
	}
}

func TestInputIsTakenAsFarAsThereIsRoom(t *testing.T) {
	w := newWorld(t)
	env := w.create().ID
	for _, how := range []func(*core.ExecInput){withTTY, withOpenStdin} {
		c := w.run(env, "wait", noWait, how)
		if got := w.writeInput(c.ID, "12345"); got.WrittenBytes != 5 || strings.Contains(got.Next, "not taken") {
			t.Fatalf("got %+v", got)
		}
		got := w.writeInput(c.ID, "67890")
		if got.WrittenBytes != fakeTerminalRoom-5 || !strings.Contains(got.Next, "The last 2 bytes were not taken") || got.Status != core.CommandRunning {
			t.Fatalf("got %+v", got)
		}
	}
	sh := w.shellIn(env)
	w.inShell(sh.ID, "wait", atOnce)
	got := w.writeShell(sh.ID, "1234567890", "up")
	if got.WrittenBytes != fakeTerminalRoom || !strings.Contains(got.Next, "The last 5 bytes") {
		t.Fatalf("got %+v", got)
	}
}

func TestInputIsRefused(t *testing.T) {
	w := newWorld(t)
	env := w.create().ID
	ended, deaf, typed := w.run(env, "exit 0", withTTY), w.run(env, "wait", noWait), w.run(env, "wait", noWait, withTTY)
	sh := w.shellIn(env)
	w.inShell(sh.ID, "wait", atOnce)
	inLine := w.inShell(sh.ID, "read", queued)
	big := long(core.MaxInputBytes + 1)
	for _, test := range []struct {
		name string
		in   core.WriteInputInput
		code core.Code
	}{
		{"it has ended", core.WriteInputInput{CommandID: ended.ID, Data: "x"}, core.CodeInputClosed},
		{"it was given no input", core.WriteInputInput{CommandID: deaf.ID, Data: "x"}, core.CodeInputClosed},
		{"it waits in line", core.WriteInputInput{CommandID: inLine.ID, Data: "x"}, core.CodeInputClosed},
		{"nothing to write", core.WriteInputInput{CommandID: typed.ID}, core.CodeInvalidArgument},
		{"no base64", core.WriteInputInput{CommandID: typed.ID, Data: "?", Encoding: "base64"}, core.CodeInvalidArgument},
		{"no encoding", core.WriteInputInput{CommandID: typed.ID, Data: "x", Encoding: "rot13"}, core.CodeInvalidArgument},
		{"too much", core.WriteInputInput{CommandID: typed.ID, Data: big}, core.CodeTooLarge},
		{"too much in base64", core.WriteInputInput{CommandID: typed.ID, Data: base64.StdEncoding.EncodeToString([]byte(big)), Encoding: "base64"}, core.CodeTooLarge},
		{"a line too long", core.WriteInputInput{CommandID: typed.ID, Data: long(5000)}, core.CodeInvalidArgument},
		{"a time that is none", core.WriteInputInput{CommandID: typed.ID, Data: "x", WaitMS: ptr(int64(-1))}, core.CodeInvalidArgument},
		{"unknown", core.WriteInputInput{CommandID: "cmd_x", Data: "x"}, core.CodeNotFound},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := w.WriteInput(t.Context(), alice, test.in)
			wantCode(t, err, test.code)
		})
	}
	got, err := w.WriteInput(t.Context(), alice, core.WriteInputInput{CommandID: typed.ID, Data: base64.StdEncoding.EncodeToString([]byte{0, 255}), Encoding: "base64"})
	if err != nil || got.WrittenBytes != 2 {
		t.Fatalf("got %+v, %v", got, err)
	}
}

func TestAShellIsTypedIntoWhereSomethingReads(t *testing.T) {
	w := newWorld(t)
	env := w.create().ID
	sh, terminal := w.shellIn(env), w.shellIn(env, asTerminal)
	ref := core.ShellRef{ShellID: sh.ID}
	_, err := w.WriteShell(t.Context(), alice, core.WriteShellInput{ShellRef: ref, Data: "x"})
	wantCode(t, err, core.CodeInputClosed) // nothing runs
	_, err = w.WriteShell(t.Context(), alice, core.WriteShellInput{ShellRef: ref, Keys: []string{"enter", "no such key"}})
	wantField(t, err, "keys")
	if got := w.writeShell(terminal.ID, "ls", "enter", "ctrl-c"); got.WrittenBytes != 4 {
		t.Fatalf("got %+v", got)
	}
	if typed := string(w.fakeShell(1).terminal.pending); typed != "ls\r\x03" {
		t.Fatalf("typed %q", typed)
	}
	w.closeShell(terminal.ID, false)
	_, err = w.WriteShell(t.Context(), alice, core.WriteShellInput{ShellRef: core.ShellRef{ShellID: terminal.ID}, Data: "x"})
	wantCode(t, err, core.CodeShellClosed)
	_, err = w.ResizeShell(t.Context(), alice, core.ResizeShellInput{ShellRef: core.ShellRef{ShellID: terminal.ID}, TerminalSize: core.TerminalSize{Cols: 1, Rows: 1}})
	wantCode(t, err, core.CodeShellClosed)
}

func TestResize(t *testing.T) {
	w := newWorld(t)
	sh := w.shellIn(w.create().ID)
	in := core.ResizeShellInput{ShellRef: core.ShellRef{ShellID: sh.ID}, TerminalSize: core.TerminalSize{Cols: 132, Rows: 50}}
	got, err := w.ResizeShell(t.Context(), alice, in)
	must(t, err)
	if size := w.fakeShell(0).terminal.size; got.Cols != 132 || got.Rows != 50 || size.Cols != 132 || size.Rows != 50 {
		t.Fatalf("got %+v", got)
	}
	in.Rows = 0
	_, err = w.ResizeShell(t.Context(), alice, in)
	wantField(t, err, "rows")
	w.restart()
	if got := w.shell(sh.ID); got.Cols != 132 || got.Rows != 50 {
		t.Fatalf("after a restart: %+v", got)
	}
}

func TestATerminalIsNotGivenStdin(t *testing.T) {
	w := newWorld(t)
	env := w.create().ID
	_, err := w.Exec(t.Context(), alice, execInput(env, "wait", withTTY, func(in *core.ExecInput) { in.Stdin = "x" }))
	wantField(t, err, "stdin")
	_, err = w.Exec(t.Context(), alice, execInput(env, "wait", func(in *core.ExecInput) { in.TTY = &core.TerminalSize{Cols: 0, Rows: 1} }))
	wantField(t, err, "tty.cols")
}

func TestUseIsActivity(t *testing.T) {
	w := newWorld(t)
	env := w.create().ID
	sh := w.shellIn(env, asTerminal)
	w.writeShell(sh.ID, "a")
	first := w.shell(sh.ID).LastActivityAt
	eventually(t, "the clock moves on", func() bool { return time.Since(first.Time) > 2*time.Millisecond })
	w.writeShell(sh.ID, "b")
	if again := w.shell(sh.ID).LastActivityAt; !again.After(first.Time) {
		t.Fatalf("%v, then %v", first, again)
	}
	got, err := w.GetEnvironment(t.Context(), alice, core.EnvironmentRef{EnvironmentID: env})
	must(t, err)
	if got.LastActivityAt.Before(sh.OpenedAt.Time) {
		t.Fatalf("the environment: %v", got.LastActivityAt)
	}
}

// The terminal may be at its end before bash was waited for.
func TestATerminalThatIsAtItsEndSaysThatTheShellIsClosed(t *testing.T) {
	for name, use := range map[string]func(*world, core.ShellRef) error{
		"resize": func(w *world, ref core.ShellRef) error {
			_, err := w.ResizeShell(t.Context(), alice, core.ResizeShellInput{ShellRef: ref, TerminalSize: core.TerminalSize{Cols: 10, Rows: 10}})
			return err
		},
		"write": func(w *world, ref core.ShellRef) error {
			_, err := w.WriteShell(t.Context(), alice, core.WriteShellInput{ShellRef: ref, Data: "x"})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			sh := w.shellIn(w.create().ID, asTerminal)
			fake := w.fakeShell(0)
			fake.terminal.dying = func() { go fake.end(sandbox.Result{}) }
			if e := wantCode(t, use(w, core.ShellRef{ShellID: sh.ID}), core.CodeShellClosed); e.Facts["reason"] != core.CloseExited {
				t.Errorf("got %v", e.Facts)
			}
		})
	}
}
