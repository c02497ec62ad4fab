package vault_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"envapi/internal/random"
	"envapi/internal/require"
	"envapi/internal/workspace/vault"
)

// plan is a random tree: directories first, and modes and times when all is made.
type plan struct {
	t     *rapid.T
	dir   string
	dirs  []string
	files []string // what can have another name
	later []func() error
}

var (
	someNames = []string{
		"a", "b", "file", ".hidden", "...", " ", "-rf", "new\nline", "\xff\xfe", "\x1b[2J", "ünïcödé", "envapi-cut",
		strings.Repeat("n", 255), strings.Repeat("\xc3\xa4", 127), "a=b%25", "back\\slash", "tab\t\x7f",
	}
	someModes = []uint32{0, 0o400, 0o200, 0o100, 0o644, 0o755, 0o777, 0o1777, 0o500, 0o300, 0o070, 0o007}
)

func (p *plan) make() error {
	p.dirs = []string{p.dir}
	p.finish(p.dir, true)
	n := rapid.IntRange(0, 25).Draw(p.t, "entries")
	for range n {
		path := filepath.Join(rapid.SampledFrom(p.dirs).Draw(p.t, "in"), rapid.SampledFrom(someNames).Draw(p.t, "name"))
		if err := p.one(path); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	for i := len(p.later) - 1; i >= 0; i-- {
		if err := p.later[i](); err != nil {
			return err
		}
	}
	return nil
}

func (p *plan) one(path string) error {
	kind := rapid.SampledFrom([]string{"directory", "file", "file", "link", "fifo", "socket", "name"}).Draw(p.t, "kind")
	var err error
	switch kind {
	case "directory":
		if len(path)-len(p.dir) > 1500 {
			return nil
		}
		if err = os.Mkdir(path, 0o700); err == nil {
			p.dirs = append(p.dirs, path)
		}
	case "file":
		err = p.file(path)
	case "link":
		err = os.Symlink(rapid.SampledFrom([]string{"a", "/etc/passwd", "../../..", "\xff\x01", ".", strings.Repeat("x/", 2000)}).Draw(p.t, "target"), path)
	case "fifo":
		err = unix.Mkfifo(path, 0o600)
	case "socket":
		return unix.Mknod(path, unix.S_IFSOCK|0o600, 0)
	case "name":
		if len(p.files) == 0 {
			return nil
		}
		return os.Link(rapid.SampledFrom(p.files).Draw(p.t, "of"), path)
	}
	if err != nil {
		return err
	}
	if kind != "directory" {
		p.files = append(p.files, path)
	}
	p.finish(path, kind == "directory")
	if kind == "link" {
		p.later[len(p.later)-1] = func() error { return p.time(path) }
	}
	return nil
}

func (p *plan) file(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	size := rapid.Int64Range(0, 1<<20).Draw(p.t, "size")
	if err := f.Truncate(size); err != nil {
		return err
	}
	for range rapid.IntRange(0, 4).Draw(p.t, "pieces") {
		at := rapid.Int64Range(0, size).Draw(p.t, "at")
		data := rapid.SliceOfN(rapid.Byte(), 0, 50).Draw(p.t, "data")
		if _, err := f.WriteAt(data, at); err != nil {
			return err
		}
	}
	return p.attributes(path)
}

func (p *plan) attributes(path string) error {
	for range rapid.IntRange(0, 2).Draw(p.t, "attributes") {
		name := "user." + rapid.SampledFrom([]string{"a", "b=c", "100%", "\xff\xfe", strings.Repeat("x", 200)}).Draw(p.t, "attribute")
		value := rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(p.t, "value")
		if err := unix.Setxattr(path, name, value, 0); err != nil {
			return err
		}
	}
	return nil
}

// finish gives it a mode and a time at the end, what is deepest first.
func (p *plan) finish(path string, directory bool) {
	mode := rapid.SampledFrom(someModes).Draw(p.t, "mode")
	if directory && rapid.Bool().Draw(p.t, "set-group-id") {
		mode |= 0o2000
	}
	p.later = append(p.later, func() error {
		if directory {
			if err := p.attributes(path); err != nil {
				return err
			}
		}
		if err := unix.Chmod(path, mode); err != nil {
			return err
		}
		return p.time(path)
	})
}

func (p *plan) time(path string) error {
	sec := rapid.Int64Range(-1<<31, 1<<33).Draw(p.t, "seconds")
	nsec := rapid.Int64Range(0, 999_999_999).Draw(p.t, "nanoseconds")
	return unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{{Nsec: unix.UTIME_OMIT}, {Sec: sec, Nsec: nsec}}, unix.AT_SYMLINK_NOFOLLOW)
}

