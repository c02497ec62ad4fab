package core_test

import (
	"context"
	"testing"
	"time"

	"envapi/core"
)

// TestARunArchivesNoLongerThanItMay, and the next goes on after the one that it came to,
// also where that failed: one that takes long, or never can be archived, holds up nobody.
func TestARunArchivesNoLongerThanItMay(t *testing.T) {
	w := newAged(t)
	w.ArchiveFor(0)
	var ids [5]string
	for i := range ids {
		ids[i] = w.create().ID
		w.clock.pass(time.Second) // the first one is idle for longest
	}
	w.folders.on("pack", func(context.Context) error {
		w.folders.on("pack", nil)
		return errDisk
	})
	want := func(archived ...int) {
		t.Helper()
		states := [5]core.EnvironmentState{}
		for i := range states {
			states[i] = core.StateActive
		}
		for _, i := range archived {
			states[i] = core.StateArchived
		}
		for i, id := range ids {
			w.wantState(id, states[i])
		}
	}
	w.after(long100)
	want()
	w.Reap()
	want(1)
	w.run(ids[2], "exit 0") // it was seen to be idle before
	w.Reap()
	want(1)
	w.Reap()
	want(1, 3)
	w.Reap()
	want(1, 3, 4)
	w.clock.pass(time.Hour) // for which the one that failed is left
	w.Reap()
	want(0, 1, 3, 4)
}
