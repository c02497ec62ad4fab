package files

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/internal/workspace/inside"
)

// Remove implements core.FileWriter. Everything goes by one rename out of the
// workspace; what is freed is freed afterwards.
func (t *Tree) Remove(ctx context.Context, path string, recursive bool, cond core.Condition) error {
	return Again(func() error { return t.remove(ctx, path, recursive, cond) })
}

func (t *Tree) remove(ctx context.Context, path string, recursive bool, cond core.Condition) error {
	at, err := t.itself(path, inside.Mode{})
	if err != nil {
		return err
	}
	defer at.Close()
	if at.Name == "." {
		return t.unnamed("remove", path, at)
	}
	unlock, err := t.Lock(ctx, at)
	if err != nil {
		return err
	}
	defer unlock()
	if err := t.Check(ctx, path, at, cond); err != nil {
		return err
	}
	switch {
	case !at.Exists():
		return t.NotFound(path, at)
	case at.Kind() == unix.S_IFDIR && !recursive:
		return t.removeEmpty(path, at)
	case at.Kind() == unix.S_IFDIR:
		return t.removeTree(ctx, at)
	}
	x, err := t.bare()
	if err != nil {
		return err
	}
	defer x.Discard()
	x.Take(at)
	return x.Commit(ctx)
}

// unnamed refuses to remove or rename what was not named by its own name in the
// directory that it is in, first of all the workspace itself.
func (t *Tree) unnamed(what, path string, at *inside.Place) error {
	root, err := statOf(t.root.Descriptor())
	if err != nil {
		return failed("look at the workspace", err)
	}
	text := "cannot %s the directory by the path %q: give the path that ends in its own name"
	if sameInode(&root, &at.Stat) {
		text = "cannot %s the workspace itself (%q): name what is in it"
	}
	return core.Errorf(core.CodeInvalidArgument, text, what, path).With("field", "path").With("path", path)
}

func sameInode(a, b *unix.Stat_t) bool { return a.Dev == b.Dev && a.Ino == b.Ino }

func (t *Tree) removeEmpty(path string, at *inside.Place) error {
	err := t.root.As(func() error {
		return unix.Unlinkat(fd(at.Dir), at.Name, unix.AT_REMOVEDIR)
	})
	switch {
	case err == nil:
		return join(t.store.reached("removed"), t.syncParent(at))
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		return changed(path)
	}
	return inside.Fault(path, err)
}

// removeTree takes a directory away with all that is in it. Its own mode may forbid
// an ordinary user to move it, because its entry for ".." changes; it is given the
// owner's rights for that.
func (t *Tree) removeTree(ctx context.Context, at *inside.Place) error {
	x, err := t.Begin()
	if err != nil {
		return err
	}
	defer x.Discard()
	x.loose = false
	mode := at.Stat.Mode & 0o7777
	locked := mode&unix.S_IWUSR == 0
	if locked {
		locked = t.chmod(at, mode|unix.S_IWUSR) == nil
	}
	x.Take(at)
	err = x.Commit(ctx)
	if err != nil && locked {
		_ = t.chmod(at, mode)
	}
	return err
}

// chmod sets the mode of what was seen at a place, wherever it is now.
func (t *Tree) chmod(at *inside.Place, mode uint32) error {
	return t.root.As(func() error { return unix.Chmod(held(at.Leaf), mode) })
}
