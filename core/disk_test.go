package core_test

import (
	"strings"
	"testing"
	"time"

	"envapi/core"
	"envapi/sandbox"
)

// grow gives the folder of an environment so many bytes and files more. Much of
// the disk goes away with that, so that it is counted at once.
func (f *fakeFolders) grow(id string, by core.DiskUse) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.uses[id] = core.DiskUse{Bytes: f.uses[id].Bytes + by.Bytes, Files: f.uses[id].Files + by.Files}
	f.space.Free.Bytes -= 128 << 20
}

// holdCounts has every count but the next ones take what there is and then wait for
// the gate. The first that does says so.
func (f *fakeFolders) holdCounts(next int) (arrived <-chan struct{}, gate chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	first := make(chan struct{})
	f.measuring, f.measureGate, f.passing = first, make(chan struct{}), next
	return first, f.measureGate
}

func (f *fakeFolders) counted(id string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts[id]
}

// seen waits until the folder of an environment was counted anew, and that the
// count before it was judged.
func (w *world) seen(id string) {
	w.t.Helper()
	for range 2 {
		before := w.folders.counted(id)
		w.folders.grow(id, core.DiskUse{})
		eventually(w.t, "counted", func() bool { return w.folders.counted(id) > before })
	}
}

// running starts a command that runs on and waits until its folder is known.
func (w *world) running(id string) core.Command {
	w.t.Helper()
	c := w.run(id, "wait", noWait)
	eventually(w.t, "counted", func() bool { return w.Counted(id) })
	return c
}

func TestWhoGrowsBeyondALimitOnDiskIsStopped(t *testing.T) { // D12
	for _, test := range []struct {
		reason string
		by     core.DiskUse
	}{
		{"disk_bytes", core.DiskUse{Bytes: 100<<20 + 1}},
		{"files", core.DiskUse{Files: 1001}},
	} {
		t.Run(test.reason, func(t *testing.T) {
			w := newWorld(t)
			env, other := w.create(), w.create()
			c, second, bystander := w.running(env.ID), w.run(env.ID, "wait", noWait), w.running(other.ID)
			w.folders.grow(env.ID, test.by)
			for range 2 { // also after a restart
				for _, id := range []string{c.ID, second.ID} {
					got := w.await(id)
					if outcomeOf(got) != "killed "+test.reason {
						t.Fatalf("got %q", outcomeOf(got))
					}
					for _, word := range []string{test.reason, "reset_environment"} {
						if !strings.Contains(got.Next, word) {
							t.Errorf("%q is not in %q", word, got.Next)
						}
					}
				}
				if got := w.signal(bystander.ID, "CONT"); got.Status != core.CommandRunning && got.Reason != core.ReasonServiceStopped {
					t.Fatalf("the command of another environment: %s", outcomeOf(got))
				}
				w.restart()
			}
			if got := w.run(env.ID, "exit 0"); outcomeOf(got) != "exited 0" {
				t.Errorf("it is not usable afterwards: %s", outcomeOf(got))
			}
		})
	}
}

func TestWhoIsOverALimitAndDoesNotGrowMayCleanUp(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	first := w.running(env.ID)
	w.folders.grow(env.ID, core.DiskUse{Bytes: 200 << 20, Files: 5})
	w.await(first.ID)
	cleaner := w.run(env.ID, "wait", noWait)
	w.seen(env.ID)
	w.folders.grow(env.ID, core.DiskUse{Bytes: -50 << 20})
	w.seen(env.ID)
	if got := w.signal(cleaner.ID, "CONT"); got.Status != core.CommandRunning {
		t.Fatalf("who cleans up is %s", outcomeOf(got))
	}
	w.folders.grow(env.ID, core.DiskUse{Bytes: 1})
	if got := w.await(cleaner.ID); outcomeOf(got) != "killed disk_bytes" {
		t.Fatalf("who grows further is %s", outcomeOf(got))
	}
}

// A directory that is moved during a count is met twice.
func TestNobodyIsEndedForOneCount(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	c := w.running(env.ID)
	w.folders.grow(env.ID, core.DiskUse{Bytes: 60 << 20})
	w.seen(env.ID)
	w.folders.mu.Lock()
	w.folders.twice[env.ID] = true
	w.folders.mu.Unlock()
	w.seen(env.ID)
	if got := w.signal(c.ID, "CONT"); got.Status != core.CommandRunning {
		t.Fatalf("it is %s", outcomeOf(got))
	}
}

func TestItIsCountedAtOnceWhenMuchGoesAway(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	w.running(env.ID)
	begun := time.Now()
	for range 10 {
		w.seen(env.ID) // two counts
	}
	if took := time.Since(begun); took > 30*time.Second { // every two seconds it would be forty
		t.Errorf("20 counts took %v", took)
	}
}

