package store

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// reserveBytes is the disk space kept for what must work on a full disk.
	// Half of it is for the ends of commands, which say what has filled the
	// disk; the other half for resetting and deleting, which free it.
	reserveBytes = 4 << 20
	// reserveStep is what is given at one time: far more than most transactions
	// write, and little for who fills the disk at that moment to snatch.
	reserveStep = 128 << 10
	// refillPause is how often it is looked whether there is room again.
	refillPause = 2 * time.Second
)

// What a transaction must leave of the reserve when the disk is full.
const (
	leaveAll  = reserveBytes // it must not touch it
	leaveHalf = reserveBytes / 2
	// leaveSome is for the start, when no command runs that could take it.
	leaveSome = reserveBytes / 4
	leaveNone = 0
)

// reserve is a file whose blocks are given back to the file system, a step at a
// time, when the records need space and there is none. It is the best that can
// be had: another program may take what was given.
type reserve struct {
	mu    sync.Mutex // guards the file's size
	file  *os.File
	taken chan struct{} // capacity 1: it is no longer whole
}

// openReserve opens the reserve, which what ran before may have used up. On a
// disk that is full it gives most at once: a start needs some files.
func openReserve(path string) (*reserve, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	r := &reserve{file: file, taken: make(chan struct{}, 1)}
	if !r.fill() {
		r.taken <- struct{}{}
		for free, err := r.free(); err == nil && free < leaveSome && r.give(leaveSome); {
			free += reserveStep
		}
	}
	return r, nil
}

// fill makes the reserve whole where there is room for twice that, so that it
// does not take the last space from who needs it now. It says whether it is
// whole, or never can be.
func (r *reserve) fill() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	size, err := r.size()
	if err != nil || size >= reserveBytes {
		return true
	}
	free, err := r.free()
	if err != nil || free < 2*reserveBytes {
		return err != nil
	}
	err = unix.Fallocate(int(r.file.Fd()), 0, 0, reserveBytes)
	return err == nil || errors.Is(err, unix.EOPNOTSUPP) // this file system keeps no space
}

// give gives a step back to the file system, unless less than leave would be
// left. It says whether it did.
func (r *reserve) give(leave int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	size, err := r.size()
	if err != nil || size-reserveStep < leave {
		return false
	}
	// Some file systems have the blocks only once the change is on disk.
	if errors.Join(r.file.Truncate(size-reserveStep), r.file.Sync()) != nil {
		return false
	}
	select {
	case r.taken <- struct{}{}:
	default: // it is known
	}
	return true
}

// keep makes the reserve whole again whenever something was given and there is
// room, until ctx ends.
func (r *reserve) keep(ctx context.Context) {
	for {
		select {
		case <-r.taken:
		case <-ctx.Done():
			return
		}
		for whole := false; !whole; whole = r.fill() {
			select {
			case <-time.After(refillPause):
			case <-ctx.Done():
				return
			}
		}
	}
}

func (r *reserve) size() (int64, error) {
	info, err := r.file.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// free gives the bytes that the file system has left.
func (r *reserve) free() (int64, error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(r.file.Fd()), &st); err != nil {
		return 0, err
	}
	return int64(st.Bavail) * st.Bsize, nil //nolint:gosec // blocks of a disk, far below 2^63
}

// Close keeps what there is for the next start.
func (r *reserve) Close() error { return r.file.Close() }
