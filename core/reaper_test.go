package core_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"envapi/core"
	"envapi/sandbox"
)

const long100 = 100 * time.Hour // is how long an environment may be idle here

func TestAnEnvironmentThatNobodyUsesIsArchived(t *testing.T) {
	w := newAged(t)
	env := w.create()
	sh := w.shellIn(env.ID)
	w.times.set(core.IdleTimes{Shell: ptr(1000 * time.Hour)}) // it stays open for a day
	if at := w.environment(env.ID).ArchivesAt; at == nil || !at.Equal(w.clock.time().Add(long100)) {
		t.Fatalf("archives_at is %v", at)
	}
	w.after(long100 - time.Minute)
	w.wantState(env.ID, core.StateActive)
	w.after(time.Minute)
	got := w.wantState(env.ID, core.StateArchived)
	if got.ArchivesAt != nil {
		t.Errorf("it is to be archived again at %v", got.ArchivesAt)
	}
	if reason := w.shell(sh.ID).CloseReason; reason != core.CloseIdle && reason != core.ReasonEnvironmentArchived {
		t.Errorf("the shell's reason is %s", reason)
	}
	if w.log.count("an environment is archived") != 1 || w.log.count(env.ID) == 0 {
		t.Error("it is not logged once")
	}
	if c := w.run(env.ID, "exit 3"); outcomeOf(c) != "exited 3" {
		t.Fatalf("got %+v", c)
	}
	w.after(long100 - time.Minute) // being restored is a use
	w.wantState(env.ID, core.StateActive)
}

func TestAnOpenShellKeepsNoEnvironment(t *testing.T) {
	w := newAged(t, func(w *world) { w.config.Retention.Shell.Most = 10_000 * time.Hour })
	w.times.set(core.IdleTimes{Shell: ptr(10_000 * time.Hour)})
	env := w.create()
	sh := w.shellIn(env.ID)
	w.after(long100)
	w.wantState(env.ID, core.StateArchived)
	w.wantClosed(sh.ID, core.ReasonEnvironmentArchived)
}

// Else one `sleep infinity &` would keep an environment for ever.
func TestAProgramInTheBackgroundKeepsNoEnvironment(t *testing.T) {
	w := newAged(t)
	env := w.create().ID
	c := w.run(env, "wait", noWait)
	w.process(0).background.Store(true)
	w.process(0).exit(0)
	w.await(c.ID)
	w.after(long100 - time.Minute)
	w.wantState(env, core.StateActive)
	if isClosed(w.host.opened()[0].done) {
		t.Fatal("its box was let go")
	}
	w.after(time.Minute)
	w.wantState(env, core.StateArchived)
	if !isClosed(w.process(0).quiet) {
		t.Error("it lives on")
	}
}

// What the reaper itself does is no use: the hours of a shell do not come on top.
func TestTheClosingOfAnIdleShellIsNoUseOfItsEnvironment(t *testing.T) {
	w := newAged(t)
	env := w.create()
	sh := w.shellIn(env.ID)
	before := w.environment(env.ID).LastActivityAt
	w.after(2 * time.Hour)
	w.wantClosed(sh.ID, core.CloseIdle)
	if got := w.environment(env.ID).LastActivityAt; !got.Equal(before.Time) {
		t.Errorf("used at %v, want %v", got, before)
	}
	if got := w.shell(sh.ID).LastActivityAt; !got.Equal(w.clock.time()) {
		t.Errorf("the shell was used at %v", got)
	}
}

