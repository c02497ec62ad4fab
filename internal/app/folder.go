package app

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"envapi/internal/store"
	"envapi/internal/workspace"
)

// prepareFolder makes a folder, or finds it fit: this user's own, and nobody
// else's to write. An existing folder's mode is never changed, since it may be
// one that was named by mistake. As root others may pass through, since boxes
// reach what is their own in it with a uid of their own.
func prepareFolder(dir string) error {
	mode := os.FileMode(0o700)
	if os.Geteuid() == 0 {
		mode = 0o711
	}
	//nolint:gosec // the folders above it, such as /var/lib, are for everybody to pass through
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return fmt.Errorf("cannot make the data folder: %w", err)
	}
	err := os.Mkdir(dir, mode)
	if err == nil {
		return os.Chmod(dir, mode) // whatever the umask says
	}
	if _, statErr := os.Stat(dir); statErr != nil {
		return fmt.Errorf("cannot make the data folder: %w", err)
	}
	return fitFolder(dir)
}

// fitFolder says why a folder that is there is not fit, or nil.
func fitFolder(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("cannot use the data folder: %w", err)
	}
	owner, known := info.Sys().(*syscall.Stat_t)
	switch mode := info.Mode(); {
	case !info.IsDir():
		return fmt.Errorf("cannot use the data folder %s: it is not a folder", dir)
	case mode.Perm()&0o022 != 0:
		return fmt.Errorf("cannot use the data folder %s: others may write to it (mode %04o); name a folder of the service's own", dir, mode.Perm())
	case !known || int(owner.Uid) != os.Geteuid():
		return fmt.Errorf("cannot use the data folder %s: it belongs to another user than uid %d, which this is", dir, os.Geteuid())
	}
	return nil
}

// requireRecords refuses a data folder that holds what environments are made of, and no
// records: a start removes what no record knows, so it would remove everything.
func requireRecords(dir string) error {
	info, err := os.Stat(filepath.Join(dir, store.FileName))
	if err == nil && info.Size() > 0 {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot look for the records in the data folder: %w", err)
	}
	for _, name := range []string{workspace.LiveFolder, workspace.ArchiveFolder} {
		holds, err := os.ReadDir(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot look into the data folder: %w", err)
		}
		if len(holds) > 0 {
			return fmt.Errorf("cannot use the data folder %s: it has environments in %s, but its records, %s, are missing or empty, "+
				"and a start removes what no record knows: put them back from a backup, or name another folder", dir, name, store.FileName)
		}
	}
	return nil
}
