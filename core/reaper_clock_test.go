package core_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"envapi/core"
)

// stepped is a world whose clock a test can set, beside the time that passes.
type stepped struct {
	*aged
	steady atomic.Int64
}

func newStepped(t *testing.T, change ...func(*world)) *stepped {
	t.Helper()
	s := &stepped{}
	s.aged = newAged(t, append([]func(*world){func(w *world) {
		w.config.Steady = func() time.Duration { return time.Duration(s.steady.Load()) }
	}}, change...)...)
	return s
}

// pass lets time pass and the reaper run, in steps as it does.
func (s *stepped) pass(d time.Duration) {
	for ; d > 0; d -= time.Hour {
		now := min(d, time.Hour)
		s.steady.Add(int64(now))
		s.after(now)
	}
}

// set sets the clock by so much, and has the reaper run.
func (s *stepped) set(by time.Duration) { s.after(by) }

const month = 30 * 24 * time.Hour

func TestAClockThatIsSetForwardEndsNothingAtOnce(t *testing.T) {
	w := newStepped(t)
	env := w.create().ID
	sh := w.shellIn(env).ID
	w.set(month)
	w.wantState(env, core.StateActive)
	if got := w.shell(sh).State; got != core.ShellOpen {
		t.Errorf("the shell is %s", got)
	}
	if at := w.environment(env).ArchivesAt; at == nil || !at.Equal(w.clock.time().Add(24*time.Hour)) {
		t.Errorf("archives_at is %v at %v", at, w.clock.time())
	}
	w.pass(time.Hour - time.Minute)
	if got := w.shell(sh).State; got != core.ShellOpen {
		t.Errorf("after what a shell may be idle less a minute it is %s", got)
	}
	w.pass(time.Minute)
	w.wantClosed(sh, core.CloseIdle)
	w.pass(22 * time.Hour)
	w.wantState(env, core.StateActive) // its owner may come for a day
	w.pass(time.Hour)
	w.wantState(env, core.StateArchived)
}

func TestTheTimeOfALeapIsNoneInWhichAnythingWasIdle(t *testing.T) {
	w := newStepped(t)
	short, long := w.create().ID, w.create().ID
	w.pass(long100 - 2*time.Hour)
	w.run(short, "exit 0")
	w.set(150 * time.Hour)
	w.wantState(long, core.StateActive)
	w.pass(2 * time.Hour) // what was missing
	w.wantState(long, core.StateArchived)
	w.wantState(short, core.StateActive)
}

// One after another, as of a machine that sleeps each night.
func TestLeapsAddUpWhileTheOneBeforeIsNotOver(t *testing.T) {
	w := newStepped(t)
	env := w.create().ID
	for range 3 {
		w.set(60 * time.Hour)
		w.pass(5 * time.Hour)
		w.wantState(env, core.StateActive)
	}
	w.pass(19 * time.Hour)
	w.wantState(env, core.StateArchived)
}

func TestAClockThatIsCorrectedIsNoLeap(t *testing.T) {
	w := newStepped(t)
	env := w.create().ID
	for range 99 {
		w.pass(time.Hour)
		w.set(time.Second)
	}
	w.wantState(env, core.StateActive)
	w.pass(time.Hour)
	w.wantState(env, core.StateArchived)
}

func TestWhatWasUsedInAFutureThatIsTakenBackEnds(t *testing.T) {
	w := newStepped(t)
	noted := w.create().ID
	c := w.run(noted, "exit 0").ID
	w.set(month)
	recorded := w.create().ID
	sh := w.shellIn(recorded).ID
	_, err := w.ReadOutput(context.Background(), alice, core.ReadOutputInput{CommandID: c})
	must(t, err)
	w.set(-month)
	for _, id := range []string{recorded, noted} {
		if got := w.environment(id).LastActivityAt; !got.Equal(w.clock.time()) {
			t.Errorf("%s was last used at %v, and it is %v", id, got, w.clock.time())
		}
	}
	w.pass(time.Hour)
	w.wantClosed(sh, core.CloseIdle)
	w.pass(long100)
	for _, id := range []string{recorded, noted} {
		w.wantState(id, core.StateArchived)
	}
}

// The owner could not come meanwhile.
func TestAfterAMonthOffNothingIsArchivedAtOnce(t *testing.T) {
	w := newStepped(t)
	used, unused := w.create().ID, w.create().ID
	own := int64(2 * time.Hour / time.Millisecond)
	_, err := w.UpdateEnvironment(context.Background(), alice, core.UpdateEnvironmentInput{EnvironmentRef: core.EnvironmentRef{EnvironmentID: unused}, IdleMS: &own})
	must(t, err)
	w.pass(time.Hour)
	must(t, w.Close())
	w.clock.pass(month)
	w.start()
	w.Reap()
	w.wantState(used, core.StateActive)
	w.wantState(unused, core.StateActive)
	w.pass(2 * time.Hour) // no longer than it may be idle at all
	w.wantState(unused, core.StateArchived)
	w.run(used, "exit 0")
	w.pass(long100 - time.Hour)
	w.wantState(used, core.StateActive)
	w.pass(time.Hour)
	w.wantState(used, core.StateArchived)
}

// A service that is started each day, for a while, archives all the same.
func TestWhatWasIdleBeforeTheServiceWasOffIsArchived(t *testing.T) {
	w := newStepped(t)
	idle, other := w.create().ID, w.create().ID
	for range 6 {
		w.run(other, "exit 0")
		must(t, w.Close())
		w.clock.pass(23 * time.Hour)
		w.start()
		w.pass(time.Hour)
	}
	w.wantState(idle, core.StateArchived)
	w.wantState(other, core.StateActive)
}

func TestARecordOfTheFutureDoesNotHideThatTheServiceWasOff(t *testing.T) {
	w := newStepped(t)
	env := w.create().ID
	w.clock.pass(24 * month)
	future := w.create().ID
	must(t, w.Close())
	w.clock.pass(-23 * month)
	w.start()
	w.Reap()
	w.wantState(env, core.StateActive)
	if got := w.environment(future).LastActivityAt; !got.Equal(w.clock.time()) {
		t.Errorf("it was last used at %v, and it is %v", got, w.clock.time())
	}
}
