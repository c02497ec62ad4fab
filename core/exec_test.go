package core_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"envapi/core"
	"envapi/sandbox"
)

func TestExecAnswersWhatTheProgramDid(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	for _, test := range []struct {
		name, script, stdout string
		code                 int
	}{
		{"A45 exact output", "print abc", "abc", 0},
		{"A50 a failure is a result", "exit 1", "", 1},
		{"A56 a missing program", "nosuchcmd", "", 127},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := w.run(env.ID, test.script)
			if c.Status != core.CommandExited || *c.ExitCode != test.code || c.Stdout.Text != test.stdout {
				t.Fatalf("got %s %v %q", c.Status, *c.ExitCode, c.Stdout.Text)
			}
			if c.EndedAt == nil || c.Usage == nil || c.WaitedMS == nil || c.Next != "" || c.Cwd != "/workspace" {
				t.Fatalf("incomplete or too much: %+v", c)
			}
		})
	}
}

func TestExecOfAnEmptyScriptDoesNothing(t *testing.T) { // A35
	w := newWorld(t)
	env := w.create()
	w.run(env.ID, "", noWait)
	if script := w.process(0).command.Script; script != ":" {
		t.Fatalf("the sandbox got %q", script)
	}
}

func TestExecGivesTheSandboxWhatWasAsked(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	c := w.run(env.ID, "cat", func(in *core.ExecInput) {
		in.Stdin = "hello"
		in.Cwd = "sub/dir"
		in.Env = map[string]string{"A": "1"}
		in.MergeStderr = true
	})
	p := w.process(0)
	if c.Stdout.Text != "hello" || p.command.Dir != "/workspace/sub/dir" || p.command.Env["A"] != "1" || p.command.Stderr != nil {
		t.Fatalf("got %+v, and %+v", c, p.command)
	}
	if spec := w.host.opened()[0].spec; spec.Limits.Processes != testLimits.Processes || spec.Workspace != w.folders.Path(env.ID) {
		t.Fatalf("got %+v", spec)
	}
}

func TestExecShowsArgvAsAShellWouldTakeIt(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	c, err := w.Exec(t.Context(), alice, core.ExecInput{EnvironmentID: env.ID, Argv: []string{"printf", "it's", "", "a b"}})
	must(t, err)
	if want := `printf 'it'\''s' '' 'a b'`; c.Command != want {
		t.Fatalf("got %s, want %s", c.Command, want)
	}
}

func TestExecRefuses(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	empty, space := "", " "
	for _, test := range []struct {
		name  string
		field string // of invalid_argument
		code  core.Code
		in    core.ExecInput
	}{
		{"neither command nor argv", "command", "", core.ExecInput{}},
		{"both", "argv", "", core.ExecInput{Command: &empty, Argv: []string{"true"}}},
		{"an empty argv", "argv", "", core.ExecInput{Argv: []string{}}},
		{"an empty program", "argv", "", core.ExecInput{Argv: []string{""}}},
		{"NUL in argv", "argv", "", core.ExecInput{Argv: []string{"a", "b\x00"}}},
		{"NUL in command", "command", "", core.ExecInput{Command: ptr("a\x00")}},
		{"NUL in cwd", "cwd", "", core.ExecInput{Command: &space, Cwd: "\x00"}},
		{"a name with =", "env", "", core.ExecInput{Command: &space, Env: map[string]string{"A=B": ""}}},
		{"a name with a digit first", "env", "", core.ExecInput{Command: &space, Env: map[string]string{"1A": ""}}},
		{"an empty name", "env", "", core.ExecInput{Command: &space, Env: map[string]string{"": ""}}},
		{"NUL in a value", "env", "", core.ExecInput{Command: &space, Env: map[string]string{"A": "\x00"}}},
		{"a timeout of 0", "timeout_ms", "", core.ExecInput{Command: &space, TimeoutMS: ptr(int64(0))}},
		{"a timeout above the deployment's", "timeout_ms", "", core.ExecInput{Command: &space, TimeoutMS: ptr(time.Hour.Milliseconds() + 1)}},
		{"a negative wait", "wait_ms", "", core.ExecInput{Command: &space, WaitMS: ptr(int64(-1))}},
		{"too much inline", "output_bytes", "", core.ExecInput{Command: &space, OutputBytes: ptr(int64(1<<20 + 1))}},
		{"a key that is too long", "idempotency_key", "", core.ExecInput{Command: &space, IdempotencyKey: long(129)}},
		{"A38 a command of 2 MB", "", core.CodeTooLarge, core.ExecInput{Command: ptr(long(2 << 20))}},
		{"an argument too long for the kernel", "", core.CodeTooLarge, core.ExecInput{Argv: []string{"a", long(128 << 10)}}},
		{"arguments too long together", "", core.CodeTooLarge, core.ExecInput{Argv: strings.Split(strings.Repeat(long(64<<10)+" ", 17), " ")}},
		{"a variable too long", "", core.CodeTooLarge, core.ExecInput{Command: &space, Env: map[string]string{"A": long(128 << 10)}}},
		{"too much stdin", "", core.CodeTooLarge, core.ExecInput{Command: &space, Stdin: long(8<<20 + 1)}},
		{"a network", "", core.CodeNetworkRefused, core.ExecInput{Command: &space, Network: ptr(true)}},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.in.EnvironmentID = env.ID
			_, err := w.Exec(t.Context(), alice, test.in)
			if test.field != "" {
				wantField(t, err, test.field)
			} else {
				wantCode(t, err, test.code)
			}
		})
	}
	if n := len(w.host.processes()); n != 0 {
		t.Fatalf("%d processes were started all the same", n)
	}
	if list := w.list(); len(list) != 0 {
		t.Fatalf("commands were recorded all the same: %v", list)
	}
}

