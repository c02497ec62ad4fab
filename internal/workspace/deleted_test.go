package workspace

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/internal/require"
)

const testUID = 200123

// holder starts a program as testUID that holds a deleted file of 4 MiB in path,
// and returns when it does.
func holder(t *testing.T, path, program string) {
	t.Helper()
	const python = "/usr/bin/python3" // one of the user's own nobody else may run
	if _, err := os.Stat(python); err != nil {
		require.Feature(t, "python3", err.Error())
	}
	const prelude = `
import ctypes, os, sys, threading
libc = ctypes.CDLL(None)
def make():
    fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
    os.unlink(sys.argv[1])
    os.write(fd, b"x" * (4 << 20))
    return fd
def hold():
    print("held", flush=True)
    sys.stdin.read()
`
	cmd := exec.Command(python, "-c", prelude+program, filepath.Join(path, "file"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: testUID, Gid: testUID}}
	cmd.Dir, cmd.Stderr = "/", os.Stderr
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || strings.TrimSpace(line) != "held" {
		t.Fatalf("it says %q, %v", line, err)
	}
}

func TestDeletedFilesThatAreStillOpenCount(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can tell whose a process is")
	}
	for name, program := range map[string]string{
		"open":                               "make(); hold()",
		"open twice":                         "os.dup(make()); hold()",
		"mapped only":                        "fd = make()\nlibc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + 3 * [ctypes.c_int] + [ctypes.c_long]\nlibc.mmap.restype = ctypes.c_void_p\nassert libc.mmap(None, 4 << 20, 3, 1, fd, 0) != ctypes.c_void_p(-1).value\nos.close(fd); hold()",
		"of a process that nobody may read":  "make(); libc.prctl(4, 0, 0, 0, 0); hold()",
		"of a thread with its own":           "def own():\n    assert libc.unshare(0x400) == 0\n    make(); hold()\nt = threading.Thread(target=own); t.start(); t.join()",
		"without a name from the beginning":  "fd = os.open(os.path.dirname(sys.argv[1]), os.O_TMPFILE | os.O_RDWR)\nos.write(fd, b'x' * (4 << 20)); hold()",
		"beside files that are no longer so": "make(); os.close(os.open(sys.argv[1], os.O_CREAT)); os.unlink(sys.argv[1]); hold()",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			must(t, os.Chmod(filepath.Dir(dir), 0o711))
			w := open(t, dir)
			must(t, w.Create(t.Context(), testID(1), testUID))
			must(t, w.Create(t.Context(), testID(2), testUID+1))
			holder(t, w.Path(testID(1)), program)
			use, err := w.Measure(t.Context(), testID(1), "")
			if err != nil || use.Files != 1 || use.Bytes < 4<<20 || use.Bytes > 5<<20 {
				t.Errorf("counted %+v, %v", use, err)
			}
			if use, err := w.Measure(t.Context(), testID(2), ""); err != nil || use.Files != 0 {
				t.Errorf("another folder has %+v, %v", use, err)
			}
		})
	}
}

func TestDescriptorsOnTheirWayAreNoticed(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can tell whose a process is")
	}
	const pair = "import socket, array\na, b = socket.socketpair()\nfd = make()\n" +
		"def send(to, n): to.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [n]))])\n"
	for name, c := range map[string]struct {
		program string
		hidden  bool
	}{
		"a socket without any": {pair + "os.close(fd); hold()", false},
		"sent":                 {pair + "send(a, fd); os.close(fd); hold()", true},
		"sent and received":    {pair + "send(a, fd); os.close(fd); b.recvmsg(1, 100); hold()", false},
		"sent in a socket":     {pair + "c, d = socket.socketpair(); send(a, fd); send(c, b.fileno()); os.close(fd); a.close(); b.close(); hold()", true},
		"sent and not accepted": {pair + "l = socket.socket(socket.AF_UNIX); l.bind('\\0envapi-test-%d' % os.getpid()); l.listen()\n" +
			"c = socket.socket(socket.AF_UNIX); c.connect(l.getsockname()); send(c, fd); os.close(fd); c.close(); hold()", true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			must(t, os.Chmod(filepath.Dir(dir), 0o711))
			w := open(t, dir)
			must(t, w.Create(t.Context(), testID(1), testUID))
			holder(t, w.Path(testID(1)), c.program)
			if _, err := w.Measure(t.Context(), testID(1), ""); errors.Is(err, core.ErrHidden) != c.hidden || err != nil && !c.hidden {
				t.Errorf("got %v", err)
			}
			if _, _, err := w.Usage(t.Context(), testID(1), ""); err != nil {
				t.Errorf("the usage cannot be told: %v", err)
			}
		})
	}
}

func TestWhoHoldsTooMuchOpenIsNotCountedWhole(t *testing.T) {
	h := handles{left: 3}
	h.look("/proc/self/fd")
	if h.left != 0 {
		t.Errorf("%d are left of 3, and this process has more open", h.left)
	}
}

func TestOnlyFilesOfTheFolderCount(t *testing.T) {
	h := handles{uid: 5, dev: 6, counted: map[uint64]struct{}{}}
	for _, other := range []unix.Stat_t{
		{Ino: 1, Uid: 4, Dev: 6, Mode: unix.S_IFREG, Blocks: 8},
		{Ino: 2, Uid: 5, Dev: 7, Mode: unix.S_IFREG, Blocks: 8},
		{Ino: 3, Uid: 5, Dev: 6, Mode: unix.S_IFREG, Blocks: 8, Nlink: 1},
		{Ino: 4, Uid: 5, Dev: 6, Mode: unix.S_IFIFO, Blocks: 8},
	} {
		h.add(&other)
	}
	if h.use.Files != 0 {
		t.Errorf("counted %+v", h.use)
	}
}
