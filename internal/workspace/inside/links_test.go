package inside_test

import (
	"errors"
	"os"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/internal/workspace/inside"
)

// An absolute link begins at the folder again, wherever it stands.
func TestAnAbsoluteLinkBeginsAtTheFolder(t *testing.T) {
	root, dir := newRoot(t)
	must(t, os.MkdirAll(dir+"/deep/er/other", 0o700))
	must(t, os.Mkdir(dir+"/other", 0o700))
	must(t, os.Symlink("/workspace/other", dir+"/deep/er/link"))
	must(t, os.Symlink("/workspace/../x", dir+"/deep/out"))
	at, err := root.Locate("deep/er/link/file", inside.Mode{})
	must(t, err)
	defer at.Close()
	if got := held(t, at.Dir); got != dir+"/other" {
		t.Errorf("it leads to %q", got)
	}
	for _, path := range []string{"deep/out", "deep/out/file"} {
		if _, err := root.Locate(path, inside.Mode{Follow: true}); code(err) != core.CodePathOutside {
			t.Errorf("%q: got %v", path, err)
		}
	}
}

// What would lead out if it were there is refused as that.
func TestC47APathThatLeadsOutIsRefusedWhateverIsThere(t *testing.T) {
	root, dir := newRoot(t)
	must(t, os.Mkdir(dir+"/there", 0o700))
	for _, path := range []string{"b/../../x", "b/c/../../../x/y", "there/../../x", "b/../.."} {
		for _, m := range []inside.Mode{{}, {Follow: true, Missing: true}} {
			if _, err := root.Locate(path, m); code(err) != core.CodePathOutside {
				t.Errorf("%q: got %v", path, err)
			}
		}
	}
	if _, err := root.Locate("b/../x", inside.Mode{}); code(err) != core.CodeNotFound {
		t.Errorf("what stays inside: got %v", err)
	}
}

// As many links are followed as the kernel follows, also absolute ones, and no more.
func TestLinksAreFollowedSoOften(t *testing.T) {
	root, dir := newRoot(t)
	must(t, os.Mkdir(dir+"/0", 0o700))
	for i := range 41 {
		must(t, os.Symlink("/workspace/"+strconv.Itoa(i), dir+"/"+strconv.Itoa(i+1)))
	}
	must(t, os.Symlink("/workspace/self", dir+"/self"))
	at, err := root.Locate("40/file", inside.Mode{})
	must(t, err)
	at.Close()
	for _, path := range []string{"41/file", "41", "self/file", "self"} {
		if _, err := root.Locate(path, inside.Mode{Follow: true}); code(err) != core.CodeSymlinkLoop {
			t.Errorf("%q: got %v", path, err)
		}
	}
}

// A program inside can hold a file by a lease: who opens it is told to come again.
func TestD15ALeaseIsNotWaitedFor(t *testing.T) {
	root, dir := newRoot(t)
	f, err := os.Create(dir + "/file")
	must(t, err)
	defer f.Close()
	_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK)
	must(t, err)
	at, err := root.Locate("file", inside.Mode{})
	must(t, err)
	defer at.Close()
	if _, err := at.OpenRegular("file"); code(err) != core.CodeUnavailable || !errors.Is(err, unix.EAGAIN) {
		t.Errorf("got %v", err)
	}
}

// What is no regular file is never opened: a FIFO would wait, and a device do something.
func TestOnlyRegularFilesAreOpened(t *testing.T) {
	root, dir := newRoot(t)
	must(t, unix.Mkfifo(dir+"/fifo", 0o600))
	must(t, os.Symlink("fifo", dir+"/link"))
	must(t, os.Mkdir(dir+"/dir", 0o700))
	for path, want := range map[string]core.Code{
		"fifo": core.CodeNotRegular, "link": core.CodeNotRegular, "dir": core.CodeIsADirectory, "none": core.CodeNotFound,
	} {
		at, err := root.Locate(path, inside.Mode{})
		must(t, err)
		if _, err := at.OpenRegular(path); code(err) != want {
			t.Errorf("%q: got %v", path, err)
		}
		at.Close()
	}
}
