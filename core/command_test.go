package core_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"envapi/core"
	"envapi/sandbox"
)

func TestStatusSaysWhatTheSystemSaidOfTheLeader(t *testing.T) {
	for _, test := range []struct {
		name string
		do   func(w *world, c core.Command)
		want string
	}{
		{"exit", func(w *world, _ core.Command) { w.process(0).exit(4) }, "exited 4"},
		{"a signal of its own", func(w *world, _ core.Command) { w.process(0).end(sandbox.Result{Signal: "SEGV"}) }, "signaled SEGV"},
		{"its own SIGKILL is no killing of ours", func(w *world, _ core.Command) { w.process(0).end(sandbox.Result{Signal: "KILL"}) }, "signaled KILL"},
		{"TERM of the caller", func(w *world, c core.Command) { w.signal(c.ID, "SIGTERM") }, "signaled TERM"},
		{"KILL of the caller", func(w *world, c core.Command) { w.signal(c.ID, "KILL") }, "killed signal"},
		{"memory ran out and the leader was killed", short(sandbox.Result{Signal: "KILL"}), "out_of_memory"},
		{"memory ran out and the leader exited so", short(sandbox.Result{ExitCode: 137}), "out_of_memory 137"},
		{"memory ran out and the leader failed for it", short(sandbox.Result{ExitCode: 1}), "out_of_memory 1"},
		{"memory ran out and the box is gone", short(sandbox.Result{Lost: true}), "out_of_memory"},
		{"memory ran out and the leader got by", short(sandbox.Result{}), "exited 0"},
		{"memory ran out and the leader died of its own", short(sandbox.Result{Signal: "ABRT"}), "signaled ABRT"},
		{"memory ran out before the KILL of the caller", func(w *world, c core.Command) {
			w.process(0).starve()
			w.signal(c.ID, "KILL")
		}, "killed signal"},
		{"reset", func(w *world, c core.Command) { w.reset(c.EnvironmentID) }, "killed environment_reset"},
		{"box gone", func(w *world, _ core.Command) { must(w.t, w.host.opened()[0].Close()) }, "lost sandbox_failed"},
		{"stop of the service", func(w *world, _ core.Command) { w.restart() }, "lost service_stopped"},
		{"crash of the service", func(w *world, _ core.Command) { w.crash() }, "lost service_stopped"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			c := w.run(w.create().ID, "wait", noWait)
			if c.Status != core.CommandRunning || !strings.Contains(c.Next, "get_command") {
				t.Fatalf("got %+v", c)
			}
			test.do(w, c)
			if got := outcomeOf(w.await(c.ID)); got != test.want {
				t.Fatalf("got %q, want %q", got, test.want)
			}
			w.restart()
			if got := outcomeOf(w.await(c.ID)); got != test.want {
				t.Fatalf("after a restart: got %q, want %q", got, test.want)
			}
		})
	}
}

// short ends a command after the kernel killed a process of it for memory.
func short(r sandbox.Result) func(*world, core.Command) {
	r.OutOfMemory = true
	return func(w *world, _ core.Command) { w.process(0).end(r) }
}

func TestACommandThatRanOutOfMemoryIsToldWhatToDo(t *testing.T) {
	w := newWorld(t)
	env, err := w.CreateEnvironment(t.Context(), alice, core.CreateEnvironmentInput{Limits: core.EnvironmentLimits{MemoryBytes: ptr[int64](96 << 20)}})
	must(t, err)
	c := w.run(env.ID, "wait", noWait)
	w.process(0).print(long(40 << 10))
	w.process(0).end(sandbox.Result{Signal: "KILL", OutOfMemory: true, Used: sandbox.Used{PeakMemoryBytes: ptr[int64](5)}})
	got := w.await(c.ID)
	for _, words := range []string{"100663296", "memory_bytes", "read_output"} {
		if !strings.Contains(got.Next, words) {
			t.Errorf("%q is not in %q", words, got.Next)
		}
	}
	if got.Signal != "" || got.Usage == nil || got.Usage.PeakMemoryBytes == nil || *got.Usage.PeakMemoryBytes != 5 || got.Usage.CPUMS != nil {
		t.Errorf("got %+v", got)
	}
	listed, err := w.ListCommands(t.Context(), alice, core.ListCommandsInput{Status: "out_of_memory"})
	must(t, err)
	if len(listed.Items) != 1 || listed.Items[0].ID != c.ID {
		t.Errorf("listed %+v", listed.Items)
	}
}

