package files_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"envapi/core"
)

var always core.Condition

func TestTheWorkspaceItselfIsNotRemoved(t *testing.T) {
	k := newKit(t)
	k.put("dir/sub/file", "x", 0o644)
	k.link(".", "here")
	for _, path := range []string{"", ".", "./", "dir/..", "dir/.", "dir/sub/../..", "/workspace", "/workspace/", "here/.", k.path} {
		for _, recursive := range []bool{false, true} {
			err := k.tree.Remove(t.Context(), path, recursive, always)
			if code(err) != core.CodeInvalidArgument {
				t.Errorf("%q: got %v", path, err)
			}
		}
	}
	k.want("dir/sub/file", "x")
}

func TestC32ALinkIsRemovedAndNeverFollowed(t *testing.T) {
	k := newKit(t)
	outside := t.TempDir()
	must(t, os.WriteFile(outside+"/canary", []byte("x"), 0o666))
	must(t, os.Chmod(outside, 0o777))
	k.put("dir/file", "x", 0o644)
	k.put("kept/file", "x", 0o644)
	k.link(outside, "dir/out")
	k.link("../kept", "dir/in")
	k.link("kept", "link")
	wantCode(t, k.tree.Remove(t.Context(), "link/", true, always), core.CodeNotADirectory)
	wantCode(t, k.tree.Remove(t.Context(), "dir", false, always), core.CodeNotEmpty)
	must(t, k.tree.Remove(t.Context(), "link", true, always))
	must(t, k.tree.Remove(t.Context(), "dir", true, always))
	k.wantNone("link")
	k.wantNone("dir")
	k.want("kept/file", "x")
	if _, err := os.Stat(outside + "/canary"); err != nil {
		t.Error(err)
	}
	wantCode(t, k.tree.Remove(t.Context(), "dir", true, always), core.CodeNotFound)
	k.wantClean()
	if len(k.gone) != 1 {
		t.Errorf("in the trash: %v", k.gone)
	}
}

func TestEveryKindIsRemoved(t *testing.T) {
	k := newKit(t)
	k.put("file", "x", 0)
	k.inside(func() error { return os.Mkdir(k.path+"/empty", 0o755) })
	k.inside(func() error { return os.Mkdir(k.path+"/locked", 0) })
	k.inside(func() error { return unix.Mkfifo(k.path+"/fifo", 0o600) })
	k.inside(func() error { return unix.Mknod(k.path+"/socket", unix.S_IFSOCK|0o600, 0) })
	k.link("loop", "loop")
	for _, path := range []string{"file", "empty", "empty/", "locked", "fifo", "socket", "loop"} {
		promptly(t, path, func() {
			if path == "empty/" {
				k.inside(func() error { return os.Mkdir(k.path+"/empty", 0o755) })
			}
			if err := k.tree.Remove(context.Background(), path, path == "locked", always); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		})
		k.wantNone(path)
	}
	wantCode(t, k.tree.Remove(t.Context(), "../x", true, always), core.CodePathOutside)
	k.wantClean()
}

// TestALockedDirectoryIsRemoved: its mode forbids its owner everything, and only with
// the right to write to it it can be moved.
func TestALockedDirectoryIsRemoved(t *testing.T) {
	k := newKit(t)
	k.put("a/b/file", "x", 0o644)
	for _, path := range []string{"a/b", "a"} {
		must(t, os.Chmod(filepath.Join(k.path, path), 0o555))
	}
	if os.Geteuid() != 0 || k.uid != 0 {
		wantCode(t, k.tree.Remove(t.Context(), "a/b", true, always), core.CodePermissionDenied)
		if st := statOf(t, k.path+"/a/b"); st.Mode&0o7777 != 0o555 {
			t.Errorf("the mode of what was not removed is %o", st.Mode&0o7777)
		}
	}
	must(t, k.tree.Remove(t.Context(), "a", true, always))
	k.wantNone("a")
	gone := filepath.Join(k.dir, "trash", k.gone[len(k.gone)-1])
	must(t, filepath.WalkDir(gone, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = os.Chmod(path, 0o700)
		}
		return err
	}))
}

func TestARemovalHoldsItsCondition(t *testing.T) {
	k := newKit(t)
	k.put("file", "old", 0o644)
	k.put("dir/file", "old", 0o644)
	tag := k.tag("file")
	must(t, os.WriteFile(k.path+"/file", []byte("new"), 0o600))
	err := k.tree.Remove(t.Context(), "file", false, core.Condition{Match: []string{tag}})
	wantCode(t, err, core.CodeETagMismatch)
	k.want("file", "new")
	wantCode(t, k.tree.Remove(t.Context(), "none", false, core.Condition{Match: []string{tag}}), core.CodeETagMismatch)
	must(t, k.tree.Remove(t.Context(), "file", false, core.Condition{Match: []string{"other", k.tag("file")}}))
	k.wantNone("file")
	wantCode(t, k.tree.Remove(t.Context(), "dir", true, core.Condition{Match: []string{tag}}), core.CodeIsADirectory)
	must(t, k.tree.Remove(t.Context(), "dir", true, core.Condition{Match: []string{"*"}}))
	k.wantNone("dir")
	k.wantClean()
}