func TestWhoIsFarOverALimitOnDiskMayOnlyReset(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	filler := w.running(env.ID)
	w.folders.grow(env.ID, core.DiskUse{Bytes: 4<<30 + 100<<20})
	w.await(filler.ID)
	if got := w.run(env.ID, "exit 0"); outcomeOf(got) != "exited 0" {
		t.Fatalf("at the most from which it may be cleaned up: %s", outcomeOf(got))
	}
	filler = w.run(env.ID, "wait", noWait)
	w.folders.grow(env.ID, core.DiskUse{Bytes: 1})
	w.await(filler.ID)
	eventually(t, "refused", func() bool {
		_, err := w.Exec(t.Context(), alice, execInput(env.ID, "exit 0"))
		if err == nil {
			return false
		}
		e := wantCode(t, err, core.CodeQuotaExceeded)
		return e.Facts["limit"] == "disk_bytes" && e.Facts["used"] == int64(4<<30+100<<20+1) && e.Facts["allowed"] == int64(100<<20)
	})
	w.reset(env.ID)
	w.folders.grow(env.ID, core.DiskUse{Bytes: -4 << 30})
	if got := w.run(env.ID, "exit 0"); outcomeOf(got) != "exited 0" {
		t.Fatalf("after a reset: %s", outcomeOf(got))
	}
}

// What is written between the count and the end of those who write must not
// count against who then deletes it.
func TestWhatIsWrittenUntilTheEndIsNoGrowthOfWhoComesAfter(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	filler := w.running(env.ID)
	w.host.closing = func() { w.folders.grow(env.ID, core.DiskUse{Bytes: 1 << 20}) }
	w.folders.grow(env.ID, core.DiskUse{Bytes: 200 << 20})
	w.await(filler.ID)
	cleaner := w.run(env.ID, "wait", noWait)
	w.seen(env.ID)
	if got := w.signal(cleaner.ID, "CONT"); got.Status != core.CommandRunning {
		t.Fatalf("who cleans up is %s", outcomeOf(got))
	}
}

func TestALimitOnDiskIsLoweredAtOnce(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	c := w.running(env.ID)
	_, err := w.UpdateEnvironment(t.Context(), alice, core.UpdateEnvironmentInput{
		EnvironmentRef: core.EnvironmentRef{EnvironmentID: env.ID}, Limits: &core.EnvironmentLimits{DiskBytes: ptr[int64](8 << 20)},
	})
	must(t, err)
	w.folders.grow(env.ID, core.DiskUse{Bytes: 9 << 20})
	if got := w.await(c.ID); outcomeOf(got) != "killed disk_bytes" || !strings.Contains(got.Next, "8388608") {
		t.Fatalf("got %s, %q", outcomeOf(got), got.Next)
	}
}

// What was killed before for another reason keeps it.
func TestAReasonThatCameFirstStays(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	c := w.running(env.ID)
	w.signal(c.ID, "KILL")
	other := w.running(env.ID)
	w.folders.grow(env.ID, core.DiskUse{Bytes: 200 << 20})
	w.await(other.ID)
	if got := w.await(c.ID); outcomeOf(got) != "killed signal" {
		t.Fatalf("got %s", outcomeOf(got))
	}
}

func TestDaemonsAreWatchedUntilTheyEnd(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	w.host.setDaemons(1)
	w.run(env.ID, "exit 0")
	w.seen(env.ID)
	w.folders.grow(env.ID, core.DiskUse{Bytes: 200 << 20})
	eventually(t, "the box is closed", func() bool { return isClosed(w.host.opened()[0].done) })
}

func TestNothingIsWatchedWhereNothingRuns(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	if w.Watched() != 0 {
		t.Fatal("an environment is watched in which nothing ever ran")
	}
	w.run(env.ID, "exit 0")
	eventually(t, "unwatched", func() bool { return w.Watched() == 0 })
	w.run(env.ID, "wait", noWait)
	if w.Watched() != 1 {
		t.Fatal("an environment is not watched in which a command runs")
	}
}

// A count that a reset overtakes concerns the folder that was, and those who ran
// in it.
func TestACountThatAResetOvertakesEndsNobody(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	w.running(env.ID)
	w.folders.grow(env.ID, core.DiskUse{Bytes: 50 << 20})
	w.seen(env.ID)
	arrived, gate := w.folders.holdCounts(1) // the one that confirms
	w.folders.grow(env.ID, core.DiskUse{Bytes: 200 << 20})
	<-arrived
	w.reset(env.ID)
	w.folders.grow(env.ID, core.DiskUse{Bytes: -250 << 20})
	c := w.run(env.ID, "wait", noWait)
	close(gate)
	w.seen(env.ID)
	if got := w.signal(c.ID, "CONT"); got.Status != core.CommandRunning {
		t.Fatalf("who came after the reset is %s", outcomeOf(got))
	}
}

func TestNothingIsKnownOfWhatIsDeleted(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	arrived, gate := w.folders.holdCounts(0)
	w.run(env.ID, "exit 0")
	<-arrived
	_, err := w.DeleteEnvironment(t.Context(), alice, core.EnvironmentRef{EnvironmentID: env.ID})
	must(t, err)
	close(gate)
	other := w.create()
	w.running(other.ID)
	eventually(t, "the count is over", func() bool { return w.Counting() == 0 })
	if w.Counted(env.ID) {
		t.Fatal("a deleted environment is remembered")
	}
}