func TestACommandThatGotByWithoutAProcessThatWasKilledForMemoryIsToldSo(t *testing.T) {
	w := newWorld(t)
	c := w.run(w.create().ID, "wait", noWait)
	w.process(0).starve()
	w.process(0).exit(0)
	if got := w.await(c.ID); got.Status != core.CommandExited || !strings.Contains(got.Next, "memory_bytes") {
		t.Errorf("got %+v", got)
	}
}

func TestATimeoutAfterMemoryRanOutIsATimeout(t *testing.T) {
	w := newWorld(t)
	c := w.run(w.create().ID, "wait", noWait, func(in *core.ExecInput) { in.TimeoutMS = ptr(int64(50)) })
	w.process(0).starve()
	if got := outcomeOf(w.await(c.ID)); got != "timed_out" {
		t.Fatalf("got %q", got)
	}
}

// outcomeOf gives status and what comes with it.
func outcomeOf(c core.Command) string {
	switch {
	case c.ExitCode != nil:
		return fmt.Sprintf("%s %d", c.Status, *c.ExitCode)
	default:
		return strings.TrimSpace(fmt.Sprintf("%s %s%s", c.Status, c.Signal, c.Reason))
	}
}

func (w *world) signal(id, name string) core.Command {
	w.t.Helper()
	c, err := w.SignalCommand(context.Background(), alice, core.SignalCommandInput{CommandID: id, Signal: name})
	must(w.t, err)
	return c
}

func (w *world) reset(env string) {
	w.t.Helper()
	_, err := w.ResetEnvironment(context.Background(), alice, core.EnvironmentRef{EnvironmentID: env})
	must(w.t, err)
}

// crash starts a new service while the old one still believes that it lives,
// then lets the old one go.
func (w *world) crash() {
	w.t.Helper()
	old := w.Service
	w.start()
	must(w.t, old.Close())
}

func TestTimeoutKillsTheTree(t *testing.T) { // A24, A26, B8
	w := newWorld(t)
	env := w.create()
	other := w.run(env.ID, "wait", noWait)
	c := w.run(env.ID, "wait", func(in *core.ExecInput) { in.TimeoutMS = ptr(int64(50)) })
	if c.Status != core.CommandTimedOut || c.ExitCode != nil || c.DurationMS < 50 {
		t.Fatalf("got %+v", c)
	}
	if w.process(0).command.Script != "wait" || isClosed(w.process(0).done) {
		t.Fatalf("the other command %s is gone", other.ID)
	}
}

func TestWhatCannotBeKilledGoesWithItsBox(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	c := w.run(env.ID, "stubborn", func(in *core.ExecInput) { in.TimeoutMS = ptr(int64(20)) })
	if c.Status != core.CommandTimedOut || !isClosed(w.host.opened()[0].done) {
		t.Fatalf("got %+v", c)
	}
}

func TestAnEndBeforeTheTimeoutIsTheEnd(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	timeout := 30 * time.Millisecond
	for i := 0; ; i, timeout = i+1, 4*timeout {
		c := w.run(env.ID, "wait", noWait, func(in *core.ExecInput) { in.TimeoutMS = ptr(timeout.Milliseconds()) })
		w.process(i).background.Store(true) // a child lives on
		w.process(i).exit(0)
		got := outcomeOf(w.await(c.ID))
		if got == "timed_out" && timeout < 10*time.Second {
			continue // on a busy host the timeout came first
		}
		if got != "exited 0" {
			t.Fatalf("got %q", got)
		}
		time.Sleep(2 * timeout) // past the timeout: nothing may happen, so there is nothing to wait for
		if isClosed(w.process(i).quiet) {
			t.Fatal("the background child was killed by the timeout of an ended command")
		}
		w.process(i).fallSilent()
		return
	}
}