func (w *world) list() []core.Command {
	w.t.Helper()
	page, err := w.ListCommands(context.Background(), alice, core.ListCommandsInput{})
	must(w.t, err)
	return page.Items
}

func TestWhatIsTooLongIsNamed(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	for says, in := range map[string]core.ExecInput{
		"one argument of argv is longer than 131071 bytes": {Argv: []string{"a", long(128 << 10)}},
		"argv is longer than 1048576 bytes":                {Argv: strings.Split(strings.Repeat(long(64<<10)+" ", 17), " ")},
		"one variable of env, with its name, is longer":    {Argv: []string{"a"}, Env: map[string]string{"A": long(128 << 10)}},
	} {
		in.EnvironmentID = env.ID
		_, err := w.Exec(t.Context(), alice, in)
		if e := wantCode(t, err, core.CodeTooLarge); !strings.Contains(e.Detail, says) {
			t.Errorf("it says %q, want %q", e.Detail, says)
		}
	}
}

func TestExecThatCannotStartIsNotDone(t *testing.T) {
	for _, test := range []struct {
		name string
		fail error
		code core.Code
	}{
		{"directory", &sandbox.StartError{Dir: true, Err: syscall.ENOENT}, core.CodeInvalidArgument},
		{"process limit", &sandbox.StartError{Err: syscall.EAGAIN}, core.CodeQuotaExceeded},
		{"arguments", &sandbox.StartError{Err: syscall.E2BIG}, core.CodeTooLarge},
		{"terminals", sandbox.ErrNoTerminal, core.CodeUnavailable},
		{"box gone again and again", sandbox.ErrBoxClosed, core.CodeUnavailable},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			env := w.create()
			w.host.failStarts(test.fail)
			keyed := func(in *core.ExecInput) { in.IdempotencyKey = "k" }
			_, err := w.Exec(t.Context(), alice, execInput(env.ID, "exit 0", keyed))
			wantCode(t, err, test.code)
			if list := w.list(); len(list) != 0 {
				t.Fatalf("it is listed: %v", list)
			}
			w.host.failStarts(nil)
			if c := w.run(env.ID, "exit 0", keyed); c.Status != core.CommandExited {
				t.Fatalf("the same key again: %s", c.Status)
			}
			runs, _, _ := w.InMemory()
			eventually(t, "nothing in memory", func() bool { runs, _, _ = w.InMemory(); return runs == 0 })
		})
	}
}

func TestExecWhereOthersHaveEveryProcessIsRefused(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	w.run(env.ID, "wait", noWait)
	w.host.setDaemons(98)
	w.run(env.ID, "wait", noWait)
	_, err := w.Exec(t.Context(), alice, execInput(env.ID, "exit 0"))
	if e := wantCode(t, err, core.CodeQuotaExceeded); e.Facts["limit"] != "processes" || !strings.Contains(e.Detail, "signal_process") || e.Facts["allowed"] != 100 || e.Facts["used"] != 100 {
		t.Fatalf("got %v", e.Facts)
	}
	if got := w.list(); len(got) != 2 {
		t.Fatalf("the refused one left a record: %+v", got)
	}
	w.reset(env.ID)
	w.host.setDaemons(0)
	if got := w.run(env.ID, "exit 0"); outcomeOf(got) != "exited 0" {
		t.Fatalf("after a reset: %s", outcomeOf(got))
	}
}

func TestExecReportsAnUnknownStartFailureAsInternal(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	w.host.failStarts(&sandbox.StartError{Err: errors.New("secret of the inside")})
	_, err := w.Exec(t.Context(), alice, execInput(env.ID, "exit 0"))
	if e := core.AsError(err); e.Code != core.CodeInternal || strings.Contains(e.Detail, "secret") {
		t.Fatalf("got %v", e)
	}
}

func TestExecOnceUnderAKey(t *testing.T) { // B17
	w := newWorld(t)
	env := w.create()
	keyed := func(in *core.ExecInput) { in.IdempotencyKey = "k" }

	ids := make([]string, 20)
	together(20, func(i int) {
		c, err := w.Exec(context.Background(), alice, execInput(env.ID, "print once", keyed, func(in *core.ExecInput) {
			in.WaitMS = ptr(int64(10_000 + i)) // how it is answered is no part of the fingerprint
			in.OutputBytes = ptr(int64(100 + i))
		}))
		if err != nil || c.Stdout.Text != "once" {
			t.Errorf("call %d: %v %+v", i, err, c)
		}
		ids[i] = c.ID
	})
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("several commands: %v", ids)
		}
	}
	if n := len(w.host.processes()); n != 1 {
		t.Fatalf("%d processes were started", n)
	}

	_, err := w.Exec(t.Context(), alice, execInput(env.ID, "print twice", keyed))
	wantCode(t, err, core.CodeIdempotencyMismatch)

	w.restart()
	if c := w.run(env.ID, "print once", keyed); c.ID != ids[0] || len(w.host.processes()) != 1 {
		t.Fatalf("after a restart it ran again")
	}
}

