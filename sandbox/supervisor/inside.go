package supervisor

import (
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"envapi/sandbox"
)

// inside opens a path of the file tree of a box that has one of its own, as its
// processes see it. No link is followed, since a process inside may have made
// it, and nothing above the tree can be reached. What is found there must still
// be looked at: it may be anything.
func (b *Box) inside(path string, flags int) (*os.File, error) {
	root, err := b.root()
	if err != nil {
		return nil, err
	}
	defer unix.Close(root)
	fd, err := unix.Openat2(root, path, &unix.OpenHow{
		Flags:   uint64(flags) | unix.O_CLOEXEC | unix.O_NOFOLLOW, //nolint:gosec // flags
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot open %s in the box: %w", path, err)
	}
	return os.NewFile(uintptr(fd), path), nil
}

// root opens the root of the box's file tree, by its init.
func (b *Box) root() (int, error) {
	init, err := unix.Open("/proc/"+strconv.Itoa(b.init.Pid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("cannot look into the box: %w", err)
	}
	defer unix.Close(init)
	// The descriptor is that of one process for ever. Where the init was not
	// waited for until after it was opened, the pid was no other's.
	if err := b.init.Signal(syscall.Signal(0)); err != nil {
		return -1, sandbox.ErrBoxClosed
	}
	root, err := unix.Openat(init, "root", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("cannot look into the box: %w", err)
	}
	return root, nil
}
