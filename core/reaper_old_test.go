package core_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"envapi/core"
)

func (w *world) has(command string) bool {
	w.t.Helper()
	_, err := w.GetCommand(context.Background(), alice, core.GetCommandInput{CommandID: command})
	if err != nil {
		wantCode(w.t, err, core.CodeNotFound)
	}
	return err == nil
}

func (w *world) hasShell(id string) bool {
	w.t.Helper()
	_, err := w.GetShell(context.Background(), alice, core.ShellRef{ShellID: id})
	if err != nil {
		wantCode(w.t, err, core.CodeNotFound)
	}
	return err == nil
}

func (w *world) logBytes(env string) int64 {
	w.t.Helper()
	sizes, err := w.config.Logs.Bytes()
	must(w.t, err)
	return sizes[env]
}

// calm waits until nothing is in memory, after which all that ended is old one day.
func (w *world) calm() {
	w.t.Helper()
	eventually(w.t, "forgotten", func() bool { runs, _, _ := w.InMemory(); return runs == 0 && w.ShellsInMemory() == 0 })
}

func TestWhatEndedLongAgoIsRemovedWithItsOutput(t *testing.T) {
	w := newAged(t, func(w *world) { w.config.Retention.Ended = 50 * time.Hour })
	env := w.create().ID
	alone := w.run(env, "print "+long(9000))
	sh := w.shellIn(env)
	inShell := w.inShell(sh.ID, "print "+long(9000))
	w.inShell(sh.ID, "tty "+long(9000))
	w.closeShell(sh.ID, false)
	runs := w.run(env, "wait", noWait, func(in *core.ExecInput) { in.TimeoutMS = ptr(int64(3_600_000)) })
	w.clock.pass(time.Hour)
	later := w.run(env, "print "+long(9000))
	eventually(t, "forgotten", func() bool { n, _, _ := w.InMemory(); return n == 1 && w.ShellsInMemory() == 0 })
	w.after(49*time.Hour - time.Second)
	for _, id := range []string{alone.ID, inShell.ID, runs.ID, later.ID} {
		if !w.has(id) {
			t.Fatalf("%s is gone early", id)
		}
	}
	w.after(2 * time.Second)
	if w.has(alone.ID) || w.has(inShell.ID) || w.hasShell(sh.ID) {
		t.Error("what is old is there still")
	}
	if !w.has(runs.ID) || !w.has(later.ID) {
		t.Error("what is not old is gone")
	}
	if n := w.logBytes(env); n < 9000 || n > 2*9000 {
		t.Errorf("the logs take %d, of which 9000 are to be left", n)
	}
	w.signal(runs.ID, "TERM")
	w.await(runs.ID)
}

// What its children still write to is not taken from under them.
func TestWhatIsInMemoryIsNotRemoved(t *testing.T) {
	w := newAged(t, func(w *world) { w.config.Retention.Ended = 50 * time.Hour })
	env := w.create().ID
	c := w.run(env, "wait", noWait)
	w.process(0).background.Store(true)
	w.process(0).exit(0)
	w.await(c.ID)
	for i := range 3 { // nor does it hold up the others
		w.run(env, fmt.Sprint("exit ", i))
	}
	eventually(t, "one is left", func() bool { n, _, _ := w.InMemory(); return n == 1 })
	w.after(60 * time.Hour)
	w.process(0).print("late")
	if !w.has(c.ID) {
		t.Fatal("it is gone")
	}
	if page, err := w.ListCommands(t.Context(), alice, core.ListCommandsInput{}); err != nil || len(page.Items) != 1 {
		t.Fatalf("got %v, %v", page.Items, err)
	}
	w.process(0).fallSilent()
	w.calm()
	w.Reap()
	if w.has(c.ID) || w.logBytes(env) != 0 {
		t.Error("it is there still")
	}
}

// A log goes before its record, so that a crash in between leaves nothing that is never
// found again.
func TestAFailureBetweenLogAndRecordIsMadeUpFor(t *testing.T) {
	w := newAged(t, func(w *world) {
		w.config.Retention.Ended = 50 * time.Hour
		w.config.Store = &brittle{Store: w.config.Store}
	})
	env := w.create().ID
	c := w.run(env, "print "+long(9000))
	w.calm()
	store := w.config.Store.(*brittle)
	store.removes.Store(true)
	w.after(60 * time.Hour)
	if !w.has(c.ID) || w.logBytes(env) != 0 || w.log.count("could not do all") != 1 {
		t.Fatalf("record %v, log %d bytes", w.has(c.ID), w.logBytes(env))
	}
	store.removes.Store(false)
	w.Reap()
	if w.has(c.ID) {
		t.Error("the record is there still")
	}
}

func TestMoreThanABatchIsRemovedInOneRun(t *testing.T) {
	w := newAged(t, func(w *world) { w.config.Retention.Ended = 50 * time.Hour })
	env := w.create().ID
	for range 230 {
		w.run(env, "exit 0")
	}
	w.calm()
	w.after(60 * time.Hour)
	if page, err := w.ListCommands(t.Context(), alice, core.ListCommandsInput{}); err != nil || len(page.Items) != 0 {
		t.Fatalf("%d are left, %v", len(page.Items), err)
	}
}

func TestAKeyHoldsForItsTime(t *testing.T) {
	w := newAged(t)
	env := w.create().ID
	keyed := func(in *core.ExecInput) { in.IdempotencyKey = "k" }
	first := w.run(env, "exit 1", keyed)
	w.after(20 * time.Hour)
	if again := w.run(env, "exit 1", keyed); again.ID != first.ID {
		t.Fatal("the key is forgotten early")
	}
	w.after(time.Minute)
	if again := w.run(env, "exit 1", keyed); again.ID == first.ID {
		t.Fatal("the key holds for ever")
	}
	if !w.has(first.ID) {
		t.Error("the command went with its key")
	}
}

