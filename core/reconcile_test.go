package core_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"envapi/core"
)

// mortal is a machine that dies before one of its steps: that one and all after
// it change nothing.
type mortal struct{ left atomic.Int64 }

var errDead = errors.New("the machine is dead")

func (m *mortal) step(do func() error) error {
	if m.left.Add(-1) < 0 {
		return errDead
	}
	return do()
}

type mortalStore struct {
	core.Store
	*mortal
}

func (s mortalStore) CreateEnvironment(ctx context.Context, e core.EnvironmentRecord, q core.EnvironmentQuota, u core.UIDRange, k core.Idempotency) (made core.EnvironmentRecord, existed bool, err error) {
	err = s.step(func() (err error) {
		made, existed, err = s.Store.CreateEnvironment(ctx, e, q, u, k)
		return err
	})
	return made, existed, err
}

func (s mortalStore) UpdateEnvironment(ctx context.Context, o core.Owner, id string, change func(*core.EnvironmentRecord) error) (env core.EnvironmentRecord, err error) {
	err = s.step(func() (err error) {
		env, err = s.Store.UpdateEnvironment(ctx, o, id, change)
		return err
	})
	if errors.Is(err, errDead) {
		err = errors.Join(err, core.ErrNoRecord) // a living service would try again for ever
	}
	return env, err
}

func (s mortalStore) TurnEnvironment(ctx context.Context, o core.Owner, id string, q core.EnvironmentQuota, change func(*core.EnvironmentRecord) error) (env core.EnvironmentRecord, err error) {
	err = s.step(func() (err error) {
		env, err = s.Store.TurnEnvironment(ctx, o, id, q, change)
		return err
	})
	return env, err
}

func (s mortalStore) DeleteEnvironment(ctx context.Context, o core.Owner, id string) error {
	return s.step(func() error { return s.Store.DeleteEnvironment(ctx, o, id) })
}

func (s mortalStore) ReleaseUID(ctx context.Context, id string) error {
	return s.step(func() error { return s.Store.ReleaseUID(ctx, id) })
}

func (s mortalStore) FinishCommand(ctx context.Context, id string, end core.CommandEnd) error {
	return s.buried(s.step(func() error { return s.Store.FinishCommand(ctx, id, end) }))
}

func (s mortalStore) DropEnvironment(ctx context.Context, id string) error {
	return s.buried(s.step(func() error { return s.Store.DropEnvironment(ctx, id) }))
}

// buried is for what a living service would try again for ever.
func (s mortalStore) buried(err error) error {
	if errors.Is(err, errDead) {
		return nil
	}
	return err
}

type mortalFolders struct {
	core.Workspaces
	*mortal
}

func (f mortalFolders) Create(ctx context.Context, id string, uid int) error {
	return f.step(func() error { return f.Workspaces.Create(ctx, id, uid) })
}

func (f mortalFolders) Reset(ctx context.Context, id string, uid int) error {
	return f.step(func() error { return f.Workspaces.Reset(ctx, id, uid) })
}

func (f mortalFolders) Remove(ctx context.Context, id string, freed func()) error {
	return f.step(func() error { return f.Workspaces.Remove(ctx, id, freed) })
}

func (f mortalFolders) Pack(ctx context.Context, id string, uid int) (a core.Archive, err error) {
	err = f.step(func() (err error) {
		a, err = f.Workspaces.Pack(ctx, id, uid)
		return err
	})
	return a, err
}

func (f mortalFolders) Unpack(ctx context.Context, id string, uid int) error {
	return f.step(func() error { return f.Workspaces.Unpack(ctx, id, uid) })
}

func (f mortalFolders) Vacate(ctx context.Context, id string) error {
	return f.step(func() error { return f.Workspaces.Vacate(ctx, id) })
}

func (f mortalFolders) DropArchive(ctx context.Context, id string) error {
	return f.step(func() error { return f.Workspaces.DropArchive(ctx, id) })
}

func (f mortalFolders) Copy(ctx context.Context, from, to string, uid int, most core.DiskUse) error {
	return f.step(func() error { return f.Workspaces.Copy(ctx, from, to, uid, most) })
}

type mortalLogs struct {
	core.OutputLogs
	*mortal
}

func (l mortalLogs) RemoveEnvironment(id string) error {
	return l.step(func() error { return l.OutputLogs.RemoveEnvironment(id) })
}

