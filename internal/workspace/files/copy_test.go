package files_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"envapi/core"
)

// ample is enough for every copy here.
var ample = core.CopyOptions{Limit: 1 << 30, Files: 1 << 20}

func (k *kit) copy(source, destination string, o core.CopyOptions) error {
	_, _, err := k.tree.Copy(k.t.Context(), source, destination, o)
	return err
}

// look describes everything below a directory: kinds, modes, times, attributes and
// contents.
func look(t *testing.T, dir string) (all []string) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st := statOf(t, path)
		name := strings.TrimPrefix(path, dir)
		line := fmt.Sprintf("%q %o %v", name, st.Mode, st.Mtim)
		switch d.Type() {
		case 0:
			text, err := os.ReadFile(path)
			must(t, err)
			line += fmt.Sprintf(" %q", text)
		case fs.ModeSymlink:
			to, err := os.Readlink(path)
			must(t, err)
			line += fmt.Sprintf(" -> %q", to)
		}
		buffer := make([]byte, 100)
		if n, err := unix.Lgetxattr(path, "user.note", buffer); err == nil {
			line += fmt.Sprintf(" note %q", buffer[:n])
		}
		all = append(all, line)
		return nil
	}))
	return all
}

// varied is a directory with one of everything that is copied.
func varied(t *testing.T) *kit {
	t.Helper()
	k := newKit(t)
	k.put("from/a", "a", 0o755)
	k.put("from/sub/empty", "", 0o600)
	k.put("from/sub/ \n-%?#\xff", "odd", 0o644)
	k.link("/etc/passwd", "from/out")
	k.link("sub", "from/in")
	k.link("loop", "from/sub/loop")
	must(t, unix.Setxattr(k.path+"/from/a", "user.note", []byte("of a"), 0))
	must(t, unix.Setxattr(k.path+"/from/sub", "user.note", []byte("of sub"), 0))
	long := time.Date(2001, 2, 3, 4, 5, 6, 789, time.UTC)
	stamp := unix.NsecToTimespec(long.UnixNano())
	for _, name := range []string{"from/a", "from/out", "from/sub/empty", "from/sub", "from"} {
		must(t, unix.UtimesNanoAt(unix.AT_FDCWD, k.path+"/"+name, []unix.Timespec{stamp, stamp}, unix.AT_SYMLINK_NOFOLLOW))
	}
	must(t, os.Chmod(k.path+"/from/sub", 0o555))
	must(t, os.Chmod(k.path+"/from", 0o511))
	t.Cleanup(func() {
		for _, name := range []string{"from", "from/sub", "to", "to/sub"} {
			_ = os.Chmod(k.path+"/"+name, 0o755)
		}
	})
	return k
}

func TestADirectoryIsCopiedAsItIs(t *testing.T) {
	k := varied(t)
	if os.Geteuid() != 0 || k.uid != 0 {
		must(t, os.Chmod(k.path+"/from", 0o555))
	}
	want := look(t, k.path+"/from")
	info, skipped, err := k.tree.Copy(t.Context(), "from/", "to/", ample)
	must(t, err)
	if len(skipped) != 0 || info.Path != "to" || info.Type != core.TypeDirectory {
		t.Errorf("got %+v, skipped %q", info, skipped)
	}
	if got := look(t, k.path+"/to"); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if st := statOf(t, k.path+"/to/a"); k.uid != 0 && int(st.Uid) != k.uid {
		t.Errorf("it is of %d", st.Uid)
	}
	k.wantClean()
}

func TestSingleThingsAreCopied(t *testing.T) {
	k := varied(t)
	must(t, k.copy("from/a", "b/c/d", core.CopyOptions{Limit: 1, Files: 1, Parents: true}))
	k.want("b/c/d", "a")
	if st := statOf(t, k.path+"/b/c/d"); st.Mode&0o7777 != 0o755 {
		t.Errorf("its mode is %o", st.Mode)
	}
	info, _, err := k.tree.Copy(t.Context(), "from/out", "b/out", core.CopyOptions{Files: 1})
	must(t, err)
	if info.Type != core.TypeSymlink || info.LinkTarget != "/etc/passwd" {
		t.Errorf("got %+v", info)
	}
	k.wantClean()
}

