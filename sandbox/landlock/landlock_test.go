package landlock

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"envapi/internal/require"
)

// TestMain is also the restricted subprocess: a restriction cannot be undone.
func TestMain(m *testing.M) {
	if dir := os.Getenv("LANDLOCK_TEST_DIR"); dir != "" {
		restricted(dir)
		return
	}
	os.Exit(m.Run())
}

// attempt is something that a restricted thread tries, and the errno that must
// come of it; 0 is success. From is the ABI that this takes.
type attempt struct {
	name string
	from int
	want syscall.Errno
	try  func(dir string) error
}

var attempts = []attempt{
	{"read below a read rule", 1, 0, func(d string) error { return open(d+"/read/file", unix.O_RDONLY) }},
	{"write below a read rule", 1, unix.EACCES, func(d string) error { return open(d+"/read/file", unix.O_WRONLY) }},
	{"create below a read rule", 1, unix.EACCES, func(d string) error { return open(d+"/read/new", unix.O_CREAT|unix.O_WRONLY) }},
	{"remove below a read rule", 1, unix.EACCES, func(d string) error { return unix.Unlink(d + "/read/file") }},
	{"create below a write rule", 1, 0, func(d string) error { return open(d+"/write/new", unix.O_CREAT|unix.O_WRONLY) }},
	{"write a file that has a rule", 1, 0, func(d string) error { return open(d+"/single", unix.O_WRONLY) }},
	{"read outside", 1, unix.EACCES, func(d string) error { return open(d+"/outside", unix.O_RDONLY) }},
	{"list outside", 1, unix.EACCES, func(d string) error { return open(d, unix.O_RDONLY|unix.O_DIRECTORY) }},
	{"read through a link out", 1, unix.EACCES, func(d string) error { return open(d+"/write/link", unix.O_RDONLY) }},
	{"move out", 1, unix.EACCES, func(d string) error { return unix.Rename(d+"/write/moved", d+"/moved") }},
	{"truncate below a read rule", 3, unix.EACCES, func(d string) error { return unix.Truncate(d+"/read/file", 0) }},
	{"bind a TCP port", ABITCP, unix.EACCES, func(string) error { return bind() }},
	{"signal another process", ABIScopes, unix.EPERM, func(string) error { return unix.Kill(os.Getppid(), 0) }},
}

func open(path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o600)
	if err == nil {
		_ = unix.Close(fd)
	}
	return err
}

// bind binds a plain TCP socket: what Landlock does not know, such as the
// multipath TCP that package net prefers, it does not refuse.
func bind() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
}

// restricted restricts itself, tries everything and prints what came of it.
func restricted(dir string) {
	runtime.LockOSThread()
	_ = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	err := Restrict([]Rule{
		{Path: dir + "/read"},
		{Path: dir + "/write", Write: true},
		{Path: dir + "/single", Write: true},
		{Path: dir + "/nothing", Optional: true},
	}, true)
	if err != nil {
		fmt.Println("cannot restrict:", err)
		return
	}
	for _, a := range attempts {
		var errno syscall.Errno
		if err := a.try(dir); err != nil && !errors.As(err, &errno) {
			errno = unix.EINVAL
		}
		fmt.Printf("%s: %d\n", a.name, errno)
	}
}

func TestWhatARestrictedThreadCanDo(t *testing.T) {
	abi := ABI()
	if abi == 0 {
		require.Feature(t, "landlock", "the kernel has none")
	}
	dir := t.TempDir()
	for _, d := range []string{"read", "write"} {
		must(t, os.Mkdir(filepath.Join(dir, d), 0o700))
	}
	for _, f := range []string{"read/file", "write/moved", "single", "outside"} {
		must(t, os.WriteFile(filepath.Join(dir, f), []byte("x"), 0o600))
	}
	must(t, os.Symlink("../outside", filepath.Join(dir, "write/link")))
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "LANDLOCK_TEST_DIR="+dir)
	output, err := cmd.CombinedOutput()
	must(t, err)
	for _, a := range attempts {
		if a.from > abi {
			t.Logf("not tried: %s needs ABI %d, this kernel has %d", a.name, a.from, abi)
			continue
		}
		if want := fmt.Sprintf("%s: %d\n", a.name, a.want); !strings.Contains(string(output), want) {
			t.Errorf("want %q in:\n%s", want, output)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestEachABIAddsToTheOneBefore(t *testing.T) {
	if _, err := handledBy(0, true); err == nil {
		t.Error("no Landlock is taken for some")
	}
	for abi, want := range map[int]unix.LandlockRulesetAttr{
		1:  {Handled_access_fs: 0x1fff},
		2:  {Handled_access_fs: 0x3fff},
		3:  {Handled_access_fs: 0x7fff},
		4:  {Handled_access_fs: 0x7fff, Handled_access_net: 3},
		5:  {Handled_access_fs: 0xffff, Handled_access_net: 3},
		6:  {Handled_access_fs: 0xffff, Handled_access_net: 3, Scoped: 3},
		7:  {Handled_access_fs: 0xffff, Handled_access_net: 3, Scoped: 3},
		8:  {Handled_access_fs: 0xffff, Handled_access_net: 3, Scoped: 3},
		9:  {Handled_access_fs: 0x1ffff, Handled_access_net: 3, Scoped: 3},
		10: {Handled_access_fs: 0x1ffff, Handled_access_net: 0xf, Scoped: 3},
		99: {Handled_access_fs: 0x1ffff, Handled_access_net: 0xf, Scoped: 3},
	} {
		if got, err := handledBy(abi, true); err != nil || got != want {
			t.Errorf("ABI %d: got %+v, %v", abi, got, err)
		}
		if got, _ := handledBy(abi, false); got.Handled_access_net != 0 {
			t.Errorf("ABI %d: the network is refused unasked", abi)
		}
	}
}

// Below the ABI that knows a flag the kernel refuses the whole restriction.
func TestFlagsAreThoseOfTheABI(t *testing.T) {
	for abi, want := range map[int]uintptr{1: 0, 6: 0, 7: 4, 8: 4, 99: 4} {
		if got := flags(abi); got != want {
			t.Errorf("ABI %d: got %d, want %d", abi, got, want)
		}
	}
}

// What a rule permits is never more than what some ABI can refuse, and reaching
// a unix socket is no part of it.
func TestNoRulePermitsSocketsOfOthers(t *testing.T) {
	for _, write := range []bool{false, true} {
		for _, dir := range []bool{false, true} {
			if got := allowed(write, dir); got&^everything != 0 || got&unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX != 0 {
				t.Errorf("write %v, directory %v: %#x", write, dir, got)
			}
		}
	}
}

func TestARuleForNothingIsAnError(t *testing.T) {
	if err := add(-1, Rule{Path: t.TempDir() + "/nothing"}, 1); !errors.Is(err, unix.ENOENT) {
		t.Errorf("got %v", err)
	}
}
