package backup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/internal/store"
)

// spacePause is how long it is between two looks at the free space.
const spacePause = 100 * time.Millisecond

// little is less than what can be called room, in bytes.
const little = 1 << 20

// space is the disk that a backup is made on.
type space struct {
	dir *os.File
	// least is what must stay free: none of it on another disk than the service's.
	least core.DiskUse
	// shares says that copies take no space, since the file system shares blocks.
	shares bool
}

// space looks at the disk of a backup.
func (q *Request) space(p *partial) (*space, error) {
	s := &space{dir: p.dir}
	var data, to unix.Stat_t
	if err := unix.Stat(q.Data, &data); err != nil {
		return nil, fmt.Errorf("cannot look at the data folder: %w", err)
	}
	if err := unix.Fstat(int(p.dir.Fd()), &to); err != nil {
		return nil, fmt.Errorf("cannot look at the folder of the backup: %w", err)
	}
	if data.Dev == to.Dev {
		_, total, err := s.look()
		if err != nil {
			return nil, err
		}
		s.least = q.Limits.Reserved(total)
	}
	s.shares = shares(filepath.Join(q.Data, store.FileName), filepath.Join(p.path, "probe"))
	return s, nil
}

// shares tries whether one file can have the blocks of another.
func shares(from, to string) bool {
	in, err := os.Open(from)
	if err != nil {
		return false
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return false
	}
	defer out.Close()
	err = unix.IoctlFileClone(int(out.Fd()), int(in.Fd()))
	return os.Remove(to) == nil && err == nil
}

// look gives what is free and all there is. A disk that does not count files in advance
// has none in all.
func (s *space) look() (free, total core.DiskUse, err error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(s.dir.Fd()), &st); err != nil {
		return free, total, fmt.Errorf("cannot tell the space of the disk: %w", err)
	}
	//nolint:gosec // blocks and files of a disk, far below 2^63
	return core.DiskUse{Bytes: int64(st.Bavail) * st.Bsize, Files: int64(st.Ffree)},
		core.DiskUse{Bytes: int64(st.Blocks) * st.Bsize, Files: int64(st.Files)}, nil
}

// fits fails with `disk_full` where there is no room for so much.
func (s *space) fits(need core.DiskUse) error {
	free, total, err := s.look()
	if err != nil {
		return err
	}
	if free.Bytes-need.Bytes < s.least.Bytes {
		return noRoom("bytes", need.Bytes, free.Bytes, s.least.Bytes)
	}
	if total.Files > 0 && free.Files-need.Files < s.least.Files {
		return noRoom("files (inodes)", need.Files, free.Files, s.least.Files)
	}
	return nil
}

func noRoom(of string, need, free, least int64) error {
	return core.Errorf(core.CodeDiskFull, "there is no room for the backup: it takes %d %s or more, %d are free, and %d of them must stay so",
		need, of, free, least)
}

// judge makes `disk_full` of an error that says so, where it is so. Some file systems say
// the same of one file with more attributes, or one directory with more names, than they
// can hold: whoever makes such a one must not end the whole backup.
func (s *space) judge(err error) error {
	if errors.Is(err, unix.ENOSPC) {
		free, total, lookErr := s.look()
		if lookErr == nil && free.Bytes >= little && (total.Files == 0 || free.Files > 0) {
			return errors.New(err.Error() + ", though the disk has room")
		}
	} else if !errors.Is(err, unix.EDQUOT) {
		return err
	}
	return core.Errorf(core.CodeDiskFull, "there is no more room for the backup").Because(err)
}

// guard gives a context that ends when less is free than must be: a backup must not be
// what fills the disk of the service. Call stop at the end.
func (s *space) guard(ctx context.Context) (_ context.Context, stop func()) {
	ctx, end := context.WithCancelCause(ctx)
	if s.least == (core.DiskUse{}) {
		return ctx, func() { end(nil) }
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			if err := s.fits(core.DiskUse{}); err != nil {
				end(err)
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(spacePause):
			}
		}
	}()
	return ctx, func() { end(nil); <-done }
}
