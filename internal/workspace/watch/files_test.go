package watch_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"envapi/core"
	"envapi/internal/workspace/files"
)

const testID = "env_00000000000000000000000001"

// What the files API does is told for what it is, however it does it.
func TestChangesOfTheFilesAPIAreTold(t *testing.T) {
	w := newWorld(t)
	home := filepath.Dir(w.dir)
	must(t, os.Mkdir(filepath.Join(home, "trash"), 0o700))
	live, err := os.Open(home)
	must(t, err)
	trash, err := os.Open(filepath.Join(home, "trash"))
	must(t, err)
	store, err := files.Open(home, live, trash, func(string, string) {})
	must(t, err)
	tree := store.Tree(testID, w.root, w.uid)
	defer func() { must(t, errors.Join(tree.Close(), store.Close(), live.Close(), trash.Close())) }()
	w.mkdir("d/sub")
	one := w.watch("", true)
	put := func(path, text string) {
		t.Helper()
		staged, err := tree.Stage(t.Context(), strings.NewReader(text), -1)
		must(t, err)
		_, err = tree.Commit(t.Context(), []core.Change{{Path: path, Put: staged}})
		must(t, err)
	}
	put("d/f", "first")
	want(t, one, event(core.FileCreated, "d/f", file))
	put("d/f", "second")
	want(t, one, event(core.FileModified, "d/f", file))
	_, err = tree.Move(t.Context(), "d/f", "d/g", core.CopyOptions{})
	must(t, err)
	want(t, one, core.FileEvent{Type: core.FileMoved, Path: "d/g", From: "d/f", Kind: file})
	must(t, tree.Remove(t.Context(), "d/g", false, core.Condition{}))
	want(t, one, event(core.FileDeleted, "d/g", ""))
	must(t, tree.Remove(t.Context(), "d", true, core.Condition{}))
	want(t, one, event(core.FileDeleted, "d", directory))
}
