package files

import (
	"context"

	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/internal/workspace/turns"
)

const (
	// copyName is what is copied in the folder of its transaction.
	copyName = "copy"
	// mostSynced is up to how many entries are written to disk one by one; beyond
	// that the whole file system is.
	mostSynced = 64
)

// copies are those under way: each keeps a thread and the disk busy.
var copies = turns.New("copies", 8)

// Copy implements core.FileWriter. Modes, user extended attributes, times and holes
// are kept, and blocks are shared where the file system can; several hard links to a
// file become several files. What stands at the destination is replaced itself, also
// where it is a link. A file that a program inside writes meanwhile may be copied half
// written, and a directory that is moved meanwhile makes it `unavailable`.
//
// It has a bounded number of files open, and names of directories in memory: those
// that are still to be copied on the way to where it is, o.Files at most.
func (t *Tree) Copy(ctx context.Context, source, destination string, o core.CopyOptions) (info core.FileInfo, skipped []string, err error) {
	leave, err := copies.Take(ctx)
	if err != nil {
		return info, nil, err
	}
	defer leave()
	p, err := t.pair(source, destination, o)
	if err != nil {
		return info, nil, err
	}
	defer p.close()
	if err := p.allowCopy(ctx, o); err != nil { // before the work, and again after it
		return info, nil, err
	}
	x, err := t.Begin()
	if err != nil {
		return info, nil, err
	}
	defer x.Discard()
	c := &copying{ctx: ctx, options: o, txn: x}
	defer c.close()
	if err := t.root.As(func() error { return c.all(p.from, p.source) }); err != nil {
		return info, nil, err
	}
	x.loose = c.files > mostSynced
	err = Again(func() error {
		info, err = p.put(ctx, c, o)
		return err
	})
	return info, c.skipped, err
}

func (p *pair) allowCopy(ctx context.Context, o core.CopyOptions) error {
	if err := p.allow(ctx, o); err != nil {
		return err
	}
	if p.same {
		return p.intoItself()
	}
	if kind := p.from.Kind(); kind != unix.S_IFDIR && kind != unix.S_IFLNK {
		return p.from.MustBeRegular(p.source)
	}
	return nil
}

// put shows the copy at the destination.
func (p *pair) put(ctx context.Context, c *copying, o core.CopyOptions) (info core.FileInfo, err error) {
	if err := p.aim(o); err != nil {
		return info, err
	}
	unlock, err := p.tree.Lock(ctx, p.to)
	if err != nil {
		return info, err
	}
	defer unlock()
	if err := p.allowCopy(ctx, o); err != nil {
		return info, err
	}
	c.txn.Put(copyName, p.to, p.to.Exists())
	if c.narrows() {
		c.txn.last = c.narrow
	}
	if err := c.txn.Commit(ctx); err != nil {
		return info, err
	}
	return p.copied()
}

// copied says what was put there, which a program inside may have moved since.
func (p *pair) copied() (info core.FileInfo, err error) {
	if len(p.to.Missing) > 0 {
		if err := p.aim(core.CopyOptions{}); err != nil {
			return info, err
		}
	}
	return p.result(p.destination)
}
