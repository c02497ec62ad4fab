package files

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/internal/workspace/inside"
)

// movedName is what is moved in the folder of its transaction.
const movedName = "moved"

// Move implements core.FileWriter. A program inside sees the one name or the other;
// where a condition was judged it may see both for a moment, and never neither. What
// stands at the destination is replaced itself, also where it is a link. A directory
// that its own mode forbids its owner to write to cannot be moved.
func (t *Tree) Move(ctx context.Context, source, destination string, o core.CopyOptions) (info core.FileInfo, err error) {
	err = Again(func() error {
		info, err = t.move(ctx, source, destination, o)
		return err
	})
	return info, err
}

func (t *Tree) move(ctx context.Context, source, destination string, o core.CopyOptions) (info core.FileInfo, err error) {
	p, err := t.pair(source, destination, o)
	if err != nil {
		return info, err
	}
	defer p.close()
	if p.from.Name == "." {
		return info, t.unnamed("move", source, p.from)
	}
	unlock, err := t.Lock(ctx, p.from, p.to)
	if err != nil {
		return info, err
	}
	defer unlock()
	if err := p.allow(ctx, o); err != nil {
		return info, err
	}
	if !p.same {
		if err := p.move(ctx); err != nil {
			return info, err
		}
	}
	return p.result(destination)
}

// move does it, after the directories that are missing.
func (p *pair) move(ctx context.Context) error {
	if p.to.Exists() && p.to.Judged {
		return p.moveJudged(ctx)
	}
	grown, err := p.tree.makeMissing(p.to)
	if err != nil {
		return err
	}
	defer grown.close()
	if err := p.tree.root.As(p.rename); err != nil {
		grown.undo()
		return err
	}
	if err := p.tree.store.reached("moved"); err != nil {
		return failed("make a change durable", err)
	}
	return join(p.tree.syncParent(p.to), p.tree.syncParent(p.from))
}

// rename runs as the environment's user.
func (p *pair) rename() error {
	if !p.to.Exists() {
		err := renameNew(p.from.Dir, p.from.Name, p.to.Dir, p.to.Name)
		switch {
		case errors.Is(err, unix.EEXIST), errors.Is(err, unix.ENOENT):
			return changed(p.to.Path)
		case errors.Is(err, unix.EINVAL):
			return p.intoItself()
		}
		return inside.Fault(p.from.Path, err)
	}
	if sameInode(&p.from.Stat, &p.to.Stat) {
		// Two names of one file: the kernel would leave both (rename(2)).
		return inside.Fault(p.from.Path, unix.Unlinkat(fd(p.from.Dir), p.from.Name, 0))
	}
	err := unix.Renameat(fd(p.from.Dir), p.from.Name, fd(p.to.Dir), p.to.Name)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EISDIR) || errors.Is(err, unix.ENOTDIR) {
		return changed(p.to.Path)
	}
	return inside.Fault(p.from.Path, err)
}

// moveJudged moves a file onto another one that a condition was judged by: it gets
// its second name by a step that finds just that, before it loses the first. After a
// crash it has one of the two.
func (p *pair) moveJudged(ctx context.Context) error {
	x, err := p.tree.Begin()
	if err != nil {
		return err
	}
	defer x.Discard()
	x.loose = false
	err = p.tree.root.As(func() error { return p.second(x.Dir()) })
	if errors.Is(err, unix.ENOENT) {
		return changed(p.from.Path)
	}
	if err != nil {
		return inside.Fault(p.from.Path, err)
	}
	p.from.Judged = true
	if !sameInode(&p.from.Stat, &p.to.Stat) {
		x.Put(movedName, p.to, true)
	}
	x.Take(p.from)
	return x.Commit(ctx)
}

// second gives what is moved its second name, and looks at it again: that is a change
// of it. It runs as the environment's user.
func (p *pair) second(dir *os.File) error {
	before := p.from.Stat
	if err := unix.Linkat(fd(p.from.Dir), p.from.Name, fd(dir), movedName, 0); err != nil {
		return err
	}
	st, err := statAt(dir, movedName)
	if err == nil {
		err = p.from.Look()
	}
	if err == nil && (!p.from.Exists() || !sameInode(&before, &st) || !sameInode(&before, &p.from.Stat)) {
		err = changed(p.from.Path)
	}
	return err
}