func TestWhatIsUseOfAnEnvironment(t *testing.T) {
	ctx := context.Background()
	for name, test := range map[string]struct {
		use func(w *aged, env string, c core.Command) (end func())
		is  bool
	}{
		"a command": {func(w *aged, env string, _ core.Command) func() { w.run(env, "exit 0"); return nil }, true},
		"a shell":   {func(w *aged, env string, _ core.Command) func() { w.shellIn(env); return nil }, true},
		"a running command": {func(w *aged, env string, _ core.Command) func() {
			c := w.run(env, "wait", noWait)
			return func() { w.signal(c.ID, "TERM"); w.await(c.ID) }
		}, true},
		"a write": {func(w *aged, env string, _ core.Command) func() { w.write(env, "f", "new"); return nil }, true},
		"a read":  {func(w *aged, env string, _ core.Command) func() { w.text(env, "kept"); return nil }, true},
		"a list": {func(w *aged, env string, _ core.Command) func() {
			_, err := w.ListFiles(ctx, alice, core.ListFilesInput{DirectoryRef: core.DirectoryRef{EnvironmentID: env}})
			must(w.t, err)
			return nil
		}, true},
		"a watch": {func(w *aged, env string, _ core.Command) func() {
			watch, err := w.WatchFiles(ctx, alice, core.WatchFilesInput{DirectoryRef: core.DirectoryRef{EnvironmentID: env}})
			must(w.t, err)
			return func() { must(w.t, watch.Close()) }
		}, true},
		"reading output": {func(w *aged, _ string, c core.Command) func() {
			_, err := w.ReadOutput(ctx, alice, core.ReadOutputInput{CommandID: c.ID})
			must(w.t, err)
			return nil
		}, true},
		"following output": {func(w *aged, _ string, c core.Command) func() {
			s, err := w.StreamOutput(ctx, alice, core.ReadOutputInput{CommandID: c.ID})
			must(w.t, err)
			return s.Close
		}, true},
		"a signal": {func(w *aged, _ string, c core.Command) func() { w.signal(c.ID, "TERM"); return nil }, true},
		"a reset":  {func(w *aged, env string, _ core.Command) func() { w.reset(env); return nil }, true},
		"a signal to a process": {func(w *aged, env string, c core.Command) func() {
			w.run(env, "exit 0")
			w.clock.pass(time.Minute)
			opened := w.host.opened()
			opened[len(opened)-1].put(sandbox.ProcessInfo{PID: 7})
			_, err := w.SignalProcess(ctx, alice, signalOf(process(env, 7), "KILL"))
			must(w.t, err)
			return nil
		}, true},
		"looking": {func(w *aged, env string, c core.Command) func() {
			w.environment(env)
			w.await(c.ID)
			_, err := w.ListEnvironments(ctx, alice, core.ListEnvironmentsInput{})
			must(w.t, err)
			_, err = w.ListCommands(ctx, alice, core.ListCommandsInput{EnvironmentID: env})
			must(w.t, err)
			_, err = w.ListShells(ctx, alice, core.ListShellsInput{EnvironmentID: env})
			must(w.t, err)
			_, err = w.GetStatus(ctx, alice, core.Nothing{})
			must(w.t, err)
			return nil
		}, false},
		"another's try": {func(w *aged, env string, c core.Command) func() {
			_, err := w.ReadFile(ctx, bob, core.ReadFileInput{FileRef: at(env, "kept")})
			wantCode(w.t, err, core.CodeNotFound)
			_, err = w.ReadOutput(ctx, bob, core.ReadOutputInput{CommandID: c.ID})
			wantCode(w.t, err, core.CodeNotFound)
			return nil
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			a := &aged{clock: &clock{now: time.Now().Truncate(time.Millisecond)}}
			w, env, _ := newFiles(t, func(c *core.Config) { c.Now, c.Retention = a.clock.time, testRetention })
			a.world = w
			w.write(env, "kept", "text")
			c := w.run(env, "exit 0")
			begun := a.clock.time()
			a.after(long100 - time.Hour)
			if end := test.use(a, env, c); end != nil { // it goes on
				a.after(2 * long100)
				a.wantState(env, core.StateActive)
				end()
			}
			want := begun
			if test.is {
				want = a.clock.time()
			}
			if got := w.environment(env); !got.LastActivityAt.Equal(want) {
				t.Errorf("the last activity was %v, want %v", got.LastActivityAt, want)
			}
			a.Reap() // what is in memory goes into the store
			record, err := w.store.Environment(ctx, alice.Owner, env)
			if must(t, err); !record.LastActivityAt.Equal(want) {
				t.Errorf("the record has %v, want %v", record.LastActivityAt, want)
			}
			if !test.is {
				return
			}
			a.after(long100 - time.Minute)
			a.wantState(env, core.StateActive)
		})
	}
}

