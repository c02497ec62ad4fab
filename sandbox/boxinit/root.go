package boxinit

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"envapi/sandbox/protocol"
)

// staging is where the new root hangs until it becomes the root; any directory
// that every host has will do, since this is a mount namespace of our own.
const staging = "/tmp"

// Bounds of the root file system itself, which holds only mount points, links
// and small files, and is read-only once it is made.
const (
	rootBytes  = 4 << 20
	rootInodes = 4096
)

// buildRoot makes the box's file tree under staging and enters it. Every
// source is opened before the first mount could hide it.
func buildRoot(s *protocol.Setup, fds []int) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("cannot make the mounts private: %w", err)
	}
	sources, err := openSources(s.Root, fds)
	if err != nil {
		return err
	}
	root, err := newTmpfs(protocol.Entry{Bytes: rootBytes, Inodes: rootInodes, Mode: 0o755})
	if err != nil {
		return err
	}
	if err := unix.MoveMount(root, "", unix.AT_FDCWD, staging, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("cannot mount the root: %w", err)
	}
	if err := unix.Fchdir(root); err != nil {
		return fmt.Errorf("cannot enter the root: %w", err)
	}
	_ = unix.Close(root)
	old := unix.Umask(0)
	defer unix.Umask(old)
	for i, e := range s.Root {
		if err := place(e, sources[i]); err != nil {
			return fmt.Errorf("%s: %w", e.Target, err)
		}
	}
	return nil
}

// absent marks an optional source that the host does not have.
const absent = -1

// openSources gives a descriptor for every entry that has a mount to move.
func openSources(entries []protocol.Entry, fds []int) ([]int, error) {
	sources := make([]int, len(entries))
	for i, e := range entries {
		fd, err := openSource(e, fds)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.Target, err)
		}
		sources[i] = fd
	}
	return sources, nil
}

func openSource(e protocol.Entry, fds []int) (int, error) {
	switch e.Kind {
	case protocol.EntryBind:
		fd, err := unix.OpenTree(unix.AT_FDCWD, e.Source, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
		if e.Optional && errors.Is(err, unix.ENOENT) {
			return absent, nil
		}
		if err != nil {
			return absent, fmt.Errorf("cannot open %s to mount it: %w", e.Source, err)
		}
		return fd, nil
	case protocol.EntryTree:
		if e.FD < 0 || e.FD >= len(fds) {
			return absent, fmt.Errorf("cannot mount descriptor %d: there are %d", e.FD, len(fds))
		}
		return unix.FcntlInt(uintptr(fds[e.FD]), unix.F_DUPFD_CLOEXEC, 0)
	default:
		return absent, nil
	}
}

// place makes one entry, relative to the working directory, which is the root.
func place(e protocol.Entry, source int) error {
	target := "." + e.Target
	switch e.Kind {
	case protocol.EntryDir:
		return makeDir(target, e.Mode)
	case protocol.EntryLink:
		return unix.Symlink(e.Source, target)
	case protocol.EntryFile:
		return writeFile(target, e)
	case protocol.EntryBind, protocol.EntryTree:
		if source == absent {
			return nil
		}
		return attach(source, target, e)
	}
	fd, err := newFileSystem(e)
	if err != nil {
		return err
	}
	return attach(fd, target, e)
}

func makeDir(target string, mode uint32) error {
	if err := unix.Mkdir(target, mode); err != nil {
		return fmt.Errorf("cannot make the directory: %w", err)
	}
	return nil
}

func writeFile(target string, e protocol.Entry) error {
	fd, err := unix.Open(target, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, e.Mode)
	if err != nil {
		return fmt.Errorf("cannot make the file: %w", err)
	}
	defer unix.Close(fd)
	if n, err := unix.Write(fd, []byte(e.Source)); err != nil || n != len(e.Source) {
		return fmt.Errorf("cannot write the file: %w", err)
	}
	return nil
}

// attach makes a mount point and moves the mount there, with its attributes
// set on all of it before anybody can see it.
func attach(fd int, target string, e protocol.Entry) error {
	defer unix.Close(fd)
	attributes := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID}
	if !e.Device {
		attributes.Attr_set |= unix.MOUNT_ATTR_NODEV
	}
	if !e.Writable {
		attributes.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	if e.NoExec {
		attributes.Attr_set |= unix.MOUNT_ATTR_NOEXEC
	}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attributes); err != nil {
		return fmt.Errorf("cannot set the mount's attributes: %w", err)
	}
	if err := makeMountPoint(fd, target); err != nil {
		return err
	}
	if err := unix.MoveMount(fd, "", unix.AT_FDCWD, target, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("cannot mount: %w", err)
	}
	return nil
}

// makeMountPoint makes a directory or an empty file, as what fd is.
func makeMountPoint(fd int, target string) error {
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return fmt.Errorf("cannot look at the source: %w", err)
	}
	if stat.Mode&unix.S_IFMT == unix.S_IFDIR {
		return makeDir(target, 0o755)
	}
	return writeFile(target, protocol.Entry{Mode: 0o644})
}

func newFileSystem(e protocol.Entry) (int, error) {
	switch e.Kind {
	case protocol.EntryTmpfs:
		return newTmpfs(e)
	case protocol.EntryProc:
		return newMount("proc")
	case protocol.EntryDevpts:
		return newMount("devpts", "ptmxmode=0666", "mode=0620", "max="+strconv.Itoa(protocol.Terminals))
	default:
		return absent, fmt.Errorf("cannot make an entry of kind %q", e.Kind)
	}
}

func newTmpfs(e protocol.Entry) (int, error) {
	return newMount("tmpfs", "size="+strconv.FormatInt(e.Bytes, 10),
		"nr_inodes="+strconv.FormatInt(e.Inodes, 10), "mode="+strconv.FormatUint(uint64(e.Mode), 8))
}

// newMount makes a file system that hangs nowhere yet.
func newMount(kind string, options ...string) (int, error) {
	fd, err := unix.Fsopen(kind, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return absent, fmt.Errorf("cannot make a %s: %w", kind, err)
	}
	defer unix.Close(fd)
	for _, o := range options {
		key, value, _ := strings.Cut(o, "=")
		if err := unix.FsconfigSetString(fd, key, value); err != nil {
			return absent, fmt.Errorf("cannot set %s of a %s: %w", o, kind, err)
		}
	}
	if err := unix.FsconfigCreate(fd); err != nil {
		return absent, fmt.Errorf("cannot make a %s: %w", kind, err)
	}
	mount, err := unix.Fsmount(fd, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID)
	if err != nil {
		return absent, fmt.Errorf("cannot mount a %s: %w", kind, err)
	}
	return mount, nil
}

// pivot makes the tree the root, lets go of the host's, and closes the root
// for writing. With "." twice the old root lies over the new one until it is
// unmounted (pivot_root(2)).
func pivot(*protocol.Setup, []int) error {
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("cannot change the root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("cannot unmount the host's root: %w", err)
	}
	if err := unix.Chdir("/"); err != nil {
		return fmt.Errorf("cannot enter the new root: %w", err)
	}
	readOnly := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", 0, &readOnly); err != nil {
		return fmt.Errorf("cannot make the root read-only: %w", err)
	}
	return nil
}