func TestWhatACopyRefuses(t *testing.T) {
	k := standing(t)
	o := ample
	o.Parents = true
	for _, c := range refusals {
		if c.code == core.CodePermissionDenied && k.uid == 0 && os.Geteuid() == 0 {
			continue
		}
		o.Overwrite = c.over
		if err := k.copy(c.source, c.destination, o); code(err) != c.code {
			t.Errorf("%q to %q, over: %t: got %v, want %s", c.source, c.destination, c.over, err, c.code)
		}
	}
	for _, same := range []string{"file", "./file", "dir/../file"} {
		o.Overwrite = true
		wantCode(t, k.copy("file", same, o), core.CodeInvalidArgument)
	}
	k.put("secret", "x", 0)
	if os.Geteuid() != 0 || k.uid != 0 {
		wantCode(t, k.copy("secret", "new", o), core.CodePermissionDenied)
	}
	k.want("file", "file")
	k.want("other", "other")
	k.wantNone("dir/sub")
	k.wantNone("new")
	k.wantClean()
}

func TestACopyReplacesAndHoldsItsCondition(t *testing.T) {
	k := standing(t)
	o := ample
	o.Overwrite, o.If.Match = true, []string{"another"}
	wantCode(t, k.copy("file", "other", o), core.CodeETagMismatch)
	k.want("other", "other")
	o.If.Match = []string{k.tag("other")}
	must(t, k.copy("file", "other", o))
	k.want("other", "file")
	o.If = core.Condition{}
	must(t, k.copy("file", "link", o)) // the link itself
	k.want("link", "file")
	k.want("dir/file", "x")
	o.If.Absent = true
	wantCode(t, k.copy("file", "other", o), core.CodeETagMismatch)
	must(t, k.copy("file", "new", o))
	k.wantClean()
}

func TestC20ACopySkipsWhatIsNoFileAndSaysSo(t *testing.T) {
	k := newKit(t)
	k.put("from/sub/file", "x", 0o644)
	k.inside(func() error { return unix.Mkfifo(k.path+"/from/sub/fifo", 0o600) })
	k.inside(func() error { return unix.Mknod(k.path+"/from/socket", unix.S_IFSOCK|0o600, 0) })
	for i := range 200 {
		k2 := fmt.Sprintf("%s/from/many%d", k.path, i)
		must(t, unix.Mkfifo(k2, 0o600))
	}
	promptly(t, "a copy", func() {
		_, skipped, err := k.tree.Copy(context.Background(), "from", "to", ample)
		if err != nil || len(skipped) != 100 || !strings.HasPrefix(skipped[0], "from/") {
			t.Errorf("got %q, %v", skipped, err)
		}
		_, skipped, err = k.tree.Copy(context.Background(), "from/sub", "sub", ample)
		if err != nil || !slices.Equal(skipped, []string{"from/sub/fifo"}) {
			t.Errorf("got %q, %v", skipped, err)
		}
		for _, name := range []string{"from/sub/fifo", "from/socket"} {
			wantCode(t, k.copy(name, "new", ample), core.CodeNotRegular)
		}
	})
	k.want("to/sub/file", "x")
	k.wantNone("to/sub/fifo")
	k.wantNone("to/socket")
}

func TestTheBoundsOfACopyAreHard(t *testing.T) {
	k := newKit(t)
	k.put("from/a", "12345", 0o644)
	k.put("from/sub/b", "12345", 0o644)
	must(t, k.copy("from", "fits", core.CopyOptions{Limit: 10, Files: 4}))
	for _, o := range []core.CopyOptions{{Limit: 9, Files: 4}, {Limit: 10, Files: 3}, {Limit: 10}, {Files: 4}} {
		wantCode(t, k.copy("from", "to", o), core.CodeTooLarge)
		k.wantNone("to")
	}
	k.wantClean()
}

func TestACopyEndsWithItsContext(t *testing.T) {
	k := newKit(t)
	k.put("from/a", "x", 0o644)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := k.tree.Copy(ctx, "from", "to", ample); err == nil {
		t.Error("it was made")
	}
	k.wantNone("to")
	k.wantClean()
}

