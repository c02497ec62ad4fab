package supervisor

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"envapi/sandbox"
)

// ownBox is a box whose init is this program, and whose file tree is its own.
func ownBox(t *testing.T) *Box {
	t.Helper()
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	return &Box{init: self}
}

// TestNoLinkIsFollowedInside: a process in the box may have made it.
func TestNoLinkIsFollowedInside(t *testing.T) {
	dir, b := t.TempDir(), ownBox(t)
	file := filepath.Join(dir, "file")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Symlink(file, filepath.Join(dir, "link")),
		os.Symlink(dir, filepath.Join(dir, "folder")), os.Symlink("/proc/self/fd/0", filepath.Join(dir, "magic"))); err != nil {
		t.Fatal(err)
	}
	f, err := b.inside(file, unix.O_RDONLY)
	if err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	for _, path := range []string{filepath.Join(dir, "link"), filepath.Join(dir, "folder", "file"), filepath.Join(dir, "magic"), "/proc/self/root/" + file} {
		if f, err := b.inside(path, unix.O_RDONLY); !errors.Is(err, unix.ELOOP) {
			t.Errorf("%s: got %v", path, err)
			_ = f.Close() // nil closes as well
		}
	}
}

// TestThePidOfABoxThatIsGoneIsNobodys: it may be another's by now.
func TestThePidOfABoxThatIsGoneIsNobodys(t *testing.T) {
	b := ownBox(t)
	if err := b.init.Release(); err != nil { // as after Wait
		t.Fatal(err)
	}
	b.init.Pid = os.Getpid()
	if f, err := b.inside("/", unix.O_PATH); !errors.Is(err, sandbox.ErrBoxClosed) {
		t.Errorf("got %v", err)
		_ = f.Close()
	}
}

// TestATerminalIsClosedToOthers: not even write(1) can write to it.
func TestATerminalIsClosedToOthers(t *testing.T) {
	_, slave, _ := newTerminal(t)
	if info, err := slave.Stat(); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v", info.Mode(), err)
	}
}