func TestActivityIsKeptOverAStopAndWhereTheStoreFails(t *testing.T) {
	w, env, _ := newFiles(t, func(c *core.Config) { c.Retention = testRetention; c.Store = &brittle{Store: c.Store} })
	store := w.config.Store.(*brittle)
	before := w.environment(env).LastActivityAt
	eventually(t, "a later millisecond", func() bool { return time.Since(before.Time) > 2*time.Millisecond })
	w.write(env, "f", "x")
	used := w.environment(env).LastActivityAt
	if !used.After(before.Time) {
		t.Fatal("a write is no use")
	}
	store.touches.Store(true)
	w.Reap()
	if got := w.environment(env).LastActivityAt; !got.Equal(used.Time) {
		t.Fatalf("forgotten: %v, want %v", got, used)
	}
	store.touches.Store(false)
	w.restart()
	if got := w.environment(env).LastActivityAt; !got.Equal(used.Time) {
		t.Fatalf("after a stop %v, want %v", got, used)
	}
}

// brittle is a store that fails where a test says so.
type brittle struct {
	core.Store
	touches, removes atomic.Bool
}

var errNoDisk = errors.New("no disk")

func (f *brittle) TouchEnvironments(ctx context.Context, active map[string]time.Time) error {
	if f.touches.Load() {
		return errNoDisk
	}
	return f.Store.TouchEnvironments(ctx, active)
}

func (f *brittle) RemoveCommands(ctx context.Context, ids []string) error {
	if f.removes.Load() {
		return errNoDisk
	}
	return f.Store.RemoveCommands(ctx, ids)
}

func TestHowLongAnEnvironmentMayBeIdle(t *testing.T) {
	for _, test := range []struct {
		name    string
		own     *int64
		asked   core.IdleTimes
		want    time.Duration // 0: for ever
		showing int64
	}{
		{"the deployment's default", nil, core.IdleTimes{}, long100, 0},
		{"its owner's", nil, core.IdleTimes{Environment: ptr(200 * time.Hour)}, 200 * time.Hour, 0},
		{"its own", ptr(int64(3_600_000)), core.IdleTimes{Environment: ptr(200 * time.Hour)}, time.Hour, 3_600_000},
		{"its own, too short", ptr(int64(1)), core.IdleTimes{}, 10 * time.Minute, 600_000},
		{"its own, too long", ptr(int64(1) << 62), core.IdleTimes{}, 1000 * time.Hour, 3_600_000_000},
		{"its owner's, too short", nil, core.IdleTimes{Environment: ptr(time.Second)}, 10 * time.Minute, 0},
		{"not known", nil, core.IdleTimes{Never: true}, 0, 0},
		{"its own, and its owner's is not known", ptr(int64(3_600_000)), core.IdleTimes{Never: true}, time.Hour, 3_600_000},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newAged(t)
			w.times.set(test.asked)
			env, err := w.CreateEnvironment(t.Context(), alice, core.CreateEnvironmentInput{IdleMS: test.own})
			must(t, err)
			if got := value(env.IdleMS); got != test.showing {
				t.Errorf("shows %d, want %d", got, test.showing)
			}
			if test.want == 0 {
				if env.ArchivesAt != nil {
					t.Errorf("archives at %v", env.ArchivesAt)
				}
				w.after(100_000 * time.Hour)
				w.wantState(env.ID, core.StateActive)
				return
			}
			if env.ArchivesAt == nil || !env.ArchivesAt.Equal(w.clock.time().Add(test.want)) {
				t.Errorf("archives at %v, want in %v", env.ArchivesAt, test.want)
			}
			w.after(test.want - time.Second)
			w.wantState(env.ID, core.StateActive)
			w.after(2 * time.Second)
			w.wantState(env.ID, core.StateArchived)
		})
	}
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

func TestTheIdleTimeCanBeChanged(t *testing.T) {
	w := newAged(t)
	env := w.create()
	change := func(ms int64) core.Environment {
		t.Helper()
		got, err := w.UpdateEnvironment(t.Context(), alice, core.UpdateEnvironmentInput{EnvironmentRef: refTo(env.ID), IdleMS: &ms})
		must(t, err)
		return got
	}
	if got := change(7_200_000); value(got.IdleMS) != 7_200_000 || !got.ArchivesAt.Equal(env.CreatedAt.Add(2*time.Hour)) {
		t.Errorf("got %+v", got)
	}
	w.restart()
	if got := w.environment(env.ID); value(got.IdleMS) != 7_200_000 {
		t.Errorf("got %+v", got)
	}
	if got := change(0); got.IdleMS != nil || !got.ArchivesAt.Equal(env.CreatedAt.Add(long100)) {
		t.Errorf("got %+v", got)
	}
	c := w.run(env.ID, "wait", noWait)
	if got := w.environment(env.ID); got.ArchivesAt != nil {
		t.Errorf("a command runs, and it archives at %v", got.ArchivesAt)
	}
	w.signal(c.ID, "TERM")
	for field, call := range map[string]error{
		"create": func() error {
			_, err := w.CreateEnvironment(t.Context(), alice, core.CreateEnvironmentInput{IdleMS: ptr(int64(0))})
			return err
		}(),
		"update": func() error {
			_, err := w.UpdateEnvironment(t.Context(), alice, core.UpdateEnvironmentInput{EnvironmentRef: refTo(env.ID), IdleMS: ptr(int64(-1))})
			return err
		}(),
	} {
		t.Run(field, func(t *testing.T) { wantField(t, call, "idle_ms") })
	}
}

