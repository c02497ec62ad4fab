package files

import (
	"context"
	"errors"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/internal/workspace/inside"
)

// Tree is the folder of one environment. Its methods may be called from many
// goroutines, and are safe against every other tree of the same Store.
type Tree struct {
	store *Store
	id    string
	root  *inside.Root
	uid   int

	mu      sync.Mutex
	staging *os.File // nil until something is staged
	closed  bool
}

// Close lets go of what the tree has open itself.
func (t *Tree) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	if t.staging == nil {
		return nil
	}
	err := t.staging.Close()
	t.staging = nil
	return err
}

// folder gives the staging folder of the environment.
func (t *Tree) folder() (*os.File, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, failed("stage a change", os.ErrClosed)
	}
	if t.staging == nil {
		f, err := t.store.folder(t.id, t.uid)
		if err != nil {
			return nil, err
		}
		t.staging = f
	}
	return t.staging, nil
}

// Locate finds a place by a caller's path; see inside.Root.Locate. It may be called
// anywhere. The caller must close the place.
func (t *Tree) Locate(path string, m inside.Mode) (at *inside.Place, err error) {
	name, err := t.root.Relative(path)
	if err != nil {
		return nil, err
	}
	err = t.root.As(func() error {
		at, err = t.root.Locate(name, m)
		return err
	})
	return at, err
}

// Lock takes the names of places, so that nobody else changes what stands there
// through the trees of this service, and then looks at the places again. It waits
// until ctx ends.
func (t *Tree) Lock(ctx context.Context, places ...*inside.Place) (unlock func(), err error) {
	keys := make([]lockKey, len(places))
	for i, at := range places {
		if keys[i], err = keyOf(at); err != nil {
			return nil, failed("look at a directory", err)
		}
	}
	unlock, err = t.store.locks.lock(ctx, keys)
	if err != nil {
		return nil, err
	}
	err = t.root.As(func() error {
		for _, at := range places {
			if err := at.Look(); err != nil {
				return inside.Fault(at.Path, err)
			}
		}
		return nil
	})
	if err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

// Stat implements core.FileReader.
func (t *Tree) Stat(ctx context.Context, path string, tag bool) (core.FileInfo, error) {
	at, err := t.Locate(path, inside.Mode{})
	if err != nil {
		return core.FileInfo{}, err
	}
	defer at.Close()
	if !at.Exists() {
		return core.FileInfo{}, t.NotFound(path, at)
	}
	info, err := t.Info(t.relative(path), at)
	if err != nil || !tag || info.ETag != "" || info.Type != core.TypeFile {
		return info, err
	}
	f, err := t.open(path, at)
	if err != nil {
		var known *core.Error
		if errors.As(err, &known) && known.Code == core.CodePermissionDenied {
			return info, nil // who may not read it may still know that it is there
		}
		return info, err
	}
	defer f.Close()
	info = f.info
	info.ETag, err = f.ETag(ctx, false)
	return info, err
}

// Open implements core.FileReader.
func (t *Tree) Open(_ context.Context, path string) (core.File, error) {
	name, err := t.root.Relative(path)
	if err != nil {
		return nil, err
	}
	var at *inside.Place
	var f *os.File
	err = t.root.As(func() (err error) { // once: becoming the user takes longer than all else here
		if at, err = t.root.Locate(name, inside.Mode{Follow: true}); err == nil && at.Exists() {
			f, err = at.OpenRegular(path)
		}
		return err
	})
	if at != nil {
		defer at.Close()
	}
	switch {
	case err != nil:
		return nil, err
	case f == nil:
		return nil, t.NotFound(path, at)
	}
	opened, err := t.opened(path, f)
	if err != nil {
		return nil, err // and no file that is nil
	}
	return opened, nil
}

func (t *Tree) open(path string, at *inside.Place) (*file, error) {
	var f *os.File
	err := t.root.As(func() (err error) {
		f, err = at.OpenRegular(path)
		return err
	})
	if err != nil {
		return nil, err
	}
	return t.opened(path, f)
}

func (t *Tree) opened(path string, f *os.File) (*file, error) {
	st, err := statOf(f)
	if err != nil {
		_ = f.Close()
		return nil, failed("look at a file", err)
	}
	info := InfoOf(t.relative(path), &st)
	info.ETag = t.store.Known(&st)
	return &file{File: f, store: t.store, path: path, info: info}, nil
}

// relative gives a caller's path below the folder.
func (t *Tree) relative(path string) string {
	if name, err := t.root.Relative(path); err == nil {
		return name
	}
	return path
}

// mayWrite says whether the environment's user may write to what has this stat. He
// could replace it all the same; but a mode that forbids writing is meant.
func (t *Tree) mayWrite(st *unix.Stat_t) bool {
	uid := t.uid
	if uid == 0 || os.Geteuid() != 0 {
		uid = os.Geteuid()
	}
	switch {
	case uid == 0:
		return true
	case int(st.Uid) == uid:
		return st.Mode&unix.S_IWUSR != 0
	case int(st.Gid) == uid:
		return st.Mode&unix.S_IWGRP != 0
	}
	return st.Mode&unix.S_IWOTH != 0
}
