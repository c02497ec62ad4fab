package outputlog

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// syncDelay is how long a write waits for its sync at most, so that writes
	// are safe against power loss within the second that is promised.
	syncDelay = 500 * time.Millisecond
	// maxFileSyncs is up to how many segments are synced one by one. For more,
	// one sync of the whole file system costs less.
	maxFileSyncs = 16
)

// syncer brings written segments to the disk in the background, so that no
// write waits for it. It sleeps while nothing is written.
//
// A sync that fails is not tried again: the kernel has marked those pages
// clean, so a second one would succeed without having written them.
type syncer struct {
	dir     string
	wake    chan struct{} // capacity 1: there is something to sync
	quit    chan struct{}
	stopped chan struct{}

	mu    sync.Mutex
	dirty []dirtySegment
}

type dirtySegment struct {
	log     *Log
	segment *segment
}

func startSyncer(dir string) *syncer {
	s := &syncer{
		dir:     dir,
		wake:    make(chan struct{}, 1),
		quit:    make(chan struct{}),
		stopped: make(chan struct{}),
	}
	go s.run()
	return s
}

// add has a segment synced soon.
func (s *syncer) add(l *Log, g *segment) {
	s.mu.Lock()
	s.dirty = append(s.dirty, dirtySegment{l, g})
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default: // it is awake
	}
}

// stop syncs what is left and ends the goroutine.
func (s *syncer) stop() error {
	close(s.quit)
	<-s.stopped
	return s.sync()
}

func (s *syncer) run() {
	defer close(s.stopped)
	for {
		select {
		case <-s.wake:
		case <-s.quit:
			return
		}
		select {
		case <-time.After(syncDelay):
		case <-s.quit:
			return
		}
		_ = s.sync()
	}
}

// sync brings what was written so far to the disk.
func (s *syncer) sync() error {
	s.mu.Lock()
	batch := s.dirty
	s.dirty = nil
	s.mu.Unlock()
	paths := map[string]bool{}
	for _, d := range batch {
		d.collect(s.dir, paths)
	}
	if len(batch) > maxFileSyncs {
		return syncFileSystem(s.dir)
	}
	var errs []error
	for path := range paths {
		errs = append(errs, syncPath(path))
	}
	return errors.Join(errs...)
}

// collect marks a segment clean and adds its file to paths, and the folders
// down from root that name it, unless they were synced before.
func (d dirtySegment) collect(root string, paths map[string]bool) {
	d.log.mu.Lock()
	defer d.log.mu.Unlock()
	g := d.segment
	g.dirty = false
	paths[g.path] = true
	if g.named {
		return
	}
	g.named = true
	for dir := filepath.Dir(g.path); ; dir = filepath.Dir(dir) {
		paths[dir] = true
		if dir == root {
			return
		}
	}
}

// syncPath syncs a file or a folder; one that was deleted needs none.
func syncPath(path string) error {
	f, err := openPath(path, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// syncFileSystem syncs all that is on the file system of dir.
func syncFileSystem(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Syncfs(int(f.Fd()))
}
