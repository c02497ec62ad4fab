package files

import (
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/internal/workspace/inside"
)

// types are the kinds of entry by their mode.
var types = map[uint32]core.FileType{
	unix.S_IFREG: core.TypeFile, unix.S_IFDIR: core.TypeDirectory, unix.S_IFLNK: core.TypeSymlink,
	unix.S_IFIFO: core.TypeFIFO, unix.S_IFSOCK: core.TypeSocket,
	unix.S_IFBLK: core.TypeDevice, unix.S_IFCHR: core.TypeDevice,
}

// InfoOf says what a stat means, of what stands at a path.
func InfoOf(path string, st *unix.Stat_t) core.FileInfo {
	return core.FileInfo{
		Path: path, Type: types[st.Mode&unix.S_IFMT], Size: st.Size,
		Mode:       fs.FileMode(st.Mode & 0o777),
		ModifiedAt: time.Unix(st.Mtim.Unix()),
	}
}

// Info says what stands at a place that exists, with the target of a link and the
// ETag where it is known.
func (t *Tree) Info(path string, at *inside.Place) (core.FileInfo, error) {
	info := InfoOf(path, &at.Stat)
	info.ETag = t.store.Known(&at.Stat)
	if at.Kind() == unix.S_IFLNK {
		to, err := at.Target()
		if err != nil {
			return info, inside.Fault(path, err)
		}
		info.LinkTarget = to
	}
	return info, nil
}

// statOf looks at an open file.
func statOf(f *os.File) (st unix.Stat_t, err error) {
	err = unix.Fstat(fd(f), &st)
	return st, err
}
