package files

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/internal/workspace/inside"
)

// file is an open regular file of a workspace.
type file struct {
	*os.File
	store *Store
	path  string
	info  core.FileInfo
}

// Info says what the file was when it was opened.
func (f *file) Info() core.FileInfo { return f.info }

// ETag gives the tag of the content; see core.File. It fails with `unavailable` where
// the file changes whenever it is read.
func (f *file) ETag(ctx context.Context, fresh bool) (string, error) {
	st, err := statOf(f.File)
	if err != nil {
		return "", failed("look at a file", err)
	}
	if tag := f.store.Known(&st); tag != "" && !fresh {
		return tag, nil
	}
	tag, _, err := f.store.readTag(ctx, f.path, f.File)
	return tag, err
}

// Section gives n bytes from offset on: an *io.LimitedReader over the *os.File, which
// package net hands to the kernel (sendfile(2)).
func (f *file) Section(offset, n int64) (io.Reader, error) {
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return nil, failed("find a place in a file", err)
	}
	return &io.LimitedReader{R: f.File, N: n}, nil
}

// Check holds what stands at a place to a condition, reading it for that. Where it
// does not hold it fails with `etag_mismatch`. The place is then what was judged, and
// a Txn that changes it finds just that or fails with ErrChanged. name is for errors.
func (t *Tree) Check(ctx context.Context, name string, at *inside.Place, c core.Condition) error {
	if c.Match == nil && !c.Absent {
		return nil
	}
	if !at.Exists() {
		at.Judged = true
		if c.Match != nil {
			return mismatch(name, false, nil)
		}
		return nil
	}
	if c.Match != nil && !c.Absent && slices.Contains(c.Match, "*") {
		at.Judged = true
		return nil
	}
	if c.Absent && at.Kind() != unix.S_IFREG {
		return mismatch(name, true, nil)
	}
	tag, err := t.judge(ctx, name, at)
	if err != nil {
		return err
	}
	if c.Absent || !slices.Contains(c.Match, tag) {
		return mismatch(name, c.Absent, tag)
	}
	return nil
}

// judge reads what stands at a place, and makes the place what was read.
func (t *Tree) judge(ctx context.Context, name string, at *inside.Place) (string, error) {
	var f *os.File
	err := t.root.As(func() (err error) {
		f, err = at.OpenRegular(name)
		return err
	})
	if err != nil {
		return "", err
	}
	defer f.Close()
	tag, st, err := t.store.readTag(ctx, name, f)
	if err != nil {
		return "", err
	}
	at.Stat, at.Judged = st, true
	return tag, nil
}

// mismatch says that a condition does not hold, absent where that is that nothing is
// there; tag is what is there, or nil.
func mismatch(name string, absent bool, tag any) error {
	text := "cannot change %q: its content is another than the condition says; read it again, and change that"
	switch {
	case absent:
		text = "cannot make %q: there is something already, and the condition says that there is nothing"
	case tag == nil:
		text = "cannot change %q: there is no file, and the condition says that there is"
	}
	return core.Errorf(core.CodeETagMismatch, text, name).With("path", name).With("etag", tag)
}

// ErrChanged is the cause of an `unavailable`: what stood at a place was not what was
// looked at before, and nothing was done. Who looks again may try again.
var ErrChanged = errors.New("what stands there has changed meanwhile")

func changed(name string) error {
	return core.Errorf(core.CodeUnavailable,
		"cannot change %q now: programs inside change it all the time; try again", name).
		With("path", name).With("retry_after_ms", 100).Because(ErrChanged)
}
