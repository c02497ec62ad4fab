package core_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"envapi/core"
)

// TestAnAccountArchivesAndRestoresFewAtATime: what it asks for more waits, and another
// account waits for none of it.
func TestAnAccountArchivesAndRestoresFewAtATime(t *testing.T) {
	w := newWorld(t)
	const many = 6
	var ids [many]string
	for i := range ids {
		ids[i] = w.create().ID
		if i%2 == 0 {
			w.archive(ids[i])
		}
	}
	theirs, err := w.CreateEnvironment(t.Context(), bob, core.CreateEnvironmentInput{Name: "theirs"})
	must(t, err)
	var now, begun, most atomic.Int64
	free := make(chan struct{})
	work := func(context.Context) error {
		most.Store(max(most.Load(), now.Add(1)))
		begun.Add(1)
		<-free
		now.Add(-1)
		return nil
	}
	w.folders.on("pack", work)
	w.folders.on("unpack", work)
	var all sync.WaitGroup
	for i, id := range ids {
		all.Go(func() {
			var err error
			if i%2 == 0 {
				_, err = w.RestoreEnvironment(context.Background(), alice, refTo(id))
			} else {
				_, err = w.ArchiveEnvironment(context.Background(), alice, refTo(id))
			}
			if err != nil {
				t.Errorf("%d: %v", i, err)
			}
		})
	}
	eventually(t, "two are under way, and four wait", func() bool { return begun.Load() == 2 && w.Waiting(alice.Account) == many })
	w.folders.on("pack", nil)
	_, err = w.ArchiveEnvironment(t.Context(), bob, refTo(theirs.ID))
	must(t, err)
	w.folders.on("pack", work)
	close(free)
	all.Wait()
	if most.Load() != 2 || begun.Load() != many || w.Waiting(alice.Account) != 0 {
		t.Fatalf("%d at a time, %d in all, %d wait", most.Load(), begun.Load(), w.Waiting(alice.Account))
	}
	w.wantWhole()
}

// TestWhoWaitsToArchiveEndsWithTheService as what is under way does.
func TestWhoWaitsToArchiveEndsWithTheService(t *testing.T) {
	w := newWorld(t)
	var ids [3]string
	for i := range ids {
		ids[i] = w.create().ID
	}
	w.folders.on("pack", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	var all sync.WaitGroup
	for _, id := range ids {
		all.Go(func() {
			_, err := w.ArchiveEnvironment(context.Background(), alice, refTo(id))
			if core.AsError(err).Code != core.CodeUnavailable {
				t.Errorf("got %v", err)
			}
		})
	}
	eventually(t, "one waits", func() bool { return w.Waiting(alice.Account) == 3 })
	must(t, w.Close())
	all.Wait()
}

// TestWhatWritesAFolderEndsWhereTheDiskIsLow: what somebody may write says nothing of
// what the host has, and others write meanwhile.
func TestWhatWritesAFolderEndsWhereTheDiskIsLow(t *testing.T) {
	free := func(w *world, bytes int64) {
		w.folders.mu.Lock()
		defer w.folders.mu.Unlock()
		w.folders.space.Free.Bytes = bytes
	}
	const reserve = 1 << 30 // of a large disk
	for step, do := range map[string]func(*world, string, string) error{
		"copy": func(w *world, active, _ string) error {
			_, err := w.ForkEnvironment(context.Background(), alice, forkOf(active))
			return err
		},
		"unpack": func(w *world, _, archived string) error {
			_, err := w.RestoreEnvironment(context.Background(), alice, refTo(archived))
			return err
		},
		"pack": func(w *world, active, _ string) error {
			_, err := w.ArchiveEnvironment(context.Background(), alice, refTo(active))
			return err
		},
	} {
		t.Run(step, func(t *testing.T) {
			w := newWorld(t)
			archived := w.archived("word")
			active := w.create().ID
			low := int64(reserve - 1)
			if step == "pack" {
				low = reserve/2 - 1
			}
			w.folders.on(step, func(ctx context.Context) error {
				free(w, low)
				<-ctx.Done()
				return ctx.Err()
			})
			wantCode(t, do(w, active, archived), core.CodeDiskFull)
			w.wantState(active, core.StateActive)
			w.wantState(archived, core.StateArchived)
			w.wantWord(archived, "word")
			w.folders.on(step, nil)
			free(w, low+1)
			must(t, do(w, active, archived))
		})
	}
}

// TestNothingIsEndedForAnArchiveThatHasNoRoom on the host's disk.
func TestNothingIsEndedForAnArchiveThatHasNoRoom(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	c := w.running(env.ID)
	w.folders.mu.Lock()
	w.folders.space.Free.Bytes = 1<<29 - 1
	w.folders.mu.Unlock()
	_, err := w.ArchiveEnvironment(t.Context(), alice, refTo(env.ID))
	wantCode(t, err, core.CodeDiskFull)
	if got := w.signal(c.ID, "CONT"); got.Status != core.CommandRunning {
		t.Fatalf("it is %s", outcomeOf(got))
	}
}
