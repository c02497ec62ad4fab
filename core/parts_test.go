package core_test

import (
	"os"
	"path/filepath"
	"testing"

	"envapi/core"
	"envapi/internal/workspace"
)

// TestWithRealFolders drives the operations that make and take away folders
// over internal/workspace.
func TestWithRealFolders(t *testing.T) {
	dir := t.TempDir()
	folders, err := workspace.Open(dir)
	must(t, err)
	t.Cleanup(func() { must(t, folders.Close()) })
	w := newWorld(t, func(w *world) { w.config.Workspaces = folders })

	env, err := w.CreateEnvironment(t.Context(), alice, core.CreateEnvironmentInput{IdempotencyKey: "k"})
	must(t, err)
	file := filepath.Join(folders.Path(env.ID), "file")
	must(t, os.WriteFile(file, []byte("x"), 0o600))
	ref := core.EnvironmentRef{EnvironmentID: env.ID}

	w.restart()
	got, err := w.GetEnvironment(t.Context(), alice, ref)
	must(t, err)
	if *got.Usage.Files.Used < 1 {
		t.Fatalf("got %+v", got.Usage)
	}
	w.reset(env.ID)
	if _, err := os.Lstat(file); !os.IsNotExist(err) {
		t.Fatalf("after a reset: %v", err)
	}
	must(t, os.Mkdir(file, 0o700))
	_, err = w.DeleteEnvironment(t.Context(), alice, ref)
	must(t, err)
	if _, err := os.Lstat(folders.Path(env.ID)); !os.IsNotExist(err) {
		t.Fatalf("after a deletion: %v", err)
	}
	must(t, os.RemoveAll(folders.Path(w.create().ID))) // somebody takes a folder away
	w.restart()
	if _, err := os.Lstat(folders.Path(w.environments()[0].ID)); err != nil {
		t.Fatalf("it was not made again: %v", err)
	}
}