func TestAnyTreeBecomesTheSame(t *testing.T) {
	uid, to := users()
	base, n := home(t), 0
	random.Check(t, func(r *rapid.T) {
		n++
		dir := folder(t, filepath.Join(base, fmt.Sprint(n)), uid)
		p := &plan{t: r, dir: dir}
		as(t, uid, p.make)
		before := describe(t, dir, uid)
		wantSame(t, describe(t, ways["archive"](t, dir), uid), before)
		wantSame(t, describe(t, ways["copy"](t, dir), to), before)
		wantSame(t, describe(t, dir, uid), before)
		if t.Failed() {
			r.Fatal("they differ")
		}
	})
}

// each makes a folder, sends it each way, and compares. look, where it is not nil, may
// look at what came out.
func each(t *testing.T, make func(dir string) error, look func(t *testing.T, dir string)) {
	t.Helper()
	uid, to := users()
	dir := folder(t, filepath.Join(home(t), "folder"), uid)
	as(t, uid, func() error { return make(dir) })
	before := describe(t, dir, uid)
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			got, whose := way(t, dir), uid
			if name == "copy" {
				whose = to
			}
			wantSame(t, describe(t, got, whose), before)
			if look != nil {
				look(t, got)
			}
		})
	}
	wantSame(t, describe(t, dir, uid), before)
}

func blocks(t testing.TB, path string) int64 {
	t.Helper()
	var st unix.Stat_t
	must(t, unix.Lstat(path, &st))
	return st.Blocks * 512
}

func TestHolesStayHoles(t *testing.T) {
	each(t, func(dir string) error {
		f, err := os.Create(filepath.Join(dir, "file"))
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = f.WriteAt([]byte("in the middle"), 512<<20)
		all, err2 := os.Create(filepath.Join(dir, "hole"))
		if err2 != nil {
			return err2
		}
		defer all.Close()
		return errors.Join(err, f.Truncate(1<<30), all.Truncate(1<<30))
	}, func(t *testing.T, dir string) {
		for _, name := range []string{"file", "hole"} {
			if n := blocks(t, filepath.Join(dir, name)); n > 64<<10 {
				t.Errorf("%s takes %d bytes", name, n)
			}
		}
	})
}

func TestAFileWithManyHoles(t *testing.T) {
	each(t, func(dir string) error {
		f, err := os.Create(filepath.Join(dir, "file"))
		if err != nil {
			return err
		}
		defer f.Close()
		for i := range int64(5000) { // more than an entry has
			if _, err := f.WriteAt([]byte(fmt.Sprint("piece", i)), i*16<<10); err != nil {
				return err
			}
		}
		return os.WriteFile(filepath.Join(dir, "next"), []byte("x"), 0o600)
	}, nil)
}

