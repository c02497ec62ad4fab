package core_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"envapi/core"
	"envapi/sandbox"
)

func TestCreateMakesRecordAndFolder(t *testing.T) {
	w := newWorld(t)
	env, err := w.CreateEnvironment(t.Context(), alice, core.CreateEnvironmentInput{
		Name:   "näme",
		Labels: map[string]string{"team": "a"},
		Limits: core.EnvironmentLimits{RunningCommands: ptr(2)},
	})
	must(t, err)
	if !strings.HasPrefix(env.ID, "env_") || len(env.ID) != 30 || !w.folders.has(env.ID) {
		t.Fatalf("got %+v", env)
	}
	if env.Name != "näme" || env.Labels["team"] != "a" || env.State != core.StateActive || env.Network || env.WorkspacePath != "/workspace" || env.SandboxTier != "namespace" {
		t.Fatalf("got %+v", env)
	}
	u := env.Usage
	if *u.RunningCommands.Allowed != 2 || *u.Processes.Allowed != 100 || *u.DiskBytes.Used != 4096 || *u.DiskBytes.Allowed != 100<<20 || *u.Files.Used != 1 || *u.Files.Allowed != 1000 || *u.MemoryBytes.Used != 0 || *u.MemoryBytes.Allowed != 1<<30 {
		t.Fatalf("got %+v", u)
	}
	w.restart()
	again, err := w.GetEnvironment(t.Context(), alice, core.EnvironmentRef{EnvironmentID: env.ID})
	must(t, err)
	if again.Name != env.Name || !again.CreatedAt.Equal(env.CreatedAt.Time) {
		t.Fatalf("after a restart: %+v", again)
	}
}

func TestCreateRefuses(t *testing.T) {
	w := newWorld(t)
	many := map[string]string{}
	for i := range 33 {
		many[fmt.Sprint(i)] = ""
	}
	for _, test := range []struct {
		name, field string
		in          core.CreateEnvironmentInput
	}{
		{"a long name", "name", core.CreateEnvironmentInput{Name: long(129)}},
		{"a control character", "name", core.CreateEnvironmentInput{Name: "a\nb"}},
		{"D16 an escape sequence", "name", core.CreateEnvironmentInput{Name: "\x1b[2J"}},
		{"invalid UTF-8", "name", core.CreateEnvironmentInput{Name: "\xff"}},
		{"33 labels", "labels", core.CreateEnvironmentInput{Labels: many}},
		{"an empty key", "labels", core.CreateEnvironmentInput{Labels: map[string]string{"": "x"}}},
		{"a long key", "labels", core.CreateEnvironmentInput{Labels: map[string]string{long(65): "x"}}},
		{"a key with =", "labels", core.CreateEnvironmentInput{Labels: map[string]string{"a=b": "x"}}},
		{"a long value", "labels", core.CreateEnvironmentInput{Labels: map[string]string{"a": long(257)}}},
		{"a limit above", "limits.running_commands", core.CreateEnvironmentInput{Limits: core.EnvironmentLimits{RunningCommands: ptr(6)}}},
		{"a limit of 0", "limits.running_commands", core.CreateEnvironmentInput{Limits: core.EnvironmentLimits{RunningCommands: ptr(0)}}},
		{"fewer processes than a shell needs", "limits.processes", core.CreateEnvironmentInput{Limits: core.EnvironmentLimits{Processes: ptr(15)}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := w.CreateEnvironment(t.Context(), alice, test.in)
			wantField(t, err, test.field)
		})
	}
	_, err := w.CreateEnvironment(t.Context(), alice, core.CreateEnvironmentInput{Network: true})
	wantCode(t, err, core.CodeNetworkRefused)
	if ids, _ := w.folders.IDs(); len(ids) != 0 {
		t.Fatalf("folders were made: %v", ids)
	}
}

