package files_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/internal/require"
)

func TestC13AWriteThroughALinkChangesItsTarget(t *testing.T) {
	k := newKit(t)
	k.put("dir/target", "old", 0o640)
	k.link("dir/target", "relative")
	k.link("/workspace/dir/target", "absolute")
	k.link(k.path+"/dir/target", "host")
	k.link("dir/new", "dangling")
	for _, name := range []string{"relative", "absolute", "host"} {
		must(t, k.write(name, name))
		k.want("dir/target", name)
		if _, err := os.Readlink(filepath.Join(k.path, name)); err != nil {
			t.Errorf("the link is gone: %v", err)
		}
	}
	must(t, k.write("dangling", "made"))
	k.want("dir/new", "made")
	if mode := statOf(t, k.path+"/dir/target").Mode & 0o7777; mode != 0o640 {
		t.Errorf("the target has the mode %o", mode)
	}
	k.wantClean()
}

func TestALiteralChangeIsOfTheLinkItself(t *testing.T) {
	k := newKit(t)
	k.put("target", "old", 0o644)
	k.link("target", "a")
	k.link("target", "b")
	done, err := k.commit(core.Change{Path: "a", Literal: true}, "new")
	must(t, err)
	if done.Created || done.Info.Mode != 0o644 {
		t.Errorf("got %+v", done)
	}
	k.want("a", "new")
	_, err = k.tree.Commit(t.Context(), []core.Change{{Path: "b", Literal: true}})
	must(t, err)
	k.wantNone("b")
	k.want("target", "old")
}

func TestC15C17D3NothingOutsideIsReached(t *testing.T) {
	k := newKit(t)
	outside := filepath.Join(filepath.Dir(k.path), "evil")
	must(t, os.Mkdir(outside, 0o777))
	must(t, os.Chmod(outside, 0o777))
	must(t, os.WriteFile(outside+"/canary", []byte("x"), 0o666))
	k.put("dir/file", "", 0o644)
	for name, target := range map[string]string{
		"passwd": "/etc/passwd", "magic": "/proc/self/root/etc/passwd", "root": "/", "up": "../evil",
		"dir/up": "../../evil", "abs": outside, "alias": "/workspace/../evil", "dev": "/dev", "proc": "/proc", "tmp": "/tmp",
		"rename": "../" + testID + "/../evil",
	} {
		k.link(target, name)
	}
	for _, path := range []string{
		"passwd", "magic", "root/etc/passwd", "up/canary", "dir/up/canary", "abs/canary", "alias/canary", "rename/canary",
		"dev/null", "proc/self/root/etc/passwd", "tmp/x", "../evil/canary", "dir/../../evil/canary", "..", "dir/../..",
		"/etc/passwd", "/workspace-evil/x", "/workspace/../etc/passwd", k.path + "-evil", k.path + "/../evil/canary", "/", "//etc/passwd",
	} {
		_, err := k.read(path)
		wantCode(t, err, core.CodePathOutside)
		wantCode(t, k.write(path, "hacked"), core.CodePathOutside)
	}
	if got, err := os.ReadFile(outside + "/canary"); err != nil || string(got) != "x" {
		t.Errorf("the file outside holds %q, %v", got, err)
	}
	k.wantClean()
}

func TestPathsThatStayInsideAreServed(t *testing.T) {
	k := newKit(t)
	k.put("dir/sub/file", "text", 0o644)
	k.link("/workspace/dir", "alias")
	k.link("../sub", "dir/sub/again")
	for _, path := range []string{
		"dir/sub/file", "./dir//sub/./file", "dir/../dir/sub/file", "/workspace/dir/sub/file", "/workspace//dir/sub/file",
		k.path + "/dir/sub/file", "alias/sub/file", "dir/sub/again/file", "/workspace/dir/../alias/sub/file",
	} {
		if text, err := k.read(path); err != nil || text != "text" {
			t.Errorf("%q: got %q, %v", path, text, err)
		}
	}
}

