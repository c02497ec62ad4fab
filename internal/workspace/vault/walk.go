package vault

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"envapi/core"
)

// namesRead is how many names are asked of the kernel at a time.
const namesRead = 1024

// fewestNames is how many names of a directory are held at least, also where those above
// it hold as many as all may: with a few, a large one below others would be read again
// for hours.
var fewestNames = 1024 // tests make it less

// mostNames is about how many names of all directories on the way down are held at a
// time. One with more is read again for the next ones, so that memory does not grow with
// it.
var mostNames = 64 << 10 // tests make it less

// visitor is told what is in a folder, in the order of names and depth first. What it
// fails with ends the walk.
type visitor interface {
	// enter is told of a directory before what is in it, and leave after that; of the
	// folder itself too, with the name "".
	enter(e *entry) error
	leave() error
	// file is told of a regular file, which is open for reading; it closes nothing.
	file(e *entry) error
	// other is told of a link or a FIFO.
	other(e *entry) error
	// again is told of another name of what has the same number, and was there before.
	again(e *entry) error
}

// entry is something that was found.
type entry struct {
	name       string
	stat       unix.Stat_t
	file       *os.File // of a regular file
	attributes []attribute
	target     string // of a link
	number     uint64 // of what has several names; else 0
}

// walk goes through a folder and all below it.
type walk struct {
	ctx     context.Context //nolint:containedctx // of one call
	reader  reader
	visitor visitor
	levels  []*level
	held    int // names
	links   links
	use     core.DiskUse
	most    core.DiskUse // of use, where that is bounded; else zero
	gone    int64        // names that were nothing's any more when they were looked at
}

// level is a directory that it is in.
type level struct {
	dir   *os.File // nil where too many are open
	stat  unix.Stat_t
	lent  *loan
	names []string
	after string // the last one that names held
	end   bool   // there is none after that
}

// through tells a visitor of a folder, and gives what is in it as Workspaces.Usage
// counts: the folder itself not, and what has several names once.
//
// Programs that write to it meanwhile can make it as large as they like, and endless,
// though it is never large: they take away what was read and put more before the walk.
// So it ends where it has found more than most; zero is for a folder that nobody writes
// to.
func through(ctx context.Context, folder *os.File, most core.DiskUse, v visitor) (core.DiskUse, error) {
	top, err := stat(folder)
	if err != nil {
		return core.DiskUse{}, err
	}
	w := walk{ctx: ctx, reader: reader{owner: top.Uid}, visitor: v, most: most}
	defer w.close()
	if err := w.descend(&entry{stat: top}, folder); err != nil {
		return core.DiskUse{}, err
	}
	for len(w.levels) > 0 {
		if err := w.step(); err != nil {
			return core.DiskUse{}, err
		}
	}
	return w.use, nil
}

// step goes on by one name, or by one level.
func (w *walk) step() error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	l := w.levels[len(w.levels)-1]
	switch {
	case len(l.names) > 0:
		name := l.names[0]
		l.names = l.names[1:]
		w.held--
		return w.visit(l, name)
	case !l.end:
		return w.fill(l)
	}
	if err := w.visitor.leave(); err != nil {
		return err
	}
	return w.ascend()
}

// close gives back what was lent by the directories that it is still in.
func (w *walk) close() {
	for len(w.levels) > 0 {
		if w.ascend() != nil {
			break
		}
	}
	for _, l := range w.levels {
		if l.dir != nil {
			l.lent.back(l.dir)
			_ = l.dir.Close()
		}
	}
}

// visit looks at what has a name in a directory. What is gone by now is left out.
func (w *walk) visit(l *level, name string) error {
	leaf, err := openAt(l.dir, name, unix.O_PATH, 0)
	switch {
	case errors.Is(err, unix.ENOENT):
		if w.gone++; w.most.Files > 0 && w.gone > w.most.Files {
			return ErrChanged
		}
		return nil
	case errors.Is(err, unix.EXDEV):
		return fmt.Errorf("go into %q: something is mounted there; unmount it on the host: %w", name, err)
	case err != nil:
		return fmt.Errorf("look at %q: %w", name, err)
	}
	defer leaf.Close()
	e := &entry{name: name}
	if e.stat, err = stat(leaf); err != nil {
		return fmt.Errorf("look at %q: %w", name, err)
	}
	if e.stat.Mode&unix.S_IFMT == unix.S_IFDIR {
		if err := w.count(&e.stat); err != nil {
			return err
		}
		return w.descend(e, leaf)
	}
	var again bool
	if e.number, again = w.links.see(leaf, &e.stat); !again {
		if err := w.count(&e.stat); err != nil {
			return err
		}
	}
	return w.tell(e, leaf, again)
}

