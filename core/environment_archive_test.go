package core_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"envapi/core"
)

var errDisk = errors.New("the disk is broken")

func refTo(id string) core.EnvironmentRef { return core.EnvironmentRef{EnvironmentID: id} }

// archived makes an environment whose folder holds a word, and archives it.
func (w *world) archived(word string) string {
	w.t.Helper()
	env := w.create()
	w.folders.put(env.ID, word)
	w.archive(env.ID)
	return env.ID
}

func (w *world) archive(id string) core.Environment {
	w.t.Helper()
	env, err := w.ArchiveEnvironment(context.Background(), alice, refTo(id))
	must(w.t, err)
	return env
}

func (w *world) restore(id string) core.Environment {
	w.t.Helper()
	env, err := w.RestoreEnvironment(context.Background(), alice, refTo(id))
	must(w.t, err)
	return env
}

// wantState fails unless an environment is in a state.
func (w *world) wantState(id string, state core.EnvironmentState) core.Environment {
	w.t.Helper()
	env, err := w.GetEnvironment(context.Background(), alice, refTo(id))
	must(w.t, err)
	if env.State != state {
		w.t.Fatalf("the state is %s, want %s", env.State, state)
	}
	return env
}

// wantWord fails unless the folder of an environment holds a word, or its archive does.
func (w *world) wantWord(id, word string) {
	w.t.Helper()
	packed, archived := w.folders.archived(id)
	if got := w.folders.word(id); !archived && got != word || archived && packed != word {
		w.t.Fatalf("folder %q, archive %q (%v), want %q", got, packed, archived, word)
	}
}

func TestArchiveEndsWhatRunsAndRestoreBringsTheFolderBack(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	w.folders.put(env.ID, "word")
	running, sh := w.run(env.ID, "wait", noWait), w.shellIn(env.ID)

	got := w.archive(env.ID)
	if got.State != core.StateArchived || got.ArchivedAt == nil || *got.ArchiveBytes != 100 || *got.Usage.DiskBytes.Used != 8192 || *got.Usage.Files.Used != 7 {
		t.Fatalf("got %+v", got)
	}
	if c := w.await(running.ID); outcomeOf(c) != "killed environment_archived" {
		t.Fatalf("the command: %s", outcomeOf(c))
	}
	w.wantClosed(sh.ID, core.CloseEnvironmentArchived)
	if w.folders.has(env.ID) {
		t.Fatal("the folder is still there")
	}
	w.wantWord(env.ID, "word")
	page, err := w.ListEnvironments(t.Context(), alice, core.ListEnvironmentsInput{State: string(core.StateArchived)})
	must(t, err)
	if len(page.Items) != 1 || *page.Items[0].Usage.Files.Used != 7 {
		t.Fatalf("listed: %+v", page.Items)
	}
	w.wantWhole()

	if again := w.archive(env.ID); !again.ArchivedAt.Equal(got.ArchivedAt.Time) {
		t.Fatal("archiving again made another archive")
	}
	if back := w.restore(env.ID); back.State != core.StateActive || back.ArchivedAt != nil || back.ArchiveBytes != nil {
		t.Fatalf("restored: %+v", back)
	}
	w.wantWord(env.ID, "word")
	w.wantWhole()
	w.restore(env.ID)
	if n := w.folders.unpacked(env.ID); n != 1 {
		t.Fatalf("unpacked %d times", n)
	}
}

func TestReadingOutputRestoresNothing(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	c := w.run(env.ID, "print hello")
	w.archive(env.ID)
	if got := string(w.readAll(t, c.ID, "stdout", "keep", func() int64 { return 100 })); got == "" {
		t.Fatal("the output is gone")
	}
	_, err := w.ListCommands(t.Context(), alice, core.ListCommandsInput{EnvironmentID: env.ID})
	must(t, err)
	_, err = w.UpdateEnvironment(t.Context(), alice, core.UpdateEnvironmentInput{EnvironmentRef: refTo(env.ID), Name: ptr("new")})
	must(t, err)
	w.wantState(env.ID, core.StateArchived)
}

func TestUsingAnArchivedEnvironmentRestoresItOnce(t *testing.T) {
	w := newWorld(t, func(w *world) { w.config.Limits.RunningCommands = 30 })
	env := w.archived("word")
	together(20, func(i int) {
		c, err := w.Exec(context.Background(), alice, execInput(env, "exit 0"))
		if err != nil || c.Status != core.CommandExited {
			t.Errorf("call %d: %v %v", i, c.Status, err)
		}
	})
	if n := w.folders.unpacked(env); n != 1 {
		t.Fatalf("unpacked %d times", n)
	}
	w.wantWord(env, "word")
	w.wantWhole()

	w.archive(env)
	w.shellIn(env)
	w.wantState(env, core.StateActive)
}

