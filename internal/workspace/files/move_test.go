package files_test

import (
	"os"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/internal/workspace/files"
)

func (k *kit) move(source, destination string, o core.CopyOptions) error {
	_, err := k.tree.Move(k.t.Context(), source, destination, o)
	return err
}

func TestAMoveIsOneRename(t *testing.T) {
	k := newKit(t)
	k.put("dir/file", "x", 0o640)
	before := statOf(t, k.path+"/dir/file")
	info, err := k.tree.Move(t.Context(), "dir/file", "/workspace/other", core.CopyOptions{})
	must(t, err)
	if info.Path != "other" || info.Mode != 0o640 || info.Size != 1 {
		t.Errorf("got %+v", info)
	}
	if after := statOf(t, k.path+"/other"); after.Ino != before.Ino {
		t.Error("it is another file")
	}
	must(t, k.move("other", "a/b/c", core.CopyOptions{Parents: true}))
	must(t, k.move("a", "dir/a/", core.CopyOptions{}))
	k.want("dir/a/b/c", "x")
	k.wantNone("a")
	k.wantNone("other")
	wantCode(t, k.move("dir/a/b/c", "none/d", core.CopyOptions{}), core.CodeNotFound)
	wantCode(t, k.move("none", "new/d", core.CopyOptions{Parents: true}), core.CodeNotFound)
	k.wantNone("new")
	k.wantClean()
}

// standing is a folder with one of everything.
func standing(t *testing.T) *kit {
	k := newKit(t)
	k.put("file", "file", 0o644)
	k.put("other", "other", 0o644)
	k.put("locked", "locked", 0o444)
	k.put("dir/file", "x", 0o644)
	k.put("full/file", "x", 0o644)
	k.inside(func() error { return os.Mkdir(k.path+"/empty", 0o755) })
	k.link("dir", "link")
	k.link("nothing", "dangling")
	k.link("/etc", "out")
	return k
}

// refusals are what neither a move nor a copy does.
var refusals = []struct {
	source, destination string
	over                bool
	code                core.Code
}{
	{"file", "other", false, core.CodeAlreadyExists}, // C35
	{"file", "empty", false, core.CodeAlreadyExists},
	{"file", "empty", true, core.CodeIsADirectory},
	{"file", "link", false, core.CodeAlreadyExists},
	{"file", "dangling", false, core.CodeAlreadyExists},
	{"file", "locked", true, core.CodePermissionDenied},
	{"file", "new/", false, core.CodeNotADirectory},
	{"file", "other/", true, core.CodeNotADirectory},
	{"file", ".", true, core.CodeIsADirectory},
	{"file", "../new", true, core.CodePathOutside},
	{"file", "out/new", true, core.CodePathOutside},
	{"../file", "new", true, core.CodePathOutside},
	{"out/passwd", "new", true, core.CodePathOutside},
	{"dir", "file", true, core.CodeNotADirectory},
	{"dir", "link", true, core.CodeNotADirectory},
	{"dir", "empty", true, core.CodeAlreadyExists},
	{"dir", "empty", false, core.CodeAlreadyExists},
	{"dir", "dir/sub", false, core.CodeInvalidArgument},
	{"dir", "link/sub", false, core.CodeInvalidArgument},
	{"dir", "dir/../dir/sub/deep", false, core.CodeInvalidArgument},
	{"dir", "dir/.", true, core.CodeInvalidArgument},
	{".", "dir/sub", false, core.CodeInvalidArgument},
	{"dir/..", "empty/new", false, core.CodeInvalidArgument},
	{"file/", "new", false, core.CodeNotADirectory},
	{"link/", "new", false, core.CodeNotADirectory},
	{"none", "new", false, core.CodeNotFound},
	{"file/none", "new", false, core.CodeNotADirectory},
}

func TestWhatAMoveRefuses(t *testing.T) {
	k := standing(t)
	for _, c := range refusals {
		if c.code == core.CodePermissionDenied && k.uid == 0 && os.Geteuid() == 0 {
			continue
		}
		err := k.move(c.source, c.destination, core.CopyOptions{Overwrite: c.over, Parents: true})
		if code(err) != c.code {
			t.Errorf("%q to %q, over: %t: got %v, want %s", c.source, c.destination, c.over, err, c.code)
		}
	}
	k.want("file", "file")
	k.want("other", "other")
	k.want("dir/file", "x")
	k.wantNone("dir/sub")
	k.wantNone("new")
	k.wantClean()
}

func TestAMoveReplacesWhereThatIsAskedFor(t *testing.T) {
	k := standing(t)
	over := core.CopyOptions{Overwrite: true}
	must(t, k.move("file", "other", over))
	k.want("other", "file")
	k.wantNone("file")
	must(t, k.move("other", "link", over)) // the link itself
	k.want("link", "file")
	k.want("dir/file", "x")
	must(t, k.move("dangling", "link", over)) // likewise
	if to, err := os.Readlink(k.path + "/link"); err != nil || to != "nothing" {
		t.Errorf("got %q, %v", to, err)
	}
	k.wantNone("dangling")
	k.wantClean()
}