func TestHolesStayHoles(t *testing.T) {
	k := newKit(t)
	k.put("from", "", 0o644)
	f, err := os.OpenFile(k.path+"/from", os.O_WRONLY, 0)
	must(t, err)
	defer f.Close()
	const size = 4 << 30
	for _, at := range []int64{1 << 30, 3<<30 + 5} {
		_, err := f.WriteAt([]byte("data"), at)
		must(t, err)
	}
	must(t, f.Truncate(size))
	must(t, f.Sync())
	must(t, k.copy("from", "to", core.CopyOptions{Limit: 1 << 20, Files: 1}))
	before, after := statOf(t, k.path+"/from"), statOf(t, k.path+"/to")
	if after.Size != size || after.Blocks > before.Blocks+64 {
		t.Errorf("it has %d bytes in %d blocks; the source has %d in %d", after.Size, after.Blocks, before.Size, before.Blocks)
	}
	copied, err := os.Open(k.path + "/to")
	must(t, err)
	defer copied.Close()
	for _, at := range []int64{1 << 30, 3<<30 + 5} {
		buffer := make([]byte, 6)
		_, err := copied.ReadAt(buffer, at-1)
		must(t, err)
		if string(buffer) != "\x00data\x00" {
			t.Errorf("at %d there is %q", at, buffer)
		}
	}
}

// openFiles counts what this process has open.
func openFiles(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return len(all)
}

// TestADeepDirectoryIsCopied: deeper than any path can say.
func TestADeepDirectoryIsCopied(t *testing.T) {
	k := newKit(t)
	const levels, name = 600, "directory" // longer than a path may be
	must(t, os.Mkdir(k.path+"/from", 0o700))
	dir, err := unix.Open(k.path+"/from", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	must(t, err)
	for range levels {
		must(t, unix.Mkdirat(dir, name, 0o755))
		f, err := unix.Openat(dir, "f", unix.O_CREAT|unix.O_WRONLY, 0o644)
		must(t, err)
		must(t, unix.Close(f))
		next, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		must(t, err)
		if k.uid != 0 {
			must(t, unix.Fchownat(dir, "f", k.uid, k.uid, 0))
			must(t, unix.Fchown(next, k.uid, k.uid))
		}
		must(t, unix.Close(dir))
		dir = next
	}
	must(t, unix.Close(dir))
	if k.uid != 0 {
		must(t, os.Chown(k.path+"/from", k.uid, k.uid))
	}
	var before unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &before))
	bound := before
	bound.Cur = uint64(openFiles(t) + 2*32 + 40)
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &bound))
	err = k.copy("from", "to", ample)
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &before))
	must(t, err)
	deepest := k.path + "/to"
	depth := 0
	dir, err = unix.Open(deepest, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	must(t, err)
	for {
		next, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		_ = unix.Close(dir)
		if err != nil {
			break
		}
		dir, depth = next, depth+1
	}
	if depth != levels {
		t.Errorf("the copy has %d levels", depth)
	}
	must(t, k.tree.Remove(t.Context(), "from", true, always))
	must(t, k.tree.Remove(t.Context(), "to", true, always))
	k.wantClean()
}

func TestAWideDirectoryIsCopiedWithLittleMemory(t *testing.T) {
	k := newKit(t)
	const wide = 6000
	must(t, os.Mkdir(k.path+"/from", 0o755))
	for i := range wide {
		must(t, os.Symlink("x", fmt.Sprintf("%s/from/%d", k.path, i)))
	}
	if k.uid != 0 {
		must(t, os.Chown(k.path+"/from", k.uid, k.uid))
	}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	must(t, k.copy("from", "to", ample))
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapInuse) - int64(before.HeapInuse); grown > 8<<20 {
		t.Errorf("the heap has grown by %d bytes", grown)
	}
	all, err := os.ReadDir(k.path + "/to")
	must(t, err)
	if len(all) != wide {
		t.Errorf("the copy has %d entries", len(all))
	}
}