func TestWhatHasSeveralNames(t *testing.T) {
	each(t, func(dir string) error {
		in := func(name string) string { return filepath.Join(dir, name) }
		return errors.Join(
			os.MkdirAll(in("d/e"), 0o700),
			os.WriteFile(in("d/file"), []byte("x"), 0o640), os.Link(in("d/file"), in("d/e/again")), os.Link(in("d/file"), in("z")),
			os.Symlink("nowhere", in("link")), os.Link(in("link"), in("d/link")),
			unix.Mkfifo(in("fifo"), 0o604), os.Link(in("fifo"), in("d/fifo")),
			unix.Mknod(in("socket"), unix.S_IFSOCK|0o600, 0), os.Link(in("socket"), in("socket again")),
		)
	}, nil)
}

// TestAsManyNamesAsThereCanBe: on ext4 65 000, where one more for the time of unpacking
// would be too many.
func TestAsManyNamesAsThereCanBe(t *testing.T) {
	if require.Rounds(t, 1) == 1 {
		t.Skip("it takes a minute: set " + require.SoakVariable)
	}
	each(t, func(dir string) error {
		first := filepath.Join(dir, "0")
		err := os.WriteFile(first, nil, 0o600)
		for i := 1; err == nil && i < 70_000; i++ {
			err = os.Link(first, filepath.Join(dir, fmt.Sprint(i)))
		}
		if errors.Is(err, unix.EMLINK) {
			return nil
		}
		return err
	}, nil)
}

// nest makes directories in each other, deeper than a path can be.
func nest(dir, name string, depth int) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	for i := range depth {
		if err := unix.Mkdirat(int(d.Fd()), name, 0o700); err != nil {
			return err
		}
		n, err := unix.Openat(int(d.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		if err != nil {
			return err
		}
		_ = d.Close()
		d = os.NewFile(uintptr(n), name)
		if i%50 == 0 {
			if err := unix.Mkfifoat(n, "z", 0o600); err != nil {
				return err
			}
		}
	}
	defer d.Close()
	return errors.Join(unix.Symlinkat("end", int(d.Fd()), "link"), unix.Linkat(int(d.Fd()), "link", int(d.Fd()), "link too", 0))
}

func TestDeepTrees(t *testing.T) {
	for name, c := range map[string]struct {
		name  string
		depth int
	}{
		"many levels":                         {"d", 2100},
		"paths longer than an entry has":      {strings.Repeat("d", 255), 200},
		"as many levels as are held, and one": {"d", 33},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(dir string) error { return nest(dir, c.name, c.depth) }, nil)
		})
	}
}

