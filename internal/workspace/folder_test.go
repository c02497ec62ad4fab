package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"envapi/core"
)

func codeOf(err error) core.Code {
	var e *core.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// openTree opens the folder of an environment for work on its files.
func openTree(t *testing.T, w *Workspaces, id string) core.FileTree {
	t.Helper()
	tree, err := w.Files(id, 0, "/seen/by/commands")
	must(t, err)
	t.Cleanup(func() { must(t, tree.Close()) })
	return tree
}

func writeTo(t *testing.T, tree core.FileTree, path string) error {
	t.Helper()
	put, err := tree.Stage(t.Context(), strings.NewReader("text"), -1)
	must(t, err)
	_, err = tree.Commit(t.Context(), []core.Change{{Path: path, Put: put}})
	return err
}

func TestAFolderIsReachedUnderEachOfItsNames(t *testing.T) {
	w := open(t, t.TempDir())
	path := create(t, w, testID(1))
	tree := openTree(t, w, testID(1))
	for i, prefix := range []string{"", "/workspace/", "/seen/by/commands/", path + "/"} {
		name := string(rune('a' + i))
		must(t, writeTo(t, tree, prefix+name))
		if got, err := os.ReadFile(filepath.Join(path, name)); err != nil || string(got) != "text" {
			t.Errorf("%q: got %q, %v", prefix, got, err)
		}
	}
	other := create(t, w, testID(2))
	if err := writeTo(t, tree, other+"/x"); codeOf(err) != core.CodePathOutside {
		t.Errorf("the folder of another: got %v", err)
	}
	if _, err := w.Files("../trash", 0, ""); codeOf(err) != core.CodeNotFound {
		t.Errorf("what is no id: got %v", err)
	}
	if _, err := w.Files(testID(3), 0, ""); err == nil {
		t.Error("a folder that is not there was opened")
	}
}

// What comes after a reset happens in the old folder; what comes after a removal
// leaves nothing behind.
func TestAnOpenTreeDoesNotReachTheFolderThatComesAfter(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir)
	path := create(t, w, testID(1))
	tree := openTree(t, w, testID(1))
	must(t, writeTo(t, tree, "before"))
	must(t, w.Reset(t.Context(), testID(1), 0))
	_ = writeTo(t, tree, "after")
	wantNames(t, path)
	freed := make(chan struct{})
	must(t, w.Remove(t.Context(), testID(1), func() { close(freed) }))
	<-freed
	wantNames(t, filepath.Join(dir, "staging"))
	wantNames(t, filepath.Join(dir, "trash"))
}
