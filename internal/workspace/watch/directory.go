package watch

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"envapi/core"
)

// mostDirectories is how many directories a subscription watches. Tests make it less.
var mostDirectories = 8192

const (
	// entriesRead is how many entries of a directory are read at a time.
	entriesRead = 256
	// contained lets a path lead nowhere but below its directory, and through no link.
	contained = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV
)

// directory is one that is watched.
type directory struct {
	above  *directory // nil of the watched one itself
	name   string
	number int32
	below  map[string]*directory
	// found are names that were told of because they were found in it, and whose event
	// may still come.
	found map[string]struct{}
}

// has says whether a name was told of because it was found, a moment ago.
func (d *directory) has(name string) bool {
	_, ok := d.found[name]
	return ok
}

// path gives where a name in it is, below the watched directory.
func (d *directory) path(name string) string {
	var names []string
	if name != "" {
		names = append(names, name)
	}
	for ; d.above != nil; d = d.above {
		names = append(names, d.name)
	}
	slices.Reverse(names)
	return strings.Join(names, "/")
}

// attach puts it below another one, under a name.
func (d *directory) attach(above *directory, name string) {
	d.detach()
	d.above, d.name = above, name
	if above.below == nil {
		above.below = map[string]*directory{}
	}
	above.below[name] = d
}

func (d *directory) detach() {
	if d.above != nil && d.above.below[d.name] == d {
		delete(d.above.below, d.name)
	}
}

// under says whether it is another one or below that.
func (d *directory) under(other *directory) bool {
	for ; d != nil; d = d.above {
		if d == other {
			return true
		}
	}
	return false
}

// hold opens what a path below the watched directory leads to, only to hold it.
func (w *watch) hold(path string, flags int) (*os.File, error) {
	if w.top == nil {
		return nil, unix.ENOENT
	}
	how := unix.OpenHow{Flags: uint64(unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW | flags), Resolve: contained} //nolint:gosec // flags
	var last error
	for range 128 {
		fd, err := unix.Openat2(int(w.top.Fd()), path, &how)
		if err == nil {
			return os.NewFile(uintptr(fd), path), nil
		}
		// EXDEV: what was found has been put into staging since, by a change.
		if last = err; !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EXDEV) {
			break
		}
	}
	return nil, last
}

