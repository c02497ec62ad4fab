package boxinit

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"envapi/sandbox/protocol"
	"envapi/sandbox/seccomp"
)

// filtered is the variable that makes a test binary the process that installs a
// filter on itself: it cannot be undone. Its value is the seccomp.Shares.
const filtered = "BOXINIT_TEST_FILTER"

// attempt is a system call, and what must come of it: in a box with namespaces
// of its own, and in one that shares those and the uid with the host. Without a
// filter each would come out otherwise, or is there to show that it does not.
type attempt struct {
	name     string
	own      syscall.Errno
	shared   syscall.Errno
	trap     uintptr
	a, b, c  uintptr
	closesFD bool
}

const high = 0xdead_beef << 32

var attempts = []attempt{
	{name: "getppid", trap: unix.SYS_GETPPID},
	{name: "own limits", trap: unix.SYS_PRLIMIT64, b: unix.RLIMIT_NOFILE},
	{name: "own priority", trap: unix.SYS_SETPRIORITY, c: 0},

	{name: "a user namespace by unshare", own: unix.EPERM, shared: unix.EPERM, trap: unix.SYS_UNSHARE, a: unix.CLONE_NEWUSER},
	{name: "a user namespace by clone", own: unix.EPERM, shared: unix.EPERM, trap: unix.SYS_CLONE, a: unix.CLONE_NEWUSER | unix.CLONE_THREAD},
	{name: "clone3", own: unix.ENOSYS, shared: unix.ENOSYS, trap: unix.SYS_CLONE3},
	{name: "setns", own: unix.EPERM, shared: unix.EPERM, trap: unix.SYS_SETNS, a: ^uintptr(0)},
	{name: "umount", own: unix.EPERM, shared: unix.EPERM, trap: unix.SYS_UMOUNT2},
	{name: "open_tree", own: unix.EPERM, shared: unix.EPERM, trap: unix.SYS_OPEN_TREE, c: ^uintptr(0)},
	{name: "io_uring_setup", own: unix.EPERM, shared: unix.EPERM, trap: unix.SYS_IO_URING_SETUP},
	{name: "io_setup", own: unix.ENOSYS, shared: unix.ENOSYS, trap: unix.SYS_IO_SETUP},
	{name: "keyctl", own: unix.EPERM, shared: unix.EPERM, trap: unix.SYS_KEYCTL, a: 9999},
	{name: "userfaultfd", own: unix.EPERM, shared: unix.EPERM, trap: unix.SYS_USERFAULTFD, a: 0xffff},
	{name: "bpf", own: unix.EPERM, shared: unix.EPERM, trap: unix.SYS_BPF, a: 9999},
	{name: "perf_event_open", own: unix.EPERM, shared: unix.EPERM, trap: unix.SYS_PERF_EVENT_OPEN},
	{name: "a file by its handle", own: unix.EPERM, shared: unix.EPERM, trap: unix.SYS_OPEN_BY_HANDLE_AT},
	{name: "another's memory", own: unix.EPERM, shared: unix.EPERM, trap: unix.SYS_PROCESS_VM_READV, a: 1},
	{name: "another's descriptors", own: unix.EPERM, shared: unix.EPERM, trap: unix.SYS_PIDFD_GETFD, a: ^uintptr(0)},
	{name: "tracing another", own: unix.EPERM, shared: unix.EPERM, trap: unix.SYS_PTRACE, a: unix.PTRACE_SEIZE},
	{name: "another's limits", own: unix.EPERM, shared: unix.EPERM, trap: unix.SYS_PRLIMIT64, a: uintptr(os.Getppid()), b: unix.RLIMIT_NOFILE},
	{name: "huge pages", own: unix.EPERM, shared: unix.EPERM, trap: unix.SYS_MEMFD_CREATE, b: unix.MFD_HUGETLB},
	{name: "executable stacks", own: unix.EPERM, shared: unix.EPERM, trap: unix.SYS_PERSONALITY, a: 0x0400000},
	{name: "the clock", own: unix.EPERM, shared: unix.EPERM, trap: unix.SYS_CLOCK_SETTIME, a: 9999},

	{name: "D4 TIOCSTI", own: unix.EPERM, shared: unix.EPERM, trap: unix.SYS_IOCTL, b: unix.TIOCSTI},
	{name: "D4 TIOCSTI with high bits", own: unix.EPERM, shared: unix.EPERM, trap: unix.SYS_IOCTL, b: high | unix.TIOCSTI},
	{name: "D4 TIOCLINUX with high bits", own: unix.EPERM, shared: unix.EPERM, trap: unix.SYS_IOCTL, b: high | 0x541c},
	{name: "another ioctl", own: unix.ENOTTY, shared: unix.ENOTTY, trap: unix.SYS_IOCTL, b: unix.TIOCGSID},
	{name: "D15 a lease with high bits", own: unix.EPERM, shared: unix.EPERM, trap: unix.SYS_FCNTL, b: high | unix.F_SETLEASE, c: unix.F_WRLCK},

	{name: "TCP", shared: unix.EPERM, trap: unix.SYS_SOCKET, a: unix.AF_INET, b: unix.SOCK_STREAM, closesFD: true},
	{name: "UDP", shared: unix.EPERM, trap: unix.SYS_SOCKET, a: unix.AF_INET, b: unix.SOCK_DGRAM, closesFD: true},
	{name: "a unix socket", shared: unix.EPERM, trap: unix.SYS_SOCKET, a: unix.AF_UNIX, b: unix.SOCK_STREAM, closesFD: true},
	{name: "routes", shared: unix.EPERM, trap: unix.SYS_SOCKET, a: unix.AF_NETLINK, b: unix.SOCK_RAW, closesFD: true},
	{name: "other netlink", own: unix.EPROTONOSUPPORT, shared: unix.EPERM, trap: unix.SYS_SOCKET, a: unix.AF_NETLINK, b: unix.SOCK_RAW, c: unix.NETLINK_KOBJECT_UEVENT},
	{name: "multipath TCP", own: unix.EPROTONOSUPPORT, shared: unix.EPERM, trap: unix.SYS_SOCKET, a: unix.AF_INET, b: unix.SOCK_STREAM, c: 262},
	{name: "raw packets", own: unix.EPERM, shared: unix.EPERM, trap: unix.SYS_SOCKET, a: unix.AF_INET, b: unix.SOCK_RAW | unix.SOCK_CLOEXEC, c: unix.IPPROTO_TCP},
	{name: "AF_ALG", own: unix.EAFNOSUPPORT, shared: unix.EPERM, trap: unix.SYS_SOCKET, a: unix.AF_ALG, b: unix.SOCK_SEQPACKET},
	{name: "AF_PACKET", own: unix.EAFNOSUPPORT, shared: unix.EPERM, trap: unix.SYS_SOCKET, a: unix.AF_PACKET, b: unix.SOCK_RAW},
	{name: "a pair of stream sockets", own: unix.EFAULT, shared: unix.EFAULT, trap: unix.SYS_SOCKETPAIR, a: unix.AF_UNIX, b: unix.SOCK_STREAM},
	{name: "a pair of datagram sockets", own: unix.EFAULT, shared: unix.EPERM, trap: unix.SYS_SOCKETPAIR, a: unix.AF_UNIX, b: unix.SOCK_DGRAM},
	{name: "urgent data", own: unix.EPERM, shared: unix.EPERM, trap: unix.SYS_SENDMSG, a: ^uintptr(0), c: unix.MSG_OOB},
	{name: "connect", own: unix.EBADF, shared: unix.EPERM, trap: unix.SYS_CONNECT, a: ^uintptr(0)},
	{name: "shared memory of System V", own: unix.EINVAL, shared: unix.EPERM, trap: unix.SYS_SHMGET},
	{name: "a message queue", own: unix.EFAULT, shared: unix.EPERM, trap: unix.SYS_MQ_UNLINK},
	{name: "another's priority", own: unix.ESRCH, shared: unix.EPERM, trap: unix.SYS_SETPRIORITY, b: 1 << 30, c: 19},
}

