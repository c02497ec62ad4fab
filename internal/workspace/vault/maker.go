package vault

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/sandbox/fsuser"
)

const (
	// treeName is the folder that is made, in the folder it is made in, and linksName
	// what has several names, by number, for as long as more may come.
	treeName  = "tree"
	linksName = "links"
)

// Tree is a folder that was made: what stands under its name in the folder that it was
// made in. Close it at the end.
type Tree struct {
	Name string
	// Content is what a copy was made of, as Workspaces.Usage counts; zero where it was
	// unpacked.
	Content core.DiskUse
	dir     *os.File
	mode    uint32
}

// Settle gives the folder the mode that it is to have, after it was moved to its place:
// some modes forbid an ordinary user to move it.
func (t *Tree) Settle() error {
	st, err := stat(t.dir)
	if err != nil || st.Mode&0o7777 == t.mode {
		return err
	}
	if err := unix.Fchmod(fd(t.dir), t.mode); err != nil {
		return err
	}
	return t.dir.Sync()
}

// Close lets go of the folder.
func (t *Tree) Close() error { return t.dir.Close() }

// maker makes a tree in a folder that nobody else sees, as the environment's user. A
// directory gets its mode and time when all is in it.
type maker struct {
	uid    int
	base   *os.File
	links  *os.File // nil until there is one
	levels []*made
}

// made is a directory that was made, and what it is to be.
type made struct {
	dir   *os.File // nil where too many are open
	stat  unix.Stat_t
	meta  meta
	lists []attribute // access lists: they change the mode, and go over to what is made in it
}

// meta is what something has beside its content.
type meta struct {
	mode       uint32
	modified   unix.Timespec
	attributes []attribute
}

func (m *maker) as(do func() error) error { return fsuser.Do(m.uid, m.uid, do) }

func (m *maker) here() *os.File { return m.levels[len(m.levels)-1].dir }

func (m *maker) close() {
	for _, l := range m.levels {
		if l.dir != nil {
			_ = l.dir.Close()
		}
	}
	if m.links != nil {
		_ = m.links.Close()
	}
}

// enter makes a directory, the folder itself first.
func (m *maker) enter(name string, is meta) error {
	parent := m.base
	if len(m.levels) > 0 {
		parent = m.here()
	} else {
		name = treeName
	}
	d := &made{meta: is}
	err := m.as(func() error {
		var err error
		d.dir, err = makeDirectory(parent, name)
		return err
	})
	if err != nil {
		return fmt.Errorf("make the directory %q: %w", name, err)
	}
	m.levels = append(m.levels, d)
	if over := len(m.levels) - heldLevels - 1; over >= 0 {
		_ = m.levels[over].dir.Close()
		m.levels[over].dir = nil
	}
	if d.stat, err = stat(d.dir); err != nil {
		return err
	}
	var now []attribute
	for _, a := range is.attributes {
		if !strings.HasPrefix(a.name, userPrefix) {
			d.lists = append(d.lists, a)
		} else {
			now = append(now, a)
		}
	}
	d.meta.attributes = nil
	return m.as(func() error { return setAttributes(d.dir, now) })
}

