package vault_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/internal/workspace/vault"
)

// hostile is a context that does something to a folder whenever it is asked whether it
// has ended, which is between any two steps of a walk; so it always comes in time. It
// ends by itself where nothing else ends what it is for.
type hostile struct {
	context.Context //nolint:containedctx // it is one
	do              func() error
	left            int
}

func (h *hostile) Err() error {
	if h.left--; h.left < 0 {
		return context.Canceled
	}
	if err := h.do(); err != nil {
		return err
	}
	return h.Context.Err()
}

// copyWhile copies a folder while something is done to it, which is told where the copy
// is made.
func copyWhile(t *testing.T, dir string, uid int, most core.DiskUse, steps int, do func(made string) error) error {
	t.Helper()
	base := folder(t, filepath.Join(home(t), "base"), uid)
	d, err := os.Open(base)
	must(t, err)
	defer d.Close()
	tree, err := vault.Copy(&hostile{t.Context(), func() error { return do(filepath.Join(base, "tree")) }, steps}, hold(t, dir), d, uid, most)
	if err == nil {
		_ = tree.Close()
	}
	return err
}

// wantOver wants an error that names a limit.
func wantOver(t *testing.T, err error, limit string) {
	t.Helper()
	if e := core.AsError(err); err == nil || e.Code != core.CodeQuotaExceeded || e.Facts["limit"] != limit {
		t.Fatalf("got %v", err)
	}
}

// TestACopyIsNoLargerThanItMayBe, however little the folder holds at any time.
func TestACopyIsNoLargerThanItMayBe(t *testing.T) {
	uid, to := users()
	dir := folder(t, filepath.Join(home(t), "folder"), uid)
	in := func(name string, n int) string { return filepath.Join(dir, fmt.Sprintf(name, n)) }

	t.Run("a file goes ahead of it", func(t *testing.T) {
		const many = 100
		as(t, uid, func() (err error) {
			for n := range many {
				err = errors.Join(err, os.MkdirAll(in("a/%03d", n), 0o700))
			}
			return errors.Join(err, os.WriteFile(in("a/%03d/file", 0), make([]byte, 64<<10), 0o600))
		})
		at := 0
		err := copyWhile(t, dir, to, core.DiskUse{Bytes: 2 << 20, Files: 1000}, 1<<20, func(made string) error {
			if info, err := os.Stat(filepath.Join(made, fmt.Sprintf("a/%03d/file", at))); err == nil && info.Size() > 0 && at < many-1 {
				at++
				return os.Rename(in("a/%03d/file", at-1), in("a/%03d/file", at))
			}
			return nil
		})
		wantOver(t, err, "disk_bytes")
		must(t, os.RemoveAll(filepath.Join(dir, "a")))
	})
	t.Run("a file grows after it was looked at", func(t *testing.T) {
		const size, piece = 16 << 30, 16 << 20
		as(t, uid, func() error {
			return errors.Join(os.WriteFile(in("file%d", 0), []byte("data"), 0o600), os.Truncate(in("file%d", 0), size))
		})
		f, err := os.OpenFile(in("file%d", 0), os.O_WRONLY, 0)
		must(t, err)
		defer f.Close()
		at := int64(0)
		err = copyWhile(t, dir, to, core.DiskUse{Bytes: 4 << 20, Files: 1000}, 30, func(string) error {
			at += piece
			_, err := f.WriteAt(make([]byte, 1<<20), at)
			return errors.Join(err, unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, at-piece, 1<<20))
		})
		wantOver(t, err, "disk_bytes")
		must(t, os.Remove(in("file%d", 0)))
	})
	t.Run("one file after the other grows", func(t *testing.T) {
		const many = 20
		as(t, uid, func() (err error) {
			for n := range many {
				err = errors.Join(err, os.WriteFile(in("file%02d", n), []byte("data"), 0o600), os.Truncate(in("file%02d", n), 1<<20))
			}
			return err
		})
		at := 0
		err := copyWhile(t, dir, to, core.DiskUse{Bytes: 4 << 20, Files: 1000}, 1<<20, func(made string) error {
			if _, err := os.Stat(filepath.Join(made, fmt.Sprintf("file%02d", at))); err != nil || at == many {
				return nil
			}
			at++
			return os.WriteFile(in("file%02d", at-1), make([]byte, 1<<20), 0o600)
		})
		wantOver(t, err, "disk_bytes")
		for n := range many {
			must(t, os.Remove(in("file%02d", n)))
		}
	})
	t.Run("there are too many files", func(t *testing.T) {
		as(t, uid, func() (err error) {
			for n := range 20 {
				err = errors.Join(err, os.WriteFile(in("file%02d", n), nil, 0o600))
			}
			return err
		})
		wantOver(t, copyWhile(t, dir, to, core.DiskUse{Bytes: 1 << 30, Files: 19}, 1<<20, func(string) error { return nil }), "files")
		must(t, copyWhile(t, dir, to, core.DiskUse{Bytes: 1 << 30, Files: 20}, 1<<20, func(string) error { return nil }))
		for n := range 20 {
			must(t, os.Remove(in("file%02d", n)))
		}
	})
	t.Run("names come and go", func(t *testing.T) {
		vault.HoldFewNames(t)
		at := 0
		for ; at < 64; at++ {
			must(t, os.WriteFile(in("%06d", at), nil, 0o600))
		}
		err := copyWhile(t, dir, to, core.DiskUse{Bytes: 1 << 30, Files: 100}, 5000, func(string) error {
			at++
			return errors.Join(os.Remove(in("%06d", at-65)), os.WriteFile(in("%06d", at-1), nil, 0o600))
		})
		if !errors.Is(err, vault.ErrChanged) && core.AsError(err).Code != core.CodeQuotaExceeded {
			t.Fatalf("got %v", err)
		}
	})
}

// TestACopyOfManyNamesOfOneFileEnds: they are no files, but take place in a directory.
func TestACopyOfManyNamesOfOneFileEnds(t *testing.T) {
	vault.HoldFewNames(t)
	uid, to := users()
	dir := folder(t, filepath.Join(home(t), "folder"), uid)
	name := func(n int) string { return filepath.Join(dir, fmt.Sprintf("%06d", n)+strings.Repeat("x", 200)) }
	as(t, uid, func() error { return os.WriteFile(name(0), nil, 0o600) })
	at := 0
	add := func(string) error {
		at++
		return os.Link(name(at-1), name(at))
	}
	for at < 32 {
		must(t, add(""))
	}
	as(t, uid, func() error { return os.Mkdir(filepath.Join(dir, "z"), 0o700) })
	for n := range 8000 { // so that those to come are no news
		must(t, os.Link(name(0), filepath.Join(dir, "z", fmt.Sprint(n))))
	}
	err := copyWhile(t, dir, to, core.DiskUse{Bytes: 256 << 10, Files: 1000}, 7000, add)
	wantOver(t, err, "disk_bytes")
}
