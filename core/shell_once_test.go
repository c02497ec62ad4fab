package core_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"envapi/core"
)

func openedUnder(key string) func(*core.OpenShellInput) {
	return func(in *core.OpenShellInput) { in.IdempotencyKey = key }
}

func runUnder(key string) func(*core.RunInShellInput) {
	return func(in *core.RunInShellInput) { in.IdempotencyKey = key }
}

// fromTwenty calls do from twenty goroutines at one moment and gives the one id that
// all must get.
func fromTwenty(t *testing.T, do func(i int) (id string, err error)) string {
	t.Helper()
	ids := make([]string, 20)
	together(len(ids), func(i int) {
		var err error
		if ids[i], err = do(i); err != nil {
			t.Errorf("call %d: %v", i, err)
		}
	})
	if one := slices.Compact(slices.Clone(ids)); len(one) != 1 {
		t.Fatalf("several were made: %v", ids)
	}
	return ids[0]
}

func (w *world) shellsOpened() int {
	w.host.mu.Lock()
	defer w.host.mu.Unlock()
	return len(w.host.shells)
}

func TestOpenShellOnceUnderAKey(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	id := fromTwenty(t, func(i int) (string, error) {
		in := core.OpenShellInput{EnvironmentID: env.ID, IdempotencyKey: "k"}
		if i%2 == 1 { // what is left out is the default
			in.Kind, in.Cols = "command", ptr(80)
		}
		if i%3 == 1 { // what is only for an archived environment
			in.Restore = ptr(false)
		}
		sh, err := w.OpenShell(context.Background(), alice, in)
		if err == nil && sh.State != core.ShellOpen {
			t.Errorf("call %d: %+v", i, sh)
		}
		return sh.ID, err
	})
	if n := w.shellsOpened(); n != 1 {
		t.Fatalf("%d shells were opened", n)
	}
	for name, in := range map[string]core.OpenShellInput{
		"another name":        {EnvironmentID: env.ID, Name: "x"},
		"another kind":        {EnvironmentID: env.ID, Kind: "terminal"},
		"another environment": {EnvironmentID: w.create().ID},
	} {
		in.IdempotencyKey = "k"
		if _, err := w.OpenShell(t.Context(), alice, in); core.AsError(err).Code != core.CodeIdempotencyMismatch {
			t.Errorf("%s: %v", name, err)
		}
	}
	if other := w.shellIn(env.ID, openedUnder("k2")); other.ID == id {
		t.Error("another key gives the same shell")
	}
	bobs, err := w.CreateEnvironment(t.Context(), bob, core.CreateEnvironmentInput{})
	must(t, err)
	if sh, err := w.OpenShell(t.Context(), bob, core.OpenShellInput{EnvironmentID: bobs.ID, IdempotencyKey: "k"}); err != nil || sh.ID == id {
		t.Errorf("another's key: %+v, %v", sh, err)
	}

	w.restart()
	if sh := w.shellIn(env.ID, openedUnder("k")); sh.ID != id || sh.State != core.ShellClosed || sh.CloseReason != core.CloseServiceRestarted {
		t.Errorf("after a restart: %+v", sh)
	}
}

func TestAShellThatCouldNotBeOpenedLeavesItsKeyFree(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	w.host.mu.Lock()
	w.host.gate = make(chan struct{})
	w.host.openErr = errors.New("no box")
	w.host.mu.Unlock()
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			_, err := w.OpenShell(context.Background(), alice, core.OpenShellInput{EnvironmentID: env.ID, IdempotencyKey: "k"})
			if e := core.AsError(err); e.Code != core.CodeUnavailable {
				t.Errorf("got %v", err)
			}
		})
	}
	eventually(t, "a shell is being opened", func() bool {
		open, err := w.store.CountShells(t.Context(), env.ID)
		return err == nil && open == 1
	})
	close(w.host.gate)
	all.Wait()
	w.host.mu.Lock()
	w.host.openErr = nil
	w.host.mu.Unlock()
	if sh := w.shellIn(env.ID, openedUnder("k"), func(in *core.OpenShellInput) { in.Name = "another input" }); sh.State != core.ShellOpen {
		t.Errorf("got %+v", sh)
	}
}

