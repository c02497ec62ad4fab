package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"envapi/internal/require"
)

// withMount runs do where folder is mounted on target: in a namespace of
// mounts that ends with it.
func withMount(t *testing.T, folder, target string, do func() error) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends here
		err := errors.Join(
			unix.Unshare(unix.CLONE_FS|unix.CLONE_NEWNS),
			unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
			unix.Mount(folder, target, "", unix.MS_BIND, ""),
		)
		if err == nil {
			err = do()
		}
		done <- err
	}()
	err := <-done
	if errors.Is(err, unix.EPERM) {
		require.Feature(t, "mounts", "this process may not mount: "+err.Error())
	}
	must(t, err)
}

// A mount in a tree, which only a mistake of the host's administrator can
// leave there, is neither counted nor emptied. What can go goes.
func TestMountsAreNeverEntered(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	must(t, os.WriteFile(filepath.Join(outside, "canary"), nil, 0o600))
	must(t, os.MkdirAll(filepath.Join(dir, testID(1), "a/mount"), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, testID(1), "a/file"), nil, 0o600))
	withMount(t, outside, filepath.Join(dir, testID(1), "a/mount"), func() error {
		folders, err := os.Open(dir)
		if err != nil {
			return err
		}
		defer folders.Close()
		w := Workspaces{live: folders, counting: make(chan struct{}, 1)}
		if _, files, err := w.Usage(t.Context(), testID(1), ""); files != 3 || err != nil {
			t.Errorf("Usage counted %d, %v; want 3", files, err)
		}
		tr := tree{trash: folders, id: testID(1), name: testID(1)}
		if err := tr.empty(t.Context()); !errors.Is(err, unix.EBUSY) {
			t.Errorf("emptying gave %v", err)
		}
		return nil
	})
	wantNames(t, outside, "canary")
	wantNames(t, filepath.Join(dir, testID(1), "a"), "mount")
}
