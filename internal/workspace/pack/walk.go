package pack

import (
	"errors"
	"io"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/internal/workspace/inside"
)

const (
	// together is how many entries are opened in one go as the environment's user, and
	// so how many files are open while who gets the archive reads nothing.
	together = 8
	// heldLevels is for how many levels, from the bottom, a descriptor is held.
	heldLevels = 32
	// namesHeld is how many names of a directory are held at a time, and of one that
	// is deeper than wideLevels. A directory with more is read again for the next
	// ones, so that memory does not grow with it.
	namesHeld  = 4096
	deepNames  = 64
	wideLevels = 32
	// namesRead is how many names are asked of the kernel at a time.
	namesRead = 1024
)

// entry is something that was found.
type entry struct {
	path    string // below the directory that is packed
	stat    unix.Stat_t
	file    *os.File // of a regular file
	target  string   // of a link
	records map[string]string
}

// walk goes through a directory and all below it, in the order of names. Its steps
// are made as the environment's user.
type walk struct {
	name    string // of the directory, for errors
	levels  []*level
	skipped skipped
}

// level is a directory that it is in.
type level struct {
	dir      *os.File // nil where too many are open
	dev, ino uint64
	path     string // "" or with a slash at its end
	names    []string
	after    string // the last one that names held
	end      bool   // there is none after that
}

// begin opens the directory to walk through.
func (w *walk) begin(root *inside.Root, rel string) error {
	place, err := root.Locate(rel, inside.Mode{Follow: true})
	if err != nil {
		return err
	}
	defer place.Close()
	dir, err := place.OpenDirectory(w.name)
	if err != nil {
		return err
	}
	w.push(dir, &place.Stat, "")
	return nil
}

func (w *walk) close() {
	for _, l := range w.levels {
		if l.dir != nil {
			_ = l.dir.Close()
		}
	}
	w.levels = nil
}

func (w *walk) push(dir *os.File, st *unix.Stat_t, path string) {
	w.levels = append(w.levels, &level{dir: dir, dev: st.Dev, ino: st.Ino, path: path})
	if over := len(w.levels) - heldLevels - 1; over >= 0 {
		_ = w.levels[over].dir.Close()
		w.levels[over].dir = nil
	}
}

// pop goes back up. A directory whose descriptor was not held is found as the parent
// of the one that it leaves, and must be the one that it was.
func (w *walk) pop() error {
	last := len(w.levels) - 1
	child := w.levels[last]
	w.levels = w.levels[:last]
	defer child.dir.Close()
	if last == 0 || w.levels[last-1].dir != nil {
		return nil
	}
	parent := w.levels[last-1]
	fd, err := unix.Openat(int(child.dir.Fd()), "..", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return inside.Fault(join(w.name, parent.path), err)
	}
	parent.dir = os.NewFile(uintptr(fd), parent.path)
	st, err := stat(parent.dir)
	if err != nil {
		return inside.Fault(join(w.name, parent.path), err)
	}
	if st.Dev != parent.dev || st.Ino != parent.ino {
		return changed(join(w.name, child.path), "was moved")
	}
	return nil
}

func changed(name, how string) *core.Error {
	return core.Errorf(core.CodeUnavailable, "cannot pack %q: it %s while it was read; try again when nothing changes it", name, how)
}

// next finds some entries; none is the end. Their files are the caller's, also where
// it fails.
func (w *walk) next() (found []entry, err error) {
	for len(found) < together && len(w.levels) > 0 {
		l := w.levels[len(w.levels)-1]
		switch {
		case len(l.names) > 0:
			name := l.names[0]
			l.names = l.names[1:]
			e, ok, err := w.open(l, name)
			if err != nil {
				return found, inside.Fault(join(w.name, l.path+name), err)
			}
			if ok {
				found = append(found, e)
			}
		case l.end:
			err = w.pop()
		default:
			err = l.fill(len(w.levels))
		}
		if err != nil {
			return found, inside.Fault(join(w.name, l.path), err)
		}
	}
	return found, nil
}

// fill finds the names that come after those it had: reads all, and holds the first.
func (l *level) fill(depth int) error {
	room := namesHeld
	if depth > wideLevels {
		room = deepNames
	}
	if _, err := l.dir.Seek(0, io.SeekStart); err != nil {
		return err
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
			return err
		}
	}
	l.cut(room)
	if len(l.names) > 0 {
		l.after = l.names[len(l.names)-1]
	}
	return nil
}

// cut leaves the first names.
func (l *level) cut(room int) {
	slices.Sort(l.names)
	if len(l.names) > room {
		l.names, l.end = l.names[:room], false
	}
}

// open opens an entry by what it is: FIFOs, sockets and devices never. What is gone
// meanwhile is none.
func (w *walk) open(l *level, name string) (entry, bool, error) {
	e := entry{path: l.path + name}
	if len(e.path) >= unix.PathMax {
		return e, false, core.Errorf(core.CodeInvalidArgument, "cannot pack %q: a path below it is longer than the %d bytes that can be unpacked", w.name, unix.PathMax-1).With("field", "path")
	}
	leaf, err := open(l.dir, name, unix.O_PATH, 0)
	if errors.Is(err, unix.ENOENT) {
		return e, false, nil
	}
	if err != nil {
		return e, false, err
	}
	defer leaf.Close()
	if e.stat, err = stat(leaf); err != nil {
		return e, false, err
	}
	place := &inside.Place{Dir: l.dir, Name: name, Leaf: leaf, Stat: e.stat}
	switch place.Kind() {
	case unix.S_IFREG:
		return w.openFile(place, e)
	case unix.S_IFDIR:
		return w.openDirectory(place, e)
	case unix.S_IFLNK:
		e.target, err = place.Target()
		return e, true, err
	}
	w.skipped.add(join(w.name, e.path))
	return e, false, nil
}

func (w *walk) openFile(place *inside.Place, e entry) (entry, bool, error) {
	var err error
	if e.file, err = place.OpenRegular(join(w.name, e.path)); err != nil {
		return e, false, err
	}
	if e.records, err = attributes(e.file); err != nil {
		_ = e.file.Close()
		return e, false, err
	}
	return e, true, nil
}

func (w *walk) openDirectory(place *inside.Place, e entry) (entry, bool, error) {
	dir, err := place.OpenDirectory(join(w.name, e.path))
	if err != nil {
		return e, false, err
	}
	if e.records, err = attributes(dir); err != nil {
		_ = dir.Close()
		return e, false, err
	}
	w.push(dir, &e.stat, e.path+"/")
	return e, true, nil
}