func TestSignals(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	c := w.run(env.ID, "wait", noWait)

	for _, name := range []string{"STOP", "cont", "SIGUSR1"} {
		if got := w.signal(c.ID, name); got.Status != core.CommandRunning {
			t.Fatalf("%s: %s", name, got.Status)
		}
	}
	for _, name := range []string{"STOP", "CONT", "USR1"} {
		if !w.process(0).signaled(name) {
			t.Fatalf("%s did not arrive", name)
		}
	}
	_, err := w.SignalCommand(t.Context(), alice, core.SignalCommandInput{CommandID: c.ID, Signal: "9"})
	wantField(t, err, "signal")

	t.Run("A58 KILL is answered when it is over", func(t *testing.T) {
		if got := outcomeOf(w.signal(c.ID, "KILL")); got != "killed signal" {
			t.Fatalf("got %q", got)
		}
	})
	t.Run("A60 after the end it answers the result", func(t *testing.T) {
		if got := outcomeOf(w.signal(c.ID, "TERM")); got != "killed signal" {
			t.Fatalf("got %q", got)
		}
	})
}

func TestKillTwiceInParallelWithTheEndIsOneAnswer(t *testing.T) { // B15
	w := newWorld(t)
	env := w.create()
	for i := range 50 {
		c := w.run(env.ID, "wait", noWait)
		p := w.process(i)
		answers := make([]string, 3)
		together(3, func(i int) {
			if i == 2 {
				p.exit(0)
			}
			answers[i] = outcomeOf(w.signal(c.ID, "KILL"))
		})
		if answers[0] != answers[1] || answers[1] != answers[2] {
			t.Fatalf("got %q", answers)
		}
	}
}

func TestACallerThatGoesAwayEndsItsWaitOnly(t *testing.T) { // A61, B3, B16
	w := newWorld(t)
	env := w.create()
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		eventually(t, "started", func() bool { return len(w.host.processes()) == 1 })
		cancel()
	}()
	c, err := w.Exec(ctx, alice, execInput(env.ID, "wait"))
	must(t, err)
	if c.Status != core.CommandRunning {
		t.Fatalf("got %+v", c)
	}
	w.process(0).print("whole")
	w.process(0).exit(0)
	if got := w.await(c.ID); got.Stdout.Text != "whole" || got.Status != core.CommandExited {
		t.Fatalf("got %+v", got)
	}
	if list := w.list(); len(list) != 1 || list[0].ID != c.ID { // B12
		t.Fatalf("got %v", list)
	}
}

func TestACallerThatIsGoneBeforeStartsNothing(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := w.Exec(ctx, alice, execInput(env.ID, "exit 0")); err == nil {
		t.Fatal("no error")
	}
	if len(w.list()) != 0 {
		t.Fatal("it was started")
	}
}

func TestThousandsMayWait(t *testing.T) { // B7
	w := newWorld(t)
	env := w.create()
	c := w.run(env.ID, "wait", noWait)
	before := runtime.NumGoroutine()
	const waiters = 2000
	var waiting, most atomic.Int64
	go func() {
		eventually(t, "all wait", func() bool { return waiting.Load() == waiters })
		begun := time.Now()
		w.list()
		if took := time.Since(begun); took > 2*time.Second {
			t.Errorf("a list took %s", took)
		}
		most.Store(int64(runtime.NumGoroutine()))
		w.process(0).exit(0)
	}()
	together(waiters, func(int) {
		waiting.Add(1)
		w.await(c.ID)
	})
	if extra := most.Load() - int64(before) - waiters; extra > 20 {
		t.Fatalf("%d goroutines beside the callers'", extra)
	}
}

func TestMemoryIsFlatOverEndedCommands(t *testing.T) { // B13
	w := newWorld(t)
	env := w.create()
	before := runtime.NumGoroutine()
	for range 300 {
		w.run(env.ID, "print x")
	}
	eventually(t, "no command in memory", func() bool { runs, _, _ := w.InMemory(); return runs == 0 })
	eventually(t, "no goroutine left", func() bool { return runtime.NumGoroutine() <= before+4 })
}

func TestTheEndIsRecordedHoweverOftenTheStoreFails(t *testing.T) {
	w := newWorld(t, func(w *world) { w.config.Store = &flaky{Store: w.config.Store, failures: 3} })
	env := w.create()
	if c := w.run(env.ID, "exit 7"); c.Status != core.CommandExited || *c.ExitCode != 7 {
		t.Fatalf("got %+v", c)
	}
	w.restart()
	if c := w.list()[0]; c.Status != core.CommandExited || *c.ExitCode != 7 {
		t.Fatalf("got %+v", c)
	}
}

// flaky is a store that cannot finish commands at first.
type flaky struct {
	core.Store
	failures int32
}

