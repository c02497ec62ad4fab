package boxinit

import (
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"envapi/sandbox/protocol"
	"envapi/sandbox/rawclone"
)

// A command's processes:
//
//	init ── reaper ── leader ── …
//	           └───── orphans of the leader's tree, whatever they did
//
// The reaper is a process of the init's program that never executes anything
// else. As a subreaper (prctl(2)) it keeps the whole tree of its command below
// it, waits for all of it, reports on its status pipe, and ends when nothing is
// left. It blocks every signal; like the init it is not dumpable.
//
// It shares the init's memory, since copying that would be most of what it
// costs; the leader borrows it too, until it executes its program. Package
// rawclone says what that asks of the functions here. What they need is laid
// ready in a plan.

// plan is everything that a reaper and its leader need, and what they leave.
type plan struct {
	parent                                int // the init's pid
	report, stdin, stdout, stderr, script int // script: none if negative
	terminal                              int // likewise
	groups                                []int

	limits          []rlimit
	paths           []*byte // the programs to try, in order
	argv, envp      []*byte // ended by nil
	missing, denied []byte  // what to say where no path could be executed

	reaper int          // its pid
	leader atomic.Int32 // its pid, once it was started
	begun  bool         // whether it came as far as to say so
	failed syscall.Errno

	status protocol.Status
	child  child
	usage  syscall.Rusage
	stacks [2]rawclone.Stack // the reaper's and the leader's

	enterLead rawclone.Entry
}

// rlimit is one resource limit as prlimit64(2) takes it.
type rlimit struct {
	resource uintptr
	values   syscall.Rlimit
}

// startReaper starts a reaper from the calling thread, with every signal
// blocked from its first moment, and gives its pid. The plan must be kept until
// the reaper is gone.
func startReaper(p *plan) (int, syscall.Errno) {
	p.enterLead = rawclone.EntryOf(lead)
	before := rawclone.BlockSignals()
	pid := rawclone.Start(0, &p.stacks[0], rawclone.EntryOf(reap), unsafe.Pointer(p))
	rawclone.RestoreSignals(before)
	if pid < 0 {
		return 0, syscall.Errno(-pid)
	}
	return pid, 0
}

// statusFD is where a reaper has its status pipe: in the place of the init's
// control socket.
const statusFD = protocol.ControlFD

// reap is the reaper; it never returns.
//
//go:nosplit
//go:norace
func reap(p *plan) {
	syscall.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_CHILD_SUBREAPER, 1, 0)
	syscall.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0)
	if parent, _, _ := syscall.RawSyscall(unix.SYS_GETPPID, 0, 0, 0); int(parent) != p.parent {
		rawclone.Exit(1) // the init died before that
	}
	_ = rawclone.DefaultSignal(uintptr(unix.SIGURG)) // no handler may run in a borrowed memory
	_ = rawclone.DefaultSignal(perThreadCall)
	syscall.RawSyscall(unix.SYS_DUP3, uintptr(p.report), statusFD, unix.O_CLOEXEC)
	own, _, _ := syscall.RawSyscall(unix.SYS_GETPID, 0, 0, 0)
	p.reaper = int(own)
	leader := rawclone.Start(unix.CLONE_VFORK, &p.stacks[1], p.enterLead, unsafe.Pointer(p))
	if leader < 0 {
		p.failed = syscall.Errno(-leader)
	}
	if !p.begun {
		report(p, protocol.StatusFailed, uint32(p.failed)) //nolint:gosec // an errno
		rawclone.Exit(0)                                   // a leader that there was is left to the init
	}
	// The leader's output must end when its processes do.
	syscall.RawSyscall(unix.SYS_CLOSE_RANGE, statusFD+1, ^uintptr(0)>>33, 0)
	for {
		// Only a look: if this process is killed between the two, the init finds
		// the leader unwaited for, and with it how it ended.
		_, _, errno := syscall.RawSyscall6(unix.SYS_WAITID, unix.P_ALL, 0, uintptr(unsafe.Pointer(&p.child)),
			unix.WEXITED|unix.WNOWAIT, uintptr(unsafe.Pointer(&p.usage)), 0)
		if errno == unix.ECHILD {
			rawclone.Exit(0)
		}
		if errno != 0 {
			continue
		}
		if !p.child.hasEnded() {
			letGo(&p.child)
			continue
		}
		if int(p.child.pid) == leader {
			p.status.CPUMicroseconds = microseconds(&p.usage)
			p.status.PeakMemoryBytes = peakMemory(&p.usage)
			report(p, protocol.StatusEnded, p.child.waitStatus())
		}
		syscall.RawSyscall6(unix.SYS_WAIT4, uintptr(p.child.pid), 0, 0, 0, 0, 0) //nolint:gosec // a pid
	}
}

// child is siginfo_t as waitid(2) fills it on 64-bit machines.
type child struct {
	_      [2]int32
	code   int32
	_      int32
	pid    int32
	_      uint32
	status int32
	_      [128 - 28]byte
}

// How a child ended, in siginfo_t. Whatever else is said of one is of a stop.
const (
	cldExited = 1
	cldDumped = 3 // between them, 2: by a signal
)

// hasEnded says whether it has. One that has made its parent its tracer
// (PTRACE_TRACEME) is waited for whenever it stops (ptrace(2)).
//
//go:nosplit
//go:norace
func (c *child) hasEnded() bool { return c.code >= cldExited && c.code <= cldDumped }

