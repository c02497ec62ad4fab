package files_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/internal/workspace/files"
)

// A program inside that locks a directory in the middle of a change does not make half
// of it stay.
func TestWhatIsLockedMeanwhileIsTakenBack(t *testing.T) {
	k := newKit(t)
	k.put("dir/a", "old", 0o644)
	k.put("dir/b", "old", 0o644)
	k.store.SetPoint(func(at string) {
		if at == "step 0" {
			k.inside(func() error { return os.Chmod(k.path+"/dir", 0o555) })
		}
	})
	_, err := k.tree.Commit(t.Context(), []core.Change{{Path: "dir/a", Put: k.stage("new")}, {Path: "dir/b"}})
	wantCode(t, err, core.CodePermissionDenied)
	k.want("dir/a", "old")
	k.want("dir/b", "old")
	k.wantClean()
	if mode := statOf(t, k.path+"/dir").Mode & 0o7777; mode != 0o555 {
		t.Errorf("the mode is %o", mode)
	}
	must(t, os.Chmod(k.path+"/dir", 0o755))
}

// What cannot be taken back now is not thrown away, and the next start takes it back.
func TestWhatCannotBeTakenBackIsKept(t *testing.T) {
	k := newKit(t)
	k.put("a", "old", 0o644)
	k.put("b", "old", 0o644)
	k.put("c", "old", 0o644)
	broken := false
	restore := files.SetRenameat2(func(from int, name string, to int, target string, flags uint) error {
		if broken {
			return unix.EIO
		}
		return unix.Renameat2(from, name, to, target, flags)
	})
	defer restore()
	k.store.SetPoint(func(at string) { broken = broken || at == "step 1" })
	_, err := k.tree.Commit(t.Context(), []core.Change{
		{Path: "a", Put: k.stage("new")}, {Path: "b"}, {Path: "c", Put: k.stage("new")},
	})
	if !errors.Is(err, unix.EIO) || code(err) != "" {
		t.Errorf("got %v", err)
	}
	k.want("a", "new")
	k.wantNone("b")
	restore()
	again := openKit(t, k.dir)
	for _, name := range []string{"a", "b", "c"} {
		again.want(name, "old")
	}
	again.wantClean()
}

// What a program inside puts in the place of what was put, in the very moment in which
// that is taken back, stays.
func TestWhatComesInTheMomentOfAnUndoStays(t *testing.T) {
	for _, there := range []bool{true, false} {
		k := newKit(t)
		if there {
			k.put("a", "old", 0o644)
		}
		taking := false
		t.Cleanup(files.SetRenameat2(func(from int, name string, to int, target string, flags uint) error {
			if taking && (name == "a" || target == "a") {
				taking = false
				k.inside(func() error { return os.Remove(k.path + "/a") })
				k.put("a", "theirs", 0o644)
			}
			return unix.Renameat2(from, name, to, target, flags)
		}))
		k.put("b", "old", 0o644)
		k.put("dir/file", "old", 0o644)
		k.store.SetPoint(func(at string) {
			if at == "step 0" {
				taking = true
				k.inside(func() error { return os.Chmod(k.path+"/dir", 0o555) })
			}
		})
		_, err := k.tree.Commit(t.Context(), []core.Change{{Path: "a", Put: k.stage("ours")}, {Path: "dir/file"}})
		must(t, os.Chmod(k.path+"/dir", 0o755))
		wantCode(t, err, core.CodePermissionDenied)
		k.want("a", "theirs")
		k.want("dir/file", "old")
	}
}

// Where names cannot be exchanged a crash can come between the two renames.
func TestAnExchangeThatACrashInterruptedIsUndone(t *testing.T) {
	before := prepareCrash(t)
	dieAt(t, before.dir, "step 0")
	staged, err := filepath.Glob(before.dir + "/staging/" + testID + "/t.*/s.*")
	must(t, err)
	found := 0
	for _, name := range staged {
		if text, err := os.ReadFile(name); err == nil && string(text) == "old" {
			must(t, os.Rename(name, name+".old"))
			found++
		}
	}
	if found != 1 {
		t.Fatalf("%d of %q are what was replaced", found, staged)
	}
	k := openKit(t, before.dir)
	wantOld(k)
	k.wantClean()
}

// Recovery has the rights of the environment's user, and what it cannot do stays for
// another start; what it can it does.
func TestRecoveryHasTheUsersRights(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("nothing here belongs to somebody else")
		return
	}
	before := prepareCrash(t)
	dieAt(t, before.dir, "step 2")
	must(t, os.Chown(before.path+"/dir", 0, 0))
	k := openKit(t, before.dir)
	k.wantNone("dir/file")
	k.want("replaced", "old")
	k.want("taken", "old")
	must(t, os.Chown(before.path+"/dir", somebody, somebody))
	k = openKit(t, before.dir)
	wantOld(k)
	k.wantClean()
}

// A directory that cannot be reached is none that is gone.
func TestWhatCannotBeReachedIsUndoneLater(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("the directory cannot be opened at all")
		return
	}
	before := prepareCrash(t)
	dieAt(t, before.dir, "step 5")
	must(t, os.Chmod(before.path, 0))
	k := openKit(t, before.dir)
	must(t, os.Chmod(before.path, 0o700))
	k.wantNone("taken")
	k = openKit(t, before.dir)
	wantOld(k)
	k.wantClean()
}