func TestWhereNoMoreCanBeArchivedItStaysActive(t *testing.T) {
	w := newAged(t, func(w *world) { w.config.Limits.ArchivedEnvironments = 1 })
	w.create()
	w.after(long100)
	second := w.create()
	w.after(long100)
	w.wantState(second.ID, core.StateActive)
	const words = "as many archived ones as it may"
	if n := w.log.count(words); n != 1 {
		t.Fatalf("said %d times", n)
	}
	w.after(time.Hour)
	if n := w.log.count(words); n != 1 {
		t.Errorf("said %d times within an hour", n)
	}
	w.after(24 * time.Hour)
	if n := w.log.count(words); n != 2 {
		t.Errorf("said %d times in a day", n)
	}
	w.run(second.ID, "exit 0")
}

// A command that comes while its environment is archived for being idle runs, however
// far that is.
func TestAnExecWinsOverTheReaper(t *testing.T) {
	w := newAged(t)
	env := w.create().ID
	for i := range 150 {
		w.clock.pass(long100)
		together(2, func(who int) {
			if who == 0 {
				w.Reap()
				return
			}
			c, err := w.Exec(context.Background(), alice, execInput(env, fmt.Sprint("exit ", i%200)))
			if err != nil || outcomeOf(c) != fmt.Sprint("exited ", i%200) {
				t.Errorf("got %+v, %v", c, err)
			}
		})
	}
}

func TestABoxInWhichNothingLivesIsLetGo(t *testing.T) {
	w := newAged(t)
	env := w.create()
	w.run(env.ID, "exit 0")
	box := w.host.opened()[0]
	gone := func() bool { return isClosed(box.done) }
	settled := func() {
		eventually(t, "forgotten", func() bool { runs, _, _ := w.InMemory(); return runs == 0 })
	}
	settled()
	w.Reap() // sees it for the first time
	w.after(9 * time.Minute)
	if gone() {
		t.Fatal("let go early")
	}
	w.run(env.ID, "exit 0") // between two looks
	settled()
	w.after(2 * time.Minute)
	w.after(9 * time.Minute)
	if gone() {
		t.Fatal("it was used since, and is let go")
	}
	w.host.setDaemons(1)
	w.after(time.Hour)
	w.host.setDaemons(0)
	w.after(time.Minute)
	w.after(9 * time.Minute)
	if gone() {
		t.Fatal("let go before it had nothing for as long as it is kept")
	}
	w.after(time.Minute)
	if !gone() {
		t.Fatal("not let go")
	}
	if _, places, _ := w.InMemory(); places != 0 {
		t.Errorf("%d places are left in memory", places)
	}
	if c := w.run(env.ID, "exit 5"); outcomeOf(c) != "exited 5" || len(w.host.opened()) != 2 {
		t.Fatalf("got %+v in box %d", c, len(w.host.opened()))
	}
	w.wantState(env.ID, core.StateActive)
}

func TestABoxThatCannotBeClosedKeepsNoOther(t *testing.T) {
	w := newAged(t)
	for range 2 {
		w.run(w.create().ID, "exit 0")
	}
	eventually(t, "forgotten", func() bool { runs, _, _ := w.InMemory(); return runs == 0 })
	for _, box := range w.host.opened() {
		box.jammed.Store(true)
	}
	w.Reap()
	for tries := range int32(2) {
		w.after(10 * time.Minute)
		for i, box := range w.host.opened() {
			if n := box.closings.Load(); n != tries+1 {
				t.Errorf("it was tried %d times to close the box %d, want %d", n, i, tries+1)
			}
		}
	}
	for _, box := range w.host.opened() {
		box.jammed.Store(false)
	}
	w.after(time.Minute)
	for i, box := range w.host.opened() {
		if !isClosed(box.done) {
			t.Errorf("the box %d is not let go", i)
		}
	}
}

