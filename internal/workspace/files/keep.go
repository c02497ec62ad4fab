package files

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"envapi/internal/workspace/inside"
)

// accessList is the extended attribute that a POSIX ACL is in.
const accessList = "system.posix_acl_access"

// attribute is an extended attribute that goes over to the file that replaces
// another.
type attribute struct {
	name  string
	value []byte
}

// equip gives staged content the mode and the extended attributes of the file that it
// is to replace; nil is a new file. A set user or group id and file capabilities do
// not go over.
func (s *staged) equip(like *inside.Place, mode *fs.FileMode) error {
	var keep []attribute
	want := fs.FileMode(newFile)
	if like != nil && like.Exists() && like.Kind() == unix.S_IFREG {
		want = fs.FileMode(like.Stat.Mode & 0o777)
		var err error
		if keep, err = attributes(like.Leaf); err != nil {
			return failed("read the extended attributes of a file", err)
		}
	}
	if mode != nil {
		want = mode.Perm()
	}
	st, err := statOf(s.file)
	if err != nil {
		return failed("look at a file", err)
	}
	if len(keep) == 0 && fs.FileMode(st.Mode&0o7777) == want {
		return nil
	}
	if err := s.tree.root.As(func() error { return dress(s.file, keep, want) }); err != nil {
		return failed("set the mode and the extended attributes of a file", err)
	}
	return failed("write a file to disk", s.file.Sync())
}

// dress runs as the environment's user. The mode is last: an ACL changes it.
func dress(f *os.File, keep []attribute, mode fs.FileMode) error {
	for _, a := range keep {
		if err := unix.Fsetxattr(fd(f), a.name, a.value, 0); err != nil {
			return err
		}
	}
	return f.Chmod(mode)
}

// attributes reads what is kept, by a descriptor of a regular file. It is done as the
// service, so that a mode that forbids reading the file loses nothing.
func attributes(leaf *os.File) ([]attribute, error) {
	path := "/proc/self/fd/" + strconv.Itoa(fd(leaf))
	list, err := sized(func(buffer []byte) (int, error) { return unix.Listxattr(path, buffer) })
	if errors.Is(err, unix.ENOTSUP) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var keep []attribute
	for name := range strings.SplitSeq(string(list), "\x00") {
		if name != accessList && !strings.HasPrefix(name, "user.") {
			continue
		}
		value, err := sized(func(buffer []byte) (int, error) { return unix.Getxattr(path, name, buffer) })
		if errors.Is(err, unix.ENODATA) || errors.Is(err, unix.EACCES) {
			continue // taken away meanwhile, or not the ordinary user's to read
		}
		if err != nil {
			return nil, err
		}
		keep = append(keep, attribute{name, value})
	}
	return keep, nil
}

// sized calls what asks for a buffer first with none, to learn its length.
func sized(call func(buffer []byte) (int, error)) ([]byte, error) {
	for {
		n, err := call(nil)
		if err != nil || n == 0 {
			return nil, err
		}
		buffer := make([]byte, n)
		n, err = call(buffer)
		if errors.Is(err, unix.ERANGE) {
			continue // it has grown meanwhile
		}
		return buffer[:max(n, 0)], err
	}
}