func TestCreateOnceUnderAKey(t *testing.T) { // B17
	w := newWorld(t)
	in := core.CreateEnvironmentInput{Name: "a", IdempotencyKey: "k"}
	ids := make([]string, 20)
	together(20, func(i int) {
		env, err := w.CreateEnvironment(context.Background(), alice, in)
		if err != nil || !w.folders.has(env.ID) {
			t.Errorf("call %d: %v, folder %v", i, err, w.folders.has(env.ID))
		}
		ids[i] = env.ID
	})
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("several: %v", ids)
		}
	}
	w.restart()
	again, err := w.CreateEnvironment(t.Context(), alice, in)
	must(t, err)
	if again.ID != ids[0] {
		t.Fatalf("after a restart another one: %s", again.ID)
	}
	in.Name = "b"
	_, err = w.CreateEnvironment(t.Context(), alice, in)
	wantCode(t, err, core.CodeIdempotencyMismatch)
}

func TestCreateWithoutAFolderIsNotDone(t *testing.T) {
	w := newWorld(t)
	in := core.CreateEnvironmentInput{IdempotencyKey: "k"}
	w.folders.failWith(core.Errorf(core.CodeDiskFull, "full"))
	together(10, func(int) {
		_, err := w.CreateEnvironment(context.Background(), alice, in)
		if core.AsError(err).Code != core.CodeDiskFull {
			t.Errorf("got %v", err)
		}
	})
	if n := len(w.environments()); n != 0 {
		t.Fatalf("%d are listed", n)
	}
	w.folders.failWith(nil)
	_, err := w.CreateEnvironment(t.Context(), alice, in)
	must(t, err) // the same key is as good as new
	if _, _, keys := w.InMemory(); keys != 0 {
		t.Fatalf("%d left in memory", keys)
	}
}

func (w *world) environments() []core.Environment {
	w.t.Helper()
	page, err := w.ListEnvironments(context.Background(), alice, core.ListEnvironmentsInput{Paging: core.Paging{Limit: 200}})
	must(w.t, err)
	return page.Items
}

func TestEnvironmentsAreCountedExactly(t *testing.T) {
	w := newWorld(t)
	made := make([]bool, 50)
	together(50, func(i int) {
		_, err := w.CreateEnvironment(context.Background(), alice, core.CreateEnvironmentInput{})
		made[i] = err == nil
		if e := core.AsError(err); err != nil && (e.Code != core.CodeQuotaExceeded || e.Facts["limit"] != "environments_per_profile") {
			t.Errorf("got %v %v", e, e.Facts)
		}
	})
	if n := len(w.environments()); n != testLimits.EnvironmentsPerProfile {
		t.Fatalf("%d environments", n)
	}
	status, err := w.GetStatus(t.Context(), alice, core.Nothing{})
	must(t, err)
	if got := *status.Usage.EnvironmentsPerProfile.Used; got != 10 || *status.Usage.EnvironmentsPerAccount.Allowed != 20 {
		t.Fatalf("got %+v", status.Usage)
	}
}

func TestWhatIsAnothersIsNotFound(t *testing.T) { // D20
	w := newWorld(t)
	env := w.create()
	c := w.run(env.ID, "wait", noWait)
	ref := core.EnvironmentRef{EnvironmentID: env.ID}
	calls := map[string]func() error{
		"get": func() error { _, err := w.GetEnvironment(t.Context(), bob, ref); return err },
		"update": func() error {
			_, err := w.UpdateEnvironment(t.Context(), bob, core.UpdateEnvironmentInput{EnvironmentRef: ref})
			return err
		},
		"reset":  func() error { _, err := w.ResetEnvironment(t.Context(), bob, ref); return err },
		"delete": func() error { _, err := w.DeleteEnvironment(t.Context(), bob, ref); return err },
		"exec":   func() error { _, err := w.Exec(t.Context(), bob, execInput(env.ID, "exit 0")); return err },
		"list_commands": func() error {
			_, err := w.ListCommands(t.Context(), bob, core.ListCommandsInput{EnvironmentID: env.ID})
			return err
		},
		"get_command": func() error {
			_, err := w.GetCommand(t.Context(), bob, core.GetCommandInput{CommandID: c.ID})
			return err
		},
		"signal_command": func() error {
			_, err := w.SignalCommand(t.Context(), bob, core.SignalCommandInput{CommandID: c.ID})
			return err
		},
		"read_output": func() error {
			_, err := w.ReadOutput(t.Context(), bob, core.ReadOutputInput{CommandID: c.ID})
			return err
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) { wantCode(t, call(), core.CodeNotFound) })
	}
	if isClosed(w.process(0).done) {
		t.Fatal("a stranger ended the command")
	}
}