// TestInAProcessOfItsOwn is that process, where the variable says so.
func TestInAProcessOfItsOwn(t *testing.T) {
	var s seccomp.Shares
	if err := json.Unmarshal([]byte(os.Getenv(filtered)), &s); err != nil {
		t.Skip("it is one only when another test starts it")
	}
	other := make(chan struct{})
	go func() { // a thread that is there before
		runtime.LockOSThread()
		<-other
	}()
	runtime.LockOSThread()
	program, err := seccomp.Filter(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	if err := filter(&protocol.Setup{Filter: program}, nil); err != nil {
		t.Fatal(err)
	}
	close(other)
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil || len(threads) < 2 {
		t.Fatal(len(threads), err)
	}
	for _, thread := range threads {
		if err := verifyThread("/proc/self/task/"+thread.Name()+"/status", map[string]string{"Seccomp": "2"}); err != nil {
			t.Fatal(err)
		}
	}
	for _, a := range attempts {
		fd, _, errno := unix.RawSyscall(a.trap, a.a, a.b, a.c)
		if errno == 0 && a.closesFD {
			_ = unix.Close(int(fd))
		}
		fmt.Printf("%s: %d\n", a.name, errno)
	}
	if os.Getenv(filtered+"_X32") != "" {
		_, _, errno := unix.RawSyscall(0x40000000|unix.SYS_GETPID, 0, 0, 0)
		t.Fatalf("a call of x32 gave %v", errno)
	}
}

func inAProcessOfItsOwn(t *testing.T, s seccomp.Shares, more ...string) (string, error) {
	t.Helper()
	value, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestInAProcessOfItsOwn$")
	cmd.Env = append(append(os.Environ(), filtered+"="+string(value)), more...)
	output, err := cmd.CombinedOutput()
	return string(output), err
}

func TestWhatAFilteredProcessCanDo(t *testing.T) {
	for name, c := range map[string]struct {
		shares seccomp.Shares
		want   func(attempt) syscall.Errno
	}{
		"namespaces of its own": {seccomp.Shares{}, func(a attempt) syscall.Errno { return a.own }},
		"the host's":            {seccomp.Shares{Namespaces: true, UID: true}, func(a attempt) syscall.Errno { return a.shared }},
	} {
		output, err := inAProcessOfItsOwn(t, c.shares)
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, output)
		}
		for _, a := range attempts {
			if want := fmt.Sprintf("%s: %d\n", a.name, c.want(a)); !strings.Contains(output, want) {
				t.Errorf("%s: want %q in:\n%s", name, want, output)
			}
		}
	}
}

func TestACallOfAnotherTableKills(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("only x86-64 has another table that is not another architecture")
	}
	output, err := inAProcessOfItsOwn(t, seccomp.Shares{}, filtered+"_X32=1")
	var ended *exec.ExitError
	if !errors.As(err, &ended) {
		t.Fatalf("got %v\n%s", err, output)
	}
	if status, ok := ended.Sys().(syscall.WaitStatus); !ok || status.Signal() != unix.SIGSYS {
		t.Errorf("got %v\n%s", err, output)
	}
}

func TestWithoutAFilterThereIsNoBox(t *testing.T) {
	for name, program := range map[string][]byte{
		"none":                        nil,
		"half an instruction":         make([]byte, 12),
		"too many":                    make([]byte, 8*(unix.BPF_MAXINSNS+1)),
		"one that the kernel refuses": make([]byte, 8),
	} {
		if err := filter(&protocol.Setup{Filter: program}, nil); err == nil {
			t.Errorf("%s: it was installed", name)
		}
	}
}
