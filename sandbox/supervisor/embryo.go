package supervisor

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"envapi/sandbox/forks"
	"envapi/sandbox/protocol"
	"envapi/sandbox/rawclone"
)

// Namespaces says who the init of a box with namespaces of its own is.
type Namespaces struct {
	Inside     int  // the one uid and gid that exist there
	UID, GID   int  // what they are on the host
	DropGroups bool // whether the service may drop its supplementary groups
}

// namespaceFlags are all that there are but time.
const namespaceFlags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
	unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// stageCapabilities are those that the init's stages need and drop: to mount, to
// bring up the loopback interface, to take its uid, to empty the bounding set, to
// bound its user namespace.
var stageCapabilities = [...]uintptr{
	unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETGID, unix.CAP_SETUID, unix.CAP_SETPCAP, unix.CAP_SYS_RESOURCE,
}

// embryo is a process from its first moment until it executes the init. It
// shares the service's memory (package rawclone): the fork that package os makes
// for new user namespaces copies the page tables of all of the service's memory
// and takes longer than everything else that makes a box.
type embryo struct {
	// What it needs.
	files        [protocol.BinaryFD + 1]int // by the number that each gets
	life         [2]int                     // a pipe that its end or exec closes
	namespaces   bool
	capabilities [2]unix.CapUserData
	path         *byte
	argv, envp   [2]*byte

	// What it leaves where it fails.
	errno syscall.Errno
	step  embryoStep

	header unix.CapUserHeader
	stack  rawclone.Stack
}

// embryoStep is what an embryo does.
type embryoStep int

const (
	stepCapabilities embryoStep = iota
	stepFiles
	stepExecute
)

var embryoSteps = [...]string{"take its capabilities", "place its descriptors", "execute it"}

func newEmbryo(files [protocol.BinaryFD + 1]int, namespaces bool) (*embryo, error) {
	path, err := syscall.BytePtrFromString(fmt.Sprintf("/proc/self/fd/%d", protocol.BinaryFD))
	if err != nil {
		return nil, err
	}
	name, err := syscall.BytePtrFromString("envapi-init")
	if err != nil {
		return nil, err
	}
	e := &embryo{
		files: files, namespaces: namespaces, path: path, argv: [2]*byte{name},
		header: unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3},
	}
	for _, c := range stageCapabilities {
		set := &e.capabilities[c/32]
		set.Effective |= 1 << (c % 32)
		set.Permitted, set.Inheritable = set.Effective, set.Effective
	}
	return e, nil
}

// grow makes the process and returns its pid when it has executed the init. It
// runs on the launcher's thread.
func (e *embryo) grow() (pid int, err error) {
	if err := unix.Pipe2(e.life[:], unix.O_CLOEXEC); err != nil {
		return 0, os.NewSyscallError("pipe2", err)
	}
	defer unix.Close(e.life[0])
	grown := forks.Begin()
	defer grown()
	var flags uintptr
	if e.namespaces {
		flags = namespaceFlags
	}
	before := rawclone.BlockSignals()
	pid = rawclone.Start(flags, &e.stack, rawclone.EntryOf(live), unsafe.Pointer(e))
	rawclone.RestoreSignals(before)
	_ = unix.Close(e.life[1])
	if pid < 0 {
		return 0, fmt.Errorf("cannot make its process: %w", syscall.Errno(-pid))
	}
	if err = awaitEnd(e.life[0]); err != nil {
		_ = unix.Kill(pid, unix.SIGKILL)
		_ = awaitEnd(e.life[0])
	}
	runtime.KeepAlive(e)
	if err == nil && e.errno != 0 {
		err = fmt.Errorf("cannot %s: %w", embryoSteps[e.step], e.errno)
	}
	if err != nil {
		_, _ = syscall.Wait4(pid, nil, 0, nil)
		return 0, err
	}
	return pid, nil
}

// awaitEnd returns when the other end of a pipe is closed, or with an error when
// that takes too long.
func awaitEnd(fd int) error {
	poll := []unix.PollFd{{Fd: int32(fd)}} //nolint:gosec // a descriptor
	for {
		n, err := unix.Poll(poll, int(setupPatience.Milliseconds()))
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return os.NewSyscallError("poll", err)
		case n == 0:
			return errors.New("cannot wait any longer for it to execute")
		default:
			return nil
		}
	}
}