// kind says what is at a path, or "" where nothing is or that cannot be known.
func (w *watch) kind(path string) core.FileType {
	f, err := w.hold(path, 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	var st unix.Stat_t
	if unix.Fstat(int(f.Fd()), &st) != nil {
		return ""
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return core.TypeFile
	case unix.S_IFDIR:
		return core.TypeDirectory
	case unix.S_IFLNK:
		return core.TypeSymlink
	case unix.S_IFIFO:
		return core.TypeFIFO
	case unix.S_IFSOCK:
		return core.TypeSocket
	}
	return core.TypeDevice
}

func kindOf(mode fs.FileMode) core.FileType {
	switch mode.Type() {
	case 0:
		return core.TypeFile
	case fs.ModeDir:
		return core.TypeDirectory
	case fs.ModeSymlink:
		return core.TypeSymlink
	case fs.ModeNamedPipe:
		return core.TypeFIFO
	case fs.ModeSocket:
		return core.TypeSocket
	}
	return core.TypeDevice
}

// populate watches the directory, and all below it where that is asked for. What was
// watched before and is not found any more is forgotten.
func (w *watch) populate(ctx context.Context) error {
	before := w.directories
	w.directories, w.waiting = map[int32]*directory{}, map[key]waiting{}
	if err := w.share.reach(1); err != nil {
		return err
	}
	number, err := w.inotify.add(w.top)
	if err != nil {
		return full(err)
	}
	w.base = &directory{number: number}
	w.directories[number] = w.base
	if w.recursive {
		err = w.descend(ctx, w.base, w.top, false)
	}
	for number := range before {
		if w.directories[number] == nil {
			w.inotify.remove(number)
		}
	}
	return err
}

// full says where the kernel has no more watches.
func full(err error) error {
	if errors.Is(err, unix.ENOSPC) {
		return exhausted("watches (fs.inotify.max_user_watches)").Because(err)
	}
	return err
}

// pair is a directory that is watched, and one in it that is not yet.
type pair struct {
	in   *directory
	name string
}

// descend watches all directories below one that is watched and held; with tell it
// tells of all that it finds.
func (w *watch) descend(ctx context.Context, d *directory, held *os.File, tell bool) error {
	todo, err := w.look(d, held, nil, tell)
	for err == nil && len(todo) > 0 {
		next := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		todo, err = w.enter(next, todo, tell)
		if err == nil {
			err = ctx.Err()
		}
	}
	return err
}

// enter watches one more directory, and adds those in it to what is to be done. One
// that is gone meanwhile, or may not be read, is none.
func (w *watch) enter(next pair, todo []pair, tell bool) ([]pair, error) {
	held, err := w.hold(next.in.path(next.name), unix.O_DIRECTORY)
	if err != nil {
		return todo, unless(err, unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.EXDEV, unix.EACCES, unix.ENAMETOOLONG)
	}
	defer held.Close()
	if len(w.directories) >= mostDirectories {
		return todo, core.Errorf(core.CodeQuotaExceeded, "cannot watch: there are more than %d directories below it; watch one that has less below it", mostDirectories).
			With("limit", "watched_directories").With("allowed", mostDirectories).With("used", mostDirectories)
	}
	if err := w.share.reach(len(w.directories) + 1); err != nil {
		return todo, err
	}
	number, err := w.inotify.add(held)
	if err != nil {
		return todo, full(unless(err, unix.EACCES, unix.ENOENT))
	}
	d := w.directories[number]
	if d == nil {
		d = &directory{number: number}
		w.directories[number] = d
	}
	if d == w.base || next.in.under(d) {
		return todo, nil // it was moved meanwhile
	}
	if other := next.in.below[next.name]; other != nil && other != d {
		w.drop(other)
	}
	d.attach(next.in, next.name)
	return w.look(d, held, todo, tell)
}

// unless forgives some failures.
func unless(err error, forgiven ...error) error {
	for _, f := range forgiven {
		if errors.Is(err, f) {
			return nil
		}
	}
	return err
}

// look reads a directory, tells of what is in it, and adds the directories in it to
// what is to be done.
func (w *watch) look(d *directory, held *os.File, todo []pair, tell bool) ([]pair, error) {
	dir, err := os.OpenFile("/proc/self/fd/"+strconv.Itoa(int(held.Fd())), unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
	if err != nil {
		return todo, unless(err, unix.EACCES, unix.ENOENT)
	}
	defer dir.Close()
	for {
		entries, err := dir.ReadDir(entriesRead)
		for _, e := range entries {
			if tell {
				w.tellFound(d, e)
			}
			if e.IsDir() && len(todo) <= mostDirectories {
				todo = append(todo, pair{d, e.Name()})
			}
		}
		if errors.Is(err, io.EOF) {
			return todo, nil
		}
		if err != nil {
			return todo, unless(err, unix.ENOENT)
		}
	}
}

// tellFound tells of an entry as made, and remembers that.
func (w *watch) tellFound(d *directory, e fs.DirEntry) {
	w.tell(core.FileCreated, d, e.Name(), kindOf(e.Type()))
	if w.queue.full() {
		return // whoever reads looks himself
	}
	if d.found == nil {
		d.found = map[string]struct{}{}
		w.finders = append(w.finders, d)
	}
	d.found[e.Name()] = struct{}{}
}

// drop forgets a directory that is no longer there, and all below it.
func (w *watch) drop(d *directory) {
	d.detach()
	all := []*directory{d}
	for len(all) > 0 {
		d, all = all[len(all)-1], all[:len(all)-1]
		for _, below := range d.below {
			all = append(all, below)
		}
		if w.directories[d.number] == d {
			delete(w.directories, d.number)
			w.inotify.remove(d.number)
		}
	}
}
