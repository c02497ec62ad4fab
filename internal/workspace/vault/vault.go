// Package vault packs the folder of an environment as one archive, makes it again from
// that, and copies it, bit for bit.
//
// The archive is a tar in one frame of zstd, with records of our own (see names.go):
//
//	a global header   the version of the form
//	the folder itself, then all in it, a directory before what is in it
//	a global header   the number of entries
//
// What is kept: regular files with their holes, directories, links, FIFOs, which of them
// are names of one file, names of any bytes and any length, modes, the times of changes
// to the nanosecond, extended attributes of the user and access lists. All of it belongs
// to the environment's user.
//
// Everything in the folder is hostile. It is gone through by descriptors, through no link
// and into no mount, and nothing but regular files and directories is opened, by what is
// held of them. The service reads for itself only what is the folder's owner's; whatever
// else got in it reads with that owner's rights.
//
// What is not protected: sockets and devices are left out, since nobody could answer
// behind them; set-user-id and set-group-id of files are not kept; space that was only
// reserved becomes a hole; of a folder that programs write to while it is copied, each
// file is as it was at some moment, and not all as at one. An ordinary user's service
// must give himself the right to read what its mode forbids him, for as long as he
// reads: where it is killed meanwhile, that mode stays.
package vault

import (
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

const (
	// chunk is how much of a file is held at a time.
	chunk = 256 << 10
	// heldLevels is for how many levels, from the bottom, a descriptor is held.
	heldLevels = 32
	// fileBits of the mode of a file are kept, and directoryBits of a directory: a
	// set-group-id there only says whose what is made in it is.
	fileBits      = 0o1777
	directoryBits = 0o3777
)

// mostDepth bounds the memory for the levels that a tree has. A path reaches 2048 levels
// deep; what is deeper was made to be.
var mostDepth = 1 << 14 // tests make it less

// contained lets a name lead nowhere but below its directory, and through no link.
const contained = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV

// openAt opens what a name in a directory means itself. EAGAIN is the kernel's word where
// a rename elsewhere on the host raced with the look-up.
func openAt(dir *os.File, name string, flags int, mode uint64) (*os.File, error) {
	how := unix.OpenHow{Flags: uint64(flags | unix.O_NOFOLLOW | unix.O_CLOEXEC), Mode: mode, Resolve: contained} //nolint:gosec // flags
	for {
		n, err := unix.Openat2(fd(dir), name, &how)
		if err == nil {
			return os.NewFile(uintptr(n), name), nil
		}
		if !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.EAGAIN) {
			return nil, err
		}
	}
}

// openAbove opens the directory above one, which must be the one that st says.
func openAbove(dir *os.File, st *unix.Stat_t) (*os.File, error) {
	n, err := unix.Openat(fd(dir), "..", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	above := os.NewFile(uintptr(n), "..")
	now, err := stat(above)
	if err == nil && (now.Ino != st.Ino || now.Dev != st.Dev) {
		err = ErrChanged
	}
	if err != nil {
		_ = above.Close()
		return nil, err
	}
	return above, nil
}

// ErrChanged says that a directory was moved away while what is in it was read.
var ErrChanged = errors.New("a directory was moved away while what is in it was read")

func stat(f *os.File) (unix.Stat_t, error) {
	var st unix.Stat_t
	err := unix.Fstat(fd(f), &st)
	return st, err
}

// setTime sets when what is open was changed. What a file system does not reach is
// rounded by the kernel.
func setTime(f *os.File, at unix.Timespec) error {
	return unix.UtimesNanoAt(fd(f), "", []unix.Timespec{{Nsec: unix.UTIME_OMIT}, at}, unix.AT_EMPTY_PATH)
}

func fd(f *os.File) int { return int(f.Fd()) }

// held is a path to what a descriptor holds, and to nothing else, for calls that do not
// take one that was opened only to hold it (O_PATH).
func held(f *os.File) string { return "/proc/self/fd/" + strconv.Itoa(fd(f)) }