func (f *flaky) FinishCommand(ctx context.Context, id string, end core.CommandEnd) error {
	if atomic.AddInt32(&f.failures, -1) >= 0 {
		return errors.New("the disk is away")
	}
	return f.Store.FinishCommand(ctx, id, end)
}

func TestLateOutputIsMarked(t *testing.T) { // A22
	w := newWorld(t)
	env := w.create()
	c := w.run(env.ID, "wait", noWait)
	p := w.process(0)
	p.background.Store(true)
	p.print("fg\n")
	p.exit(0)
	if got := w.await(c.ID); got.LateFromOffset != nil {
		t.Fatalf("nothing is late yet: %+v", got.LateFromOffset)
	}
	p.print("late\n")
	got := w.await(c.ID)
	if got.LateFromOffset == nil || *got.LateFromOffset != (core.LateOffsets{Stdout: 3, All: 3}) || got.Stdout.Text != "fg\nlate\n" {
		t.Fatalf("got %+v %+v", got.LateFromOffset, got.Stdout)
	}
	p.fallSilent()
	w.restart()
	if again := w.await(c.ID); *again.LateFromOffset != *got.LateFromOffset {
		t.Fatalf("after a restart: %+v", again.LateFromOffset)
	}
}

func TestWaitsAreCutToTheLongest(t *testing.T) { // B2
	w := newWorld(t)
	env := w.create()
	c := w.run(env.ID, "wait", noWait)
	go func() {
		eventually(t, "running", func() bool { return len(w.host.processes()) == 1 })
		w.process(0).exit(0)
	}()
	got, err := w.GetCommand(t.Context(), alice, core.GetCommandInput{CommandID: c.ID, WaitMS: ptr(int64(300_000))})
	must(t, err)
	if got.WaitedMS == nil || *got.WaitedMS > core.MaxWait.Milliseconds() || got.Status != core.CommandExited {
		t.Fatalf("got %+v", got)
	}
}

func TestCloseAnswersTheWaitingAndRefusesTheNew(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	answered := make(chan core.Command)
	go func() {
		c, err := w.Exec(context.Background(), alice, execInput(env.ID, "wait", func(in *core.ExecInput) { in.WaitMS = ptr(int64(40_000)) }))
		if err != nil {
			t.Error(err)
		}
		answered <- c
	}()
	w.process(0)
	must(t, w.Close())
	c := <-answered
	for what, call := range map[string]func() error{
		"exec": func() error { _, err := w.Exec(t.Context(), alice, execInput(env.ID, "exit 0")); return err },
		"create": func() error {
			_, err := w.CreateEnvironment(t.Context(), alice, core.CreateEnvironmentInput{})
			return err
		},
		"reset": func() error {
			_, err := w.ResetEnvironment(t.Context(), alice, core.EnvironmentRef{EnvironmentID: env.ID})
			return err
		},
		"delete": func() error {
			_, err := w.DeleteEnvironment(t.Context(), alice, core.EnvironmentRef{EnvironmentID: env.ID})
			return err
		},
	} {
		t.Run(what, func(t *testing.T) { wantCode(t, call(), core.CodeUnavailable) })
	}
	w.start()
	if got := outcomeOf(w.await(c.ID)); got != "lost service_stopped" {
		t.Fatalf("got %q", got)
	}
}

func TestListCommands(t *testing.T) {
	w := newWorld(t)
	one, two := w.create(), w.create()
	w.run(one.ID, "exit 0")
	w.run(one.ID, "exit 1")
	running := w.run(two.ID, "wait", noWait)

	page, err := w.ListCommands(t.Context(), alice, core.ListCommandsInput{EnvironmentID: one.ID, Paging: core.Paging{Limit: 1}})
	must(t, err)
	if len(page.Items) != 1 || *page.Items[0].ExitCode != 1 || page.NextCursor == "" || page.Items[0].Stdout != nil {
		t.Fatalf("got %+v", page)
	}
	page, err = w.ListCommands(t.Context(), alice, core.ListCommandsInput{Status: "running"})
	must(t, err)
	if len(page.Items) != 1 || page.Items[0].ID != running.ID {
		t.Fatalf("got %+v", page)
	}
	_, err = w.ListCommands(t.Context(), alice, core.ListCommandsInput{Paging: core.Paging{Limit: 201}})
	wantField(t, err, "limit")
}
