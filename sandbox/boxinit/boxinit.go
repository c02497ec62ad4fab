// Package boxinit is the init of one box: the only program of envapi that runs
// inside, the parent of all commands there, and what locks them down.
//
// Who starts it: package supervisor, as cmd/envapi-init from a sealed memfd,
// with an empty environment, in new namespaces where the tier has them. With
// what: the descriptors of package protocol. When it ends: when the supervisor
// closes the socket or dies, after killing everything that it started; in a
// pid namespace the kernel makes sure of it.
//
// Privileges, Landlock and seccomp belong to a thread, and Go has many. So one
// goroutine is locked to its thread for good, performs every stage, and starts
// every command; other threads only read, signal and wait, and hold no
// privilege either. The first thread does nothing.
//
// Not protected: a command may kill its own reaper, and with it itself.
package boxinit

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"envapi/sandbox/protocol"
	"envapi/sandbox/rawclone"
)

// Main is the init. It returns its exit code.
//
// The first thread stays out of Landlock: by it the kernel judges who may signal
// the process, so that what commands kill by pid or with -1 is never the init.
func Main() int {
	nameThread()
	return apart(run)
}

// apart runs do on a thread of its own that is not the first.
func apart(do func() int) int {
	runtime.LockOSThread() // for good: do restricts this thread
	if unix.Gettid() != unix.Getpid() {
		nameThread()
		return do()
	}
	code := make(chan int)
	go func() { code <- apart(do) }()
	return <-code
}

func run() int {
	s, err := newServer()
	if err != nil {
		return 1
	}
	request, fds, err := protocol.ReadRequest(protocol.ControlFD)
	if err != nil || request.Setup == nil {
		return 1
	}
	if failed := runStages(request.Setup, fds); failed != nil {
		s.send(protocol.Report{Failed: failed})
		return 1
	}
	s.setup = request.Setup
	go s.watchChildren()
	s.send(protocol.Report{Ready: &protocol.Ready{}})
	s.serve()
	if !s.killAll() {
		return 1
	}
	return 0
}

func newServer() (*server, error) {
	unix.CloseOnExec(protocol.ControlFD)
	s := &server{
		commands: map[uint64]*command{}, pids: map[int]*command{}, born: make(chan struct{}, 1),
		waits: map[uint64]context.CancelFunc{}, slow: make(chan struct{}, maxStuck),
	}
	if err := unix.Close(protocol.BinaryFD); err != nil {
		return nil, fmt.Errorf("cannot close the program's descriptor: %w", err)
	}
	return s, defaultSignals()
}

// perThreadCall is the signal by which the Go runtime reaches all its threads
// for syscall.AllThreadsSyscall (SIGRTMIN+1, runtime/os_linux.go).
const perThreadCall = 33

// defaultSignals gives every signal its default action, which the kernel does
// not perform on the first process of a pid namespace: commands, which are of
// the init's uid, cannot end or stop it. Left to the Go runtime is what it sends
// to itself. It takes the system call, since package os/signal takes
// milliseconds for all of them.
func defaultSignals() error {
	for sig := uintptr(1); sig <= rawclone.LastSignal; sig++ {
		switch syscall.Signal(sig) {
		case unix.SIGKILL, unix.SIGSTOP, unix.SIGURG, perThreadCall:
			continue
		}
		if errno := rawclone.DefaultSignal(sig); errno != 0 {
			return fmt.Errorf("cannot give signal %d its default action: %w", sig, errno)
		}
	}
	return nil
}

// server is the init's state while it serves.
type server struct {
	setup *protocol.Setup
	born  chan struct{} // there is a child to wait for

	mu       sync.Mutex // also orders what is sent: a command's reports stay in turn
	commands map[uint64]*command
	pids     map[int]*command // by reaper, and by leader where the reaper was killed
	noted    map[int]*command // by reaper, also those that have ended, while a list is made; else nil
	waits    map[uint64]context.CancelFunc
	sending  sync.Mutex
	slow     chan struct{} // what may be stuck (patience.go)
}

// command is one command that has processes.
type command struct {
	id     uint64
	plan   *plan         // the memory that its reaper lives in
	reaper int           // 0 once it has ended
	leader int           // 0 unless the reaper was killed and the leader is left to us
	gone   chan struct{} // closed when no process is left

	old   map[int]uint64  // what was there at the last mark (fresh.go)
	came  map[int]arrival // since when
	marks uint64          // how many there were, and one
}
