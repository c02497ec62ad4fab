package inside

import (
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// walk does by itself what the kernel does not: it follows absolute links that lead
// to an alias of the folder, and finds the first name that is not there.
func (r *Root) walk(at string, missing bool) (*os.File, []string, error) {
	w := walk{root: r, left: names(at)}
	if err := w.start(); err != nil {
		return nil, nil, err
	}
	defer w.stop()
	for len(w.left) > 0 {
		err := w.step()
		if missing && errors.Is(err, unix.ENOENT) && absent(w.left) {
			return w.take(), w.left, nil
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return w.take(), nil, nil
}

// absent says whether names can all be made: there is no way up among them.
func absent(names []string) bool {
	for _, name := range names {
		if name == ".." {
			return false
		}
	}
	return true
}

// names gives the parts of a path that mean something.
func names(at string) []string {
	var all []string
	for name := range strings.SplitSeq(at, "/") {
		if name != "" && name != "." {
			all = append(all, name)
		}
	}
	return all
}

// walk is a path that is gone along one name at a time.
type walk struct {
	root  *Root
	open  []*os.File // the directories from the folder down to where it is
	left  []string
	links int
}

func (w *walk) start() error {
	f, err := openPath(w.root.dir, ".", unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	w.open = append(w.open, f)
	return nil
}

func (w *walk) stop() {
	for _, f := range w.open {
		_ = f.Close()
	}
}

func (w *walk) here() *os.File { return w.open[len(w.open)-1] }

// take gives away the directory where it is.
func (w *walk) take() *os.File {
	f := w.here()
	w.open = w.open[:len(w.open)-1]
	return f
}

// step goes on by one name. Where it fails the name is still to come.
func (w *walk) step() error {
	if w.left[0] == ".." {
		if len(w.open) == 1 {
			return unix.EXDEV
		}
		_ = w.take().Close()
		w.left = w.left[1:]
		return nil
	}
	f, err := openPath(w.here(), w.left[0], unix.O_NOFOLLOW)
	if err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd(f), &st); err != nil {
		_ = f.Close()
		return err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		if len(w.open) == mostLevels {
			_ = f.Close()
			return unix.ENAMETOOLONG
		}
		w.open, w.left = append(w.open, f), w.left[1:]
		return nil
	case unix.S_IFLNK:
		defer f.Close()
		return w.follow(f)
	}
	_ = f.Close()
	return unix.ENOTDIR
}

// follow puts what a link stands for in the place of its name.
func (w *walk) follow(link *os.File) error {
	if w.links++; w.links > mostLinks {
		return unix.ELOOP
	}
	to, err := readLink(link)
	if err != nil {
		return err
	}
	if strings.HasPrefix(to, "/") {
		rest, ok := w.root.below(to)
		if !ok {
			return unix.EXDEV
		}
		to = rest
		for len(w.open) > 1 {
			_ = w.take().Close()
		}
	}
	w.left = append(names(to), w.left[1:]...)
	return nil
}
