// Package holes finds what of a file is data and what is a hole, and copies data
// within the kernel.
//
// What is not protected: a file that is written to meanwhile gives each piece as it is
// when it is looked at.
package holes

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Next finds the next data of a file from an offset on, in bytes, and where it ends;
// both are end where there is none before that. Where the file system knows of no holes
// all is data. It moves the file's position.
func Next(f *os.File, at, end int64) (data, hole int64, err error) {
	data, err = unix.Seek(int(f.Fd()), at, unix.SEEK_DATA)
	switch {
	case errors.Is(err, unix.ENXIO):
		return end, end, nil
	case errors.Is(err, unix.EINVAL):
		return at, end, nil
	case err != nil:
		return 0, 0, err
	}
	hole, err = unix.Seek(int(f.Fd()), data, unix.SEEK_HOLE)
	if errors.Is(err, unix.ENXIO) {
		return end, end, nil
	}
	return min(data, end), min(hole, end), err
}

// CopyRange copies up to piece bytes at an offset to the same offset of another file,
// and says how many: 0 is the end of the file. The kernel does it, and shares the blocks
// where it can; where it cannot, they are read and written.
func CopyRange(from, to *os.File, at, piece int64) (int64, error) {
	in, out := at, at
	for {
		n, err := unix.CopyFileRange(int(from.Fd()), &in, int(to.Fd()), &out, int(piece), 0)
		switch {
		case err == nil:
			return int64(n), nil
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EXDEV), errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EOPNOTSUPP):
			return io.Copy(io.NewOffsetWriter(to, at), io.NewSectionReader(from, at, piece))
		}
		return 0, err
	}
}