// TestACrashAnywhereLeavesOldOrNew lets the machine die before each step of
// each operation that changes an environment, then starts again.
func TestACrashAnywhereLeavesOldOrNew(t *testing.T) {
	key := core.CreateEnvironmentInput{IdempotencyKey: "k"}
	fork := core.ForkEnvironmentInput{IdempotencyKey: "k"}
	reset := func(w *world, env core.Environment) error {
		_, err := w.ResetEnvironment(context.Background(), alice, refTo(env.ID))
		return err
	}
	remove := func(w *world, env core.Environment) error {
		_, err := w.DeleteEnvironment(context.Background(), alice, refTo(env.ID))
		return err
	}
	for _, test := range []mortalTest{
		{name: "create", do: func(w *world, _ core.Environment) error {
			_, err := w.CreateEnvironment(context.Background(), alice, key)
			return err
		}, left: 2, keeps: true},
		{name: "reset", do: reset, left: 1},
		{name: "delete", do: remove, left: 0},
		{name: "archive", do: func(w *world, env core.Environment) error {
			_, err := w.ArchiveEnvironment(context.Background(), alice, refTo(env.ID))
			return err
		}, left: 1, keeps: true},
		{name: "restore", archived: true, do: func(w *world, env core.Environment) error {
			_, err := w.RestoreEnvironment(context.Background(), alice, refTo(env.ID))
			return err
		}, left: 1, keeps: true},
		{name: "reset an archived one", archived: true, do: reset, left: 1},
		{name: "delete an archived one", archived: true, do: remove, left: 0},
		{name: "fork", do: func(w *world, env core.Environment) error {
			fork := fork
			fork.EnvironmentRef = refTo(env.ID)
			made, err := w.ForkEnvironment(context.Background(), alice, fork)
			if err == nil && w.folders.word(made.ID) != "word" {
				return errors.New("the fork holds something else")
			}
			return err
		}, left: 2, keeps: true},
	} {
		for steps, done := int64(0), false; !done; steps++ {
			t.Run(fmt.Sprintf("%s dies before step %d", test.name, steps+1), func(t *testing.T) {
				done = test.dieAt(t, steps)
			})
		}
	}
}

// mortalTest is an operation on an environment whose folder holds "word".
type mortalTest struct {
	name     string
	archived bool // it is, before
	do       func(w *world, env core.Environment) error
	left     int  // environments that there are when it is done
	keeps    bool // what the folder holds is never lost
}

// dieAt performs an operation on a machine that dies after so many steps, then
// on one that lives. It says whether the first one came to the end.
func (test mortalTest) dieAt(t *testing.T, steps int64) (done bool) {
	machine := &mortal{}
	machine.left.Store(1 << 30)
	w := newWorld(t, func(w *world) {
		w.host.needsUID = true
		w.config.Store = mortalStore{w.config.Store, machine}
		w.config.Workspaces = mortalFolders{w.folders, machine}
		w.config.Logs = mortalLogs{w.config.Logs, machine}
	})
	env := w.create()
	w.folders.put(env.ID, "word")
	c := w.run(env.ID, "wait", noWait)
	if test.archived {
		w.archive(env.ID)
	}

	machine.left.Store(steps)
	err := test.do(w, env)
	done = machine.left.Load() >= 0
	// Of what is deleted the freeing of the uid may be left, and of what is archived or
	// restored the removal of the folder or the archive that is not the truth any more.
	if err == nil && !done && (test.name == "create" || test.name == "reset" || test.name == "fork") {
		t.Fatal("answered success, but a step was not done")
	}
	_ = w.Close() // what a dead machine still does has no effect
	machine.left.Store(1 << 30)
	w.start()

	w.wantWhole()
	if test.keeps {
		w.wantWord(env.ID, "word")
	}
	if got, err := w.GetCommand(t.Context(), alice, core.GetCommandInput{CommandID: c.ID}); err == nil && got.Status == core.CommandRunning {
		t.Fatal("the command of a dead service runs")
	}
	if err := test.do(w, env); err != nil && core.AsError(err).Code != core.CodeNotFound {
		t.Fatalf("the same call again: %v", err)
	}
	if n := len(w.environments()); n != test.left {
		t.Fatalf("%d environments in the end, want %d", n, test.left)
	}
	w.wantWhole()
	return done
}

// wantWhole fails where records, folders and uids do not belong together.
func (w *world) wantWhole() {
	w.t.Helper()
	records, err := w.store.AllEnvironments(context.Background())
	must(w.t, err)
	folders, err := w.folders.IDs()
	must(w.t, err)
	archives, err := w.folders.ArchiveIDs()
	must(w.t, err)
	if len(folders)+len(archives) != len(records) {
		w.t.Fatalf("%d records, %d folders, %d archives", len(records), len(folders), len(archives))
	}
	for _, r := range records {
		active, archived := r.State == core.StateActive && r.Archive == nil, r.State == core.StateArchived && r.Archive != nil
		if _, packed := w.folders.archived(r.ID); w.folders.has(r.ID) != active || packed != archived || active == archived {
			w.t.Fatalf("not whole: %+v", r)
		}
		if active && w.folders.uidOf(r.ID) != r.HostUID {
			w.t.Fatalf("another's uid: %+v", r)
		}
	}
	w.wantNoUIDTaken()
}

func TestAStartRemovesFoldersThatNoRecordKnows(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	stray := "env_" + long(26)
	must(t, w.folders.Create(t.Context(), stray, 0))
	w.restart()
	if w.folders.has(stray) || !w.folders.has(env.ID) {
		t.Fatal("the wrong folder is gone")
	}
}

func TestAStartThatCannotMendOneServesTheOthers(t *testing.T) {
	w := newWorld(t)
	broken, sound := w.create(), w.create()
	w.folders.failWith(errors.New("no disk"))
	if _, err := w.ResetEnvironment(t.Context(), alice, core.EnvironmentRef{EnvironmentID: broken.ID}); err == nil {
		t.Fatal("no error")
	}
	w.restart()
	w.run(sound.ID, "exit 0")
	_, err := w.Exec(t.Context(), alice, execInput(broken.ID, "exit 0"))
	wantCode(t, err, core.CodeEnvironmentBusy)
	w.folders.failWith(nil)
	w.restart()
	w.run(broken.ID, "exit 0")
}
