package pack

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/internal/workspace/inside"
)

const (
	// defaultDirectory is the mode of a directory that no entry is of.
	defaultDirectory = 0o755
	treeName         = "tree"
)

// unpacker makes what an archive has in a folder that nobody else sees. All of it is
// done as the environment's user.
type unpacker struct {
	base  *os.File // the transaction's folder
	top   *os.File // in it, what stands for the directory that is unpacked into
	limit core.ImportOptions
	files int64 // entries that were made
	bytes int64

	// directories are in the order in which they were made: above comes before below.
	// at finds them by inode.
	directories []directory
	at          map[uint64]int

	parentPath string // the path below top of parent, which is open
	parent     *os.File

	buffer  []byte
	result  core.ImportResult
	skipped skipped
}

// directory is one that was made: what it is to be when all is in it.
type directory struct {
	above      int // in directories, or aside
	name       string
	mode       uint32
	modifiedAt time.Time
	// merged is one that gives its content to one that is there already.
	merged bool
}

// aside is above those that are in the transaction's folder itself.
const aside = -1

func (u *unpacker) start(base *os.File) error {
	u.base, u.at, u.buffer = base, map[uint64]int{}, make([]byte, chunk)
	err := unix.Mkdirat(int(base.Fd()), treeName, 0o700)
	if err == nil {
		u.top, err = openDirectory(base, treeName)
	}
	if err != nil {
		return err
	}
	u.parent = u.top
	return u.register(u.top, aside, treeName)
}

func (u *unpacker) close() {
	if u.parent != nil && u.parent != u.top {
		_ = u.parent.Close()
	}
	if u.top != nil {
		_ = u.top.Close()
	}
}

// register remembers a directory that was made.
func (u *unpacker) register(dir *os.File, above int, name string) error {
	st, err := stat(dir)
	if err != nil {
		return err
	}
	u.at[st.Ino] = len(u.directories)
	u.directories = append(u.directories, directory{above: above, name: name, mode: defaultDirectory})
	return nil
}

// number gives the place in directories of one that is open.
func (u *unpacker) number(dir *os.File) (int, error) {
	st, err := stat(dir)
	if err != nil {
		return 0, err
	}
	n, ok := u.at[st.Ino]
	if !ok {
		return 0, fmt.Errorf("cannot unpack: %q was not made here", dir.Name())
	}
	return n, nil
}

// all unpacks an archive to its end.
func (u *unpacker) all(ctx context.Context, s *source) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		h, err := s.next()
		if errors.Is(err, io.EOF) {
			u.result.Bytes, u.result.Skipped = u.bytes, u.skipped.list()
			return nil
		}
		if err != nil {
			return err
		}
		if err := u.count(); err != nil {
			return err
		}
		if err := u.entry(h, s); err != nil {
			return inside.Fault(h.Name, err)
		}
	}
}

// count counts an entry, whatever it is.
func (u *unpacker) count() error {
	if u.files++; u.files > u.limit.MaxFiles {
		return core.Errorf(core.CodeTooLarge, "cannot unpack the archive: it has more than %d entries", u.limit.MaxFiles).With("allowed_files", u.limit.MaxFiles)
	}
	return nil
}

func (u *unpacker) entry(h *tar.Header, content io.Reader) error {
	if h.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	path, err := clean(h.Name)
	if err != nil {
		return err
	}
	if path == "" && h.Typeflag != tar.TypeDir {
		return bad("the entry %q is no directory, and has no name", h.Name)
	}
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeCont, tar.TypeGNUSparse:
		return u.file(path, h, content)
	case tar.TypeDir:
		return u.directory(path, h)
	case tar.TypeSymlink:
		return u.link(path, h)
	case tar.TypeLink:
		return u.hardLink(path, h)
	case tar.TypeFifo:
		u.skipped.add(path)
		return nil
	case tar.TypeChar, tar.TypeBlock:
		return bad("%q is a device", h.Name)
	}
	return bad("%q is of a type (%q) that is not known here", h.Name, h.Typeflag)
}

// enter opens the directory that an entry is in, and makes it where it is missing.
func (u *unpacker) enter(path string) (*os.File, error) {
	if path == u.parentPath {
		return u.parent, nil
	}
	dir, err := u.find(path)
	if err != nil {
		return nil, err
	}
	if u.parent != u.top {
		_ = u.parent.Close()
	}
	u.parent, u.parentPath = dir, path
	return dir, nil
}

func (u *unpacker) find(path string) (*os.File, error) {
	if path == "" {
		return u.top, nil
	}
	dir, err := openDirectory(u.top, path)
	if errors.Is(err, unix.ENOENT) {
		return u.make(path)
	}
	return dir, through(path, err)
}

// through says that a path in an archive leads through something that is no directory
// there.
func through(path string, err error) error {
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) {
		return bad("it has an entry below %q, which, or a part of which, is a link or a file in it", path).Because(err)
	}
	return err
}

// make makes a directory and those above it.
func (u *unpacker) make(path string) (*os.File, error) {
	at, err := openDirectory(u.top, ".")
	if err != nil {
		return nil, err
	}
	for name := range strings.SplitSeq(path, "/") {
		below, err := u.makeOne(at, name)
		_ = at.Close()
		if err != nil {
			return nil, through(path, err)
		}
		at = below
	}
	return at, nil
}