func TestUpdateChangesWhatIsGiven(t *testing.T) {
	w := newWorld(t)
	ref := core.EnvironmentRef{EnvironmentID: w.create().ID}
	_, err := w.UpdateEnvironment(t.Context(), alice, core.UpdateEnvironmentInput{EnvironmentRef: ref, Name: ptr("n"), Limits: &core.EnvironmentLimits{RunningCommands: ptr(1)}})
	must(t, err)
	env, err := w.UpdateEnvironment(t.Context(), alice, core.UpdateEnvironmentInput{EnvironmentRef: ref, Labels: &map[string]string{"a": "b"}, Limits: &core.EnvironmentLimits{Processes: ptr(16)}})
	must(t, err)
	if env.Name != "n" || env.Labels["a"] != "b" || *env.Usage.RunningCommands.Allowed != 1 || *env.Usage.Processes.Allowed != 16 {
		t.Fatalf("got %+v", env)
	}
	w.run(env.ID, "wait", noWait)
	_, err = w.Exec(t.Context(), alice, execInput(env.ID, "exit 0"))
	if e := wantCode(t, err, core.CodeQuotaExceeded); e.Facts["allowed"] != 1 {
		t.Fatalf("got %v", e.Facts)
	}
	for field, limits := range map[string]core.EnvironmentLimits{
		"processes":        {Processes: ptr(101)},
		"running_commands": {RunningCommands: ptr(0)},
		"memory_bytes":     {MemoryBytes: ptr[int64](1<<30 + 1)},
		"disk_bytes":       {DiskBytes: ptr[int64](1<<20 - 1)},
		"files":            {Files: ptr[int64](1001)},
	} {
		_, err = w.UpdateEnvironment(t.Context(), alice, core.UpdateEnvironmentInput{EnvironmentRef: ref, Limits: &limits})
		wantField(t, err, "limits."+field)
	}
}

func TestLimitsAreLoweredOneByOneAndLast(t *testing.T) {
	w := newWorld(t)
	env, err := w.CreateEnvironment(t.Context(), alice, core.CreateEnvironmentInput{Limits: core.EnvironmentLimits{
		MemoryBytes: ptr[int64](64 << 20), DiskBytes: ptr[int64](8 << 20),
	}})
	must(t, err)
	ref := core.EnvironmentRef{EnvironmentID: env.ID}
	_, err = w.UpdateEnvironment(t.Context(), alice, core.UpdateEnvironmentInput{EnvironmentRef: ref, Limits: &core.EnvironmentLimits{Files: ptr[int64](20)}})
	must(t, err)
	w.restart()
	env, err = w.GetEnvironment(t.Context(), alice, ref)
	must(t, err)
	if u := env.Usage; *u.MemoryBytes.Allowed != 64<<20 || *u.DiskBytes.Allowed != 8<<20 || *u.Files.Allowed != 20 || *u.Processes.Allowed != 100 {
		t.Fatalf("got %+v", u)
	}
	w.run(env.ID, "exit 0")
	want := sandbox.Limits{Processes: 100, MemoryBytes: 64 << 20, CPUPercent: 150, FileBytes: 8 << 20}
	if got := w.host.opened()[0].spec.Limits; got != want {
		t.Fatalf("the sandbox was told %+v, want %+v", got, want)
	}
	for _, listed := range w.environments() {
		if listed.Usage.DiskBytes.Used != nil || *listed.Usage.DiskBytes.Allowed != 8<<20 {
			t.Fatalf("listed %+v", listed.Usage)
		}
	}
}

func TestUsageOfMemoryIsWhatTheSandboxCounts(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	w.run(env.ID, "wait", noWait)
	for _, counted := range []*int64{nil, ptr[int64](12345)} {
		w.host.setMemory(counted)
		got, err := w.GetEnvironment(t.Context(), alice, core.EnvironmentRef{EnvironmentID: env.ID})
		must(t, err)
		if used := got.Usage.MemoryBytes.Used; (used == nil) != (counted == nil) || used != nil && *used != *counted {
			t.Errorf("got %v, want %v", used, counted)
		}
	}
}

