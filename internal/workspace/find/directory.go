package find

import (
	"encoding/binary"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// entry is a name in a directory, with the type that the directory says it is of.
type entry struct {
	name string
	kind uint8 // unix.DT_DIR and its like
}

func (e entry) dir() bool { return e.kind == unix.DT_DIR }

// names reads the names of a directory, in no order.
type names struct {
	dir    *os.File
	buffer []byte
	left   []byte
}

// namesBytes is how much of a directory is read at a time: some thousand names.
const namesBytes = 64 << 10

// again begins at the beginning.
func (n *names) again() error {
	n.left = nil
	_, err := unix.Seek(fd(n.dir), 0, unix.SEEK_SET)
	return err
}

// next gives the next name, which holds until the next call but one; nil is the end.
func (n *names) next() (name []byte, kind uint8, err error) {
	for {
		if len(n.left) == 0 {
			if err := n.fill(); err != nil || len(n.left) == 0 {
				return nil, 0, err
			}
		}
		// struct linux_dirent64: inode, offset, length, type, name
		length := int(binary.NativeEndian.Uint16(n.left[16:]))
		kind, name = n.left[18], n.left[19:length]
		n.left = n.left[length:]
		for i, c := range name {
			if c == 0 {
				name = name[:i]
				break
			}
		}
		if string(name) != "." && string(name) != ".." {
			return name, kind, nil
		}
	}
}

func (n *names) fill() error {
	for {
		got, err := unix.Getdents(fd(n.dir), n.buffer)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if errors.Is(err, unix.ENOENT) { // it was removed meanwhile
			return nil
		}
		n.left = n.buffer[:max(0, got)]
		return err
	}
}

// known makes sure that the type of an entry is; false is that it is gone.
func known(dir *os.File, e *entry) bool {
	if e.kind != unix.DT_UNKNOWN {
		return true
	}
	var st unix.Stat_t
	if unix.Fstatat(fd(dir), e.name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return false
	}
	e.kind = uint8(st.Mode & unix.S_IFMT >> 12)
	return true
}

// mostTries is how often one tries to open what cannot be opened just now.
const mostTries = 16

// openBelow opens what stands at a path below a directory, for reading: it never
// waits, and makes no terminal ours. EAGAIN is a file on which a program holds a lease,
// for as long as the kernel lets it.
func openBelow(dir *os.File, path string, flags uint64) (int, error) {
	how := unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC | flags,
		Resolve: beneath,
	}
	for tries := 1; ; tries++ {
		n, err := unix.Openat2(fd(dir), path, &how)
		// EXDEV: what was found has been put into staging since, by another change.
		again := errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EXDEV)
		if !again || tries == mostTries {
			return n, err
		}
	}
}

func openDirectory(dir *os.File, path string) (*os.File, error) {
	n, err := openBelow(dir, path, unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(n), path), nil
}

// gone says whether what could not be opened is not there any more, or something else.
func gone(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)
}