// mapTo gives the process of a new user namespace its one uid and gid.
func (n *Namespaces) mapTo(pid int) error {
	files := []struct{ name, content string }{
		{"setgroups", "deny"}, // else an ordinary user may not map a gid
		{"gid_map", fmt.Sprintf("%d %d 1", n.Inside, n.GID)},
		{"uid_map", fmt.Sprintf("%d %d 1", n.Inside, n.UID)},
	}
	if n.DropGroups {
		files = files[1:]
	}
	for _, f := range files {
		write := func() error { return os.WriteFile(fmt.Sprintf("/proc/%d/%s", pid, f.name), []byte(f.content), 0) }
		if err := onceOwn(mapPatience, write); err != nil {
			return fmt.Errorf("cannot map the uid of a box: %w", err)
		}
	}
	return nil
}

const (
	// mapPatience is how long the files of a process that executes may be root's.
	mapPatience = 5 * time.Second
	mapPause    = time.Millisecond
)

// onceOwn writes a file of a process that was just seen to execute, once it may. The
// kernel closes what exec closes before it makes the process dumpable (begin_new_exec
// in fs/exec.c), and until then its files belong to root, as the service may not.
func onceOwn(most time.Duration, write func() error) error {
	for until := time.Now().Add(most); ; time.Sleep(mapPause) {
		if err := write(); !errors.Is(err, unix.EACCES) || time.Now().After(until) {
			return err
		}
	}
}

// live is the embryo; it never returns.
//
//go:nosplit
//go:norace
func live(e *embryo) {
	for sig := uintptr(1); sig <= rawclone.LastSignal; sig++ {
		_ = rawclone.DefaultSignal(sig) // no handler of the service's may run here
	}
	if e.namespaces {
		// With the end of the service's thread it ends, and all below it. As
		// its uid changes the init sets this again.
		syscall.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0)
		e.keepCapabilities()
	}
	syscall.RawSyscall(unix.SYS_SETSID, 0, 0, 0)
	e.placeFiles()
	rawclone.UnblockAll()
	_, _, errno := syscall.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(e.path)),
		uintptr(unsafe.Pointer(&e.argv)), uintptr(unsafe.Pointer(&e.envp)))
	e.must(stepExecute, errno)
	rawclone.Exit(1)
}

// must ends the process unless a step succeeded.
//
//go:nosplit
//go:norace
func (e *embryo) must(step embryoStep, errno syscall.Errno) {
	if errno != 0 {
		e.step, e.errno = step, errno
		rawclone.Exit(1)
	}
}

// keepCapabilities makes ambient what the stages need, so that it stays when the
// init is executed; the rest of what a new user namespace gives goes then.
//
//go:nosplit
//go:norace
func (e *embryo) keepCapabilities() {
	_, _, errno := syscall.RawSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&e.header)), uintptr(unsafe.Pointer(&e.capabilities)), 0)
	e.must(stepCapabilities, errno)
	for i := range stageCapabilities {
		_, _, errno = syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, stageCapabilities[i], 0, 0, 0)
		e.must(stepCapabilities, errno)
	}
}

// aside is above every number that a descriptor is moved to.
const aside = 16

// placeFiles gives the descriptors their numbers. All are first moved aside, so
// that none is overwritten before it was moved itself.
//
//go:nosplit
//go:norace
func (e *embryo) placeFiles() {
	for i := range e.files {
		fd, _, errno := syscall.RawSyscall(unix.SYS_FCNTL, uintptr(e.files[i]), unix.F_DUPFD_CLOEXEC, aside)
		e.must(stepFiles, errno)
		e.files[i] = int(fd)
	}
	_, _, errno := syscall.RawSyscall(unix.SYS_FCNTL, uintptr(e.life[1]), unix.F_DUPFD_CLOEXEC, aside)
	e.must(stepFiles, errno)
	for i := range e.files {
		_, _, errno = syscall.RawSyscall(unix.SYS_DUP3, uintptr(e.files[i]), uintptr(i), 0)
		e.must(stepFiles, errno)
	}
}
