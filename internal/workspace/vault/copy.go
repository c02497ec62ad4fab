package vault

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"

	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/internal/workspace/holes"
)

// mostAtOnce is how much is copied between two looks at whether it is still wanted.
const mostAtOnce = 16 << 20

// Copy makes a copy of a folder in base, which is the user's of uid (0: the service's
// own) and which nobody else sees. Blocks are shared where the file system can. Programs
// may write to the folder meanwhile: it fails with `quota_exceeded` where it finds more
// than most, or would make more bytes. Where it fails, what it has made stays in base.
func Copy(ctx context.Context, folder, base *os.File, uid int, most core.DiskUse) (*Tree, error) {
	c := &copier{ctx: ctx, most: most.Bytes, maker: maker{uid: uid, base: base}}
	defer c.maker.close()
	content, err := through(ctx, folder, most, c)
	if err != nil {
		return nil, err
	}
	c.made.Content = content
	return c.made, nil
}

// copier is the visitor that makes the same somewhere else.
type copier struct {
	ctx   context.Context //nolint:containedctx // of one call
	maker maker
	made  *Tree
	bytes int64 // on disk, of what is finished
	most  int64 // of them
}

// spend says whether there is room for what a file or directory takes on disk by now. A
// file that was looked at can be another one when it is copied, and a directory that is
// read has no end while names are added to it.
func (c *copier) spend(f *os.File, finished bool) error {
	st, err := stat(f)
	if err != nil {
		return err
	}
	use := core.DiskUse{Bytes: c.bytes + st.Blocks*512}
	if finished {
		c.bytes = use.Bytes
	}
	return fits(use, core.DiskUse{Bytes: c.most, Files: math.MaxInt64})
}

func metaOf(e *entry) meta {
	return meta{mode: e.stat.Mode, modified: e.stat.Mtim, attributes: e.attributes}
}

func (c *copier) enter(e *entry) error { return c.maker.enter(e.name, metaOf(e)) }

func (c *copier) leave() (err error) {
	if len(c.maker.levels) > 1 {
		if err := c.spend(c.maker.here(), true); err != nil {
			return err
		}
		return c.maker.leave()
	}
	c.made, err = c.maker.finish()
	return err
}

func (c *copier) other(e *entry) error {
	var err error
	if e.stat.Mode&unix.S_IFMT == unix.S_IFIFO {
		err = c.maker.fifo(e.name, metaOf(e))
	} else {
		err = c.maker.symlink(e.name, e.target, metaOf(e))
	}
	if err != nil {
		return err
	}
	return c.maker.remember(e.number, e.name)
}

func (c *copier) again(e *entry) error {
	if err := c.maker.link(e.number, e.name); err != nil {
		return err
	}
	return c.spend(c.maker.here(), false)
}

func (c *copier) file(e *entry) error {
	to, err := c.maker.create(e.name)
	if err != nil {
		return err
	}
	err = c.content(e, to)
	if err == nil {
		err = c.spend(to, true)
	}
	if err == nil {
		err = c.maker.finishFile(to, metaOf(e))
	}
	if err = errors.Join(err, to.Close()); err != nil {
		return fmt.Errorf("copy %q: %w", e.name, err)
	}
	return c.maker.remember(e.number, e.name)
}

// content shares the blocks where the file system can, and else copies those that hold
// data. What grows meanwhile is copied to the length that it had.
func (c *copier) content(e *entry, to *os.File) error {
	size := e.stat.Size
	if size == 0 || unix.IoctlFileClone(fd(to), fd(e.file)) == nil {
		return nil
	}
	for at := int64(0); at < size; {
		data, hole, err := holes.Next(e.file, at, size)
		if err != nil {
			return err
		}
		for at = data; at < hole; {
			if err := c.ctx.Err(); err != nil {
				return err
			}
			n, err := holes.CopyRange(e.file, to, at, min(hole-at, mostAtOnce))
			if err != nil {
				return err
			}
			if n == 0 {
				return to.Truncate(at) // it was cut short meanwhile
			}
			at += n
			if err := c.spend(to, false); err != nil {
				return err
			}
		}
	}
	return to.Truncate(size)
}