// makeOne opens a directory in another one, and makes it where it is missing.
func (u *unpacker) makeOne(at *os.File, name string) (*os.File, error) {
	dir, err := openDirectory(at, name)
	if !errors.Is(err, unix.ENOENT) {
		return dir, err
	}
	if err := u.count(); err != nil {
		return nil, err
	}
	above, err := u.number(at)
	if err != nil {
		return nil, err
	}
	if err := unix.Mkdirat(int(at.Fd()), name, 0o700); err != nil {
		return nil, err
	}
	u.result.Directories++
	if dir, err = openDirectory(at, name); err != nil {
		return nil, err
	}
	return dir, u.register(dir, above, name)
}

// directory makes a directory, or says what one is to be that is there.
func (u *unpacker) directory(path string, h *tar.Header) error {
	dir, err := u.enter(path)
	if err != nil {
		return err
	}
	n, err := u.number(dir)
	if err != nil {
		return err
	}
	d := &u.directories[n]
	d.mode, d.modifiedAt = uint32(h.Mode)&(modeBits|stickyBit), h.ModTime //nolint:gosec // masked
	return setAttributes(dir, h.PAXRecords)
}

// clear makes room for an entry: the last one of a name counts, as tar has it.
func (u *unpacker) clear(path string) (dir *os.File, name string, err error) {
	above, name := split(path)
	if dir, err = u.enter(above); err != nil {
		return nil, "", err
	}
	var st unix.Stat_t
	err = unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return dir, name, nil
	}
	if err != nil {
		return nil, "", err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return nil, "", bad("%q is a directory in it and something else too", path)
	case unix.S_IFLNK:
		u.result.Links--
	default:
		u.result.Files--
	}
	return dir, name, unix.Unlinkat(int(dir.Fd()), name, 0)
}

func (u *unpacker) file(path string, h *tar.Header, content io.Reader) error {
	if h.Size > u.limit.MaxBytes-u.bytes {
		return tooManyBytes(u.limit.MaxBytes)
	}
	dir, name, err := u.clear(path)
	if err != nil {
		return err
	}
	f, err := open(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = u.fill(f, h, content)
	if closed := f.Close(); err == nil {
		err = closed
	}
	u.result.Files++
	return err
}

func (u *unpacker) fill(f *os.File, h *tar.Header, content io.Reader) error {
	n, err := io.CopyBuffer(onlyWriter{f}, content, u.buffer)
	if u.bytes += n; err != nil {
		return err
	}
	if n != h.Size {
		return bad("%q has %d bytes and not the %d that were said", h.Name, n, h.Size)
	}
	if err := setAttributes(f, h.PAXRecords); err != nil {
		return err
	}
	if err := unix.Fchmod(int(f.Fd()), uint32(h.Mode)&modeBits); err != nil { //nolint:gosec // masked
		return err
	}
	return setTime(f, h.ModTime)
}

// onlyWriter hides what else a file can do, so that the buffer is used.
type onlyWriter struct{ io.Writer }

// setTime sets when an open file was modified. What a file system does not reach is
// rounded by the kernel.
func setTime(f *os.File, t time.Time) error {
	if t.IsZero() {
		return nil
	}
	at := unix.Timespec{Sec: t.Unix(), Nsec: int64(t.Nanosecond())}
	return futimens(f, []unix.Timespec{{Nsec: unix.UTIME_OMIT}, at})
}

func (u *unpacker) link(path string, h *tar.Header) error {
	if h.Linkname == "" || len(h.Linkname) >= unix.PathMax || strings.ContainsRune(h.Linkname, 0) {
		return bad("the link %q leads to something that can be no path", h.Name)
	}
	dir, name, err := u.clear(path)
	if err != nil {
		return err
	}
	if err := unix.Symlinkat(h.Linkname, int(dir.Fd()), name); err != nil {
		return err
	}
	u.result.Links++
	at := unix.Timespec{Sec: h.ModTime.Unix(), Nsec: int64(h.ModTime.Nanosecond())}
	return unix.UtimesNanoAt(int(dir.Fd()), name, []unix.Timespec{{Nsec: unix.UTIME_OMIT}, at}, unix.AT_SYMLINK_NOFOLLOW)
}

// hardLink gives a file that was unpacked before another name.
func (u *unpacker) hardLink(path string, h *tar.Header) error {
	target, err := clean(h.Linkname)
	if err != nil {
		return err
	}
	if target == path {
		return bad("%q is a hard link to itself", h.Name)
	}
	if err := u.mustBeFile(h.Name, target); err != nil {
		return err
	}
	dir, name, err := u.clear(path)
	if err != nil {
		return err
	}
	u.result.Files++
	return unix.Linkat(int(u.top.Fd()), target, int(dir.Fd()), name, 0)
}

// mustBeFile holds a hard link to what was unpacked: no link is followed to it, and
// none changes before it is made, since nobody else is here.
func (u *unpacker) mustBeFile(name, target string) error {
	if target == "" {
		return bad("%q is a hard link to the directory itself", name)
	}
	f, err := open(u.top, target, unix.O_PATH, 0)
	if errors.Is(err, unix.ENOENT) {
		return bad("%q is a hard link to %q, which is not before it in the archive", name, target)
	}
	if err != nil {
		return through(target, err)
	}
	defer f.Close()
	st, err := stat(f)
	if err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
		return bad("%q is a hard link to %q, which is no file", name, target)
	}
	return err
}

func futimens(f *os.File, at []unix.Timespec) error {
	return unix.UtimesNanoAt(int(f.Fd()), "", at, unix.AT_EMPTY_PATH)
}