func TestExecUnderAKeyWaitsForTheStartOfAnother(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	keyed := func(in *core.ExecInput) { in.IdempotencyKey = "k" }
	w.host.mu.Lock()
	w.host.gate = make(chan struct{})
	w.host.openErr = errors.New("no box")
	w.host.mu.Unlock()

	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			_, err := w.Exec(context.Background(), alice, execInput(env.ID, "exit 0", keyed))
			if e := core.AsError(err); e.Code != core.CodeUnavailable {
				t.Errorf("got %v", err)
			}
		})
	}
	eventually(t, "a command is being started", func() bool { return len(w.list()) == 1 })
	close(w.host.gate)
	all.Wait()
	if list := w.list(); len(list) != 0 {
		t.Fatalf("left: %v", list)
	}
}

func TestRunningCommandsAreCountedExactly(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	var mu sync.Mutex
	started, refused := 0, 0
	together(40, func(int) {
		_, err := w.Exec(context.Background(), alice, execInput(env.ID, "wait", noWait))
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			started++
			return
		}
		e := core.AsError(err)
		if e.Code != core.CodeQuotaExceeded || e.Facts["limit"] != "running_commands" || e.Facts["allowed"] != 5 {
			t.Errorf("got %v %v", e, e.Facts)
		}
		refused++
	})
	if started != 5 || refused != 35 {
		t.Fatalf("%d started, %d refused", started, refused)
	}
	w.process(0).exit(0)
	eventually(t, "room for one more", func() bool {
		_, err := w.Exec(context.Background(), alice, execInput(env.ID, "wait", noWait))
		return err == nil
	})
}

func TestOneBoxIsOpenedHoweverManyAsk(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	together(5, func(int) {
		if _, err := w.Exec(context.Background(), alice, execInput(env.ID, "exit 0")); err != nil {
			t.Error(err)
		}
	})
	if n := len(w.host.opened()); n != 1 {
		t.Fatalf("%d boxes", n)
	}
}

func TestABoxThatEndedIsOpenedAgain(t *testing.T) { // D19
	w := newWorld(t)
	env := w.create()
	first := w.run(env.ID, "wait", noWait)
	must(t, w.host.opened()[0].Close())
	if c := w.await(first.ID); c.Status != core.CommandLost || c.Reason != core.ReasonSandboxFailed || c.ExitCode != nil || c.Usage != nil {
		t.Fatalf("got %+v", c)
	}
	if c := w.run(env.ID, "exit 3"); *c.ExitCode != 3 {
		t.Fatalf("got %+v", c)
	}
	if n := len(w.host.opened()); n != 2 {
		t.Fatalf("%d boxes", n)
	}
}

func TestAStartThatNobodyKnowsOfIsLostAndNotTriedAgain(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	w.host.failStarts(sandbox.ErrStartUnknown)
	keyed := func(in *core.ExecInput) { in.IdempotencyKey = "k" }
	c := w.run(env.ID, "exit 0", keyed)
	if got := outcomeOf(c); got != "lost sandbox_failed" {
		t.Fatalf("got %q", got)
	}
	w.host.failStarts(nil)
	if again := w.run(env.ID, "exit 0", keyed); again.ID != c.ID || len(w.host.processes()) != 0 {
		t.Fatalf("it was run again: %+v", again)
	}
}

func TestAnEnvironmentWithoutAUIDIsNotRunWhereOneIsNeeded(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	w.host.needsUID = true
	_, err := w.Exec(t.Context(), alice, execInput(env.ID, "exit 0"))
	wantCode(t, err, core.CodeUnavailable)
	if n := len(w.host.opened()); n != 0 {
		t.Fatal("a box was opened as uid 0")
	}
}

func TestOnlyALocalCallerHasADefaultEnvironment(t *testing.T) {
	w := newWorld(t)
	_, err := w.Exec(t.Context(), alice, execInput("", "exit 0"))
	wantField(t, err, "environment_id")

	local := core.LocalCaller()
	ids := make([]string, 5)
	together(5, func(i int) {
		c, err := w.Exec(context.Background(), local, execInput("", "exit 0"))
		if err != nil {
			t.Error(err)
		}
		ids[i] = c.EnvironmentID
	})
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("several: %v", ids)
		}
	}
	_, err = w.DeleteEnvironment(t.Context(), local, core.EnvironmentRef{EnvironmentID: ids[0]})
	must(t, err)
	c, err := w.Exec(t.Context(), local, execInput("", "exit 0"))
	must(t, err)
	if c.EnvironmentID == ids[0] {
		t.Fatal("the deleted one was used")
	}
}
