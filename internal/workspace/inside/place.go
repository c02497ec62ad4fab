package inside

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"envapi/core"
)

const (
	// mostLinks is how many links are followed on one path: the kernel's own limit.
	mostLinks = 40
	// mostLevels is how deep a path may go that the kernel cannot resolve at once,
	// because of an absolute link in it: one descriptor for each level.
	mostLevels = 256
	// mostTries is how often a look-up is begun again that raced with a rename.
	mostTries = 128
	// sureOutside is how often the kernel must say that a path leads out of the folder.
	sureOutside = 16
	// beneath lets a path lead nowhere but below the descriptor it begins at.
	beneath = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV
)

// Place is where a path leads: a directory, a name in it, and what stood there.
type Place struct {
	Dir  *os.File // the directory, O_PATH
	Name string   // in Dir; "." is Dir itself
	// Leaf is what stood under the name, O_PATH, and Stat says what it is. Leaf is
	// nil where there is nothing.
	Leaf *os.File
	Stat unix.Stat_t
	// Missing are the directories that are not there, between Dir and Name; see
	// Locate.
	Missing []string
	// Path is how Locate was asked for it.
	Path string
	// Led is where links at the end of Path lead, where there were any.
	Led string
	// Judged says that Stat is what a condition was judged by, for who changes what
	// stands there. Look takes it back.
	Judged bool
}

// Exists says whether something stands at the place.
func (p *Place) Exists() bool { return p.Leaf != nil }

// Kind is the type of what stands there: unix.S_IFREG and its like.
func (p *Place) Kind() uint32 { return p.Stat.Mode & unix.S_IFMT }

// Close lets go of the place.
func (p *Place) Close() {
	if p.Leaf != nil {
		_ = p.Leaf.Close()
	}
	_ = p.Dir.Close()
}

// Mode says what Locate makes of a path's end.
type Mode struct {
	Follow  bool // a link at the end stands for what it leads to
	Missing bool // directories on the way need not be there; Place.Missing names them
}

// Locate finds where a path leads that Relative gave. What is not there is no error,
// as long as the directory it would be in is. It fails as Fault says, with
// `path_outside_workspace`, `not_found`, `not_a_directory`, `symlink_loop`, and
// `permission_denied`. The caller must close the place.
func (r *Root) Locate(name string, m Mode) (*Place, error) {
	at := name
	for range mostLinks + 1 {
		p, err := r.look(at, m)
		if errors.Is(err, unix.ENOENT) && leadsOut(name) {
			return nil, outside(name)
		}
		if err != nil {
			return nil, Fault(name, err)
		}
		if !p.Exists() || p.Kind() != unix.S_IFLNK || !m.Follow && !strings.HasSuffix(at, "/") {
			if err := mustBeDirectory(at, p); err != nil {
				p.Close()
				return nil, Fault(name, err)
			}
			if p.Path = name; at != name {
				p.Led = at
			}
			return p, nil
		}
		at, err = r.target(at, p)
		p.Close()
		if err != nil {
			return nil, Fault(name, err)
		}
	}
	return nil, Fault(name, unix.ELOOP)
}

// leadsOut says whether a path would lead out of the folder if all of its names were
// there. It tells only how a path that leads nowhere is refused.
func leadsOut(name string) bool {
	clean := path.Clean(name)
	return clean == ".." || strings.HasPrefix(clean, "../")
}

// mustBeDirectory holds a path with a slash at its end to what that means.
func mustBeDirectory(at string, p *Place) error {
	if p.Exists() && strings.HasSuffix(at, "/") && p.Kind() != unix.S_IFDIR {
		return unix.ENOTDIR
	}
	return nil
}

// target gives the path that a link at the end of another one stands for.
func (r *Root) target(at string, p *Place) (string, error) {
	to, err := readLink(p.Leaf)
	if err != nil {
		return "", err
	}
	dir, _ := split(at)
	if strings.HasPrefix(to, "/") {
		rest, ok := r.below(to)
		if !ok {
			return "", unix.EXDEV
		}
		dir, to = "", rest
	}
	if strings.HasSuffix(at, "/") {
		to += "/"
	}
	return dir + to, nil
}

// split cuts a path before its last name. Without one, as of "a/..", all of it is
// the directory.
func split(at string) (dir, name string) {
	trimmed := strings.TrimRight(at, "/")
	i := strings.LastIndexByte(trimmed, '/') + 1
	if name = trimmed[i:]; name == "" || name == "." || name == ".." {
		return at, "."
	}
	return at[:i], name
}

// look finds the place of a path without following what stands at its end.
func (r *Root) look(at string, m Mode) (*Place, error) {
	dir, name := split(at)
	f, missing, err := r.directory(dir, m.Missing)
	if err != nil {
		return nil, err
	}
	p := &Place{Dir: f, Name: name, Missing: missing}
	if last := len(missing) - 1; last >= 0 && name == "." {
		p.Missing, p.Name = missing[:last], missing[last]
	}
	if err := p.Look(); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// Look looks again at what stands under the place's name in its directory. A link is
// not followed.
func (p *Place) Look() error {
	if len(p.Missing) > 0 {
		return nil
	}
	leaf, err := openPath(p.Dir, p.Name, unix.O_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) && p.Name != "." {
		leaf, err = nil, nil
	}
	var st unix.Stat_t
	if err == nil && leaf != nil {
		err = unix.Fstat(fd(leaf), &st)
	}
	if err != nil {
		if leaf != nil {
			_ = leaf.Close()
		}
		return err
	}
	if p.Leaf != nil {
		_ = p.Leaf.Close()
	}
	p.Leaf, p.Stat, p.Judged = leaf, st, false
	return nil
}

// Key is the same for two places where they are the same name in the same directory,
// and else another.
func (p *Place) Key() (string, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd(p.Dir), &st); err != nil {
		return "", err
	}
	names := append(slices.Clone(p.Missing), p.Name)
	return fmt.Sprintf("%d/%d/%s", st.Dev, st.Ino, strings.Join(names, "/")), nil
}

