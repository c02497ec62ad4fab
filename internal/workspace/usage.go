package workspace

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"envapi/core"
)

const (
	// maxDepth bounds the memory of a count: 24 bytes for each level. A path
	// reaches 2048 levels deep; what is deeper was made to be.
	maxDepth = 1 << 14
	// heldLevels is for how many levels, from the top, a descriptor is held, so
	// that the count comes back to them whatever is moved meanwhile.
	heldLevels = 32
	// maxLinked bounds the memory of a count: about 20 bytes for each file
	// that has several names. Beyond it each further name of such a file
	// counts a part of its bytes, and as a file of its own.
	maxLinked = 1 << 16
	// A directory is read in small pieces where the count comes back to it
	// after each of its directories, in larger and larger ones where it does
	// not. The smallest holds the longest name.
	minPiece = 512
	maxPiece = 32 << 10
	// maxTries is how often a count starts again because directories were
	// moved under it.
	maxTries = 3
	// countsAtOnce is how many folders are counted at one time. Each count keeps
	// a thread of the system busy, of which a process may have only so many.
	countsAtOnce = 8
)

// Usage counts the space that the folder takes on disk and the files,
// directories and other entries in it, itself not among them; a file with
// several names is counted once. What is in the folder temporary, where that is
// not "", counts likewise, and so do deleted files that are still open, where the
// folder belongs to a uid of its own. What an ordinary user's service may not read
// is not counted. It fails with the context's error when that ends, also while it
// waits for its turn.
func (w *Workspaces) Usage(ctx context.Context, id, temporary string) (size, files int64, err error) {
	if err := check(ctx, id); err != nil {
		return 0, 0, err
	}
	select {
	case w.counting <- struct{}{}:
	case <-ctx.Done():
		return 0, 0, ctx.Err()
	}
	defer func() { <-w.counting }()
	use, err := w.measure(ctx, id, temporary)
	if err != nil && !errors.Is(err, core.ErrHidden) {
		return 0, 0, err
	}
	return use.Bytes, use.Files, nil
}

// Measure counts as Usage does, without waiting for a turn: its caller sees to it
// that there are few. Where a part of the folder cannot be counted it fails with
// core.ErrPartial and gives what it could count; likewise with core.ErrHidden.
func (w *Workspaces) Measure(ctx context.Context, id, temporary string) (core.DiskUse, error) {
	if err := check(ctx, id); err != nil {
		return core.DiskUse{}, err
	}
	return w.measure(ctx, id, temporary)
}

func (w *Workspaces) measure(ctx context.Context, id, temporary string) (core.DiskUse, error) {
	for try := 1; ; try++ {
		c := counter{linked: map[uint64]struct{}{}, buf: make([]byte, maxPiece)}
		err := c.count(ctx, w.live, id)
		if err == nil && temporary != "" {
			err = c.countBeside(ctx, temporary)
		}
		open, unseen := w.deleted(&c.top)
		use := core.DiskUse{Bytes: c.size + open.Bytes, Files: c.files + open.Files}
		switch {
		case ctx.Err() != nil:
			return core.DiskUse{}, ctx.Err()
		case err != nil:
			return core.DiskUse{}, failed("count the files of "+id, err)
		case !c.partial && unseen == nil:
			return use, nil
		case !c.partial && errors.Is(unseen, core.ErrHidden):
			return use, failed("count the files of "+id, unseen)
		case try == maxTries:
			return use, failed("count the files of "+id, core.ErrPartial)
		}
	}
}

// Space gives what the file system of the folders has.
func (w *Workspaces) Space() (core.DiskSpace, error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd(w.live), &st); err != nil {
		return core.DiskSpace{}, failed("tell the space of the disk", err)
	}
	//nolint:gosec // blocks and inodes of a disk, far below 2^63
	return core.DiskSpace{
		Free:  core.DiskUse{Bytes: int64(st.Bavail) * st.Bsize, Files: int64(st.Ffree)},
		Total: core.DiskUse{Bytes: int64(st.Blocks) * st.Bsize, Files: int64(st.Files)},
	}, nil
}

// counter counts a tree, depth first, with a descriptor for each of the upper
// levels and one below them: there it goes down by name and up by "..". It
// remembers for each level where to go on. It trusts no step up: whoever runs in
// the tree may move directories meanwhile.
type counter struct {
	size, files int64
	top         unix.Stat_t         // the folder itself
	partial     bool                // something was not counted, which it could see
	linked      map[uint64]struct{} // inodes with several names that were counted

	dir   int     // the directory that it is in
	ino   uint64  // its inode
	above []level // the directories above, the top first
	buf   []byte
	piece int
}

// level says where to go on in a directory.
type level struct {
	ino  uint64
	next int64 // position for lseek
	dir  int   // its descriptor, where one is held
}