func TestUsageCountsWhatRuns(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	w.run(env.ID, "wait", noWait)
	w.process(0)
	got, err := w.GetEnvironment(t.Context(), alice, core.EnvironmentRef{EnvironmentID: env.ID})
	must(t, err)
	if *got.Usage.RunningCommands.Used != 1 || *got.Usage.Processes.Used != 1 {
		t.Fatalf("got %+v", got.Usage)
	}
	if !got.LastActivityAt.After(got.CreatedAt.Time.Add(-1)) {
		t.Fatalf("got %s", got.LastActivityAt)
	}
	listed := w.environments()[0]
	if *listed.Usage.RunningCommands.Used != 1 || listed.Usage.DiskBytes.Used != nil {
		t.Fatalf("listed: %+v", listed.Usage)
	}
}

func TestResetEmptiesAndKeepsTheID(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	c := w.run(env.ID, "wait", noWait)
	w.process(0)
	got, err := w.ResetEnvironment(t.Context(), alice, core.EnvironmentRef{EnvironmentID: env.ID})
	must(t, err)
	if got.ID != env.ID || got.State != core.StateActive || w.folders.resets[env.ID] != 1 || *got.Usage.Processes.Used != 0 {
		t.Fatalf("got %+v", got)
	}
	if got := outcomeOf(w.await(c.ID)); got != "killed environment_reset" {
		t.Fatalf("got %q", got)
	}
	if c := w.run(env.ID, "exit 0"); c.Status != core.CommandExited {
		t.Fatalf("afterwards: %+v", c)
	}
}

func TestDeleteLeavesNothing(t *testing.T) {
	w := newWorld(t, func(w *world) { w.host.needsUID = true })
	env := w.create()
	c := w.run(env.ID, "print out")
	running := w.run(env.ID, "wait", noWait)
	p := w.process(1)
	ref := core.EnvironmentRef{EnvironmentID: env.ID}
	_, err := w.DeleteEnvironment(t.Context(), alice, ref)
	must(t, err)
	if !isClosed(p.done) || w.folders.has(env.ID) {
		t.Fatal("it is still there")
	}
	for _, id := range []string{c.ID, running.ID} {
		_, err = w.GetCommand(t.Context(), alice, core.GetCommandInput{CommandID: id})
		wantCode(t, err, core.CodeNotFound)
	}
	_, err = w.DeleteEnvironment(t.Context(), alice, ref)
	wantCode(t, err, core.CodeNotFound)
	w.wantNoUIDTaken()
	if runs, places, _ := w.InMemory(); runs+places != 0 {
		t.Fatalf("%d commands and %d places in memory", runs, places)
	}
}

// wantNoUIDTaken fails where the uid of a deleted environment is not free.
func (w *world) wantNoUIDTaken() {
	w.t.Helper()
	ids, err := w.store.UnreleasedUIDs(context.Background())
	must(w.t, err)
	if len(ids) != 0 {
		w.t.Fatalf("the uids of %v are still taken", ids)
	}
}

func TestAUIDStaysTakenWhileFilesAreLeft(t *testing.T) {
	w := newWorld(t, func(w *world) { w.host.needsUID = true })
	env := w.create()
	w.folders.keep = true // the freeing does not come to its end
	_, err := w.DeleteEnvironment(t.Context(), alice, core.EnvironmentRef{EnvironmentID: env.ID})
	must(t, err)
	ids, err := w.store.UnreleasedUIDs(t.Context())
	must(t, err)
	if len(ids) != 1 || ids[0] != env.ID {
		t.Fatalf("taken: %v", ids)
	}
	w.folders.keep = false
	w.restart()
	w.wantNoUIDTaken()
}