func TestRunInShellOnceUnderAKey(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	sh, other := w.shellIn(env.ID), w.shellIn(env.ID)
	id := fromTwenty(t, func(i int) (string, error) {
		c, err := w.RunInShell(context.Background(), alice, runInput(sh.ID, "print once", runUnder("k"), func(in *core.RunInShellInput) {
			in.WaitMS = ptr(int64(20_000 + i)) // how it is answered is no part of the fingerprint
			in.OutputBytes = ptr(int64(100 + i))
		}))
		if err == nil && c.Stdout.Text != "once" {
			t.Errorf("call %d: %+v", i, c)
		}
		return c.ID, err
	})
	fake := w.fakeShell(0)
	if !slices.Equal(fake.ran, []string{"print once"}) {
		t.Fatalf("the shell ran %v", fake.ran)
	}
	for name, in := range map[string]core.RunInShellInput{
		"another command": runInput(sh.ID, "print twice"),
		"another shell":   runInput(other.ID, "print once"),
		"queued":          runInput(sh.ID, "print once", queued),
		"another timeout": runInput(sh.ID, "print once", timeout(5000)),
	} {
		in.IdempotencyKey = "k"
		if _, err := w.RunInShell(t.Context(), alice, in); core.AsError(err).Code != core.CodeIdempotencyMismatch {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A key of exec is another.
	if c := w.run(env.ID, "print once", func(in *core.ExecInput) { in.IdempotencyKey = "k" }); c.ID == id {
		t.Error("exec has the same keys")
	}

	w.closeShell(sh.ID, false)
	if c := w.inShell(sh.ID, "print once", runUnder("k")); c.ID != id || outcomeOf(c) != "exited 0" {
		t.Errorf("in a closed shell: %+v", c)
	}
	w.restart()
	if c := w.inShell(sh.ID, "print once", runUnder("k")); c.ID != id || outcomeOf(c) != "exited 0" || c.Stdout.Text != "once" {
		t.Errorf("after a restart: %+v", c)
	}
	w.wantClosed(sh.ID, core.CloseByCaller) // without a key it is closed
}

func TestARetryInABusyShellFindsItsOwnCommand(t *testing.T) {
	w := newWorld(t)
	sh := w.shellIn(w.create().ID)
	running := w.inShell(sh.ID, "wait", atOnce, runUnder("first"))
	if again := w.inShell(sh.ID, "wait", atOnce, runUnder("first")); again.ID != running.ID || again.Status != core.CommandRunning {
		t.Fatalf("got %+v", again)
	}
	_, err := w.RunInShell(t.Context(), alice, runInput(sh.ID, "print b", runUnder("second")))
	wantCode(t, err, core.CodeShellBusy)

	// What was refused has left its key free; in line it is made once.
	waiting := fromTwenty(t, func(int) (string, error) {
		c, err := w.RunInShell(context.Background(), alice, runInput(sh.ID, "print c", queued, runUnder("second")))
		if err == nil && c.Status != core.CommandRunning {
			t.Errorf("got %+v", c)
		}
		return c.ID, err
	})
	if got := w.shell(sh.ID); got.RunningCommandID != running.ID || got.Queued != 1 {
		t.Fatalf("got %+v", got)
	}
	w.signal(running.ID, "TERM")
	if c := w.await(waiting); outcomeOf(c) != "exited 0" || c.Stdout.Text != "c" {
		t.Fatalf("got %+v", c)
	}
	if fake := w.fakeShell(0); !slices.Equal(fake.ran, []string{"wait", "print c"}) {
		t.Fatalf("the shell ran %v", fake.ran)
	}
}

// What is asked for again is answered as it is: for that nothing is restored.
func TestARetryRestoresNothing(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	sh := w.shellIn(env.ID, openedUnder("k"))
	c := w.inShell(sh.ID, "print once", runUnder("k"))
	keyed := func(in *core.ExecInput) { in.IdempotencyKey = "k" }
	alone := w.run(env.ID, "print once", keyed)
	must(t, w.Close())
	archived := core.Archive{At: time.Now(), Bytes: 1}
	_, err := w.store.TurnEnvironment(t.Context(), alice.Owner, env.ID, core.EnvironmentQuota{Archived: 1}, func(e *core.EnvironmentRecord) error {
		e.State, e.Archive = core.StateArchived, &archived
		return nil
	})
	must(t, err)
	w.start()
	if again := w.shellIn(env.ID, openedUnder("k")); again.ID != sh.ID {
		t.Errorf("got %+v", again)
	}
	if again := w.inShell(sh.ID, "print once", runUnder("k")); again.ID != c.ID {
		t.Errorf("got %+v", again)
	}
	if again := w.run(env.ID, "print once", keyed); again.ID != alone.ID {
		t.Errorf("got %+v", again)
	}
	if e, err := w.store.Environment(t.Context(), alice.Owner, env.ID); err != nil || e.State != core.StateArchived {
		t.Errorf("it is %s, %v", e.State, err)
	}
}

// A key that is forgotten with what was made under it is a new one.
func TestAKeyEndsWithWhatWasMadeUnderIt(t *testing.T) {
	w := newWorld(t)
	sh := w.shellIn(w.create().ID, openedUnder("k"))
	c := w.inShell(sh.ID, "print once", runUnder("k"))
	eventually(t, "nothing of it lives", func() bool { runs, _, _ := w.InMemory(); return runs == 0 })
	must(t, w.store.RemoveCommands(t.Context(), []string{c.ID}))
	if again := w.inShell(sh.ID, "print twice", runUnder("k")); again.ID == c.ID || again.Stdout.Text != "twice" {
		t.Errorf("got %+v", again)
	}
}