func TestRestoreFalseRestoresNothing(t *testing.T) {
	w := newWorld(t)
	env, no := w.archived("word"), core.Restoring{Restore: ptr(false)}
	file := core.FileRef{EnvironmentID: env, Path: "a", Restoring: no}
	for name, use := range map[string]func() error{
		"exec": func() error {
			_, err := w.Exec(t.Context(), alice, execInput(env, "exit 0", func(in *core.ExecInput) { in.Restoring = no }))
			return err
		},
		"open_shell": func() error {
			_, err := w.OpenShell(t.Context(), alice, core.OpenShellInput{EnvironmentID: env, Restoring: no})
			return err
		},
		"stat_file": func() error {
			_, err := w.StatFile(t.Context(), alice, core.StatFileInput{FileRef: file})
			return err
		},
		"write_file": func() error {
			_, err := w.WriteFile(t.Context(), alice, core.WriteFileInput{FileRef: file, Content: "x"})
			return err
		},
		"list_files": func() error {
			_, err := w.ListFiles(t.Context(), alice, core.ListFilesInput{DirectoryRef: core.DirectoryRef{EnvironmentID: env, Restoring: no}})
			return err
		},
		"copy_file": func() error {
			_, err := w.CopyFile(t.Context(), alice, core.CopyFileInput{EnvironmentID: env, Source: "a", Destination: "b", Restoring: no})
			return err
		},
		"apply_patch": func() error {
			_, err := w.ApplyPatch(t.Context(), alice, core.ApplyPatchInput{EnvironmentID: env, Patch: "--- a\n+++ a\n@@ -1 +1 @@\n-x\n+y\n", Restoring: no})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			if e := wantCode(t, use(), core.CodeEnvironmentArchived); !strings.Contains(e.Detail, "env_") {
				t.Errorf("does not say which: %s", e.Detail)
			}
		})
	}
	if n := w.folders.unpacked(env); n != 0 {
		t.Fatal("it was restored")
	}
	_, err := w.Exec(t.Context(), bob, execInput(env, "exit 0"))
	wantCode(t, err, core.CodeNotFound)
	w.wantState(env, core.StateArchived)
}

func TestAFailureToArchiveIsTakenBack(t *testing.T) {
	for _, step := range []string{"pack", "vacate", "drop"} {
		t.Run(step, func(t *testing.T) {
			w := newWorld(t)
			env := w.create()
			w.folders.put(env.ID, "word")
			w.folders.on(step, func(context.Context) error { return errDisk })
			_, err := w.ArchiveEnvironment(t.Context(), alice, refTo(env.ID))
			w.folders.on(step, nil)
			if step == "pack" {
				if !errors.Is(err, errDisk) {
					t.Fatalf("got %v", err)
				}
				w.wantState(env.ID, core.StateActive)
			} else {
				must(t, err)
				w.wantState(env.ID, core.StateArchived)
				w.restart()
			}
			w.wantWhole()
			w.run(env.ID, "exit 0")
			w.wantWord(env.ID, "word")
		})
	}
}

func TestAFailureToRestoreIsTakenBack(t *testing.T) {
	for _, step := range []string{"unpack", "drop"} {
		t.Run(step, func(t *testing.T) {
			w := newWorld(t)
			env := w.archived("word")
			full := core.Errorf(core.CodeDiskFull, "the disk is full")
			w.folders.on(step, func(context.Context) error { return full })
			together(5, func(int) {
				_, err := w.Exec(context.Background(), alice, execInput(env, "exit 0"))
				if step == "unpack" && core.AsError(err).Code != core.CodeDiskFull || step != "unpack" && err != nil {
					t.Errorf("got %v", err)
				}
			})
			w.folders.on(step, nil)
			if step == "unpack" {
				w.wantState(env, core.StateArchived)
			} else {
				w.wantState(env, core.StateActive)
				w.restart()
			}
			w.wantWhole()
			w.run(env, "exit 0")
			w.wantWord(env, "word")
		})
	}
}

// refusing fails some changes of environments, as a store on a broken disk does.
type refusing struct {
	core.Store
	refuse atomic.Pointer[func(core.EnvironmentState) bool] // by the state that it would be
}

func (s *refusing) UpdateEnvironment(ctx context.Context, o core.Owner, id string, change func(*core.EnvironmentRecord) error) (core.EnvironmentRecord, error) {
	return s.Store.UpdateEnvironment(ctx, o, id, s.refused(change))
}

func (s *refusing) TurnEnvironment(ctx context.Context, o core.Owner, id string, q core.EnvironmentQuota, change func(*core.EnvironmentRecord) error) (core.EnvironmentRecord, error) {
	return s.Store.TurnEnvironment(ctx, o, id, q, s.refused(change))
}

