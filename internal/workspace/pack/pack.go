// Package pack makes tars of directories of an environment's folder, and unpacks
// tars into them.
//
// An archive that comes in is hostile. It is unpacked into a folder that nobody else
// sees (package files), no link of it is ever followed, and nothing of it is shown
// before all of it was read and found good.
//
// What is not protected: a directory that is packed while a program inside changes it
// gives each file as it was at some moment, and not all of them as they were at one.
// A directory that its own mode forbids to write has that mode only just after it is
// shown, where it is one of those that were put into a directory that was there: the
// kernel moves no other. Of what is unpacked neither owner nor set-user-id bits are
// taken over, and of extended attributes only user.* ones, where the file system has
// them.
package pack

import (
	"context"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/internal/workspace/files"
	"envapi/internal/workspace/inside"
)

const (
	// chunk is how much of a file is copied at a time.
	chunk = 128 << 10
	// mostSkipped bounds the list of what was skipped; what comes after is counted.
	mostSkipped = 1000
	// attributePrefix is what the name of an extended attribute has before it among
	// the records of a tar, since Jörg Schilling's star.
	attributePrefix = "SCHILY.xattr."
	// modeBits of the mode of a file are taken along, and stickyBit of a directory.
	modeBits  = 0o777
	stickyBit = 0o1000
)

// Packer packs and unpacks directories of one folder.
type Packer struct {
	root *inside.Root
	tree *files.Tree
}

// New makes a Packer of a folder and of what changes it.
func New(root *inside.Root, tree *files.Tree) *Packer { return &Packer{root: root, tree: tree} }

// contained lets a path lead nowhere but below its directory, and through no link.
const contained = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV

// open opens what is below a directory, and follows no link to it.
func open(dir *os.File, name string, flags int, mode uint64) (*os.File, error) {
	how := unix.OpenHow{Flags: uint64(flags | unix.O_NOFOLLOW | unix.O_CLOEXEC), Mode: mode, Resolve: contained} //nolint:gosec // flags
	fd, err := patiently(func() (int, error) { return unix.Openat2(int(dir.Fd()), name, &how) })
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// openDirectory opens a directory for reading its entries.
func openDirectory(dir *os.File, name string) (*os.File, error) {
	return open(dir, name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
}

// patiently makes a call again that was interrupted, or raced with a rename elsewhere
// on the host, or with a change that has just put what was found into staging (EXDEV).
func patiently(call func() (int, error)) (fd int, err error) {
	for range 128 {
		fd, err = call()
		if err != unix.EINTR && err != unix.EAGAIN && err != unix.EXDEV { //nolint:errorlint // of a system call, as it is
			return fd, err
		}
	}
	return -1, err
}

// stat says what is open.
func stat(f *os.File) (unix.Stat_t, error) {
	var st unix.Stat_t
	err := unix.Fstat(int(f.Fd()), &st)
	return st, err
}

// skipped lists paths, and counts those for which the list has no room.
type skipped struct {
	paths []string
	more  int
}

func (s *skipped) add(name string) {
	if len(s.paths) == mostSkipped {
		s.more++
		return
	}
	s.paths = append(s.paths, name)
}

// patient reads until its context ends.
type patient struct {
	ctx  context.Context
	from io.Reader
}

func (p patient) Read(b []byte) (int, error) {
	if err := p.ctx.Err(); err != nil {
		return 0, err
	}
	return p.from.Read(b)
}

// join puts a path together of a directory's and a name.
func join(dir, name string) string {
	if dir = strings.TrimRight(dir, "/"); dir == "" || dir == "." {
		return name
	}
	return dir + "/" + name
}

func bad(format string, args ...any) *core.Error {
	return core.Errorf(core.CodeInvalidArgument, "cannot unpack the archive: "+format, args...).With("field", "archive")
}