func (f *fakeFolders) setFree(bytes int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.space.Free.Bytes = bytes
}

// wantDropped fails unless the output of a command was dropped, or is there.
func (w *world) wantDropped(c core.Command, want bool) {
	w.t.Helper()
	out, err := w.ReadOutput(context.Background(), alice, core.ReadOutputInput{CommandID: c.ID, Stream: "stdout"})
	if !want {
		must(w.t, err)
		if !strings.HasPrefix(out.Data, "xxx") {
			w.t.Fatalf("%s: got %.20q", c.ID, out.Data)
		}
		return
	}
	if e := wantCode(w.t, err, core.CodeOutputExpired); e.Facts["next_offset"] != c.Stdout.TotalBytes {
		w.t.Fatalf("got %v", e.Facts)
	}
	got := w.await(c.ID)
	if got.Stdout.TotalBytes != c.Stdout.TotalBytes || got.Stdout.Text != "" || got.Stdout.OmittedBytes != c.Stdout.TotalBytes {
		w.t.Fatalf("got %+v", got.Stdout)
	}
}

func TestOutputMakesRoomOnAFullDisk(t *testing.T) {
	const reserve = 1 << 30 // of the terabyte that the fake disk has
	w := newAged(t)
	loud, quiet := w.create().ID, w.create().ID
	text := "print " + long(9000)
	keyed := func(in *core.ExecInput) { in.IdempotencyKey = "k" }
	old := []core.Command{w.run(loud, text, keyed), w.run(loud, text), w.run(loud, text)}
	few := w.run(quiet, text)
	w.clock.pass(11 * time.Minute)
	young := w.run(loud, text)
	w.clock.pass(time.Minute)
	runs := w.run(loud, "wait", noWait, func(in *core.ExecInput) { in.TimeoutMS = ptr(int64(3_600_000)) })
	eventually(t, "forgotten", func() bool { n, _, _ := w.InMemory(); return n == 1 })

	w.folders.setFree(reserve * 3 / 2)
	w.Reap()
	for _, c := range append(old, few, young) {
		w.wantDropped(c, false)
	}
	w.folders.setFree(reserve*3/2 - 1)
	w.Reap()
	for _, c := range append(old, few) {
		w.wantDropped(c, true)
	}
	w.wantDropped(young, false)
	if w.log.count("was dropped before its time") != 1 || w.log.count("commands=4") != 1 {
		t.Error("it is not said once, or not how much")
	}
	if again := w.run(loud, text, keyed); again.ID != old[0].ID {
		t.Error("the key went with the output")
	}
	w.wantState(loud, core.StateActive)
	w.Reap()
	if w.log.count("was dropped before its time") != 1 {
		t.Error("said again where nothing was dropped")
	}
	w.after(11 * time.Minute)
	w.wantDropped(young, true)
	w.signal(runs.ID, "TERM")
	w.await(runs.ID)
}

// On a disk without room for archives, idle environments stay as they are, and that is said
// once, not at each run of each of them.
func TestNothingIsArchivedOnAFullDisk(t *testing.T) {
	w := newAged(t)
	first, second := w.create().ID, w.create().ID
	w.folders.setFree(1 << 20)
	for range 3 {
		w.after(2 * long100)
		w.wantState(first, core.StateActive)
		w.wantState(second, core.StateActive)
	}
	if w.log.count("until the disk has more room") != 1 || w.log.count("trying again") != 0 {
		t.Error("it is not said once")
	}
	w.folders.setFree(1 << 40)
	w.after(2 * long100)
	w.wantState(first, core.StateArchived)
	w.wantState(second, core.StateArchived)
	if w.log.count("are archived again") != 1 {
		t.Error("that it goes on is not said")
	}
}

// What cannot be archived is tried once an hour: each try reads a folder and is an error in
// the log.
func TestWhatCannotBeArchivedIsLeftForAnHour(t *testing.T) {
	w := newAged(t)
	env := w.create().ID
	w.folders.on("pack", func(context.Context) error { return errNoDisk })
	w.after(2 * long100)
	for range 3 {
		w.after(time.Minute)
	}
	if n := w.log.count("trying again in an hour"); n != 1 {
		t.Errorf("tried %d times", n)
	}
	w.after(time.Hour)
	if n := w.log.count("trying again in an hour"); n != 2 {
		t.Errorf("tried %d times in two hours", n)
	}
	w.folders.on("pack", nil)
	w.after(time.Hour)
	w.wantState(env, core.StateArchived)
}

// It goes no further than it must: the largest first, the oldest of it.
func TestOutputMakesNoMoreRoomThanIsNeeded(t *testing.T) {
	const reserve = 1 << 30
	w := newAged(t)
	loud, quiet := w.create().ID, w.create().ID
	text := "print " + long(9000)
	few := w.run(quiet, text)
	w.clock.pass(time.Second)
	first := w.run(loud, text)
	w.clock.pass(time.Second)
	second := w.run(loud, text)
	w.calm()
	w.folders.setFree(reserve)
	trimmed := &freeing{OutputLogs: w.config.Logs, folders: w.folders}
	w.config.Logs = trimmed
	w.restart()
	w.after(time.Hour)
	w.wantDropped(first, true)
	w.wantDropped(second, false)
	w.wantDropped(few, false)
}

// freeing is logs whose trimming makes room.
type freeing struct {
	core.OutputLogs
	folders *fakeFolders
}

func (f *freeing) Trim(environmentID, commandID string) (int64, error) {
	n, err := f.OutputLogs.Trim(environmentID, commandID)
	if n > 0 {
		f.folders.setFree(1 << 40)
	}
	return n, err
}
