package workspace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"envapi/internal/require"
)

// A folder takes a file of its own on a file system that counts files, as a
// full one of blocks does elsewhere.
func TestD12AResetWorksWhereThereCanBeNoNewFolderYet(t *testing.T) {
	dir := t.TempDir()
	err := unix.Mount("tmpfs", dir, "tmpfs", 0, "nr_inodes=64")
	if errors.Is(err, unix.EPERM) {
		require.Feature(t, "mounts", "this process may not mount: "+err.Error())
	}
	must(t, err)
	t.Cleanup(func() { must(t, unix.Unmount(dir, 0)) })
	w, err := Open(dir)
	must(t, err)
	defer w.Close()
	path := create(t, w, testID(1))
	for n := 0; err == nil; n++ {
		err = os.WriteFile(filepath.Join(path, fmt.Sprint(n)), nil, 0o600)
	}
	if err := w.Create(t.Context(), testID(2), 0); !isDiskFull(err) {
		t.Fatalf("another folder: %v", err)
	}
	must(t, w.Reset(t.Context(), testID(1), 0))
	wantNames(t, path)
}