// count counts what is in the directory name in parent.
func (c *counter) count(ctx context.Context, parent *os.File, name string) error {
	dir, err := openInside(fd(parent), name)
	if err != nil {
		return err
	}
	c.dir, c.piece = dir, minPiece
	defer c.close()
	if err := unix.Fstat(dir, &c.top); err != nil {
		return err
	}
	c.ino = c.top.Ino
	for {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		n, err := unix.Getdents(c.dir, c.buf[:c.piece])
		if err != nil {
			return err
		}
		if n > 0 {
			err = c.countEntries(c.buf[:n])
		} else if len(c.above) > 0 {
			err = c.up()
		} else {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// countBeside counts what is in another folder, by its path on the host. One that
// is gone by now holds nothing.
func (c *counter) countBeside(ctx context.Context, path string) error {
	parent, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer parent.Close()
	beside := counter{linked: c.linked, buf: c.buf}
	err = beside.count(ctx, parent, filepath.Base(path))
	c.size, c.files, c.partial = c.size+beside.size, c.files+beside.files, c.partial || beside.partial
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

// close closes the descriptors of every level.
func (c *counter) close() {
	_ = unix.Close(c.dir)
	for i := range c.above[:min(len(c.above), heldLevels)] {
		_ = unix.Close(c.above[i].dir)
	}
}

// countEntries counts a piece of the directory, up to the first directory in
// it, into which it goes down.
func (c *counter) countEntries(piece []byte) error {
	c.piece = min(2*c.piece, maxPiece)
	for len(piece) > 0 {
		var e entry
		e, piece = parseEntry(piece)
		var st unix.Stat_t
		if e.name == "." || e.name == ".." || unix.Fstatat(c.dir, e.name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
			continue // gone already, or not ours to see
		}
		c.add(&st)
		if st.Mode&unix.S_IFMT != unix.S_IFDIR || !mayEnter(&st) {
			continue
		}
		went, err := c.down(e, st.Ino)
		if went || err != nil {
			return err
		}
	}
	return nil
}

// add counts one name.
func (c *counter) add(st *unix.Stat_t) {
	size := st.Blocks * 512
	if st.Nlink > 1 && st.Mode&unix.S_IFMT != unix.S_IFDIR {
		if _, counted := c.linked[st.Ino]; counted {
			return
		}
		if len(c.linked) < maxLinked {
			c.linked[st.Ino] = struct{}{}
		} else {
			size /= int64(st.Nlink) //nolint:gosec // file systems count names in 32 bits
		}
	}
	c.size += size
	c.files++
}

// down enters a directory. It does not where that is gone, or the mount of
// something else.
func (c *counter) down(e entry, ino uint64) (bool, error) {
	if len(c.above) == maxDepth {
		c.partial = true
		return false, nil
	}
	dir, err := openInside(c.dir, e.name)
	if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) {
		return false, err
	}
	if err != nil {
		return false, nil
	}
	if len(c.above) >= heldLevels {
		_ = unix.Close(c.dir)
	}
	c.above = append(c.above, level{c.ino, e.next, c.dir})
	c.dir, c.ino, c.piece = dir, ino, minPiece
	return true, nil
}

// up goes back to the directory above. Where that is no longer the one that it
// came down from, it goes back to the nearest that is held, and what was left in
// between is not counted.
func (c *counter) up() error {
	for {
		last := len(c.above) - 1
		to := c.above[last]
		if last < heldLevels {
			return c.enter(to, to.dir)
		}
		dir, err := openAbove(c.dir, to.ino)
		if err == nil {
			return c.enter(to, dir)
		}
		if !errors.Is(err, errMoved) {
			return err
		}
		c.partial = true
		c.above = c.above[:heldLevels]
	}
}

// errMoved says that a directory was moved while the count was in it.
var errMoved = errors.New("directories are being moved")

// openAbove opens the directory above, which must be the inode given.
func openAbove(dir int, ino uint64) (int, error) {
	above, err := unix.Openat(dir, "..", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) {
		return -1, err
	}
	if err != nil {
		return -1, errMoved
	}
	var st unix.Stat_t
	if err := unix.Fstat(above, &st); err != nil || st.Ino != ino {
		_ = unix.Close(above)
		return -1, errMoved
	}
	return above, nil
}

// enter goes on in the last level above, whose descriptor is dir.
func (c *counter) enter(to level, dir int) error {
	_ = unix.Close(c.dir)
	c.dir, c.ino, c.piece = dir, to.ino, minPiece
	c.above = c.above[:len(c.above)-1]
	_, err := unix.Seek(dir, to.next, io.SeekStart)
	return err
}

// mayEnter says whether a directory can be read and left again.
func mayEnter(st *unix.Stat_t) bool {
	return os.Geteuid() == 0 || st.Mode&0o500 == 0o500
}

// entry is a name in a directory.
type entry struct {
	name string
	next int64 // position of the entry that follows
}

// parseEntry reads the first entry of what getdents64 gave:
//
//	inode 8 | next position 8 | length of the entry 2 | type 1 | name, 0
func parseEntry(b []byte) (e entry, rest []byte) {
	e.next = int64(binary.NativeEndian.Uint64(b[8:])) //nolint:gosec // the kernel's own loff_t
	length := binary.NativeEndian.Uint16(b[16:])
	name := b[19:length]
	e.name = string(name[:bytes.IndexByte(name, 0)])
	return e, b[length:]
}