func TestAChangeHasNoMoreStepsThanItsJournalHolds(t *testing.T) {
	k := newKit(t)
	k.put("a", "old", 0o644)
	t.Cleanup(files.SetMostJournal(100))
	_, err := k.tree.Commit(t.Context(), []core.Change{{Path: "a", Put: k.stage("new")}, {Path: "b", Put: k.stage("new")}})
	wantCode(t, err, core.CodeTooLarge)
	k.want("a", "old")
	k.wantNone("b")
	k.wantClean()
}

// meddling does something once, at some question whether there is still time.
type meddling struct {
	context.Context //nolint:containedctx // it is one
	asked, at       int
	do              func()
}

func (m *meddling) Err() error {
	if m.asked++; m.asked == m.at {
		m.do()
	}
	return m.Context.Err()
}

// A tag is of one content, and not half of another one.
func TestATagIsOfOneContent(t *testing.T) {
	k := newKit(t)
	text := strings.Repeat("old", 200_000)
	k.put("file", text, 0o644)
	f, err := k.tree.Open(t.Context(), "file")
	must(t, err)
	defer f.Close()
	ctx := &meddling{Context: t.Context(), at: 2, do: func() {
		k.inside(func() error {
			return os.WriteFile(k.path+"/file", []byte("new"+text[3:]), 0o644)
		})
	}}
	tag, err := f.ETag(ctx, true)
	must(t, err)
	sum := sha256.Sum256([]byte("new" + text[3:]))
	if want := base64.RawURLEncoding.EncodeToString(sum[:24]); tag != want {
		t.Errorf("got %q, want %q", tag, want)
	}
}

// A directory may be written to that may not be read.
func TestDirectoriesThatMayNotBeRead(t *testing.T) {
	k := newKit(t)
	k.put("dir/file", "old", 0o644)
	k.put("dir/other", "old", 0o644)
	must(t, os.Chmod(k.path+"/dir", 0o300))
	t.Cleanup(func() { _ = os.Chmod(k.path+"/dir", 0o700) })
	must(t, k.write("dir/file", "new"))
	_, made, err := k.tree.MakeDirectory(t.Context(), "dir/below", false)
	must(t, err)
	if !made {
		t.Error("it was not made")
	}
	must(t, k.tree.Remove(t.Context(), "dir/other", false, core.Condition{}))
	must(t, os.Chmod(k.path+"/dir", 0o700))
	k.want("dir/file", "new")
	k.wantNone("dir/other")
}

// The directories on the way to where something could not be moved are taken away.
func TestAMoveThatFailsLeavesNoDirectories(t *testing.T) {
	k := newKit(t)
	k.put("locked/file", "x", 0o644)
	must(t, os.Chmod(k.path+"/locked", 0o555))
	t.Cleanup(func() { _ = os.Chmod(k.path+"/locked", 0o700) })
	_, err := k.tree.Move(t.Context(), "locked", "a/b/c", core.CopyOptions{Parents: true})
	wantCode(t, err, core.CodePermissionDenied)
	k.wantNone("a")
	k.want("locked/file", "x")
}

// Attributes that only a privileged user may set do not go over to what replaces a
// file.
func TestPrivilegedAttributesAreNotKept(t *testing.T) {
	k := newKit(t)
	k.put("file", "old", 0o644)
	err := unix.Setxattr(k.path+"/file", "trusted.envapi", []byte("x"), 0)
	if err != nil {
		t.Logf("there are none for this user here: %v", err)
		return
	}
	must(t, k.write("file", "new"))
	if n, err := unix.Getxattr(k.path+"/file", "trusted.envapi", nil); !errors.Is(err, unix.ENODATA) {
		t.Errorf("the attribute has %d bytes, %v", n, err)
	}
}

// A condition that does not hold says what does.
func TestAConditionSaysWhatIsThere(t *testing.T) {
	k := newKit(t)
	k.put("dir/file", "x", 0o644)
	for path, want := range map[string]string{"dir/file": "something already", "dir": "something already", "none": "no file"} {
		c := core.Condition{Absent: true}
		if path == "none" {
			c = core.Condition{Match: []string{"x"}}
		}
		_, err := k.commit(core.Change{Path: path, If: c}, "new")
		wantCode(t, err, core.CodeETagMismatch)
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v", path, err)
		}
	}
}

// A directory that a program inside moves while it is copied is not gone up from to
// where it is then.
func TestADirectoryThatMovesIsNotCopiedFromSomewhereElse(t *testing.T) {
	k := newKit(t)
	const levels = 40 // more than are kept open
	k.put("from/"+strings.Repeat("d/", levels)+"file", "x", 0o644)
	ctx := &meddling{Context: t.Context(), at: levels, do: func() {
		k.inside(func() error { return os.Rename(k.path+"/from/d/d", k.path+"/moved") })
	}}
	_, _, err := k.tree.Copy(ctx, "from", "to", ample)
	wantCode(t, err, core.CodeUnavailable)
	k.wantNone("to")
	k.wantClean()
}
