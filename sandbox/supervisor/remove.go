package supervisor

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

const (
	// levelsAtOnce is how deep a folder is gone into at one time: a descriptor
	// for each level.
	levelsAtOnce = 16
	// namesAtOnce is how many names of each of these levels are in memory.
	namesAtOnce = 256
)

// RemoveAll removes a folder in which commands have written, and which nothing
// writes in any more. A command may have made it deeper than this process can
// have descriptors, so what lies deep is moved up before it is removed. And it
// may have closed folders to its own uid, which in the directory tier is the
// service's.
func RemoveAll(dir string) error {
	if err := removeEntry(unix.AT_FDCWD, dir); !isDirectory(err) {
		return err
	}
	top, err := openFolder(unix.AT_FDCWD, dir)
	if err != nil {
		return err
	}
	defer top.Close()
	for {
		// What was moved up meanwhile is there at the next turn.
		some, failure := empty(top, top, levelsAtOnce)
		if err := removeEntry(unix.AT_FDCWD, dir); !isDirectory(err) {
			return err
		}
		if !some {
			return fmt.Errorf("cannot remove a folder: %w", failure)
		}
	}
}

// empty removes what is in a folder, and moves to top what is more than levels
// below it. It goes on after a failure, gives the last one, and says whether
// anything was removed or moved.
func empty(top, dir *os.File, levels int) (some bool, failure error) {
	if _, err := dir.Seek(0, io.SeekStart); err != nil {
		return false, err
	}
	for {
		names, err := dir.Readdirnames(namesAtOnce)
		for _, name := range names {
			did, err := emptyEntry(top, dir, name, levels)
			some = some || did
			if err != nil {
				failure = err
			}
		}
		if errors.Is(err, io.EOF) {
			return some, failure
		}
		if err != nil {
			return some, err
		}
	}
}

// emptyEntry removes one entry of a folder, or moves it up.
func emptyEntry(top, dir *os.File, name string, levels int) (some bool, err error) {
	err = removeEntry(int(dir.Fd()), name)
	if !isDirectory(err) {
		return err == nil, err
	}
	folder, err := openFolder(int(dir.Fd()), name)
	if err != nil {
		return false, err
	}
	defer folder.Close()
	if levels == 0 {
		err := unix.Renameat(int(dir.Fd()), name, int(top.Fd()), rand.Text())
		return err == nil, err
	}
	some, failure := empty(top, folder, levels-1)
	if err := removeEntry(int(dir.Fd()), name); err != nil {
		return some, errors.Join(failure, err)
	}
	return true, nil
}

// removeEntry removes what is no directory, or an empty one.
func removeEntry(parent int, name string) error {
	err := unix.Unlinkat(parent, name, 0)
	if errors.Is(err, unix.EISDIR) {
		err = unix.Unlinkat(parent, name, unix.AT_REMOVEDIR)
	}
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

// isDirectory says whether removeEntry failed for a directory that has entries.
func isDirectory(err error) bool {
	return errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST)
}

// openFolder opens a folder, and gives its owner every right to it.
func openFolder(parent int, name string) (*os.File, error) {
	path, err := unix.Openat(parent, name, unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_PATH, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(path)
	return unlocked(path)
}

// unlocked opens a folder that was opened as a path only, and gives its owner
// every right to it.
func unlocked(path int) (*os.File, error) {
	if err := unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", path), 0o700); err != nil {
		return nil, err
	}
	fd, err := unix.Openat(path, ".", unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "folder"), nil
}

func (o *Options) removeTemporary() {
	if o.Temporary == "" {
		return
	}
	if err := RemoveAll(o.Temporary); err != nil {
		o.Log.Warn("cannot remove a box's temporary folder", "box", o.ID, "cause", err)
	}
}