func (s *refusing) refused(change func(*core.EnvironmentRecord) error) func(*core.EnvironmentRecord) error {
	return func(env *core.EnvironmentRecord) error {
		if err := change(env); err != nil {
			return err
		}
		if refuse := s.refuse.Load(); refuse != nil && (*refuse)(env.State) {
			return errDisk
		}
		return nil
	}
}

// once refuses a state the first time.
func (s *refusing) once(state core.EnvironmentState) {
	var done atomic.Bool
	refuse := func(to core.EnvironmentState) bool { return to == state && done.CompareAndSwap(false, true) }
	s.refuse.Store(&refuse)
}

func TestATransactionThatFailsIsTakenBack(t *testing.T) {
	for _, state := range []core.EnvironmentState{core.StateArchiving, core.StateArchived} {
		t.Run(string(state), func(t *testing.T) {
			store := &refusing{}
			w := newWorld(t, func(w *world) { store.Store = w.config.Store; w.config.Store = store })
			env := w.create()
			w.folders.put(env.ID, "word")
			c := w.run(env.ID, "wait", noWait)
			store.once(state)
			_, err := w.ArchiveEnvironment(t.Context(), alice, refTo(env.ID))
			if !errors.Is(err, errDisk) {
				t.Fatalf("got %v", err)
			}
			w.wantWhole()
			w.wantState(env.ID, core.StateActive)
			w.wantWord(env.ID, "word")
			if got, err := w.GetCommand(t.Context(), alice, core.GetCommandInput{CommandID: c.ID}); err != nil || state == core.StateArchiving && got.Status != core.CommandRunning {
				t.Fatalf("what ran was ended before it was known that it could be archived: %v %v", got.Status, err)
			}
		})
	}
	for _, state := range []core.EnvironmentState{core.StateRestoring, core.StateActive} {
		t.Run(string(state), func(t *testing.T) {
			store := &refusing{}
			w := newWorld(t, func(w *world) { store.Store = w.config.Store; w.config.Store = store })
			env := w.archived("word")
			store.once(state)
			_, err := w.RestoreEnvironment(t.Context(), alice, refTo(env))
			if !errors.Is(err, errDisk) {
				t.Fatalf("got %v", err)
			}
			w.wantWhole()
			w.wantState(env, core.StateArchived)
			w.wantWord(env, "word")
		})
	}
}

func TestQuotasOfArchives(t *testing.T) {
	w := newWorld(t, func(w *world) {
		w.config.Limits.ArchivedEnvironments, w.config.Limits.EnvironmentsPerProfile = 1, 2
	})
	first, second := w.create(), w.create()
	running := w.run(second.ID, "wait", noWait)
	w.archive(first.ID)
	_, err := w.ArchiveEnvironment(t.Context(), alice, refTo(second.ID))
	if e := wantCode(t, err, core.CodeQuotaExceeded); e.Facts["limit"] != "archived_environments" {
		t.Fatalf("got %v", e.Facts)
	}
	if c, err := w.GetCommand(t.Context(), alice, core.GetCommandInput{CommandID: running.ID}); err != nil || c.Status != core.CommandRunning {
		t.Fatalf("who has no room for an archive lost a command: %v %v", c.Status, err)
	}
	third := w.create() // that one is archived makes room
	for name, use := range map[string]func() error{
		"restore": func() error { _, err := w.RestoreEnvironment(t.Context(), alice, refTo(first.ID)); return err },
		"exec":    func() error { _, err := w.Exec(t.Context(), alice, execInput(first.ID, "exit 0")); return err },
		"reset":   func() error { _, err := w.ResetEnvironment(t.Context(), alice, refTo(first.ID)); return err },
	} {
		e := wantCode(t, use(), core.CodeQuotaExceeded)
		if e.Facts["limit"] != "environments_per_profile" || !strings.Contains(e.Detail, fmt.Sprintf("%q is archived", first.ID)) {
			t.Fatalf("%s: got %q %v", name, e.Detail, e.Facts)
		}
	}
	w.wantState(first.ID, core.StateArchived)
	_, err = w.DeleteEnvironment(t.Context(), alice, refTo(third.ID))
	must(t, err)
	w.restore(first.ID)
}

