package files

import (
	"context"
	"errors"
	"io"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/internal/workspace/inside"
)

const (
	// mostSkipped bounds the list of what is not copied.
	mostSkipped = 100
	// openLevels is how many levels are kept open, two files each; what is above is
	// opened again on the way back.
	openLevels = 32
	// mostShown is how many levels a path has in texts.
	mostShown = 40
	// namesAtOnce is how many names of a directory are in memory.
	namesAtOnce = 1024
)

// copying is one copy on its way into the folder of a transaction. Its methods run as
// the environment's user.
type copying struct {
	ctx     context.Context //nolint:containedctx // of one call
	options core.CopyOptions
	txn     *Txn
	source  string
	bytes   int64
	files   int64
	skipped []string
	levels  []*level
	// top is the copy itself, open for reading; mode is the mode that it gets last,
	// where it is a directory.
	top       *os.File
	directory bool
	mode      uint32
}

// level is a directory that is being copied.
type level struct {
	name     string
	from, to *os.File // nil where they were closed
	stat     unix.Stat_t
	keep     []attribute
	left     []string // directories in it that are still to be copied
}

func (c *copying) close() {
	for _, l := range c.levels {
		l.release()
	}
	if c.top != nil {
		_ = c.top.Close()
	}
}

func (l *level) release() {
	if l.from != nil {
		_ = l.from.Close()
		_ = l.to.Close()
		l.from, l.to = nil, nil
	}
}

// all copies what stands at a place.
func (c *copying) all(at *inside.Place, source string) error {
	c.source = c.txn.tree.relative(trim(source))
	c.directory = at.Kind() == unix.S_IFDIR
	if err := c.count(); err != nil {
		return err
	}
	var err error
	if c.directory {
		err = c.tree(at)
	} else {
		err = c.leaf(at, c.txn.Dir(), copyName)
	}
	if err != nil || at.Kind() == unix.S_IFLNK {
		return err
	}
	flags := unix.O_RDONLY | unix.O_NOFOLLOW
	if c.top, err = openAt(c.txn.Dir(), copyName, flags); errors.Is(err, unix.EACCES) {
		c.top, err = nil, nil // its mode lets nobody read it
	}
	return failed("open a copy", err)
}

func (c *copying) count() error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	if c.files++; c.files > c.options.Files {
		return core.Errorf(core.CodeTooLarge, "cannot copy more than %d files and directories: copy less at once", c.options.Files).
			With("allowed_files", c.options.Files)
	}
	return nil
}

// spend takes bytes off what may be copied.
func (c *copying) spend(n int64) error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	if c.bytes += n; c.bytes > c.options.Limit {
		return core.Errorf(core.CodeTooLarge, "cannot copy more than %d bytes: copy less at once", c.options.Limit).
			With("allowed_bytes", c.options.Limit)
	}
	return nil
}

// tree copies a directory: one level at a time, so that neither its depth nor its
// width is a matter of descriptors.
func (c *copying) tree(at *inside.Place) error {
	if err := c.enter(at, c.txn.Dir(), copyName); err != nil {
		return err
	}
	for len(c.levels) > 0 {
		here := c.levels[len(c.levels)-1]
		if len(here.left) == 0 {
			if err := c.leave(); err != nil {
				return err
			}
			continue
		}
		name := here.left[len(here.left)-1]
		here.left = here.left[:len(here.left)-1]
		if err := c.entry(here, name, c.enter); err != nil {
			return err
		}
	}
	return nil
}

// here is the path of what has a name in the last level, for people: of a deep one
// the beginning and the end.
func (c *copying) here(name string) string {
	if len(c.levels) == 0 {
		return c.source
	}
	all, shown := []string{c.source}, c.levels[1:]
	if len(shown) > mostShown {
		all, shown = append(all, "..."), shown[len(shown)-mostShown:]
	}
	for _, l := range shown {
		all = append(all, l.name)
	}
	return path.Join(append(all, name)...)
}