// letGo has a child that has stopped go on untraced, with the signal that it
// stopped for, as if it had never asked to be traced.
//
//go:nosplit
//go:norace
func letGo(c *child) {
	signal := uintptr(c.status & 0x7f) // below what says of which event
	if syscall.Signal(signal) == unix.SIGTRAP {
		signal = 0 // it came of the tracing
	}
	syscall.RawSyscall6(unix.SYS_PTRACE, unix.PTRACE_DETACH, uintptr(c.pid), 0, signal, 0, 0) //nolint:gosec // a pid
}

// waitStatus is how the child ended, as wait4(2) would have it.
//
//go:nosplit
//go:norace
func (c *child) waitStatus() uint32 {
	switch c.code {
	case cldExited:
		return uint32(c.status&0xff) << 8
	case cldDumped:
		return uint32(c.status&0x7f) | 0x80
	default:
		return uint32(c.status & 0x7f)
	}
}

//go:nosplit
//go:norace
func microseconds(u *syscall.Rusage) int64 {
	return (u.Utime.Sec+u.Stime.Sec)*1_000_000 + u.Utime.Usec + u.Stime.Usec
}

// peakMemory is in bytes; the kernel counts kilobytes (getrusage(2)).
//
//go:nosplit
//go:norace
func peakMemory(u *syscall.Rusage) int64 { return u.Maxrss * 1024 }

//go:nosplit
//go:norace
func report(p *plan, kind protocol.StatusKind, value uint32) {
	p.status.Kind, p.status.Value = kind, value
	syscall.RawSyscall(unix.SYS_WRITE, statusFD, uintptr(unsafe.Pointer(&p.status)), uintptr(protocol.StatusSize))
}

// lead becomes the command's leader; it never returns.
//
//go:nosplit
//go:norace
func lead(p *plan) {
	pid, _, _ := syscall.RawSyscall(unix.SYS_GETPID, 0, 0, 0)
	p.leader.Store(int32(pid)) //nolint:gosec // a pid
	p.failed = unix.ECHILD     // unless it comes further: somebody killed it
	syscall.RawSyscall(unix.SYS_SETSID, 0, 0, 0)
	if p.terminal >= 0 {
		if _, _, errno := syscall.RawSyscall(unix.SYS_IOCTL, uintptr(p.terminal), unix.TIOCSCTTY, 0); errno != 0 {
			p.failed = errno
			rawclone.Exit(1)
		}
	}
	// A command that kills its reaper ends with it.
	syscall.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0)
	if parent, _, _ := syscall.RawSyscall(unix.SYS_GETPPID, 0, 0, 0); int(parent) != p.reaper {
		rawclone.Exit(1) // the reaper died before that
	}
	enterGroups(p)
	// Said here and not by the reaper, which a quick program could stop first.
	p.begun = true
	report(p, protocol.StatusStarted, 0)
	syscall.RawSyscall(unix.SYS_DUP3, uintptr(p.stdin), 0, 0)
	syscall.RawSyscall(unix.SYS_DUP3, uintptr(p.stdout), 1, 0)
	syscall.RawSyscall(unix.SYS_DUP3, uintptr(p.stderr), 2, 0)
	first := uintptr(protocol.ScriptFD)
	if p.script >= 0 {
		syscall.RawSyscall(unix.SYS_DUP3, uintptr(p.script), protocol.ScriptFD, 0)
		first++
	}
	// Also what the service's own parent may have left open to it.
	syscall.RawSyscall(unix.SYS_CLOSE_RANGE, first, ^uintptr(0)>>33, 0)
	for i := range p.limits {
		syscall.RawSyscall6(unix.SYS_PRLIMIT64, 0, p.limits[i].resource, uintptr(unsafe.Pointer(&p.limits[i].values)), 0, 0, 0)
	}
	rawclone.UnblockAll()
	execute(p)
}

// zero is what a process writes to enter a cgroup itself.
var zero = [...]byte{'0'}

// enterGroups lets the leader, and with it all that will descend from it, be
// bounded and counted. A leader that cannot be does not go on.
//
//go:nosplit
//go:norace
func enterGroups(p *plan) {
	for i := range p.groups {
		_, _, errno := syscall.RawSyscall(unix.SYS_WRITE, uintptr(p.groups[i]), uintptr(unsafe.Pointer(&zero)), 1)
		if errno != 0 {
			p.failed = errno
			rawclone.Exit(1)
		}
	}
}

// execute tries the paths as execvp(3) does, and otherwise says what a shell
// would say.
//
//go:nosplit
//go:norace
func execute(p *plan) {
	found := false
	for i := range p.paths {
		_, _, errno := syscall.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(p.paths[i])),
			uintptr(unsafe.Pointer(&p.argv[0])), uintptr(unsafe.Pointer(&p.envp[0])))
		if errno != unix.ENOENT && errno != unix.ENOTDIR {
			found = true
		}
	}
	if found {
		syscall.RawSyscall(unix.SYS_WRITE, 2, uintptr(unsafe.Pointer(&p.denied[0])), uintptr(len(p.denied)))
		rawclone.Exit(126)
	}
	syscall.RawSyscall(unix.SYS_WRITE, 2, uintptr(unsafe.Pointer(&p.missing[0])), uintptr(len(p.missing)))
	rawclone.Exit(127)
}