func TestAPassingStateIsBusy(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	ref := core.EnvironmentRef{EnvironmentID: env.ID}
	w.folders.gate = make(chan struct{})
	var resetting sync.WaitGroup
	resetting.Go(func() {
		if _, err := w.ResetEnvironment(context.Background(), alice, ref); err != nil {
			t.Error(err)
		}
	})
	eventually(t, "it is resetting", func() bool {
		got, err := w.GetEnvironment(t.Context(), alice, ref)
		return err == nil && got.State == core.StateResetting
	})
	for name, call := range map[string]func() error{
		"exec": func() error { _, err := w.Exec(t.Context(), alice, execInput(env.ID, "exit 0")); return err },
		"update": func() error {
			_, err := w.UpdateEnvironment(t.Context(), alice, core.UpdateEnvironmentInput{EnvironmentRef: ref})
			return err
		},
		"reset":  func() error { _, err := w.ResetEnvironment(t.Context(), alice, ref); return err },
		"delete": func() error { _, err := w.DeleteEnvironment(t.Context(), alice, ref); return err },
	} {
		t.Run(name, func(t *testing.T) {
			e := wantCode(t, call(), core.CodeEnvironmentBusy)
			if e.Facts["state"] != "resetting" || e.Facts["retry_after_ms"] == nil {
				t.Fatalf("got %v", e.Facts)
			}
		})
	}
	t.Run("D20 not for another account", func(t *testing.T) {
		_, err := w.Exec(t.Context(), bob, execInput(env.ID, "exit 0"))
		wantCode(t, err, core.CodeNotFound)
	})
	close(w.folders.gate)
	resetting.Wait()
	w.run(env.ID, "exit 0")
}

func TestNothingStartsInAnEnvironmentThatIsBeingReset(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	ref := core.EnvironmentRef{EnvironmentID: env.ID}
	together(8, func(i int) {
		for range 30 {
			var err error
			if i == 0 {
				_, err = w.ResetEnvironment(context.Background(), alice, ref)
			} else {
				_, err = w.Exec(context.Background(), alice, execInput(env.ID, "wait", noWait))
			}
			if code := core.AsError(err).Code; err != nil && code != core.CodeEnvironmentBusy && code != core.CodeQuotaExceeded {
				t.Errorf("got %v", err)
			}
		}
	})
	must(t, func() error { _, err := w.ResetEnvironment(t.Context(), alice, ref); return err }())
	for _, p := range w.host.processes() {
		if !isClosed(p.quiet) {
			t.Fatal("a process has survived a reset")
		}
	}
	page, err := w.ListCommands(t.Context(), alice, core.ListCommandsInput{Status: "running"})
	must(t, err)
	if len(page.Items) != 0 {
		t.Fatalf("still running: %v", page.Items)
	}
}

func TestAnErrorInPassingIsNoWayBack(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	w.folders.failWith(errors.New("no disk"))
	if err := entering["reset_environment"](t.Context(), w, env.ID); err == nil {
		t.Fatal("no error")
	}
	wantCode(t, entering["exec"](t.Context(), w, env.ID), core.CodeEnvironmentBusy)
	eventually(t, "it is turned", func() bool { // unless it is being tried again in that moment
		return core.AsError(entering["delete_environment"](t.Context(), w, env.ID)).Code != core.CodeEnvironmentBusy
	})
	wantCode(t, entering["reset_environment"](t.Context(), w, env.ID), core.CodeEnvironmentBusy)
	w.wantState(env.ID, core.StateDeleting)
	w.folders.failWith(nil)
	eventually(t, "the deletion is done", func() bool {
		_, err := w.GetEnvironment(t.Context(), alice, refTo(env.ID))
		return err != nil
	})
}

