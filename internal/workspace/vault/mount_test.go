package vault_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"envapi/internal/require"
	"envapi/internal/workspace/vault"
)

// TestAMountIsNotEntered: only a mistake of the host's administrator can leave one
// there, and what is in it is nobody's to pack. Leaving it out would lose it.
func TestAMountIsNotEntered(t *testing.T) {
	uid, _ := users()
	base := home(t)
	outside := filepath.Join(base, "outside")
	must(t, os.Mkdir(outside, 0o755))
	must(t, os.WriteFile(filepath.Join(outside, "file"), []byte(secret), 0o644))
	dir := folder(t, filepath.Join(base, "folder"), uid)
	at := folder(t, filepath.Join(dir, "mount"), uid)
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends here
		err := errors.Join(
			unix.Unshare(unix.CLONE_FS|unix.CLONE_NEWNS),
			unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
			unix.Mount(outside, at, "", unix.MS_BIND, ""),
		)
		if err == nil {
			var folder *os.File
			if folder, err = os.Open(dir); err == nil {
				_, err = vault.Pack(t.Context(), folder, discard{})
				_ = folder.Close()
			}
		}
		done <- err
	}()
	err := <-done
	if errors.Is(err, unix.EPERM) {
		require.Feature(t, "mounts", "this process may not mount: "+err.Error())
	}
	if !errors.Is(err, unix.EXDEV) {
		t.Errorf("got %v", err)
	}
}