// enter makes a directory, and copies in it all that is no directory.
func (c *copying) enter(at *inside.Place, to *os.File, name string) error {
	l := &level{name: name, stat: at.Stat}
	from, err := at.OpenDirectory(at.Path)
	if err != nil {
		return err
	}
	if l.to, err = makeDirectoryAt(to, name, 0o700); err != nil {
		_ = from.Close()
		return failed("copy a directory", err)
	}
	l.from = from
	c.levels = append(c.levels, l)
	if n := len(c.levels); n > openLevels {
		c.levels[n-1-openLevels].release()
	}
	if l.keep, err = attributes(at.Leaf); err != nil {
		return failed("read the extended attributes of a directory", err)
	}
	return c.entries(l)
}

func (c *copying) entries(l *level) error {
	for {
		names, err := l.from.Readdirnames(namesAtOnce)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return inside.Fault(c.here(""), err)
		}
		for _, name := range names {
			if err := c.count(); err != nil {
				return err
			}
			err := c.entry(l, name, func(*inside.Place, *os.File, string) error {
				l.left = append(l.left, strings.Clone(name))
				return nil
			})
			if err != nil {
				return err
			}
		}
	}
}

// entry copies what has a name in a level. What is gone by now is left out.
func (c *copying) entry(l *level, name string, directory func(at *inside.Place, to *os.File, name string) error) error {
	at := &inside.Place{Dir: l.from, Name: name, Path: name}
	if err := at.Look(); err != nil {
		return inside.Fault(c.here(name), err)
	}
	if !at.Exists() {
		return nil
	}
	defer at.Leaf.Close()
	if at.Kind() == unix.S_IFDIR {
		at.Path = c.here(name)
		return directory(at, l.to, name)
	}
	return c.leaf(at, l.to, name)
}

// leaf copies what is no directory.
func (c *copying) leaf(at *inside.Place, to *os.File, name string) error {
	switch at.Kind() {
	case unix.S_IFREG:
		return c.file(at, to, name)
	case unix.S_IFLNK:
		return c.link(at, to, name)
	}
	if len(c.skipped) < mostSkipped {
		c.skipped = append(c.skipped, c.here(name))
	}
	return nil
}

func (c *copying) link(at *inside.Place, to *os.File, name string) error {
	target, err := at.Target()
	if err != nil {
		return inside.Fault(c.here(name), err)
	}
	if err := unix.Symlinkat(target, fd(to), name); err != nil {
		return failed("copy a link", err)
	}
	times := []unix.Timespec{at.Stat.Atim, at.Stat.Mtim}
	return failed("set the time of a link", unix.UtimesNanoAt(fd(to), name, times, unix.AT_SYMLINK_NOFOLLOW))
}

// leave finishes the last level, and goes back to the one above.
func (c *copying) leave() error {
	n := len(c.levels) - 1
	l := c.levels[n]
	if n > 0 {
		if err := c.reopen(c.levels[n-1], l); err != nil {
			return err
		}
	}
	mode := l.stat.Mode & 0o777
	if n == 0 {
		// To be moved it must be its owner's to write; see narrow.
		c.mode, mode = mode, mode|0o700
	}
	err := finish(l.to, l.keep, mode, &l.stat)
	if err == nil && c.files <= mostSynced {
		err = l.to.Sync()
	}
	c.levels = c.levels[:n]
	l.release()
	return failed("copy a directory", err)
}

// reopen opens a level again by the way up from one that is in it. What is copied may
// be somewhere else by now.
func (c *copying) reopen(up, l *level) error {
	if up.from != nil {
		return nil
	}
	from, err := openAt(l.from, "..", unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return inside.Fault(c.here(""), err)
	}
	st, err := statOf(from)
	if err == nil && !sameInode(&st, &up.stat) {
		err = changed(c.here(""))
	}
	var to *os.File
	if err == nil {
		to, err = openAt(l.to, "..", unix.O_RDONLY|unix.O_DIRECTORY)
	}
	if err != nil {
		_ = from.Close()
		return failed("copy a directory", err)
	}
	up.from, up.to = from, to
	return nil
}
