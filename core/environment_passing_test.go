package core_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"envapi/core"
)

// entering are the operations that work in an environment or change it, and must not do
// so while it is passing.
var entering = map[string]func(ctx context.Context, w *world, id string) error{
	"exec": func(ctx context.Context, w *world, id string) error {
		_, err := w.Exec(ctx, alice, execInput(id, "exit 0"))
		return err
	},
	"open_shell": func(ctx context.Context, w *world, id string) error {
		_, err := w.OpenShell(ctx, alice, core.OpenShellInput{EnvironmentID: id})
		return err
	},
	"write_file": func(ctx context.Context, w *world, id string) error {
		_, err := w.WriteFile(ctx, alice, core.WriteFileInput{FileRef: core.FileRef{EnvironmentID: id, Path: "f"}, Content: "x"})
		return err
	},
	"make_directory": func(ctx context.Context, w *world, id string) error {
		_, err := w.MakeDirectory(ctx, alice, core.MakeDirectoryInput{FileRef: core.FileRef{EnvironmentID: id, Path: "d"}, Parents: true})
		return err
	},
	"list_files": func(ctx context.Context, w *world, id string) error {
		_, err := w.ListFiles(ctx, alice, core.ListFilesInput{DirectoryRef: core.DirectoryRef{EnvironmentID: id}})
		return err
	},
	"fork_environment": func(ctx context.Context, w *world, id string) error {
		_, err := w.ForkEnvironment(ctx, alice, forkOf(id))
		return err
	},
	"archive_environment": func(ctx context.Context, w *world, id string) error {
		_, err := w.ArchiveEnvironment(ctx, alice, refTo(id))
		return err
	},
	"restore_environment": func(ctx context.Context, w *world, id string) error {
		_, err := w.RestoreEnvironment(ctx, alice, refTo(id))
		return err
	},
	"reset_environment": func(ctx context.Context, w *world, id string) error {
		_, err := w.ResetEnvironment(ctx, alice, refTo(id))
		return err
	},
	"delete_environment": func(ctx context.Context, w *world, id string) error {
		_, err := w.DeleteEnvironment(ctx, alice, refTo(id))
		return err
	},
}

// passing has an environment be in a passing state until it is released.
func passing(t *testing.T, w *world, state core.EnvironmentState) (id string, release func()) {
	t.Helper()
	step := map[core.EnvironmentState]string{
		core.StateArchiving: "pack", core.StateRestoring: "unpack", core.StateResetting: "reset", core.StateDeleting: "remove",
	}[state]
	pass := map[core.EnvironmentState]string{
		core.StateArchiving: "archive_environment", core.StateRestoring: "restore_environment",
		core.StateResetting: "reset_environment", core.StateDeleting: "delete_environment",
	}[state]
	id = w.create().ID
	w.folders.put(id, "word")
	if state == core.StateRestoring {
		w.archive(id)
	}
	arrived, open, passed := make(chan struct{}), make(chan struct{}), make(chan error)
	w.folders.on(step, func(context.Context) error {
		w.folders.on(step, nil)
		close(arrived)
		<-open
		return nil
	})
	go func() { passed <- entering[pass](context.Background(), w, id) }()
	<-arrived
	w.wantState(id, state)
	return id, func() { close(open); must(t, <-passed) }
}

func TestWhatIsResetOrDeletedIsBusyForAll(t *testing.T) {
	for _, state := range []core.EnvironmentState{core.StateResetting, core.StateDeleting} {
		w := newWorld(t)
		id, release := passing(t, w, state)
		for name, do := range entering {
			e := wantCode(t, do(t.Context(), w, id), core.CodeEnvironmentBusy)
			if e.Facts["state"] != string(state) || e.Facts["retry_after_ms"] == nil || !strings.Contains(e.Detail, string(state)) {
				t.Errorf("%s while it is %s: %v %v", name, state, e.Detail, e.Facts)
			}
		}
		release()
	}
}

// Which of them is the last to come does not matter: each finds an environment that it
// can work in, or is the one that takes it away.
func TestWhatIsArchivedOrRestoredIsWaitedForByAll(t *testing.T) {
	for _, state := range []core.EnvironmentState{core.StateArchiving, core.StateRestoring} {
		for name, do := range entering {
			t.Run(string(state)+"/"+name, func(t *testing.T) {
				w := newWorld(t)
				id, release := passing(t, w, state)
				before, done := w.Users(id), make(chan error, 1)
				go func() { done <- do(context.Background(), w, id) }()
				eventually(t, "it has come", func() bool { return w.Users(id) > before || len(done) > 0 })
				release()
				if err := <-done; !errors.Is(err, errNoFiles) { // who asks for files has come in
					must(t, err)
				}
			})
		}
	}
}