func makeDirectory(parent *os.File, name string) (*os.File, error) {
	if err := unix.Mkdirat(fd(parent), name, 0o700); err != nil {
		return nil, err
	}
	dir, err := openAt(parent, name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Fchmod(fd(dir), 0o700); err != nil { // the umask may have cut it
		_ = dir.Close()
		return nil, err
	}
	return dir, nil
}

// leave finishes the directory that it is in, and goes back to the one above.
func (m *maker) leave() error {
	last := len(m.levels) - 1
	d := m.levels[last]
	if last > 0 && m.levels[last-1].dir == nil {
		err := m.as(func() error {
			var err error
			m.levels[last-1].dir, err = openAbove(d.dir, &m.levels[last-1].stat)
			return err
		})
		if err != nil {
			return fmt.Errorf("go back up: %w", err)
		}
	}
	m.levels = m.levels[:last]
	defer d.dir.Close()
	return m.as(func() error { return d.settle(d.meta.mode & directoryBits) })
}

func (d *made) settle(mode uint32) error {
	if err := setAttributes(d.dir, d.lists); err != nil {
		return err
	}
	if err := unix.Fchmod(fd(d.dir), mode); err != nil {
		return fmt.Errorf("set the mode of a directory: %w", err)
	}
	if err := setTime(d.dir, d.meta.modified); err != nil {
		return fmt.Errorf("set the time of a directory: %w", err)
	}
	return nil
}

// finish leaves the folder itself, and gives it.
func (m *maker) finish() (*Tree, error) {
	d := m.levels[0]
	t := &Tree{Name: treeName, dir: d.dir, mode: d.meta.mode & directoryBits}
	mode := t.mode
	if os.Geteuid() != 0 {
		mode |= 0o700 // until it is moved
	}
	if err := m.as(func() error { return errors.Join(m.forget(), d.settle(mode)) }); err != nil {
		return nil, err
	}
	m.levels = nil
	return t, nil
}

// create makes an empty file, which the caller must give to finishFile and close.
func (m *maker) create(name string) (f *os.File, err error) {
	err = m.as(func() error {
		f, err = openAt(m.here(), name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o600)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("make the file %q: %w", name, err)
	}
	return f, nil
}

// finishFile gives a file what it has beside its content: the mode after an access list,
// which changes it, and the time last.
func (m *maker) finishFile(f *os.File, is meta) error {
	return m.as(func() error {
		if err := setAttributes(f, is.attributes); err != nil {
			return err
		}
		if err := unix.Fchmod(fd(f), is.mode&fileBits); err != nil {
			return fmt.Errorf("set the mode of a file: %w", err)
		}
		if err := setTime(f, is.modified); err != nil {
			return fmt.Errorf("set the time of a file: %w", err)
		}
		return nil
	})
}

func (m *maker) symlink(name, target string, is meta) error {
	err := m.as(func() error {
		if err := unix.Symlinkat(target, fd(m.here()), name); err != nil {
			return err
		}
		return m.setTimeAt(name, is)
	})
	if err != nil {
		return fmt.Errorf("make the link %q: %w", name, err)
	}
	return nil
}

func (m *maker) fifo(name string, is meta) error {
	err := m.as(func() error {
		if err := unix.Mkfifoat(fd(m.here()), name, 0o600); err != nil {
			return err
		}
		leaf, err := openAt(m.here(), name, unix.O_PATH, 0)
		if err != nil {
			return err
		}
		defer leaf.Close()
		if err := unix.Chmod(held(leaf), is.mode&fileBits); err != nil {
			return err
		}
		return m.setTimeAt(name, is)
	})
	if err != nil {
		return fmt.Errorf("make the FIFO %q: %w", name, err)
	}
	return nil
}

func (m *maker) setTimeAt(name string, is meta) error {
	return unix.UtimesNanoAt(fd(m.here()), name, []unix.Timespec{{Nsec: unix.UTIME_OMIT}, is.modified}, unix.AT_SYMLINK_NOFOLLOW)
}

// remember keeps what was just made under a number, for its other names. So they are
// found without holding paths, which may be longer than a path can be.
func (m *maker) remember(number uint64, name string) error {
	if number == 0 {
		return nil
	}
	err := m.as(func() error {
		if m.links == nil {
			dir, err := makeDirectory(m.base, linksName)
			if err != nil {
				return err
			}
			m.links = dir
		}
		err := unix.Linkat(fd(m.here()), name, fd(m.links), strconv.FormatUint(number, 10), 0)
		if errors.Is(err, unix.EEXIST) {
			return errTwice
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("keep %q for its other names: %w", name, err)
	}
	return nil
}

// forget takes away the names that were kept: what is made has no more than it had.
func (m *maker) forget() error {
	for m.links != nil {
		if _, err := m.links.Seek(0, io.SeekStart); err != nil {
			return err
		}
		names, err := m.links.Readdirnames(namesRead)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := unix.Unlinkat(fd(m.links), name, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

var (
	errTwice   = errors.New("another one has its number")
	errUnknown = errors.New("nothing before it has its number")
)

// link gives what has a number another name.
func (m *maker) link(number uint64, name string) error {
	err := m.as(func() error {
		if m.links == nil {
			return errUnknown
		}
		as := strconv.FormatUint(number, 10)
		err := unix.Linkat(fd(m.links), as, fd(m.here()), name, 0)
		switch {
		case errors.Is(err, unix.ENOENT):
			return errUnknown
		case errors.Is(err, unix.EMLINK):
			// The one name too many is ours: this was the last.
			return unix.Renameat2(fd(m.links), as, fd(m.here()), name, unix.RENAME_NOREPLACE)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("make the hard link %q: %w", name, err)
	}
	return nil
}