func TestAShellKeepsItsBox(t *testing.T) {
	w := newAged(t)
	w.shellIn(w.create().ID)
	for range 5 {
		w.after(10 * time.Minute)
	}
	if isClosed(w.host.opened()[0].done) {
		t.Fatal("the box of an open shell is let go")
	}
}

func TestAnExecThatRacesTheLettingGoOfItsBoxWins(t *testing.T) {
	w := newAged(t)
	env := w.create().ID
	w.run(env, "exit 0")
	for i := range 150 {
		eventually(t, "forgotten", func() bool { runs, _, _ := w.InMemory(); return runs == 0 })
		w.Reap()
		w.clock.pass(10 * time.Minute)
		together(4, func(who int) {
			if who == 0 {
				w.Reap()
				return
			}
			c, err := w.Exec(context.Background(), alice, execInput(env, fmt.Sprint("exit ", i%200)))
			if err != nil || outcomeOf(c) != fmt.Sprint("exited ", i%200) {
				t.Errorf("got %+v, %v", c, err)
			}
		})
	}
	t.Logf("%d boxes", len(w.host.opened()))
}

func TestARetentionThatEndsEverythingIsRefused(t *testing.T) {
	w := newWorld(t)
	for what, spoil := range map[string]func(*core.Retention){
		"box":           func(r *core.Retention) { r.Box = 0 },
		"ended":         func(r *core.Retention) { r.Ended = 0 },
		"keys":          func(r *core.Retention) { r.Keys = 0 },
		"shell":         func(r *core.Retention) { r.Shell.Default = 0 },
		"environment":   func(r *core.Retention) { r.Environment.Least = 0 },
		"every":         func(r *core.Retention) { r.Every = -1 },
		"not be longer": func(r *core.Retention) { r.Keys = r.Ended + 1 },
	} {
		c := w.config
		c.Retention = testRetention
		spoil(&c.Retention)
		if _, err := core.New(t.Context(), c); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A reaper of a short interval runs by itself, and ends with the service, which goleak
// sees.
func TestTheReaperRunsByItself(t *testing.T) {
	w := newAged(t, func(w *world) { w.config.Retention.Every = time.Millisecond })
	sh := w.shellIn(w.create().ID)
	w.clock.pass(time.Hour)
	eventually(t, "closed", func() bool { return w.shell(sh.ID).State == core.ShellClosed })
	w.wantClosed(sh.ID, core.CloseIdle)
}

// What comes between the reaper's look and what it then does is not ended.
func TestWhoComesAfterTheLookWins(t *testing.T) {
	host := &listing{}
	w := newAged(t, func(w *world) {
		host.fakeHost = w.host
		w.config.Sandbox = host
	})
	sh := w.shellIn(w.create().ID, asTerminal)
	host.looked = func() {
		_, err := w.ResizeShell(context.Background(), alice, core.ResizeShellInput{ShellRef: core.ShellRef{ShellID: sh.ID}, TerminalSize: core.TerminalSize{Cols: 9, Rows: 9}})
		must(t, err)
	}
	w.after(2 * time.Hour)
	if got := w.shell(sh.ID); got.State != core.ShellOpen {
		t.Fatalf("the shell is %+v", got)
	}
	w.closeShell(sh.ID, false)

	env := sh.EnvironmentID
	w.run(env, "exit 0")
	eventually(t, "forgotten", func() bool {
		runs, _, _ := w.InMemory()
		return runs == 0 && w.ShellsInMemory() == 0 && w.Watched() == 0
	})
	w.Reap()
	w.clock.pass(time.Hour)
	var c core.Command
	host.looked = func() { c = w.run(env, "wait", noWait) }
	w.Reap()
	w.Reap()
	if got, err := w.GetCommand(t.Context(), alice, core.GetCommandInput{CommandID: c.ID}); err != nil || got.Status != core.CommandRunning {
		t.Fatalf("got %+v, %v", got, err)
	}
	w.signal(c.ID, "TERM")
}