func TestC18ADirectoryLinkWithALeafThatGoesUp(t *testing.T) {
	k := newKit(t)
	k.put("a/b/file", "", 0o644)
	k.link("a/b", "l")
	must(t, k.write("l/../x", "where the kernel says"))
	k.want("a/x", "where the kernel says")
	k.wantNone("x")
}

func TestC19LoopsAreSaid(t *testing.T) {
	k := newKit(t)
	k.link("x", "x")
	k.link(".", "l")
	k.link("b", "a")
	k.link("a", "b")
	k.put("file", "text", 0o644)
	for _, path := range []string{"x", "a", "x/y"} {
		_, err := k.read(path)
		wantCode(t, err, core.CodeSymlinkLoop)
		wantCode(t, k.write(path, ""), core.CodeSymlinkLoop)
	}
	if text, err := k.read(strings.Repeat("l/", 30) + "file"); err != nil || text != "text" {
		t.Errorf("got %q, %v", text, err)
	}
}

// promptly fails where do takes long: it must never wait for anybody inside.
func promptly(t *testing.T, what string, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	select {
	case <-done:
	case <-time.After(5 * time.Second):
		t.Fatalf("%s waits", what)
	}
}

func TestC20SpecialFilesAreRefusedAtOnce(t *testing.T) {
	k := newKit(t)
	k.inside(func() error { return unix.Mkfifo(k.path+"/fifo", 0o666) })
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", filepath.Join(k.path, "s"))
	if err == nil { // else the path is too long for one
		defer listener.Close()
	}
	names := []string{"fifo"}
	if err == nil {
		names = append(names, "s")
	}
	if os.Geteuid() == 0 && unix.Mknod(k.path+"/device", unix.S_IFCHR|0o666, 5<<8) == nil { // /dev/tty
		names = append(names, "device")
	}
	for _, name := range names {
		promptly(t, name, func() {
			_, err := k.read(name)
			wantCode(t, err, core.CodeNotRegular)
			wantCode(t, k.write(name, ""), core.CodeNotRegular)
			_, err = k.commit(core.Change{Path: name, If: core.Condition{Match: []string{"x"}}}, "")
			wantCode(t, err, core.CodeNotRegular)
			info, err := k.tree.Stat(t.Context(), name, true)
			if err != nil || info.ETag != "" || info.Type == core.TypeFile {
				t.Errorf("got %+v, %v", info, err)
			}
		})
	}
	_, err = k.tree.Commit(t.Context(), []core.Change{{Path: "fifo"}})
	must(t, err)
	k.wantNone("fifo")
}

func TestC29ANameInAnotherNormalFormIsAnotherName(t *testing.T) {
	k := newKit(t)
	const nfd, nfc = "cafe\u0301", "caf\u00e9"
	k.put(nfd, "x", 0o644)
	_, err := k.read(nfc)
	wantCode(t, err, core.CodeNotFound)
	if err == nil || !strings.Contains(err.Error(), `\u0301`) {
		t.Errorf("the near name is not said: %v", err)
	}
	_, err = k.tree.Commit(t.Context(), []core.Change{{Path: nfc}})
	wantCode(t, err, core.CodeNotFound)
	must(t, k.write(nfc, "another"))
	k.want(nfd, "x")
	k.want(nfc, "another")
}

func TestC30AllNamesWork(t *testing.T) {
	k := newKit(t)
	for _, name := range []string{
		"new\nline", "-rf", " spaces ", `"quotes'`, strings.Repeat("x", 255), "%2e%2e", "?a=b", "#f", "\x1b[31m", "\xff\xfe", "...", "a\\b",
	} {
		done, err := k.commit(core.Change{Path: name}, name)
		must(t, err)
		k.want(name, name)
		info, err := k.tree.Stat(t.Context(), name, true)
		if err != nil || info.ETag != done.Info.ETag || info.Path != name {
			t.Errorf("%q: got %+v, %v", name, info, err)
		}
		_, err = k.tree.Commit(t.Context(), []core.Change{{Path: name}})
		must(t, err)
		k.wantNone(name)
	}
	for _, name := range []string{strings.Repeat("x", 256), "a\x00b", strings.Repeat("d/", 2100)} {
		wantCode(t, k.write(name, ""), core.CodeInvalidArgument)
	}
}