func TestAMoveToTheSameNameIsDone(t *testing.T) {
	k := standing(t)
	for _, to := range []string{"dir", "./dir", "dir/../dir", "/workspace/dir", "dir/"} {
		must(t, k.move("dir", to, core.CopyOptions{}))
	}
	must(t, k.move("dir/file", "link/file", core.CopyOptions{}))
	k.want("dir/file", "x")
}

// TestAMoveOntoAnotherNameOfTheFile leaves one: rename(2) would leave both.
func TestAMoveOntoAnotherNameOfTheFile(t *testing.T) {
	for _, o := range []core.CopyOptions{
		{Overwrite: true},
		{Overwrite: true, If: core.Condition{Match: []string{"*"}}},
	} {
		k := newKit(t)
		k.put("a", "x", 0o644)
		k.inside(func() error { return os.Link(k.path+"/a", k.path+"/b") })
		must(t, k.move("a", "b", o))
		k.wantNone("a")
		k.want("b", "x")
		k.wantClean()
	}
}

func TestAMoveHoldsItsCondition(t *testing.T) {
	k := standing(t)
	tag := k.tag("other")
	for _, c := range []core.Condition{{Match: []string{"another"}}, {Absent: true}} {
		wantCode(t, k.move("file", "other", core.CopyOptions{Overwrite: true, If: c}), core.CodeETagMismatch)
	}
	wantCode(t, k.move("file", "new", core.CopyOptions{If: core.Condition{Match: []string{"*"}}}), core.CodeETagMismatch)
	must(t, k.move("file", "other", core.CopyOptions{Overwrite: true, If: core.Condition{Match: []string{tag}}}))
	k.want("other", "file")
	k.wantNone("file")
	must(t, k.move("other", "new", core.CopyOptions{If: core.Condition{Absent: true}}))
	k.want("new", "file")
	k.wantClean()
}

// TestADirectoryThatMayNotBeWrittenIsNotMoved: the kernel says so to its owner, too.
func TestADirectoryThatMayNotBeWrittenIsNotMoved(t *testing.T) {
	k := standing(t)
	if os.Geteuid() == 0 && k.uid == 0 {
		return
	}
	must(t, unix.Chmod(k.path+"/dir", 0o555))
	defer unix.Chmod(k.path+"/dir", 0o755)
	wantCode(t, k.move("dir", "new/dir", core.CopyOptions{Parents: true}), core.CodePermissionDenied)
	k.wantNone("new")
	must(t, k.move("dir", "renamed", core.CopyOptions{}))
	must(t, unix.Chmod(k.path+"/renamed", 0o755))
}

// meanwhile has do done once by a program inside, just before a name is changed. It
// has a goroutine of its own, which is the service's user.
func (k *kit) meanwhile(do func()) {
	k.t.Helper()
	var once sync.Once
	restore := files.SetRenameat2(func(from int, name string, to int, target string, flags uint) error {
		once.Do(func() {
			done := make(chan struct{})
			go func() {
				defer close(done)
				do()
			}()
			<-done
		})
		return unix.Renameat2(from, name, to, target, flags)
	})
	k.t.Cleanup(restore)
}

func TestWhatAppearsMeanwhileIsNotReplaced(t *testing.T) {
	for _, o := range []core.CopyOptions{{}, {If: core.Condition{Absent: true}}} {
		for _, source := range []string{"file", "dir", "link"} {
			k := standing(t)
			want := core.CodeAlreadyExists
			if o.If.Absent {
				want = core.CodeETagMismatch
			}
			k.meanwhile(func() { k.put("new", "of somebody else", 0o644) })
			wantCode(t, k.move(source, "new", o), want)
			k.want("new", "of somebody else")
			must(t, os.Remove(k.path+"/new"))
			k.meanwhile(func() { k.put("new", "of somebody else", 0o644) })
			o.Limit, o.Files = ample.Limit, ample.Files
			wantCode(t, k.copy(source, "new", o), want)
			k.want("new", "of somebody else")
			k.want("dir/file", "x")
			k.wantClean()
		}
	}
}

// TestAConditionIsOfWhatIsThereAtThatMoment: it is judged again where a program inside
// has replaced the file after it was.
func TestAConditionIsOfWhatIsThereAtThatMoment(t *testing.T) {
	for name, change := range map[string]func(k *kit, o core.CopyOptions) error{
		"move":   func(k *kit, o core.CopyOptions) error { return k.move("file", "other", o) },
		"copy":   func(k *kit, o core.CopyOptions) error { return k.copy("file", "other", o) },
		"remove": func(k *kit, o core.CopyOptions) error { return k.tree.Remove(k.t.Context(), "other", false, o.If) },
	} {
		t.Run(name, func(t *testing.T) {
			k := standing(t)
			o := ample
			o.Overwrite, o.If.Match = true, []string{k.tag("other")}
			k.meanwhile(func() {
				_ = os.Remove(k.path + "/other")
				k.put("other", "of somebody else", 0o644)
			})
			wantCode(t, change(k, o), core.CodeETagMismatch)
			k.want("other", "of somebody else")
			k.want("file", "file")
			k.wantClean()
		})
	}
}
