package vault_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/internal/workspace/vault"
	"envapi/sandbox/fsuser"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// somebody is a uid of nobody here, and other whose the copies are.
const (
	somebody = 65531
	other    = 65529
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// users are whose a folder is and whose its copy, where the test is root.
func users() (uid, to int) {
	if os.Geteuid() == 0 {
		return somebody, other
	}
	return 0, 0
}

// home makes a folder that a user may be led to, and that is taken away whatever modes
// are in it.
func home(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for d := dir; d != "/" && d != os.TempDir(); d = filepath.Dir(d) {
		must(t, os.Chmod(d, 0o755))
	}
	t.Cleanup(func() { opened(dir) })
	return dir
}

// opened gives the owner every right to all directories below one.
func opened(dir string) {
	d, err := os.Open(dir)
	if err != nil {
		return
	}
	defer d.Close()
	openBelow(d)
}

func openBelow(d *os.File) {
	names, _ := d.Readdirnames(-1)
	for _, name := range names {
		n, err := unix.Openat(int(d.Fd()), name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		_ = unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", n), 0o700)
		_ = unix.Close(n)
		n, err = unix.Openat(int(d.Fd()), name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		below := os.NewFile(uintptr(n), name)
		openBelow(below)
		_ = below.Close()
	}
}

// folder makes an empty folder of a user's.
func folder(t testing.TB, path string, uid int) string {
	t.Helper()
	must(t, os.Mkdir(path, 0o700))
	if uid != 0 {
		must(t, os.Chown(path, uid, uid))
	}
	return path
}

// ample is room for everything.
var ample = core.DiskUse{Bytes: 1 << 50, Files: 1 << 40}

// hold opens a folder only to hold it.
func hold(t testing.TB, path string) *os.File {
	t.Helper()
	n, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	must(t, err)
	f := os.NewFile(uintptr(n), path)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// as does something as a user.
func as(t testing.TB, uid int, do func() error) {
	t.Helper()
	must(t, fsuser.Do(uid, uid, do))
}

func pack(t testing.TB, dir string) []byte {
	t.Helper()
	var b bytes.Buffer
	_, err := vault.Pack(t.Context(), hold(t, dir), &b)
	must(t, err)
	return b.Bytes()
}

// unpack unpacks into a new folder, and gives where.
func unpack(ctx context.Context, t testing.TB, archive io.Reader, uid int) (string, error) {
	t.Helper()
	base := folder(t, filepath.Join(home(t), "base"), uid)
	d, err := os.Open(base)
	must(t, err)
	defer d.Close()
	b, rewinds := archive.(*bytes.Reader)
	var verified error
	if rewinds {
		verified = vault.Verify(ctx, b, math.MaxInt64)
		_, err = b.Seek(0, io.SeekStart)
		must(t, err)
	}
	to, err := settle(base, func() (*vault.Tree, error) { return vault.Unpack(ctx, archive, d, uid) })
	// Only a name that is there twice is not found by reading.
	if rewinds && errors.Is(verified, vault.ErrDamaged) != errors.Is(err, vault.ErrDamaged) &&
		(verified != nil || !strings.Contains(err.Error(), unix.EEXIST.Error())) {
		t.Errorf("to verify it says %v, and to unpack it %v", verified, err)
	}
	return to, err
}

// copied copies into a new folder, and gives where.
func copied(ctx context.Context, t testing.TB, dir string, uid int) (string, error) {
	t.Helper()
	base := folder(t, filepath.Join(home(t), "base"), uid)
	d, err := os.Open(base)
	must(t, err)
	defer d.Close()
	return settle(base, func() (*vault.Tree, error) { return vault.Copy(ctx, hold(t, dir), d, uid, ample) })
}

func settle(base string, do func() (*vault.Tree, error)) (string, error) {
	tree, err := do()
	if err != nil {
		return "", err
	}
	return filepath.Join(base, tree.Name), errors.Join(tree.Settle(), tree.Close())
}

// ways are how a folder becomes another one that must be the same.
var ways = map[string]func(t testing.TB, dir string) string{
	"archive": func(t testing.TB, dir string) string {
		t.Helper()
		uid, _ := users()
		to, err := unpack(t.Context(), t, bytes.NewReader(pack(t, dir)), uid)
		must(t, err)
		return to
	},
	"copy": func(t testing.TB, dir string) string {
		t.Helper()
		_, uid := users()
		to, err := copied(t.Context(), t, dir, uid)
		must(t, err)
		return to
	},
}

// description says of a folder all that must be the same in another one, by path.
type description map[string]string

// describe looks at a folder with nothing of what is tested. Sockets are left out.
func describe(t testing.TB, dir string, uid int) description {
	t.Helper()
	n, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	must(t, err)
	top := os.NewFile(uintptr(n), dir)
	defer top.Close()
	d := description{}
	d.look(t, top, "", uid, map[uint64]string{})
	return d
}

func (d description) look(t testing.TB, leaf *os.File, path string, uid int, first map[uint64]string) {
	t.Helper()
	var st unix.Stat_t
	must(t, unix.Fstat(int(leaf.Fd()), &st))
	kind := st.Mode & unix.S_IFMT
	if kind == unix.S_IFSOCK {
		return
	}
	text := fmt.Sprintf("%o %d.%09d", st.Mode, st.Mtim.Sec, st.Mtim.Nsec)
	if os.Geteuid() == 0 && (int(st.Uid) != uid || int(st.Gid) != uid) {
		text += fmt.Sprintf(" of %d:%d", st.Uid, st.Gid)
	}
	if kind != unix.S_IFDIR {
		if st.Nlink > 1 {
			text += fmt.Sprintf(" %d names", st.Nlink)
		}
		if one, ok := first[st.Ino]; ok {
			d[path] = text + " is " + one
			return
		}
		first[st.Ino] = path
	}
	switch kind {
	case unix.S_IFLNK:
		b := make([]byte, unix.PathMax)
		n, err := unix.Readlinkat(int(leaf.Fd()), "", b)
		must(t, err)
		text += fmt.Sprintf(" -> %q", b[:n])
	case unix.S_IFREG:
		f, shut := reading(t, leaf, &st)
		text += xattrs(t, f) + content(t, f, st.Size)
		shut()
	case unix.S_IFDIR:
		f, shut := reading(t, leaf, &st)
		defer shut()
		text += xattrs(t, f)
		names, err := f.Readdirnames(-1)
		must(t, err)
		slices.Sort(names)
		for _, name := range names {
			n, err := unix.Openat(int(f.Fd()), name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
			must(t, err)
			below := os.NewFile(uintptr(n), name)
			d.look(t, below, path+"/"+name, uid, first)
			_ = below.Close()
		}
	}
	d[path] = text
}

// reading opens what is held, whatever its mode says.
func reading(t testing.TB, leaf *os.File, st *unix.Stat_t) (*os.File, func()) {
	t.Helper()
	path := fmt.Sprintf("/proc/self/fd/%d", leaf.Fd())
	if os.Geteuid() != 0 {
		must(t, unix.Chmod(path, 0o700))
	}
	n, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	must(t, err)
	f := os.NewFile(uintptr(n), leaf.Name())
	return f, func() {
		if os.Geteuid() != 0 {
			must(t, unix.Chmod(path, st.Mode&0o7777))
		}
		_ = f.Close()
	}
}

func xattrs(t testing.TB, f *os.File) string {
	t.Helper()
	list := make([]byte, 64<<10)
	n, err := unix.Flistxattr(int(f.Fd()), list)
	must(t, err)
	names := strings.Split(strings.TrimRight(string(list[:n]), "\x00"), "\x00")
	slices.Sort(names)
	text := ""
	for _, name := range names {
		if name == "" {
			continue
		}
		value := make([]byte, 64<<10)
		n, err := unix.Fgetxattr(int(f.Fd()), name, value)
		must(t, err)
		text += fmt.Sprintf(" %q=%q", name, value[:n])
	}
	return text
}

// content gives the length of a file, where it has data, and the hash of these.
func content(t testing.TB, f *os.File, size int64) string {
	t.Helper()
	hash, text := sha256.New(), fmt.Sprintf(" %d bytes", size)
	for at := int64(0); at < size; {
		data, err := unix.Seek(int(f.Fd()), at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			break
		}
		must(t, err)
		hole, err := unix.Seek(int(f.Fd()), data, unix.SEEK_HOLE)
		must(t, err)
		if len(text) < 4096 {
			text += fmt.Sprintf(" %d-%d", data, hole)
		}
		fmt.Fprint(hash, data, hole)
		_, err = io.Copy(hash, io.NewSectionReader(f, data, hole-data))
		must(t, err)
		at = hole
	}
	return fmt.Sprintf("%s %x", text, hash.Sum(nil)[:8])
}

// wantSame compares two folders.
func wantSame(t testing.TB, got, want description) {
	t.Helper()
	differ := 0
	for _, path := range slices.Sorted(maps.Keys(want)) {
		if got[path] != want[path] {
			if differ++; differ < 10 {
				t.Errorf("%.300q is\n  %.300s\nand was\n  %.300s", path, got[path], want[path])
			}
		}
	}
	for path := range got {
		if _, ok := want[path]; !ok {
			t.Errorf("%.300q is there and was not", path)
		}
	}
}