func TestResetAndDeleteOfAnArchivedEnvironment(t *testing.T) {
	w := newWorld(t)
	env := w.archived("word")
	got, err := w.ResetEnvironment(t.Context(), alice, refTo(env))
	must(t, err)
	if got.State != core.StateActive || w.folders.word(env) != "" || w.folders.unpacked(env) != 0 {
		t.Fatalf("got %+v with %q", got, w.folders.word(env))
	}
	w.wantWhole()
	w.archive(env)
	_, err = w.DeleteEnvironment(t.Context(), alice, refTo(env))
	must(t, err)
	if _, there := w.folders.archived(env); there {
		t.Fatal("the archive is still there")
	}
	w.wantWhole()
}

// TestAnExecWaitsForAnArchiveThatWasAskedFor: that is not called off by who comes.
func TestAnExecWaitsForAnArchiveThatWasAskedFor(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	w.folders.put(env.ID, "word")
	packing, goOn := make(chan struct{}), make(chan struct{})
	w.folders.on("pack", func(ctx context.Context) error {
		close(packing)
		select {
		case <-goOn:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	archived := make(chan error, 1)
	go func() {
		_, err := w.ArchiveEnvironment(context.Background(), alice, refTo(env.ID))
		archived <- err
	}()
	<-packing
	w.wantState(env.ID, core.StateArchiving)
	executed := make(chan error, 1)
	go func() {
		_, err := w.Exec(context.Background(), alice, execInput(env.ID, "exit 0"))
		executed <- err
	}()
	_, err := w.Exec(t.Context(), bob, execInput(env.ID, "exit 0"))
	wantCode(t, err, core.CodeNotFound) // who waits for nothing of another's
	close(goOn)
	must(t, <-archived)
	must(t, <-executed)
	w.wantState(env.ID, core.StateActive)
	if n := w.folders.unpacked(env.ID); n != 1 {
		t.Fatalf("unpacked %d times", n)
	}
	w.wantWord(env.ID, "word")
}

func TestTheEndOfTheServiceWaitsForNoArchive(t *testing.T) {
	w := newWorld(t)
	env, other := w.create(), w.archived("other")
	w.folders.put(env.ID, "word")
	stuck := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	w.folders.on("pack", stuck)
	w.folders.on("unpack", stuck)
	errs := make(chan error, 2)
	go func() {
		_, err := w.ArchiveEnvironment(context.Background(), alice, refTo(env.ID))
		errs <- err
	}()
	go func() {
		_, err := w.Exec(context.Background(), alice, execInput(other, "exit 0"))
		errs <- err
	}()
	eventually(t, "both under way", func() bool { return w.folders.begun() == 2 && w.folders.unpacked(other) == 1 })
	must(t, w.Close())
	wantCode(t, <-errs, core.CodeUnavailable)
	wantCode(t, <-errs, core.CodeUnavailable)
	w.folders.on("pack", nil)
	w.folders.on("unpack", nil)
	w.start()
	w.wantWhole()
	w.wantState(env.ID, core.StateActive)
	w.wantState(other, core.StateArchived)
	w.wantWord(env.ID, "word")
	w.wantWord(other, "other")
}

// TestPassingStatesAgainstEachOther calls all of them at once, again and again: each is
// done, or busy.
func TestPassingStatesAgainstEachOther(t *testing.T) {
	w := newWorld(t, func(w *world) { w.host.needsUID = true })
	for range 20 {
		env := w.create()
		calls := []func() error{
			func() error { _, err := w.ArchiveEnvironment(context.Background(), alice, refTo(env.ID)); return err },
			func() error { _, err := w.RestoreEnvironment(context.Background(), alice, refTo(env.ID)); return err },
			func() error { _, err := w.ResetEnvironment(context.Background(), alice, refTo(env.ID)); return err },
			func() error { _, err := w.Exec(context.Background(), alice, execInput(env.ID, "exit 0")); return err },
			func() error {
				_, err := w.OpenShell(context.Background(), alice, core.OpenShellInput{EnvironmentID: env.ID})
				return err
			},
			func() error { _, err := w.idle(env.ID); return err },
			func() error {
				_, err := w.ForkEnvironment(context.Background(), alice, core.ForkEnvironmentInput{EnvironmentRef: refTo(env.ID)})
				return err
			},
		}
		together(3*len(calls), func(i int) {
			err := calls[i%len(calls)]()
			switch code := core.AsError(err).Code; {
			case err == nil, code == core.CodeEnvironmentBusy, code == core.CodeQuotaExceeded, code == core.CodeRateLimited:
			default:
				t.Errorf("call %d: %v", i%len(calls), err)
			}
		})
		w.wantWhole()
		for _, left := range w.environments() {
			_, err := w.DeleteEnvironment(t.Context(), alice, refTo(left.ID))
			must(t, err)
		}
		w.wantWhole()
	}
	if runs, places, keys := w.InMemory(); runs+places+keys != 0 {
		t.Fatalf("%d commands, %d places and %d keys in memory", runs, places, keys)
	}
}