func TestD11HardLinksAndModesOfOthers(t *testing.T) {
	k := newKit(t)
	k.put("a", "old", 0o6755)
	k.inside(func() error { return os.Link(k.path+"/a", k.path+"/b") })
	k.inside(func() error { return unix.Chmod(k.path+"/a", 0o6755) })
	must(t, k.write("a", "new"))
	k.want("a", "new")
	k.want("b", "old")
	if mode := statOf(t, k.path+"/a").Mode & 0o7777; mode != 0o755 {
		t.Errorf("the new file has the mode %o", mode)
	}
	if os.Geteuid() != 0 {
		require.Feature(t, "root", "only root has files that the environment's user may not touch")
	}
	secret := filepath.Join(k.dir, "secret")
	must(t, os.WriteFile(secret, []byte("secret"), 0o600))
	must(t, os.Link(secret, k.path+"/foreign"))
	_, err := k.read("foreign")
	wantCode(t, err, core.CodePermissionDenied)
	wantCode(t, k.write("foreign", "x"), core.CodePermissionDenied)
	if got, _ := os.ReadFile(secret); string(got) != "secret" {
		t.Errorf("the file of another holds %q", got)
	}
	if st := statOf(t, k.path+"/a"); st.Uid != somebody || st.Gid != somebody {
		t.Errorf("the file is of %d:%d", st.Uid, st.Gid)
	}
}

func TestD15ALeaseAndAFIFOHoldNothingUp(t *testing.T) {
	k := newKit(t)
	k.put("file", "text", 0o644)
	f, err := os.OpenFile(k.path+"/file", os.O_RDWR, 0)
	must(t, err)
	defer f.Close()
	_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK)
	must(t, err)
	promptly(t, "a lease", func() {
		_, err := k.read("file")
		wantCode(t, err, core.CodeUnavailable)
		must(t, k.write("file", "new"))
	})
	k.want("file", "new")
	at, err := k.tree.Open(t.Context(), "file")
	must(t, err)
	defer at.Close()
	must(t, os.Remove(k.path+"/file"))
	k.inside(func() error { return unix.Mkfifo(k.path+"/file", 0o666) })
	promptly(t, "a FIFO", func() {
		if _, err := at.ETag(t.Context(), true); err != nil {
			t.Error(err)
		}
		_, err := k.read("file")
		wantCode(t, err, core.CodeNotRegular)
	})
}

func TestDirectoriesAreNoFiles(t *testing.T) {
	k := newKit(t)
	k.put("dir/file", "", 0o644)
	for _, path := range []string{"dir", "dir/", ".", "", "/workspace", "dir/.."} {
		_, err := k.read(path)
		wantCode(t, err, core.CodeIsADirectory)
		wantCode(t, k.write(path, ""), core.CodeIsADirectory)
		_, err = k.tree.Commit(t.Context(), []core.Change{{Path: path}})
		wantCode(t, err, core.CodeIsADirectory)
	}
	for _, path := range []string{"dir/file/", "dir/file/x"} {
		wantCode(t, k.write(path, ""), core.CodeNotADirectory)
	}
	wantCode(t, k.write("none/file", ""), core.CodeNotFound)
	wantCode(t, k.write("new/", ""), core.CodeIsADirectory)
	k.wantNone("new")
	_, err := k.tree.Stat(t.Context(), "none", false)
	wantCode(t, err, core.CodeNotFound)
}
