package files_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/internal/workspace/files"
	"envapi/internal/workspace/inside"
)

func TestSeveralChangesAreAllMadeOrNone(t *testing.T) {
	k := newKit(t)
	k.put("replaced", "old", 0o644)
	k.put("taken", "old", 0o644)
	k.put("locked/file", "old", 0o644)
	must(t, os.Chmod(k.path+"/locked", 0o555))
	t.Cleanup(func() { _ = os.Chmod(k.path+"/locked", 0o700) })
	k.link("/workspace/replaced", "alias")
	changes := func(last core.Change) []core.Change {
		last.Put = k.stage("new")
		return []core.Change{
			{Path: "replaced", Put: k.stage("new")},
			{Path: "taken"},
			{Path: "sub/dir/added", Put: k.stage("new"), Parents: true},
			{Path: "sub/other", Put: k.stage("new"), Parents: true},
			last,
		}
	}
	for _, last := range []core.Change{
		{Path: "locked/file"},
		{Path: "locked/new"},
		{Path: "none/file"},
		{Path: "taken/file", Parents: true},
		{Path: "replaced"},
		{Path: "./replaced"},
		{Path: "alias"},
		{Path: "locked", If: core.Condition{Match: []string{"x"}}},
	} {
		if last.Path == "locked/file" && k.uid == 0 && os.Geteuid() == 0 {
			continue
		}
		if _, err := k.tree.Commit(t.Context(), changes(last)); code(err) == "" {
			t.Errorf("%q: got %v", last.Path, err)
		}
		k.want("replaced", "old")
		k.want("taken", "old")
		k.wantNone("sub")
		k.wantClean()
	}
	done, err := k.tree.Commit(t.Context(), changes(core.Change{Path: "last"}))
	must(t, err)
	for i, created := range []bool{false, false, true, true, true} {
		if done[i].Created != created {
			t.Errorf("%d: got %+v", i, done[i])
		}
	}
	for _, name := range []string{"replaced", "sub/dir/added", "sub/other", "last"} {
		k.want(name, "new")
	}
	k.wantNone("taken")
	k.wantClean()
	if mode := statOf(t, k.path+"/sub/dir").Mode & 0o7777; mode != 0o755 {
		t.Errorf("the directory has the mode %o", mode)
	}
}

// What a program inside puts in the place of what was put stays when the rest is
// taken back.
func TestWhatIsWrittenMeanwhileSurvivesAnUndo(t *testing.T) {
	k := newKit(t)
	k.put("a", "old", 0o644)
	k.put("b", "old", 0o644)
	tag := k.tag("b")
	k.store.SetPoint(func(at string) {
		if at == "step 0" {
			k.inside(func() error { return os.Remove(k.path + "/a") })
			k.put("a", "theirs", 0o644)
			k.put("b", "theirs", 0o644)
		}
	})
	_, err := k.tree.Commit(t.Context(), []core.Change{
		{Path: "a", Put: k.stage("ours")},
		{Path: "b", Put: k.stage("ours"), If: core.Condition{Match: []string{tag}}},
	})
	wantCode(t, err, core.CodeETagMismatch)
	k.want("a", "theirs")
	k.want("b", "theirs")
}

func TestFileSystemsThatCannotExchange(t *testing.T) {
	t.Cleanup(files.SetRenameat2(func(int, string, int, string, uint) error { return unix.EINVAL }))
	k := newKit(t)
	k.put("file", "old", 0o640)
	k.put("taken", "old", 0o640)
	tag := k.tag("file")
	must(t, k.write("file", "new"))
	k.want("file", "new")
	_, err := k.commit(core.Change{Path: "file", If: core.Condition{Match: []string{tag}}}, "x")
	wantCode(t, err, core.CodeETagMismatch)
	_, err = k.tree.Commit(t.Context(), []core.Change{
		{Path: "file", Put: k.stage("again")}, {Path: "taken"}, {Path: "sub/new", Put: k.stage("new"), Parents: true},
	})
	must(t, err)
	k.want("file", "again")
	k.want("sub/new", "new")
	k.wantNone("taken")
	_, err = k.commit(core.Change{Path: "file", If: core.Condition{Absent: true}}, "x")
	wantCode(t, err, core.CodeETagMismatch)
	if st := statOf(t, k.path+"/file"); st.Nlink != 1 || st.Mode&0o777 != 0o640 {
		t.Errorf("the file has %d links and the mode %o", st.Nlink, st.Mode)
	}
	k.wantClean()
}

