package workspace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"envapi/core"
)

// nest makes a row of directories below path, each in the one before, and
// gives the last one. It goes down by descriptors: the path may be longer than
// any path can be.
func nest(t testing.TB, path, name string, depth int) *os.File {
	t.Helper()
	dir, err := os.Open(path)
	must(t, err)
	for range depth {
		must(t, unix.Mkdirat(fd(dir), name, 0o700))
		next, err := openInside(fd(dir), name)
		must(t, err)
		_ = dir.Close()
		dir = os.NewFile(uintptr(next), name)
	}
	return dir
}

// fewDescriptors leaves the process a few descriptors more than it has: what the
// held levels of a count need, which are more than those of a removal, and some.
// It counts free numbers, since the test may have inherited a high one.
func fewDescriptors(t *testing.T) {
	t.Helper()
	taken := map[string]bool{}
	for _, name := range names(t, "/proc/self/fd") {
		taken[name] = true
	}
	var limit uint64
	for free := 0; free < heldLevels+8; limit++ {
		if !taken[fmt.Sprint(limit)] {
			free++
		}
	}
	var old unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &old))
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: limit, Max: old.Max}))
	t.Cleanup(func() { must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &old)) })
}

func TestATreeOfAnyDepthIsCountedAndRemoved(t *testing.T) {
	for _, depth := range []int{levelsAtOnce + 1, levelsAtOnce + 3, 4097} { // the last is longer than a path can be
		t.Run(fmt.Sprint(depth), func(t *testing.T) {
			w := open(t, t.TempDir())
			last := nest(t, create(t, w, testID(1)), "d", depth)
			defer last.Close()
			fewDescriptors(t)
			must(t, unix.Symlinkat("x", fd(last), "end"))
			_, files, err := w.Usage(t.Context(), testID(1), "")
			if err != nil || files != int64(depth)+1 {
				t.Errorf("Usage counted %d, %v; want %d", files, err, depth+1)
			}
			remove(t, w, testID(1))
			wantNames(t, w.trash.Name())
		})
	}
}

func TestAWideTreeIsRemoved(t *testing.T) {
	w := open(t, t.TempDir())
	path := create(t, w, testID(1))
	for i := range 3 * namesAtOnce {
		must(t, os.MkdirAll(filepath.Join(path, "a", fmt.Sprint(i), "b"), 0o700))
		must(t, os.WriteFile(filepath.Join(path, "a", fmt.Sprint(i, "f")), nil, 0))
	}
	_, files, err := w.Usage(t.Context(), testID(1), "")
	if want := int64(1 + 3*namesAtOnce*3); err != nil || files != want {
		t.Errorf("Usage counted %d, %v; want %d", files, err, want)
	}
	remove(t, w, testID(1))
	wantNames(t, w.trash.Name())
}

// hostile fills a workspace with what might mislead or stop who removes it.
func hostile(t testing.TB, path, canary string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Join(path, "deep/er"), 0o700))
	for _, dir := range []string{path, filepath.Join(path, "deep"), filepath.Join(path, "deep/er")} {
		in := func(name string) string { return filepath.Join(dir, name) }
		must(t, os.Symlink(canary, in("link")))
		must(t, os.Symlink(filepath.Join(canary, "file"), in("link to file")))
		must(t, os.Symlink("loop", in("loop")))
		must(t, os.Link(filepath.Join(canary, "file"), in("hard link")))
		must(t, unix.Mkfifo(in("fifo"), 0o600))
		must(t, unix.Mknod(in("socket"), unix.S_IFSOCK|0o600, 0))
		must(t, os.MkdirAll(in("-rf"), 0o700))
		must(t, os.MkdirAll(in("closed/inner"), 0o700))
		must(t, os.WriteFile(in("closed/inner/file"), []byte("x"), 0))
		must(t, os.Chmod(in("closed/inner"), 0))
		must(t, os.Chmod(in("closed"), 0))
		for _, name := range []string{"new\nline", "\x1b[2J", "\xff\xfe", strings.Repeat("n", 255), " ", "*", "...", "\\"} {
			must(t, os.Mkdir(in(name), 0o500))
			must(t, os.WriteFile(in("closed "+name[:min(len(name), 240)]), nil, 0))
		}
	}
	must(t, os.Chmod(filepath.Join(path, "deep"), 0o100))
	must(t, os.Chmod(path, 0))
}

func TestHostileTreesAreRemovedAndNothingElse(t *testing.T) {
	for _, way := range []string{"remove", "reset"} {
		t.Run(way, func(t *testing.T) {
			w := open(t, t.TempDir())
			canary := t.TempDir()
			must(t, os.WriteFile(filepath.Join(canary, "file"), []byte("alive"), 0o640))
			hostile(t, create(t, w, testID(1)), canary)
			if way == "reset" {
				must(t, w.Reset(t.Context(), testID(1), 0))
			}
			remove(t, w, testID(1))
			wantNames(t, w.trash.Name())
			wantNames(t, canary, "file")
			info, err := os.Stat(filepath.Join(canary, "file"))
			must(t, err)
			if data, _ := os.ReadFile(filepath.Join(canary, "file")); string(data) != "alive" || info.Mode().Perm() != 0o640 {
				t.Errorf("the file outside holds %q with mode %o", data, info.Mode().Perm())
			}
		})
	}
}

// On a full disk there is no room for a second tree. That must not keep a tree
// from being emptied, which is what makes room.
func TestATreeIsEmptiedWithoutASecondOne(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "top"), 0o700))
	for _, name := range []string{"a", "b"} {
		_ = nest(t, filepath.Join(dir, "top"), name, 5*levelsAtOnce).Close()
	}
	trash, err := os.Open(dir)
	must(t, err)
	defer trash.Close()
	tr := tree{trash: trash, id: "no/such/folder", name: "top"} // no tree can be made under that name
	must(t, tr.empty(t.Context()))
	wantNames(t, dir)
}

func TestAFullDiskIsToldApart(t *testing.T) {
	for _, cause := range []error{unix.ENOSPC, unix.EDQUOT} {
		err := failed("do it", &os.PathError{Err: cause})
		if got := core.AsError(err); got.Code != core.CodeDiskFull || !errors.Is(err, cause) {
			t.Errorf("%v became %v", cause, err)
		}
	}
	if got := core.AsError(failed("do it", unix.EIO)); got.Code != core.CodeInternal {
		t.Errorf("EIO became %v", got)
	}
}