// What failed in a passing state is done without another call, and done once: an
// environment that somebody uses again is not emptied another time.
func TestAnErrorInPassingIsTriedAgain(t *testing.T) {
	for name, fail := range map[string]func(w *world, store *refusing){
		"folder": func(w *world, _ *refusing) { w.folders.failOnce("reset") },
		"store":  func(_ *world, store *refusing) { store.once(core.StateActive) },
	} {
		t.Run(name, func(t *testing.T) {
			store := &refusing{}
			w := newWorld(t, func(w *world) { store.Store = w.config.Store; w.config.Store = store })
			env := w.create()
			w.folders.put(env.ID, "word")
			fail(w, store)
			if err := entering["reset_environment"](t.Context(), w, env.ID); err == nil {
				t.Fatal("no error")
			}
			eventually(t, "it is reset", func() bool {
				got, err := w.GetEnvironment(t.Context(), alice, refTo(env.ID))
				return err == nil && got.State == core.StateActive
			})
			w.wantWord(env.ID, "")
		})
	}
	t.Run("delete", func(t *testing.T) {
		w := newWorld(t, func(w *world) { w.host.needsUID = true })
		env := w.create()
		w.folders.failOnce("remove")
		if err := entering["delete_environment"](t.Context(), w, env.ID); err == nil {
			t.Fatal("no error")
		}
		eventually(t, "it is gone", func() bool { return len(w.environments()) == 0 && w.Users(env.ID) == 0 })
		w.wantWhole()
	})
	t.Run("fork", func(t *testing.T) {
		w := newWorld(t, func(w *world) { w.host.needsUID = true })
		env := w.create()
		w.folders.on("copy", func(context.Context) error { return errDisk })
		w.folders.failOnce("remove")
		if _, err := w.ForkEnvironment(t.Context(), alice, forkOf(env.ID)); !errors.Is(err, errDisk) {
			t.Fatalf("got %v", err)
		}
		eventually(t, "it is dropped", func() bool { return len(w.environments()) == 1 })
		w.wantWhole()
	})
	t.Run("at a start", func(t *testing.T) {
		w := newWorld(t)
		env := w.create()
		w.folders.failWith(errDisk)
		_ = entering["delete_environment"](t.Context(), w, env.ID)
		w.restart()
		w.wantState(env.ID, core.StateDeleting)
		w.folders.failWith(nil)
		eventually(t, "it is gone", func() bool { return len(w.environments()) == 0 })
	})
	t.Run("not what somebody else did", func(t *testing.T) {
		w := newWorld(t)
		env := w.create()
		w.folders.failOnce("reset")
		_ = entering["reset_environment"](t.Context(), w, env.ID)
		eventually(t, "it is reset", func() bool { return entering["reset_environment"](t.Context(), w, env.ID) == nil })
		w.folders.put(env.ID, "word")
		eventually(t, "nobody is at it", func() bool { return w.Users(env.ID) == 0 })
		w.wantWord(env.ID, "word")
	})
}

func TestWhereAccountsCannotBeKeptApartOnlyOneIsServed(t *testing.T) {
	w := newWorld(t)
	env, err := w.CreateEnvironment(t.Context(), bob, core.CreateEnvironmentInput{})
	must(t, err)
	w.host.singleAccount = true // the next start finds a weaker host
	w.restart()
	w.create()
	_, err = w.CreateEnvironment(t.Context(), bob, core.CreateEnvironmentInput{})
	wantCode(t, err, core.CodeUnavailable)
	_, err = w.Exec(t.Context(), bob, execInput(env.ID, "exit 0"))
	wantCode(t, err, core.CodeUnavailable)
}

// fullStore is a store on a full disk: it takes a passing state only when
// nothing runs any more.
type fullStore struct {
	core.Store
	host *fakeHost
}

func (f fullStore) UpdateEnvironment(ctx context.Context, o core.Owner, id string, change func(*core.EnvironmentRecord) error) (core.EnvironmentRecord, error) {
	for _, b := range f.host.opened() {
		if !isClosed(b.done) {
			return core.EnvironmentRecord{}, core.Errorf(core.CodeDiskFull, "a command has filled the disk")
		}
	}
	return f.Store.UpdateEnvironment(ctx, o, id, change)
}

func TestD12WhatFillsTheDiskIsEndedBeforeTheStateIsWritten(t *testing.T) {
	w := newWorld(t, func(w *world) { w.config.Store = fullStore{w.store, w.host} })
	env := w.create()
	running := w.run(env.ID, "wait", noWait)
	_, err := w.ResetEnvironment(t.Context(), alice, core.EnvironmentRef{EnvironmentID: env.ID})
	must(t, err)
	if c := w.await(running.ID); c.Status != core.CommandKilled || c.Reason != core.ReasonEnvironmentReset {
		t.Errorf("got %+v", c)
	}
	w.run(env.ID, "wait", noWait)
	_, err = w.DeleteEnvironment(t.Context(), alice, core.EnvironmentRef{EnvironmentID: env.ID})
	must(t, err)
}
