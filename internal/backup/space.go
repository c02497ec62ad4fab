package backup

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"envapi/core"
)

// spacePause is how long it is between two looks at the free space.
const spacePause = 100 * time.Millisecond

// space is the disk that a backup is made on.
type space struct {
	dir *os.File
	// least is what must stay free: none of it on another disk than the service's.
	least int64
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
		s.least = q.Limits.Reserved(core.DiskUse{Bytes: total}).Bytes
	}
	s.shares = shares(filepath.Join(q.Data, storeName), filepath.Join(p.path, "probe"))
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

// look gives the free space and all there is, in bytes.
func (s *space) look() (free, total int64, err error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(s.dir.Fd()), &st); err != nil {
		return 0, 0, fmt.Errorf("cannot tell the space of the disk: %w", err)
	}
	return int64(st.Bavail) * st.Bsize, int64(st.Blocks) * st.Bsize, nil //nolint:gosec // blocks of a disk, far below 2^63
}

// fits fails with `disk_full` where there is no room for so many bytes.
func (s *space) fits(bytes int64) error {
	free, _, err := s.look()
	if err != nil {
		return err
	}
	if free-bytes < s.least {
		return core.Errorf(core.CodeDiskFull, "there is no room for the backup: it takes about %d bytes, %d are free, and %d of them must stay so",
			bytes, free, s.least)
	}
	return nil
}

// guard gives a context that ends when less is free than must be: a backup must not be
// what fills the disk of the service. Call stop at the end.
func (s *space) guard(ctx context.Context) (_ context.Context, stop func()) {
	ctx, end := context.WithCancelCause(ctx)
	if s.least == 0 {
		return ctx, func() { end(nil) }
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			if err := s.fits(0); err != nil {
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
