package files_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"envapi/core"
)

func TestADirectoryIsMadeWithWhatIsMissingOnTheWay(t *testing.T) {
	defer unix.Umask(unix.Umask(0o077))
	k := newKit(t)
	if _, _, err := k.tree.MakeDirectory(t.Context(), "a/b/c", false); code(err) != core.CodeNotFound {
		t.Errorf("without parents: %v", err)
	}
	info, made, err := k.tree.MakeDirectory(t.Context(), "/workspace/a/b/c/", true)
	must(t, err)
	if !made || info.Path != "a/b/c" || info.Type != core.TypeDirectory || info.Mode != 0o755 {
		t.Errorf("got %+v, made: %t", info, made)
	}
	for _, name := range []string{"a", "a/b", "a/b/c"} {
		if st := statOf(t, filepath.Join(k.path, name)); st.Mode&0o7777 != 0o755 || k.uid != 0 && int(st.Uid) != k.uid {
			t.Errorf("%s is %o, of %d", name, st.Mode, st.Uid)
		}
	}
	if _, made, err := k.tree.MakeDirectory(t.Context(), "a/b", true); err != nil || made {
		t.Errorf("again: made: %t, %v", made, err)
	}
	_, _, err = k.tree.MakeDirectory(t.Context(), "a/b", false)
	wantCode(t, err, core.CodeAlreadyExists)
	k.wantClean()
}

func TestNoDirectoryIsMadeWhereSomethingElseIs(t *testing.T) {
	k := newKit(t)
	outside := t.TempDir()
	k.put("file", "x", 0o644)
	k.put("dir/file", "x", 0o644)
	k.link("dir", "link")
	k.link("nothing", "dangling")
	k.link(outside, "out")
	for _, c := range []struct {
		path string
		code core.Code
	}{
		{"", ""},
		{".", ""},
		{"link", ""},
		{"link/", ""},
		{"file", core.CodeAlreadyExists},
		{"file/", core.CodeAlreadyExists},
		{"file/a", core.CodeNotADirectory},
		{"dangling", core.CodeAlreadyExists},
		{"out", core.CodePathOutside},
		{"out/a", core.CodePathOutside},
		{"../a", core.CodePathOutside},
		{"new/../../a", core.CodePathOutside},
		{"/etc/a", core.CodePathOutside},
	} {
		_, made, err := k.tree.MakeDirectory(t.Context(), c.path, true)
		if code(err) != c.code || made {
			t.Errorf("%q: made: %t, %v; want %q", c.path, made, err, c.code)
		}
	}
	for _, path := range []string{".", "dir", "file", "link"} {
		_, _, err := k.tree.MakeDirectory(t.Context(), path, false)
		wantCode(t, err, core.CodeAlreadyExists)
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) != 0 {
		t.Errorf("outside there is %v, %v", left, err)
	}
}

// TestManyMakeOneDirectory: with parents all succeed, and one has made it.
func TestManyMakeOneDirectory(t *testing.T) {
	k := newKit(t)
	for range 20 {
		var all sync.WaitGroup
		var made, failed atomic.Int32
		for range 4 {
			all.Go(func() {
				_, isNew, err := k.tree.MakeDirectory(t.Context(), "a/b/c", true)
				if err != nil {
					failed.Add(1)
					t.Error(err)
				}
				if isNew {
					made.Add(1)
				}
			})
		}
		all.Wait()
		if made.Load() != 1 {
			t.Errorf("%d have made it", made.Load())
		}
		must(t, k.tree.Remove(t.Context(), "a", true, core.Condition{}))
	}
}

func TestADirectoryThatCannotBeMadeLeavesNothing(t *testing.T) {
	k := newKit(t)
	long := strings.Repeat("a/", 20) + strings.Repeat("x", 255)
	_, made, err := k.tree.MakeDirectory(t.Context(), long, true)
	if err != nil || !made {
		t.Fatal(err)
	}
	k.inside(func() error { return os.Mkdir(k.path+"/locked", 0o555) })
	if os.Geteuid() != 0 || k.uid != 0 {
		_, _, err = k.tree.MakeDirectory(t.Context(), "locked/b/c", true)
		wantCode(t, err, core.CodePermissionDenied)
	}
	if left, err := os.ReadDir(k.path + "/locked"); err != nil || len(left) != 0 {
		t.Errorf("there is %v, %v", left, err)
	}
}

func TestMissingDirectoriesAreMadeInOneStep(t *testing.T) {
	k, points := newKit(t), 0
	k.store.SetPoint(func(at string) {
		points++
		_, first := os.Lstat(k.path + "/a")
		if _, last := os.Lstat(k.path + "/a/b/c"); (first == nil) != (last == nil) {
			t.Errorf("%s: the first is there: %v, and the last: %v", at, first, last)
		}
	})
	_, made, err := k.tree.MakeDirectory(t.Context(), "a/b/c", true)
	if err != nil || !made || points == 0 {
		t.Errorf("made %v at %d points: %v", made, points, err)
	}
	k.wantClean()
}
