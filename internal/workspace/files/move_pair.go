package files

import (
	"context"
	"errors"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/internal/workspace/inside"
)

// pair is where something is and where it, or a copy of it, is to be.
type pair struct {
	tree                *Tree
	source, destination string
	from, to            *inside.Place
	same                bool // both are one name in one directory
}

func (t *Tree) pair(source, destination string, o core.CopyOptions) (*pair, error) {
	from, err := t.itself(source, inside.Mode{})
	if err != nil {
		return nil, err
	}
	p := &pair{tree: t, source: source, destination: destination, from: from}
	if err := p.aim(o); err != nil {
		from.Close()
		return nil, err
	}
	return p, nil
}

// aim finds the destination, again where it was found before.
func (p *pair) aim(o core.CopyOptions) error {
	to, err := p.tree.itself(p.destination, inside.Mode{Missing: o.Parents})
	if err != nil {
		return withoutParents(p.destination, err)
	}
	if p.to != nil {
		p.to.Close()
	}
	p.to = to
	from, err := p.from.Key()
	if err != nil {
		return failed("look at a directory", err)
	}
	at, err := to.Key()
	p.same = from == at
	return failed("look at a directory", err)
}

func (p *pair) close() {
	p.from.Close()
	if p.to != nil {
		p.to.Close()
	}
}

// result says what stands at the destination now.
func (p *pair) result(at string) (info core.FileInfo, err error) {
	err = p.tree.root.As(func() error { return inside.Fault(at, p.to.Look()) })
	if err == nil && !p.to.Exists() {
		err = p.tree.NotFound(at, p.to) // it was made, and a program inside has taken it away
	}
	if err != nil {
		return info, err
	}
	return p.tree.Info(p.tree.relative(trim(at)), p.to)
}

// allow says whether the destination may become what the source is. What is the same
// may.
func (p *pair) allow(ctx context.Context, o core.CopyOptions) error {
	if !p.from.Exists() {
		return p.tree.NotFound(p.source, p.from)
	}
	if err := p.tree.Check(ctx, p.destination, p.to, o.If); err != nil || p.same {
		return err
	}
	directory := p.from.Kind() == unix.S_IFDIR
	if directory {
		below, err := p.tree.isBelow(p.to.Dir, &p.from.Stat)
		if err != nil {
			return err
		}
		if below {
			return p.intoItself()
		}
	}
	switch {
	case p.to.Exists():
		return p.allowOver(directory, o.Overwrite)
	case !directory && strings.HasSuffix(p.destination, "/"):
		return inside.Fault(p.destination, unix.ENOTDIR)
	}
	return nil
}

// allowOver says whether what stands at the destination may be replaced.
func (p *pair) allowOver(directory, over bool) error {
	onto := p.to.Kind() == unix.S_IFDIR
	switch {
	case onto && (directory || !over):
		return p.ontoDirectory(core.CodeAlreadyExists)
	case onto:
		return p.ontoDirectory(core.CodeIsADirectory)
	case !over:
		return core.Errorf(core.CodeAlreadyExists, "there is already something at %q: set overwrite to replace it, or give another destination", p.destination).
			With("path", p.destination)
	case directory:
		return inside.Fault(p.destination, unix.ENOTDIR)
	case p.to.Kind() == unix.S_IFREG && !p.tree.mayWrite(&p.to.Stat):
		return inside.Fault(p.destination, unix.EACCES)
	}
	return nil
}

// ontoDirectory says that the destination is a directory, and what was meant perhaps.
func (p *pair) ontoDirectory(code core.Code) error {
	in := path.Join(p.destination, path.Base(p.source))
	return core.Errorf(code, "there is a directory at %q, which nothing replaces: give the new path itself, as %q, or remove the directory first", p.destination, in).
		With("path", p.destination)
}

func (p *pair) intoItself() error {
	return core.Errorf(core.CodeInvalidArgument,
		"cannot put %q at %q: that is itself, or below it; give another destination", p.source, p.destination).
		With("field", "destination").With("path", p.destination)
}

// isBelow says whether a directory is the one with that stat, or below it. It asks
// the directories and not their names.
func (t *Tree) isBelow(dir *os.File, top *unix.Stat_t) (below bool, err error) {
	root, err := statOf(t.root.Descriptor())
	if err != nil {
		return false, failed("look at the workspace", err)
	}
	err = t.root.As(func() error {
		below, err = climb(dir, &root, top)
		return err
	})
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.ENOENT) {
		return false, changed(dir.Name()) // it is somewhere else by now
	}
	return below, failed("look at a directory", err)
}

// climb goes up from a directory to the root and looks for one on its way.
func climb(dir *os.File, root, top *unix.Stat_t) (bool, error) {
	var below unix.Stat_t
	up := dir
	for way := "."; ; way = ".." {
		next, err := openAt(up, way, unix.O_PATH|unix.O_DIRECTORY)
		if up != dir {
			_ = up.Close()
		}
		if err != nil {
			return false, err
		}
		up = next
		here, err := statOf(up)
		found, highest := sameInode(&here, top), sameInode(&here, &below)
		if err == nil && !found && !highest && !sameInode(&here, root) {
			below = here
			continue
		}
		_ = up.Close()
		if err == nil && highest {
			err = unix.ENOENT // it was moved out
		}
		return found, err
	}
}