func (w *walk) count(st *unix.Stat_t) error {
	w.use.Bytes += st.Blocks * 512
	w.use.Files++
	return fits(w.use, w.most)
}

// fits fails with `quota_exceeded` where there is more than may be; zero is any.
func fits(use, most core.DiskUse) error {
	if most == (core.DiskUse{}) {
		return nil
	}
	return core.FitsInto(use, most)
}

// tell tells the visitor of what is no directory.
func (w *walk) tell(e *entry, leaf *os.File, again bool) error {
	switch e.stat.Mode & unix.S_IFMT {
	case unix.S_IFREG, unix.S_IFLNK, unix.S_IFIFO:
	default:
		return nil // a socket or a device
	}
	if again {
		return w.visitor.again(e)
	}
	var err error
	switch e.stat.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		if e.target, err = readLink(leaf); err != nil {
			return fmt.Errorf("read the link %q: %w", e.name, err)
		}
	case unix.S_IFREG:
		e.file, e.attributes, err = w.reader.file(leaf, &e.stat)
		if err != nil {
			return fmt.Errorf("open %q: %w", e.name, err)
		}
		defer e.file.Close()
		return w.visitor.file(e)
	}
	return w.visitor.other(e)
}

func readLink(link *os.File) (string, error) {
	buffer := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd(link), "", buffer)
	return string(buffer[:max(n, 0)]), err
}

// descend goes into a directory, of which leaf is a hold.
func (w *walk) descend(e *entry, leaf *os.File) error {
	if len(w.levels) == mostDepth {
		return fmt.Errorf("go into %q, which is more than %d directories deep; make it less deep: %w", e.name, mostDepth, unix.ENAMETOOLONG)
	}
	dir, lent, err := w.reader.open(leaf, &e.stat)
	if err != nil {
		return fmt.Errorf("open the directory %q: %w", e.name, err)
	}
	w.levels = append(w.levels, &level{dir: dir, stat: e.stat, lent: lent})
	if over := len(w.levels) - heldLevels - 1; over >= 0 {
		_ = w.levels[over].dir.Close()
		w.levels[over].dir = nil
	}
	if e.attributes, err = attributesOf(dir); err != nil {
		return err
	}
	return w.visitor.enter(e)
}

// ascend goes back up. A directory whose descriptor was not held is found as the one above
// the one that it leaves, and must be the one that it was.
func (w *walk) ascend() error {
	last := len(w.levels) - 1
	child := w.levels[last]
	if last > 0 && w.levels[last-1].dir == nil {
		above, err := openAbove(child.dir, &w.levels[last-1].stat)
		if err != nil {
			return fmt.Errorf("go back up: %w", err)
		}
		w.levels[last-1].dir = above
	}
	w.held -= len(child.names)
	w.levels = w.levels[:last]
	child.lent.back(child.dir)
	return child.dir.Close()
}

// fill finds the names that come after those it had: reads all, and holds the first.
func (w *walk) fill(l *level) error {
	room := max(fewestNames, (mostNames-w.held)/2)
	if _, err := l.dir.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("list a directory: %w", err)
	}
	l.names, l.end = nil, true
	for {
		some, err := l.dir.Readdirnames(namesRead)
		for _, name := range some {
			if name > l.after {
				l.names = append(l.names, name)
			}
		}
		if len(l.names) > 2*room {
			l.cut(room)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("list a directory: %w", err)
		}
		if err := w.ctx.Err(); err != nil {
			return err
		}
	}
	l.cut(room)
	w.held += len(l.names)
	if len(l.names) > 0 {
		l.after = l.names[len(l.names)-1]
	}
	return nil
}

// cut leaves the first names.
func (l *level) cut(room int) {
	slices.Sort(l.names)
	if len(l.names) > room {
		l.names, l.end = slices.Clone(l.names[:room]), false
	}
}
