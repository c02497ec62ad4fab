package files_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"envapi/core"
)

func TestAReplacedFileKeepsItsModeOwnerAndAttributes(t *testing.T) {
	k := newKit(t)
	k.put("file", "old", 0o751)
	path := k.path + "/file"
	large := strings.Repeat("x", 2000)
	err := errors.Join(unix.Setxattr(path, "user.small", []byte("1"), 0), unix.Setxattr(path, "user.large", []byte(large), 0))
	if errors.Is(err, unix.ENOTSUP) {
		t.Log("this file system has no extended attributes")
		err = nil
	}
	must(t, err)
	must(t, k.write("file", "new"))
	st := statOf(t, path)
	if st.Mode&0o7777 != 0o751 || os.Geteuid() == 0 && st.Uid != somebody {
		t.Errorf("got the mode %o and the owner %d", st.Mode, st.Uid)
	}
	buffer := make([]byte, 4096)
	if n, err := unix.Getxattr(path, "user.large", buffer); !errors.Is(err, unix.ENOTSUP) && string(buffer[:max(n, 0)]) != large {
		t.Errorf("the attribute has %d bytes, %v", n, err)
	}
	k.want("file", "new")
	mode := fs.FileMode(0o4600) | fs.ModeSetuid
	done, err := k.commit(core.Change{Path: "file", Mode: &mode}, "newer")
	must(t, err)
	if st := statOf(t, path); st.Mode&0o7777 != 0o600 || done.Info.Mode != 0o600 {
		t.Errorf("got the mode %o", st.Mode)
	}
	if n, err := unix.Getxattr(path, "user.small", buffer); !errors.Is(err, unix.ENOTSUP) && n != 1 {
		t.Errorf("the attribute has %d bytes, %v", n, err)
	}
}

func TestAnACLIsKept(t *testing.T) {
	k := newKit(t)
	k.put("file", "old", 0o640)
	if out, err := exec.CommandContext(t.Context(), "setfacl", "-m", "u:12345:rw", k.path+"/file").CombinedOutput(); err != nil {
		t.Logf("there are no ACLs here: %v %s", err, out)
		return
	}
	must(t, k.write("file", "new"))
	buffer := make([]byte, 4096)
	if n, err := unix.Getxattr(k.path+"/file", "system.posix_acl_access", buffer); err != nil || n < 20 {
		t.Errorf("the ACL has %d bytes, %v", n, err)
	}
	if st := statOf(t, k.path+"/file"); st.Mode&0o777 != 0o660 {
		t.Errorf("the mode is %o", st.Mode)
	}
}

func TestANewFileHasItsModeWhateverTheUmask(t *testing.T) {
	k := newKit(t)
	defer syscall.Umask(syscall.Umask(0o077))
	mode := fs.FileMode(0o755)
	_, err := k.commit(core.Change{Path: "sub/program", Mode: &mode, Parents: true}, "")
	must(t, err)
	must(t, k.write("sub/file", ""))
	for name, want := range map[string]uint32{"sub": 0o755, "sub/program": 0o755, "sub/file": 0o644} {
		if st := statOf(t, k.path+"/"+name); st.Mode&0o7777 != want {
			t.Errorf("%s has the mode %o", name, st.Mode)
		}
	}
}

// A rename: the new name gets what the old one had.
func TestLikeGivesTheModeOfAnother(t *testing.T) {
	k := newKit(t)
	k.put("old", "text", 0o711)
	_, err := k.tree.Commit(t.Context(), []core.Change{{Path: "old"}, {Path: "new", Put: k.stage("text"), Like: "old"}})
	must(t, err)
	if st := statOf(t, k.path+"/new"); st.Mode&0o777 != 0o711 {
		t.Errorf("the mode is %o", st.Mode)
	}
	k.wantNone("old")
}

func TestAFileThatMayNotBeWrittenIsNotReplaced(t *testing.T) {
	k := newKit(t)
	if os.Geteuid() == 0 && k.uid == 0 {
		t.Fatal("the user is root")
	}
	k.put("file", "old", 0o444)
	wantCode(t, k.write("file", "new"), core.CodePermissionDenied)
	k.want("file", "old")
	k.put("secret", "old", 0o200)
	_, err := k.read("secret")
	wantCode(t, err, core.CodePermissionDenied)
	info, err := k.tree.Stat(t.Context(), "secret", true)
	if err != nil || info.ETag != "" {
		t.Errorf("got %+v, %v", info, err)
	}
	must(t, k.write("secret", "new"))
	if mode := statOf(t, k.path+"/secret").Mode & 0o777; mode != 0o200 {
		t.Errorf("the mode is %o", mode)
	}
}