func TestAFolderThatCannotBeCountedIsNotLeftAlone(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	c := w.running(env.ID)
	w.folders.mu.Lock()
	w.folders.partial[env.ID] = true
	w.folders.mu.Unlock()
	eventually(t, "stopped", func() bool {
		w.folders.grow(env.ID, core.DiskUse{Bytes: 1}) // counted at once
		return isClosed(w.host.opened()[0].done)
	})
	if got := w.await(c.ID); outcomeOf(got) != "killed disk_bytes" || !strings.Contains(got.Next, "moved all the time") {
		t.Fatalf("got %s, %q", outcomeOf(got), got.Next)
	}
}

func TestOnANearlyFullDiskWhoFillsItIsStopped(t *testing.T) {
	w := newWorld(t, func(w *world) { w.config.Limits.FreeDiskBytes = 640 << 20 })
	env, other := w.create(), w.create()
	filler, bystander := w.running(env.ID), w.running(other.ID)
	w.seen(env.ID)
	w.folders.mu.Lock()
	w.folders.space.Free.Bytes = 639 << 20
	w.folders.mu.Unlock()
	w.seen(env.ID)
	share := int64(10 << 20) // a 64th
	w.folders.grow(other.ID, core.DiskUse{Bytes: share})
	w.folders.grow(env.ID, core.DiskUse{Bytes: share + 1})
	if got := w.await(filler.ID); outcomeOf(got) != "killed disk_full" || !strings.Contains(got.Next, "nearly full") {
		t.Fatalf("got %s, %q", outcomeOf(got), got.Next)
	}
	w.seen(other.ID)
	if got := w.signal(bystander.ID, "CONT"); got.Status != core.CommandRunning {
		t.Fatalf("who took its share only is %s", outcomeOf(got))
	}
}

func TestOnANearlyFullDiskWhoHidesFilesIsStopped(t *testing.T) {
	w := newWorld(t, func(w *world) { w.config.Limits.FreeDiskBytes = 640 << 20 })
	env, other := w.create(), w.create()
	hider, bystander := w.running(env.ID), w.running(other.ID)
	w.folders.mu.Lock()
	w.folders.hidden[env.ID] = true
	w.folders.mu.Unlock()
	w.seen(env.ID)
	if got := w.signal(hider.ID, "CONT"); got.Status != core.CommandRunning {
		t.Fatalf("while there is room it is %s", outcomeOf(got))
	}
	w.folders.mu.Lock()
	w.folders.space.Free.Bytes = 639 << 20
	w.folders.mu.Unlock()
	if got := w.await(hider.ID); outcomeOf(got) != "killed disk_full" || !strings.Contains(got.Next, "through a socket") {
		t.Fatalf("got %s, %q", outcomeOf(got), got.Next)
	}
	w.seen(other.ID)
	if got := w.signal(bystander.ID, "CONT"); got.Status != core.CommandRunning {
		t.Fatalf("who hides nothing is %s", outcomeOf(got))
	}
}

func TestASmallDiskKeepsATwentiethFree(t *testing.T) {
	w := newWorld(t)
	w.folders.mu.Lock()
	w.folders.space = core.DiskSpace{Free: core.DiskUse{Bytes: 120 << 20}, Total: core.DiskUse{Bytes: 400 << 20}}
	w.folders.mu.Unlock()
	env := w.create()
	c := w.running(env.ID)
	w.folders.grow(env.ID, core.DiskUse{Bytes: 19 << 20}) // 128 MiB less: nothing is left
	if got := w.await(c.ID); outcomeOf(got) != "killed disk_full" {
		t.Fatalf("got %s", outcomeOf(got))
	}
}

func TestTheReportSaysHowTheDiskIsHeld(t *testing.T) {
	w := newWorld(t)
	w.host.controls = []sandbox.Control{{Name: "disk", Detail: "of the sandbox"}, {Name: "uid"}}
	held := map[string]string{}
	for _, c := range w.Report().Controls {
		if c.Enforced {
			held[c.Name] = c.Detail
		}
	}
	if len(w.Report().Controls) != 3 || !strings.Contains(held["disk"], "2s") || held["file_count"] == "" {
		t.Fatalf("got %+v", w.Report().Controls)
	}
	own := core.WithDisk(sandbox.Report{Tiers: []sandbox.TierReport{
		{Tier: sandbox.TierDirectory}, {Tier: sandbox.TierUser, Controls: []sandbox.Control{{Name: "uid", Enforced: true}}},
	}})
	if c := own.Tiers[1].Controls; own.Tiers[0].Controls != nil || len(c) != 3 || !strings.Contains(c[1].Detail, "count too") {
		t.Errorf("got %+v", own.Tiers)
	}
	status, err := w.GetStatus(t.Context(), alice, core.Nothing{})
	must(t, err)
	if len(status.Sandbox.Controls) != 3 || status.Limits.DiskBytes != 100<<20 || status.Limits.Files != 1000 || status.Limits.MemoryBytes != 1<<30 || status.Limits.CPUPercent != 150 {
		t.Fatalf("got %+v", status)
	}
}
