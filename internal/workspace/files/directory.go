package files

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/internal/workspace/inside"
)

// MakeDirectory implements core.FileWriter. With parents a link to a directory is one
// that is there already. All that are missing are made, or none, also where the service
// is killed meanwhile.
func (t *Tree) MakeDirectory(ctx context.Context, path string, parents bool) (info core.FileInfo, made bool, err error) {
	err = Again(func() error {
		info, made, err = t.makeDirectory(ctx, path, parents)
		return err
	})
	return info, made, err
}

func (t *Tree) makeDirectory(ctx context.Context, path string, parents bool) (info core.FileInfo, made bool, err error) {
	if err := ctx.Err(); err != nil {
		return info, false, err
	}
	at, err := t.Locate(trim(path), inside.Mode{Missing: parents})
	if err != nil {
		return info, false, withoutParents(path, err)
	}
	defer at.Close()
	if at.Exists() {
		info, err = t.alreadyDirectory(path, parents, at)
		return info, false, err
	}
	if len(at.Missing) > 0 {
		if err := t.makeWhole(ctx, at); err != nil {
			return info, false, err
		}
		info, err = t.Stat(ctx, trim(path), false)
		return info, true, err
	}
	made, err = t.makeAt(path, parents, at)
	if err != nil {
		return info, false, err
	}
	info, err = t.Info(t.relative(trim(path)), at)
	return info, made, err
}

// madeName is what is made in the folder of its transaction.
const madeName = "made"

// makeWhole makes a directory and those that are missing on the way to it, in one step.
func (t *Tree) makeWhole(ctx context.Context, at *inside.Place) error {
	unlock, err := t.Lock(ctx, at)
	if err != nil {
		return err
	}
	defer unlock()
	x, err := t.Begin()
	if err != nil {
		return err
	}
	defer x.Discard()
	err = t.root.As(func() error {
		dir, err := makeDirectoryAt(x.Dir(), madeName, newDirectory)
		if err != nil {
			return inside.Fault(at.Path, err)
		}
		return dir.Close()
	})
	if err != nil {
		return err
	}
	x.Put(madeName, at, false)
	return x.Commit(ctx)
}

// makeAt makes a directory at a place where there was nothing.
func (t *Tree) makeAt(path string, parents bool, at *inside.Place) (made bool, err error) {
	err = t.root.As(func() error {
		var dir *os.File
		if dir, made, err = makeIn(at.Dir, at.Name); err != nil {
			return inside.Fault(path, err)
		}
		_ = dir.Close()
		if !made && !parents {
			return inside.Fault(path, unix.EEXIST)
		}
		return inside.Fault(path, at.Look())
	})
	if err == nil {
		err = t.syncParent(at)
	}
	if err == nil && !at.Exists() {
		err = changed(path)
	}
	return made, err
}

// itself finds what a path names, which is never what a link at its end leads to, not
// even with a slash after it.
func (t *Tree) itself(path string, m inside.Mode) (*inside.Place, error) {
	at, err := t.Locate(trim(path), m)
	if err != nil {
		return nil, err
	}
	if trim(path) != path && at.Exists() && at.Kind() != unix.S_IFDIR {
		at.Close()
		return nil, inside.Fault(path, unix.ENOTDIR)
	}
	return at, nil
}

// trim takes slashes off a path's end.
func trim(path string) string {
	if trimmed := strings.TrimRight(path, "/"); trimmed != "" {
		return trimmed
	}
	return path
}

// alreadyDirectory says what is there already, where that is a directory and will do.
func (t *Tree) alreadyDirectory(path string, parents bool, at *inside.Place) (info core.FileInfo, err error) {
	if !parents {
		return info, inside.Fault(path, unix.EEXIST)
	}
	if at.Kind() == unix.S_IFLNK {
		if at, err = t.Locate(path, inside.Mode{Follow: true}); err != nil {
			return info, err
		}
		defer at.Close()
	}
	if !at.Exists() || at.Kind() != unix.S_IFDIR {
		return info, inside.Fault(path, unix.EEXIST)
	}
	return t.Info(t.relative(trim(path)), at)
}

