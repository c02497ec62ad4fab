// Package find lists directories and looks into files of an environment's folder.
//
// The tree is hostile and changes meanwhile. Directories and files are opened below
// the one that was asked for, by the kernel, never over a link or onto another file
// system, with the rights of the environment's user; files are read into buffers,
// never mapped, since who truncates a mapped file kills its reader. What is held in
// memory does not grow with what is there: names are read in batches, files in
// windows, and results are kept only as far as the answer's bounds go.
//
// What is not protected: an answer is no picture of one moment. What is renamed while
// it is looked for may be missed, or be seen twice. In a line longer than a window (1
// MiB, less for a dear pattern) what is longer than 4 KiB may be missed where two
// windows meet, and ^ and $ hold there too.
package find

import (
	"errors"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/core/pattern"
	"envapi/internal/workspace/inside"
)

const (
	// mostLevels is how deep a walk goes: a path has at most 4095 bytes, and a
	// listing holds a descriptor for each level.
	mostLevels = 256
	// mostUnreadable is how many paths an answer names that could not be opened.
	mostUnreadable = 20
	// beneath lets a look-up lead nowhere but to what stands in the directory itself.
	beneath = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV
)

// Finder lists and searches one folder. Its methods may be called from many
// goroutines.
type Finder struct {
	root  *inside.Root
	known func(*unix.Stat_t) string
}

// New makes a Finder. known gives the ETag of a file that has just this stat where it
// is known, or ""; nil knows none.
func New(root *inside.Root, known func(*unix.Stat_t) string) *Finder {
	if known == nil {
		known = func(*unix.Stat_t) string { return "" }
	}
	return &Finder{root: root, known: known}
}

// base is the directory that was asked for.
type base struct {
	dir   *os.File
	path  string // relative to the workspace, "" for itself
	rules *rules // of the directories above it
}

func (b *base) close() { _ = b.dir.Close() }

// open finds the directory that a caller's path leads to. It must be called in As.
func (f *Finder) open(name string, ignored bool) (*base, error) {
	at, err := f.root.Relative(name)
	if err != nil {
		return nil, err
	}
	dir, err := f.directory(at, name)
	if err != nil {
		return nil, err
	}
	b := &base{dir: dir, path: clean(at)}
	if up(b.path) {
		// Where the path goes up, only the kernel knows what that is.
		if b.path, err = f.really(dir); err != nil {
			b.close()
			return nil, inside.Fault(name, err)
		}
	}
	if !ignored {
		b.rules = f.above(b.path)
	}
	return b, nil
}

func (f *Finder) directory(at, name string) (*os.File, error) {
	p, err := f.root.Locate(at, inside.Mode{Follow: true})
	if err != nil {
		return nil, err
	}
	defer p.Close()
	return p.OpenDirectory(name)
}

// file is one that was asked for by its path.
type file struct {
	name  string // in its directory
	shown string // the path in the workspace
}

// openFile finds a regular file that a caller's path leads to, with the directory it
// is in as the base. It must be called in As.
func (f *Finder) openFile(name string) (*base, file, error) {
	at, err := f.root.Relative(name)
	if err != nil {
		return nil, file{}, err
	}
	p, err := f.root.Locate(at, inside.Mode{Follow: true})
	if err != nil {
		return nil, file{}, err
	}
	defer p.Close()
	if err := p.MustBeRegular(name); err != nil {
		return nil, file{}, err
	}
	b, one := &base{}, file{name: p.Name, shown: clean(at)}
	if up(one.shown) {
		above, err := f.really(p.Dir)
		if err != nil {
			return nil, file{}, inside.Fault(name, err)
		}
		one.shown = join(above, p.Name)
	}
	if i := strings.LastIndexByte(one.shown, '/'); i >= 0 {
		b.path = one.shown[:i]
	}
	if b.dir, err = p.OpenParent(); err != nil {
		return nil, file{}, inside.Fault(name, err)
	}
	return b, one, nil
}

// clean takes out of a path what means nothing.
func clean(at string) string {
	var names []string
	for name := range strings.SplitSeq(at, "/") {
		if name != "" && name != "." {
			names = append(names, name)
		}
	}
	return strings.Join(names, "/")
}

// up says whether a path goes up.
func up(at string) bool {
	for name := range strings.SplitSeq(at, "/") {
		if name == ".." {
			return true
		}
	}
	return false
}

// really gives the path of a directory as the kernel has it now.
func (f *Finder) really(dir *os.File) (string, error) {
	above, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd(f.root.Descriptor())))
	if err != nil {
		return "", err
	}
	at, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd(dir)))
	if err != nil {
		return "", err
	}
	rest, ok := strings.CutPrefix(at+"/", above+"/")
	if !ok {
		return "", unix.ENOENT // it was taken away
	}
	return strings.TrimSuffix(rest, "/"), nil
}

// above reads the rules of all directories above one.
func (f *Finder) above(path string) *rules {
	var all *rules
	for i := range len(path) {
		if i > 0 && path[i] != '/' {
			continue
		}
		dir, err := f.directory(path[:i], path[:i])
		if err != nil {
			continue
		}
		all, _ = all.with(dir, path[:i])
		_ = dir.Close()
	}
	return all
}

// filter is what a question says of names and paths.
type filter struct {
	globs   pattern.Globs
	hidden  bool
	ignored bool
	from    int // where a path below the directory that was asked for begins
}

func newFilter(globs []string, hidden, ignored bool, b *base) filter {
	set, _ := pattern.CompileGlobs(globs) // was checked
	f := filter{globs: set, hidden: hidden, ignored: ignored}
	if b.path != "" {
		f.from = len(b.path) + 1
	}
	return f
}

// fate is what becomes of an entry.
type fate struct {
	take, enter        bool
	isHidden, excluded bool // it is passed over, and would have been looked at
}

// judge says what becomes of an entry, given its path in the workspace.
func (f *filter) judge(path string, e entry, up *rules) fate {
	below := path[f.from:]
	is := fate{take: f.globs.Match(below, e.dir()), enter: e.dir() && f.globs.Below(below)}
	if !is.take && !is.enter {
		return is
	}
	if !f.hidden && e.name[0] == '.' {
		return fate{isHidden: true}
	}
	if !f.ignored && up.exclude(path, e) {
		return fate{excluded: true}
	}
	return is
}

// wrong says which of a caller's words a pattern's error is about.
func wrong(field string, err error) error {
	var reason *pattern.Error
	if errors.As(err, &reason) {
		return core.Errorf(core.CodeInvalidArgument, "cannot look for that: %s", reason.Reason).With("field", field)
	}
	return err
}

// join puts a name behind the path of its directory.
func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

// before says whether one path stands before another: name by name, so that what is in
// a directory follows it at once.
func before(a, b string) bool {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return b[i] != '/' && (a[i] == '/' || a[i] < b[i])
		}
	}
	return len(a) < len(b)
}

func fd(f *os.File) int { return int(f.Fd()) }