// A directory is made in the transaction's folder and put; one that is taken goes to
// the trash whole.
func TestATransactionOfDirectories(t *testing.T) {
	k := newKit(t)
	k.put("old/deep/file", "x", 0o644)
	x, err := k.tree.Begin()
	must(t, err)
	must(t, k.inTxn(x, func() error { return unix.Mkdirat(int(x.Dir().Fd()), "made", 0o755) }))
	old, err := k.tree.Locate("old", inside.Mode{})
	must(t, err)
	made, err := k.tree.Locate("a/b/made", inside.Mode{Missing: true})
	must(t, err)
	unlock, err := k.tree.Lock(t.Context(), old, made)
	must(t, err)
	x.Take(old)
	x.Put("made", made, false)
	must(t, x.Commit(t.Context()))
	x.Discard()
	unlock()
	old.Close()
	made.Close()
	k.wantNone("old")
	if st := statOf(t, k.path+"/a/b/made"); st.Mode&unix.S_IFMT != unix.S_IFDIR {
		t.Error("it is no directory")
	}
	if len(k.gone) != 1 {
		t.Fatalf("given away: %q", k.gone)
	}
	found, err := filepath.Glob(filepath.Join(k.dir, "trash", k.gone[0], "*", "deep", "file"))
	if len(found) != 1 {
		t.Errorf("in the trash: %q, %v", found, err)
	}
	k.wantClean()
}

func (k *kit) inTxn(x *files.Txn, do func() error) error {
	err := do()
	if k.uid != 0 {
		err = errors.Join(err, unix.Fchownat(int(x.Dir().Fd()), "made", k.uid, k.uid, unix.AT_SYMLINK_NOFOLLOW))
	}
	return err
}

func TestAPutWithoutOverReplacesNothing(t *testing.T) {
	k := newKit(t)
	k.put("file", "old", 0o644)
	x, err := k.tree.Begin()
	must(t, err)
	defer x.Discard()
	must(t, k.inTxn(x, func() error { return unix.Mkdirat(int(x.Dir().Fd()), "made", 0o755) }))
	at, err := k.tree.Locate("file", inside.Mode{})
	must(t, err)
	defer at.Close()
	x.Put("made", at, false)
	wantCode(t, x.Commit(t.Context()), core.CodeAlreadyExists)
	k.want("file", "old")
}

func TestAWaitForALockEndsWithTheContext(t *testing.T) {
	k := newKit(t)
	k.put("file", "old", 0o644)
	at, err := k.tree.Locate("file", inside.Mode{})
	must(t, err)
	defer at.Close()
	unlock, err := k.tree.Lock(t.Context(), at)
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	put := k.stage("new")
	if _, err := k.tree.Commit(ctx, []core.Change{{Path: "file", Put: put}}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	unlock()
	must(t, k.write("file", "new"))
	k.wantClean()
}

// A file that was found, and is a link by the time that it is locked, is followed like
// any other.
func TestALinkThatAppearsMeanwhileIsFollowed(t *testing.T) {
	k := newKit(t)
	k.put("file", "old", 0o644)
	at, err := k.tree.Locate("file", inside.Mode{})
	must(t, err)
	defer at.Close()
	unlock, err := k.tree.Lock(t.Context(), at)
	must(t, err)
	put, done := k.stage("new"), make(chan error)
	go func() {
		_, err := k.tree.Commit(t.Context(), []core.Change{{Path: "file", Put: put}})
		done <- err
	}()
	for end := time.Now().Add(10 * time.Second); k.store.Waiting() < 2; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatal("the change does not wait for the lock")
		}
	}
	must(t, os.Remove(k.path+"/file"))
	k.link("target", "file")
	unlock()
	must(t, <-done)
	k.want("target", "new")
	if to, err := os.Readlink(k.path + "/file"); err != nil || to != "target" {
		t.Errorf("the link leads to %q, %v", to, err)
	}
}

func TestAForgottenEnvironmentTakesNoMoreChanges(t *testing.T) {
	k := newKit(t)
	must(t, k.write("file", "old"))
	put := k.stage("new")
	must(t, k.store.Forget(testID))
	must(t, os.RemoveAll(filepath.Join(k.dir, "trash", k.gone[0])))
	if _, err := k.tree.Commit(t.Context(), []core.Change{{Path: "file", Put: put}}); err == nil {
		t.Error("a change was made")
	}
	k.want("file", "old")
	must(t, k.store.Forget(testID))
}
