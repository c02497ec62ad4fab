package workspace

import (
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// itself opens the directory that a name in a directory means itself: no link
// followed, no mount entered, nothing above. What is no directory, a FIFO for
// one, is refused before it could hold up the open.
var itself = unix.OpenHow{
	Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC,
	Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_XDEV,
}

func fd(f *os.File) int { return int(f.Fd()) }

// openInside opens a directory in dir as it is.
func openInside(dir int, name string) (int, error) {
	for {
		how := itself
		fd, err := unix.Openat2(dir, name, &how)
		// EAGAIN: a rename elsewhere on the host raced with the look-up.
		if !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.EAGAIN) {
			return fd, err
		}
	}
}

// openDir opens a directory in the trash and makes it accessible, which for
// an ordinary user its mode may forbid.
func openDir(parent *os.File, name string) (*os.File, error) {
	d, err := openInside(fd(parent), name)
	if errors.Is(err, unix.EACCES) {
		if err = grant(parent, name); err == nil {
			d, err = openInside(fd(parent), name)
		}
	}
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(d), name)
	if err := f.Chmod(0o700); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// grant gives the owner every right to the directory name in parent, even
// where its mode lets nobody open it. It changes a directory only, whatever
// takes the name's place at the same moment.
func grant(parent *os.File, name string) error {
	how := itself
	how.Flags = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	d, err := unix.Openat2(fd(parent), name, &how)
	if err != nil {
		return err
	}
	defer unix.Close(d)
	// fchmod does not take such a descriptor; this link of /proc leads to what
	// it stands for and to nothing else.
	return unix.Chmod("/proc/self/fd/"+strconv.Itoa(d), 0o700)
}

// moveDir renames a directory between two folders. Its own mode may forbid an
// ordinary user that, because its entry for ".." changes.
func moveDir(from *os.File, name string, to *os.File, toName string, flags uint) error {
	err := unix.Renameat2(fd(from), name, fd(to), toName, flags)
	if errors.Is(err, unix.EACCES) {
		if err = grant(from, name); err == nil {
			err = unix.Renameat2(fd(from), name, fd(to), toName, flags)
		}
	}
	return err
}

// removeEntry removes a name from a directory. What is gone already is
// removed. A directory with entries fails, see isFull.
func removeEntry(dir *os.File, name string) error {
	err := unix.Unlinkat(fd(dir), name, 0)
	if errors.Is(err, unix.EISDIR) {
		err = unix.Unlinkat(fd(dir), name, unix.AT_REMOVEDIR)
	}
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

// isFull says whether removeEntry failed because a directory has entries.
func isFull(err error) bool {
	return errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST)
}
