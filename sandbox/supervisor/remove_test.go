package supervisor_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"envapi/sandbox/supervisor"
)

// A command in a weaker tier may nest its temporary folder deeper than the
// service may have descriptors: it must not take them all, and the folder must go.
func TestAFolderDeeperThanThereAreDescriptorsIsRemoved(t *testing.T) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &limit) })
	few := unix.Rlimit{Cur: 200, Max: limit.Max}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	top := nested(t, 40, 25)
	if err := supervisor.RemoveAll(top); err != nil {
		t.Fatal(err)
	}
	mustBeGone(t, top)
}

func TestAFolderThatACommandClosedIsRemovedAndNothingThatALinkNames(t *testing.T) {
	base := t.TempDir()
	outside := filepath.Join(base, "outside")
	top := filepath.Join(base, "tmp")
	closed := filepath.Join(top, "a", "closed")
	for _, dir := range []string{outside, closed} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	kept := filepath.Join(outside, "kept")
	for _, file := range []string{kept, filepath.Join(closed, "file")} {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(closed, "link")); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{closed, filepath.Dir(closed), top} {
		if err := os.Chmod(dir, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := supervisor.RemoveAll(top); err != nil {
		t.Fatal(err)
	}
	mustBeGone(t, top)
	if _, err := os.Stat(kept); err != nil {
		t.Error("what a link named was removed:", err)
	}
}

// nested makes a folder of depth*times levels, built from the bottom, since a path
// may not be that long.
func nested(t *testing.T, depth, times int) string {
	t.Helper()
	base := t.TempDir()
	below := ""
	for range depth {
		below = filepath.Join(below, "d")
	}
	top, next := filepath.Join(base, "top"), filepath.Join(base, "next")
	for i := range times {
		if err := os.MkdirAll(filepath.Join(next, below), 0o700); err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			if err := os.Rename(top, filepath.Join(next, below, "e")); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Rename(next, top); err != nil {
			t.Fatal(err)
		}
	}
	return top
}

func mustBeGone(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
}
