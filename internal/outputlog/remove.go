package outputlog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// tombstoneBytes is what a trimmed log still takes: a block of common file systems.
const tombstoneBytes = 4096

// Remove removes the log of a command or shell that has ended. Who has it open finds
// its bytes gone, and who opens it then an empty one. Removing what is not there is no
// error.
func (ls *Logs) Remove(environmentID, commandID string) error {
	if !isID(environmentID) || !isID(commandID) {
		return fmt.Errorf("cannot remove an output log: %q or %q is no id", environmentID, commandID)
	}
	which := key{environmentID, commandID}
	for _, l := range ls.forget(func(k key) bool { return k == which }) {
		l.remove()
	}
	err := os.Remove(filepath.Join(ls.dir, environmentID, commandID))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err := errors.Join(err, os.RemoveAll(ls.moreSegments(environmentID, commandID))); err != nil {
		return fmt.Errorf("cannot remove an output log: %w", err)
	}
	return nil
}

// Trim drops all bytes of the log of a command that has ended, and says how much of the
// disk that frees: 0 where it has next to none. How long each stream was stays known,
// so that who reads is told that the bytes were dropped, also after a power loss.
func (ls *Logs) Trim(environmentID, commandID string) (freed int64, err error) {
	l, err := ls.use(environmentID, commandID)
	if err != nil {
		return 0, err
	}
	defer l.Release()
	freed, err = l.trim()
	if err != nil {
		return 0, fmt.Errorf("cannot trim the output of %s: %w", commandID, err)
	}
	return freed, nil
}

// trim puts one segment, of which there is only the header that says where the log
// ends, in the place of all.
func (l *Log) trim() (freed int64, err error) {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.closeFile()
	gone := slices.Clone(l.segments) // only writers change it
	for _, g := range gone {
		freed += g.disk
	}
	if freed <= tombstoneBytes {
		return 0, nil
	}
	seq := gone[len(gone)-1].seq + 1
	h := segmentHeader{began: time.UnixMilli(time.Now().UnixMilli()), start: l.end}
	file, err := createSegment(l.path(seq), h)
	if err != nil {
		return 0, err
	}
	if err := errors.Join(file.Sync(), file.Close(), l.syncFolders()); err != nil {
		return 0, err // it is found, and says nothing that is wrong
	}
	l.mu.Lock()
	l.segments, l.pinned = []*segment{newSegment(l.path(seq), seq, h, segmentHeaderBytes)}, 0
	l.announce()
	l.mu.Unlock()
	for _, g := range gone {
		_ = os.Remove(g.path) // if it stays, the next start takes it in
	}
	return freed, nil
}

// syncFolders syncs the folders that name a segment after the first.
func (l *Log) syncFolders() error {
	return errors.Join(
		syncPath(l.logs.moreSegments(l.environment, l.command)),
		syncPath(filepath.Join(l.logs.dir, l.environment)),
	)
}

// Bytes gives what the logs of each environment take on disk. It looks at every file.
func (ls *Logs) Bytes() (map[string]int64, error) {
	entries, err := os.ReadDir(ls.dir)
	if err != nil {
		return nil, fmt.Errorf("cannot list the output logs: %w", err)
	}
	sizes := map[string]int64{}
	for _, e := range entries {
		if !e.IsDir() || !isID(e.Name()) {
			continue
		}
		if sizes[e.Name()], err = onDisk(filepath.Join(ls.dir, e.Name())); err != nil {
			return nil, fmt.Errorf("cannot count the output logs: %w", err)
		}
	}
	return sizes, nil
}

// onDisk gives what the files below a folder take. What goes meanwhile takes nothing.
func onDisk(dir string) (size int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}
		const unit = 512 // of st_blocks, whatever the file system's blocks are
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			size += stat.Blocks * unit
		}
		return nil
	})
	return size, err
}
