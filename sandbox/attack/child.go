package attack

import (
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// call is one system call.
type call struct {
	number uintptr
	args   [6]uintptr
	legacy bool // by the 32-bit architecture's way in
}

// calls are made one after the other, up to the first that fails.
type calls []call

// verdict is the verdict on calls that must not all succeed. They are made in a
// child, which has one thread only, as what makes namespaces wants it, and dies
// for them where a filter kills.
func (c calls) verdict(what string) string { return tried(c.inChild(signalled), what) }

// death is the end of a child by a signal.
type death syscall.Signal

func (d death) Error() string { return "killed " + unix.SignalName(syscall.Signal(d)) }

// signalled are the flags of a child of which nothing is special.
const signalled = uintptr(unix.SIGCHLD)

// inChild makes the calls in a copy of this process that is made with these
// flags, and gives the errno of the one that failed, or the copy's death.
func (c calls) inChild(flags uintptr) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var first *call
	if len(c) > 0 {
		first = &c[0]
	}
	pid, errno := fork(flags, first, len(c))
	runtime.KeepAlive(c)
	if errno != 0 {
		return errno
	}
	var status syscall.WaitStatus
	for {
		_, err := syscall.Wait4(pid, &status, unix.WALL, nil)
		if err == unix.EINTR { //nolint:errorlint // a system call's own
			continue
		}
		if err != nil {
			return err
		}
		break
	}
	switch {
	case status.Signaled():
		return death(status.Signal())
	case status.ExitStatus() != 0:
		return syscall.Errno(status.ExitStatus())
	default:
		return nil
	}
}

// fork makes the copy, which never returns: of the Go runtime only this thread
// is there, so that nothing in it may grow the stack or be preempted.
//
//go:nosplit
//go:norace
func fork(flags uintptr, first *call, n int) (int, syscall.Errno) {
	pid, _, errno := syscall.RawSyscall6(unix.SYS_CLONE, flags, 0, 0, 0, 0, 0)
	if errno != 0 || pid != 0 {
		return int(pid), errno
	}
	for i := range n {
		c := (*call)(unsafe.Add(unsafe.Pointer(first), uintptr(i)*unsafe.Sizeof(*first)))
		if c.legacy {
			if got := int80(c.number); got < 0 {
				errno = syscall.Errno(-got)
			}
		} else {
			_, _, errno = syscall.RawSyscall6(c.number, c.args[0], c.args[1], c.args[2], c.args[3], c.args[4], c.args[5])
		}
		if errno != 0 {
			break
		}
	}
	for {
		syscall.RawSyscall(unix.SYS_EXIT_GROUP, uintptr(errno), 0, 0)
	}
}
