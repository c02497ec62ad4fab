package core_test

import (
	"testing"
	"time"

	"envapi/core"
)

func TestTheCensusCountsWhatLives(t *testing.T) {
	w := newAged(t)
	want := func(what string, want core.Census) {
		t.Helper()
		eventually(t, what, func() bool { return w.Census() == want })
	}
	want("nothing", core.Census{})
	env := w.create().ID
	sh := w.shellIn(env)
	c := w.run(env, "wait", noWait)
	want("a shell and a command", core.Census{Boxes: 1, Shells: 1, Commands: 1})
	w.signal(c.ID, "TERM")
	w.await(c.ID)
	want("a shell", core.Census{Boxes: 1, Shells: 1})
	w.closeShell(sh.ID, false)
	want("a box", core.Census{Boxes: 1})
	w.after(long100)
	w.wantState(env, core.StateArchived)
	want("nothing any more", core.Census{})
}

func TestWhatTheReaperDidIsCounted(t *testing.T) {
	store := &brittle{}
	w := newAged(t, func(w *world) {
		w.config.Retention.Ended = 50 * time.Hour
		store.Store, w.config.Store = w.config.Store, store
	})
	if did := w.Reaped(); did.Runs != 0 || !did.LastRun.IsZero() || did.Ended["shells"] != 0 {
		t.Fatalf("before its first run it did %+v", did)
	}
	env := w.create().ID
	w.run(env, "exit 0")
	w.shellIn(env)
	w.after(2 * time.Hour)
	w.calm()
	did := w.Reaped()
	if did.Runs == 0 || !did.LastRun.Equal(w.clock.time()) || did.Ended["shells"] != 1 || did.Ended["old_commands"] != 0 {
		t.Errorf("after a run it did %+v at %v", did, w.clock.time())
	}
	store.removes.Store(true)
	w.after(50 * time.Hour)
	failed := w.Reaped()
	if failed.Failed["old_commands"] == 0 || failed.Ended["old_commands"] != 0 || failed.Failed["shells"] != 0 {
		t.Errorf("where the store fails it did %+v", failed)
	}
	store.removes.Store(false)
	w.after(50 * time.Hour)
	now := w.Reaped()
	if now.Ended["old_commands"] != 1 || now.Ended["old_shells"] != 1 || now.Ended["environments"] != 1 || now.Failed["old_commands"] != failed.Failed["old_commands"] {
		t.Errorf("in the end it did %+v", now)
	}
	if _, ok := now.Ended["activity"]; ok {
		t.Error("what it noted of activity counts as ended")
	}
}