// Target gives what is in the link that stands at the place.
func (p *Place) Target() (string, error) { return readLink(p.Leaf) }

// OpenParent opens the place's directory for reading its entries, or to sync it.
func (p *Place) OpenParent() (*os.File, error) {
	return reopen(p.Dir, unix.O_RDONLY|unix.O_DIRECTORY)
}

// directory opens the directory of a path, O_PATH. Where some of it may be missing,
// it opens the deepest one that is there and gives the names of the others.
func (r *Root) directory(at string, missing bool) (*os.File, []string, error) {
	if strings.Trim(at, "/") == "" {
		at = "."
	}
	f, err := openPath(r.dir, at, unix.O_DIRECTORY)
	// EAGAIN: the path goes up, and somewhere on the host names change all the time. The
	// walk goes up by what it holds.
	if errors.Is(err, unix.EXDEV) || errors.Is(err, unix.EAGAIN) || missing && errors.Is(err, unix.ENOENT) {
		return r.walk(at, missing)
	}
	return f, nil, err
}

// openat2 is the system's; tests stand in for a host whose names change all the time.
var openat2 = unix.Openat2

// openPath opens what a path below a directory leads to, only to hold it. EAGAIN is the
// kernel's word where a rename elsewhere on the host raced with the look-up, and EXDEV
// also where what was found is out of the folder by the time that this is looked at:
// another change has just put it into staging. So that must be said several times.
func openPath(dir *os.File, name string, flags int) (*os.File, error) {
	how := unix.OpenHow{Flags: uint64(unix.O_PATH | unix.O_CLOEXEC | flags), Resolve: beneath} //nolint:gosec // flags
	outside := 0
	for range mostTries {
		f, err := openat2(fd(dir), name, &how)
		switch {
		case err == nil:
			return os.NewFile(uintptr(f), name), nil
		case errors.Is(err, unix.EXDEV):
			if outside++; outside == sureOutside {
				return nil, err
			}
		case !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.EAGAIN):
			return nil, err
		}
	}
	return nil, unix.EAGAIN
}

func readLink(link *os.File) (string, error) {
	buffer := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd(link), "", buffer)
	if err != nil {
		return "", err
	}
	if n == 0 {
		return "", unix.ENOENT
	}
	return string(buffer[:n]), nil
}

func fd(f *os.File) int { return int(f.Fd()) }

// reopen opens what is held by a descriptor, with other flags: the very thing, under
// whatever name it is now. It never waits, and never makes a terminal ours.
func reopen(f *os.File, flags int) (*os.File, error) {
	flags |= unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC
	for {
		n, err := unix.Open("/proc/self/fd/"+strconv.Itoa(fd(f)), flags, 0)
		if err == nil {
			return os.NewFile(uintptr(n), f.Name()), nil
		}
		if !errors.Is(err, unix.EINTR) {
			return nil, err
		}
	}
}

// OpenRegular opens the regular file that stands at the place, for reading. Anything
// else is refused before it is opened: `not_found`, `is_a_directory`,
// `not_a_regular_file`, and for a link `not_a_regular_file`.
func (p *Place) OpenRegular(name string) (*os.File, error) {
	if err := p.MustBeRegular(name); err != nil {
		return nil, err
	}
	f, err := reopen(p.Leaf, unix.O_RDONLY)
	if errors.Is(err, unix.EAGAIN) {
		return nil, core.Errorf(core.CodeUnavailable,
			"cannot open %q now: a program holds a lease on it, which the kernel takes back within a minute; try again", name).
			With("path", name).With("retry_after_ms", 1000).Because(err)
	}
	if err != nil {
		return nil, Fault(name, err)
	}
	return f, nil
}

// MustBeRegular says why what stands at the place is no regular file; nil where it is
// one.
func (p *Place) MustBeRegular(name string) error {
	switch {
	case !p.Exists():
		return Fault(name, unix.ENOENT)
	case p.Kind() == unix.S_IFDIR:
		return Fault(name, unix.EISDIR)
	case p.Kind() != unix.S_IFREG:
		return notRegular(name)
	}
	return nil
}

// OpenDirectory opens the directory that stands at the place, for reading its
// entries. It fails with `not_found` or `not_a_directory`.
func (p *Place) OpenDirectory(name string) (*os.File, error) {
	switch {
	case !p.Exists():
		return nil, Fault(name, unix.ENOENT)
	case p.Kind() != unix.S_IFDIR:
		return nil, Fault(name, unix.ENOTDIR)
	}
	f, err := reopen(p.Leaf, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, Fault(name, err)
	}
	return f, nil
}