// growth is directories that were made on the way to a place, one in the other.
type growth struct {
	tree  *Tree
	base  *os.File // which the first is in; nil where there is none
	names []string
}

// makeMissing makes the directories that are missing on the way to a place, durably,
// and leads the place there; one that somebody else makes meanwhile is as good. Where
// it fails it has taken away again what it made; afterwards undo does.
func (t *Tree) makeMissing(at *inside.Place) (*growth, error) {
	g := &growth{tree: t}
	for len(at.Missing) > 0 {
		if err := g.grow(at); err != nil {
			g.undo()
			g.close()
			return nil, err
		}
	}
	return g, nil
}

// grow makes one directory, and leads the place into it.
func (g *growth) grow(at *inside.Place) error {
	var next *os.File
	var made bool
	name := at.Missing[0]
	err := g.tree.root.As(func() (err error) {
		next, made, err = makeIn(at.Dir, name)
		return inside.Fault(at.Path, err)
	})
	if err != nil {
		return err
	}
	err = g.tree.syncParent(at)
	before := at.Dir
	at.Dir, at.Missing = next, at.Missing[1:]
	switch {
	case made && g.base == nil:
		g.base, g.names = before, []string{name}
		return err
	case made:
		g.names = append(g.names, name)
	}
	_ = before.Close()
	return err
}

// undo takes away again what was made, as far as it is empty.
func (g *growth) undo() {
	_ = g.tree.root.As(func() error {
		for i := len(g.names) - 1; i >= 0; i-- {
			if err := g.remove(g.names[:i], g.names[i]); err != nil {
				return err
			}
		}
		return nil
	})
	g.names = nil
}

// remove removes a directory below the base. Another one that has its name by now
// goes as well where it is empty.
func (g *growth) remove(way []string, name string) error {
	dir := g.base
	if len(way) > 0 {
		at := &inside.Place{Dir: g.base, Name: strings.Join(way, "/")}
		if err := at.Look(); err != nil || !at.Exists() {
			return err
		}
		defer at.Leaf.Close()
		dir = at.Leaf
	}
	return unix.Unlinkat(fd(dir), name, unix.AT_REMOVEDIR)
}

func (g *growth) close() {
	if g.base != nil {
		_ = g.base.Close()
	}
}

// makeIn makes a directory, and gives it, or the one that is there, O_PATH. What is
// there and is none fails as unix.EEXIST.
func makeIn(dir *os.File, name string) (f *os.File, made bool, err error) {
	err = unix.Mkdirat(fd(dir), name, newDirectory)
	made = err == nil
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, false, err
	}
	at := &inside.Place{Dir: dir, Name: name, Path: name}
	if err := at.Look(); err != nil {
		return nil, made, err
	}
	switch {
	case !at.Exists():
		return nil, made, changed(name)
	case at.Kind() != unix.S_IFDIR:
		_ = at.Leaf.Close()
		return nil, made, unix.EEXIST
	}
	if mode := at.Stat.Mode & 0o7777; made && mode&0o777 != newDirectory { // the umask does not matter
		if err := unix.Chmod(held(at.Leaf), mode|newDirectory); err != nil {
			_ = at.Leaf.Close()
			return nil, made, err
		}
	}
	return at.Leaf, made, nil
}

// held is a path to what a descriptor holds, and to nothing else.
func held(f *os.File) string { return "/proc/self/fd/" + strconv.Itoa(fd(f)) }

// syncParent makes the names in a place's directory durable. One that may not be read
// is synced with all of its file system.
func (t *Tree) syncParent(at *inside.Place) error {
	var dir *os.File
	err := t.root.As(func() (err error) {
		dir, err = at.OpenParent()
		return err
	})
	if errors.Is(err, unix.EACCES) {
		folder, err := t.folder()
		if err != nil {
			return err
		}
		return failed("make a change durable", unix.Syncfs(fd(folder)))
	}
	if err != nil {
		return failed("make a change durable", err)
	}
	defer dir.Close()
	return failed("make a change durable", dir.Sync())
}