func TestATreeThatIsTooDeepIsRefused(t *testing.T) {
	vault.Shallow(t, 40)
	uid, _ := users()
	dir := folder(t, filepath.Join(home(t), "folder"), uid)
	as(t, uid, func() error { return nest(dir, "d", 40) })
	if _, err := vault.Pack(t.Context(), hold(t, dir), discard{}); !errors.Is(err, unix.ENAMETOOLONG) {
		t.Errorf("got %v", err)
	}
	vault.Shallow(t, 41)
	archive := pack(t, dir)
	vault.Shallow(t, 40)
	if _, err := unpack(t.Context(), t, bytes.NewReader(archive), uid); !errors.Is(err, vault.ErrDamaged) {
		t.Errorf("unpacking gave %v", err)
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

func TestADirectoryWithMoreNamesThanAreHeld(t *testing.T) {
	vault.HoldFewNames(t)
	each(t, func(dir string) error {
		for i := range 300 {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o600); err != nil {
				return err
			}
		}
		return nil
	}, nil)
}

func TestSetUserIDIsNotKept(t *testing.T) {
	uid, _ := users()
	dir := folder(t, filepath.Join(home(t), "folder"), uid)
	as(t, uid, func() error {
		path := filepath.Join(dir, "file")
		return errors.Join(os.WriteFile(path, nil, 0o755), unix.Chmod(path, 0o6755))
	})
	for name, way := range ways {
		info, err := os.Stat(filepath.Join(way(t, dir), "file"))
		must(t, err)
		if info.Mode() != 0o755 {
			t.Errorf("%s: its mode is %v", name, info.Mode())
		}
	}
}

func TestAccessListsAreKept(t *testing.T) {
	// Version 2; its owner rw, the user 1000 r, the group -, the mask r, others -.
	const entries = "\x02\x00\x00\x00" +
		"\x01\x00\x06\x00\xff\xff\xff\xff" + "\x02\x00\x04\x00\xe8\x03\x00\x00" +
		"\x04\x00\x00\x00\xff\xff\xff\xff" + "\x10\x00\x04\x00\xff\xff\xff\xff" + "\x20\x00\x00\x00\xff\xff\xff\xff"
	each(t, func(dir string) error {
		path := filepath.Join(dir, "d")
		err := errors.Join(os.Mkdir(path, 0o700), os.WriteFile(filepath.Join(path, "file"), nil, 0o600))
		for _, name := range []string{"system.posix_acl_access", "system.posix_acl_default"} {
			if err == nil {
				err = unix.Setxattr(path, name, []byte(entries), 0)
			}
		}
		if errors.Is(err, unix.EOPNOTSUPP) {
			require.Feature(t, "acl", err.Error())
		}
		return err
	}, nil)
}

// TestWhatIsNotTheOwnersIsReadWithHisRights: a link to somebody else's file, which some
// hosts let users make.
func TestWhatIsNotTheOwnersIsReadWithHisRights(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root could read more")
	}
	uid, _ := users()
	base := home(t)
	dir := folder(t, filepath.Join(base, "folder"), uid)
	outside := filepath.Join(base, "outside")
	must(t, os.WriteFile(outside, []byte("the secret of root"), 0o600))
	must(t, os.Link(outside, filepath.Join(dir, "link")))
	if _, err := vault.Pack(t.Context(), hold(t, dir), discard{}); !errors.Is(err, os.ErrPermission) {
		t.Errorf("packing gave %v", err)
	}
	if _, err := copied(t.Context(), t, dir, uid); !errors.Is(err, os.ErrPermission) {
		t.Errorf("copying gave %v", err)
	}
	must(t, os.Chmod(outside, 0o644))
	for name, way := range ways {
		if content, err := os.ReadFile(filepath.Join(way(t, dir), "link")); err != nil || string(content) != "the secret of root" {
			t.Errorf("%s: what all may read is %q, %v", name, content, err)
		}
	}
}

// TestNoPathInAnArchiveGrowsWithoutEnd: readers of tars take no longer ones than 1 MiB,
// and of a tree that is deep each would be written for all that is in it.
func TestNoPathInAnArchiveGrowsWithoutEnd(t *testing.T) {
	uid, _ := users()
	dir := folder(t, filepath.Join(home(t), "folder"), uid)
	as(t, uid, func() error { return nest(dir, strings.Repeat("d", 255), 140) })
	z, err := zstd.NewReader(bytes.NewReader(pack(t, dir)), zstd.WithDecoderConcurrency(1))
	must(t, err)
	defer z.Close()
	cut := 0
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		must(t, err)
		if len(h.Name) > 33<<10 {
			t.Fatalf("a name has %d bytes", len(h.Name))
		}
		if strings.HasPrefix(h.Name, "envapi-cut/") {
			cut++
		}
	}
	if cut == 0 {
		t.Error("no path was cut: the tree is not deep enough")
	}
}

// TestADeepTreeTakesFewDescriptors: they are the service's, for all environments.
func TestADeepTreeTakesFewDescriptors(t *testing.T) {
	uid, _ := users()
	dir := folder(t, filepath.Join(home(t), "folder"), uid)
	as(t, uid, func() error { return nest(dir, "d", 600) })
	var before unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &before))
	open, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	last := 0 // the limit is of the highest, and the test may have inherited one
	for _, f := range open {
		n, err := strconv.Atoi(f.Name())
		must(t, err)
		last = max(last, n)
	}
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(last) + 100, Max: before.Max}))
	defer func() { must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &before)) }()
	for _, way := range ways {
		way(t, dir)
	}
}
