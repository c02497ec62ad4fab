package inside_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"envapi/internal/workspace/inside"
)

// TestNothingOutsideIsFoundWhileNamesAreSwapped: a directory and a link that leads out
// take each other's place all the time.
func TestNothingOutsideIsFoundWhileNamesAreSwapped(t *testing.T) {
	root, dir := newRoot(t)
	outside := t.TempDir()
	must(t, os.WriteFile(outside+"/file", []byte("outside"), 0o600))
	must(t, os.Mkdir(dir+"/a", 0o700))
	must(t, os.WriteFile(dir+"/a/file", []byte("inside"), 0o600))
	must(t, os.Symlink(outside, dir+"/b"))
	must(t, os.Symlink("/workspace/a", dir+"/c"))
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, dir+"/a", unix.AT_FDCWD, dir+"/b", unix.RENAME_EXCHANGE)
			}
		}
	}()
	found := 0
	for end := time.Now().Add(500 * time.Millisecond); time.Now().Before(end); {
		for _, path := range []string{"a/file", "c/file", "a/../a/file"} {
			at, err := root.Locate(path, inside.Mode{Follow: true})
			if err != nil {
				continue
			}
			found++
			if at.Exists() && !strings.HasPrefix(held(t, at.Leaf), dir+"/") {
				t.Errorf("%q led to %q", path, held(t, at.Leaf))
			}
			at.Close()
		}
	}
	close(stop)
	<-stopped
	if found == 0 {
		t.Error("nothing was ever found")
	}
}

// The kernel gives up a look-up that goes up while anybody on the host renames
// something: others must not hold up who has such a path.
func TestAPathThatGoesUpIsFoundWhileNamesElsewhereChange(t *testing.T) {
	root, dir := newRoot(t)
	must(t, os.MkdirAll(dir+"/a/b", 0o700))
	must(t, os.WriteFile(dir+"/file", nil, 0o600))
	must(t, os.Symlink("b/../..", dir+"/a/up"))
	defer inside.SetOpenat2(func(at int, path string, how *unix.OpenHow) (int, error) {
		if strings.Contains(path, "..") || strings.Contains(path, "up") && how.Flags&unix.O_NOFOLLOW == 0 {
			return -1, unix.EAGAIN
		}
		return unix.Openat2(at, path, how)
	})()
	for _, path := range []string{"a/b/../../file", "a/up/file", "a/up/a/../file"} {
		at, err := root.Locate(path, inside.Mode{Follow: true})
		must(t, err)
		if !at.Exists() || held(t, at.Leaf) != dir+"/file" {
			t.Errorf("%q led to %+v", path, at)
		}
		at.Close()
	}
}

// TestWhatIsReplacedMeanwhileDoesNotLeadOut: a change exchanges a file for one in
// staging, and the kernel then finds what it found to be outside.
func TestWhatIsReplacedMeanwhileDoesNotLeadOut(t *testing.T) {
	root, dir := newRoot(t)
	staging := t.TempDir()
	must(t, os.WriteFile(dir+"/f", nil, 0o600))
	must(t, os.WriteFile(staging+"/f", nil, 0o600))
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, dir+"/f", unix.AT_FDCWD, staging+"/f", unix.RENAME_EXCHANGE)
			}
		}
	}()
	for range 100_000 {
		at, err := root.Locate("f", inside.Mode{Follow: true})
		if err != nil {
			t.Error(err)
			break
		}
		at.Close()
	}
	close(stop)
	<-stopped
}
