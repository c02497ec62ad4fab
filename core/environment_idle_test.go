package core_test

import (
	"context"
	"testing"
	"time"

	"envapi/core"
)

// idle archives an environment as the reaper does, for want of use until now.
func (w *world) idle(id string) (bool, error) {
	records, err := w.store.AllEnvironments(context.Background())
	must(w.t, err)
	for _, r := range records {
		if r.ID == id {
			return w.ArchiveIdle(context.Background(), r, r.LastActivityAt)
		}
	}
	w.t.Fatalf("no environment %s", id)
	return false, nil
}

func TestAnIdleEnvironmentIsArchived(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	w.folders.put(env.ID, "word")
	running := w.run(env.ID, "wait", noWait)
	if done, err := w.idle(env.ID); done || err != nil {
		t.Fatalf("one in which a command runs: %v %v", done, err)
	}
	w.signal(running.ID, "KILL")
	w.await(running.ID)
	sh := w.shellIn(env.ID)
	before := time.Now().Add(-time.Hour)
	records, err := w.store.AllEnvironments(t.Context())
	must(t, err)
	if done, err := w.ArchiveIdle(t.Context(), records[0], before); done || err != nil {
		t.Fatalf("one that was used since: %v %v", done, err)
	}
	if w.shell(sh.ID).State != core.ShellOpen || w.folders.begun() != 0 {
		t.Fatal("it was begun all the same")
	}
	w.closeShell(sh.ID, false)
	w.restart() // memory knows of no use any more, only the record does
	if done, err := w.ArchiveIdle(t.Context(), records[0], before); done || err != nil {
		t.Fatalf("one that was used since, by its record: %v %v", done, err)
	}
	if done, err := w.idle(env.ID); !done || err != nil {
		t.Fatalf("an idle one: %v %v", done, err)
	}
	w.wantState(env.ID, core.StateArchived)
	if done, err := w.idle(env.ID); done || err == nil && w.folders.begun() != 1 {
		t.Fatalf("an archived one: %v %v", done, err)
	}
	w.wantWhole()
}

// TestAnIdleArchiveGivesWay lets an exec come while the folder is packed: it is what ends
// the packing.
func TestAnIdleArchiveGivesWay(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	w.folders.put(env.ID, "word")
	packing := make(chan struct{})
	w.folders.on("pack", func(ctx context.Context) error {
		close(packing)
		<-ctx.Done()
		return ctx.Err()
	})
	type answer struct {
		done bool
		err  error
	}
	answered := make(chan answer, 1)
	go func() {
		done, err := w.idle(env.ID)
		answered <- answer{done, err}
	}()
	<-packing
	_, err := w.Exec(t.Context(), bob, execInput(env.ID, "exit 0"))
	wantCode(t, err, core.CodeNotFound)
	select {
	case got := <-answered:
		t.Fatalf("another's call ended it: %+v", got)
	default:
	}
	w.run(env.ID, "exit 0")
	if got := <-answered; got.done || got.err != nil {
		t.Fatalf("got %+v", got)
	}
	if w.folders.unpacked(env.ID) != 0 {
		t.Fatal("it had to be restored")
	}
	w.wantState(env.ID, core.StateActive)
	w.wantWord(env.ID, "word")
	w.wantWhole()
}

// TestAnIdleArchiveThatWasPackedGivesWayToo lets the folder be packed to the end although
// somebody came meanwhile: it is not the truth, and he need not wait for a restoring.
func TestAnIdleArchiveThatWasPackedGivesWayToo(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	w.folders.put(env.ID, "word")
	packing := make(chan struct{})
	w.folders.on("pack", func(ctx context.Context) error {
		close(packing)
		<-ctx.Done()
		return nil
	})
	answered := make(chan bool, 1)
	go func() {
		done, err := w.idle(env.ID)
		answered <- done || err != nil
	}()
	<-packing
	w.run(env.ID, "exit 0")
	if <-answered || w.folders.unpacked(env.ID) != 0 {
		t.Fatal("it was archived all the same")
	}
	w.wantState(env.ID, core.StateActive)
	w.wantWord(env.ID, "word")
	w.wantWhole()
}

// TestAUseThatOnlyMemoryKnowsKeepsTheReaperAway has somebody read, and go, after the
// reaper has looked for that and before it has the place for itself.
func TestAUseThatOnlyMemoryKnowsKeepsTheReaperAway(t *testing.T) {
	host := &listing{fakeHost: &fakeHost{}}
	w := newAged(t, func(w *world) { w.host, w.config.Sandbox = host.fakeHost, host })
	env := w.create().ID
	c := w.run(env, "exit 0").ID
	_, err := w.OpenShell(t.Context(), alice, core.OpenShellInput{EnvironmentID: env, Kind: string(core.ShellTerminal)})
	must(t, err)
	records, err := w.store.AllEnvironments(t.Context())
	must(t, err)
	w.clock.pass(time.Hour)
	looked := false
	host.mu.Lock()
	host.looked = func() { // at what lives in the shell
		looked = true
		_, err := w.ReadOutput(context.Background(), alice, core.ReadOutputInput{CommandID: c})
		must(t, err)
	}
	host.mu.Unlock()
	if done, err := w.ArchiveIdle(t.Context(), records[0], w.clock.time().Add(-time.Minute)); done || err != nil || !looked {
		t.Fatalf("done %v, looked %v: %v", done, looked, err)
	}
	w.wantState(env, core.StateActive)
}

// TestAnExecThatRacesTheReaperWins lets them meet at every moment.
func TestAnExecThatRacesTheReaperWins(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	w.folders.put(env.ID, "word")
	gaveWay := 0
	for round := range 200 {
		w.folders.on("pack", func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Duration(round%8) * 100 * time.Microsecond):
				return nil
			}
		})
		record, err := w.store.AllEnvironments(t.Context())
		must(t, err)
		var done bool
		together(3, func(i int) {
			if i == 0 {
				var err error
				if done, err = w.ArchiveIdle(context.Background(), record[0], record[0].LastActivityAt); err != nil {
					t.Errorf("the reaper: %v", err)
				}
				return
			}
			c, err := w.Exec(context.Background(), alice, execInput(env.ID, "exit 0"))
			if err != nil || outcomeOf(c) != "exited 0" {
				t.Errorf("round %d: %v %v", round, outcomeOf(c), err)
			}
		})
		if !done {
			gaveWay++
		}
		w.wantWhole()
		w.wantWord(env.ID, "word")
		if t.Failed() {
			return
		}
	}
	w.wantState(env.ID, core.StateActive)
	t.Logf("gave way in %d of 200 rounds", gaveWay)
}
