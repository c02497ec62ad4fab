package sandboxtest

import (
	"os"
	"path/filepath"
	"testing"
)

// Workspace makes a workspace that belongs to a uid, 0 for the test's own. As in
// a data folder, others may pass through the folder that it is in.
func Workspace(t testing.TB, uid int) string {
	t.Helper()
	dir := filepath.Join(Folder(t), "workspace")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if uid != 0 {
		if err := os.Chown(dir, uid, uid); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Folder makes a folder that others may pass through, as may those above it.
func Folder(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for _, passable := range []string{filepath.Dir(dir), dir} { // the first is of package testing's own, and private
		if err := os.Chmod(passable, 0o711); err != nil { //nolint:gosec // so that another uid reaches its own in it
			t.Fatal(err)
		}
	}
	return dir
}
