package sandbox

import (
	"errors"
	"time"
)

// ProcessState is what a process does.
type ProcessState string

// The states, of those that the kernel tells apart.
const (
	ProcessRunning  ProcessState = "running"  // on a processor, or waiting for one
	ProcessSleeping ProcessState = "sleeping" // waiting for something, and a signal ends that
	ProcessBlocked  ProcessState = "blocked"  // waiting for a disk or the like, and no signal ends that
	ProcessStopped  ProcessState = "stopped"  // by a signal, or traced
	ProcessZombie   ProcessState = "zombie"   // it has ended, and its parent has not waited for it
)

// ProcessInfo is a process that lives in a box, as it was seen. Everything of it is
// the box's own word, which nobody outside may rely on.
type ProcessInfo struct {
	PID, PPID int // as seen inside
	// StartedAt is the same each time, to the last bit, as long as the process lives.
	StartedAt   time.Time
	State       ProcessState
	Command     string // its arguments with spaces between them, cut; where it hides those its name in brackets
	CPU         time.Duration
	CPUPercent  float64 // of one core, just before it was seen
	MemoryBytes int64   // resident
	Threads     int
	// Of is the ID of the command or shell that it descends from, also long after that
	// has ended; "" where it is not known.
	Of string
	// Current says, where Of is a shell, that the process was not there before the
	// command that runs in the shell now, or ran last. Bash itself always was.
	Current bool
	Listens []Listener
}

// Listener is a port that a process accepts connections or datagrams at, in the box's
// own network.
type Listener struct {
	Protocol string // tcp, tcp6, udp or udp6
	Address  string // without the port
	Port     int
}

// ProcessRef names a process of a box.
type ProcessRef struct {
	PID int // as seen inside
	// StartedAt, where it is not zero, is what the process must have: another one that
	// has the pid now is not meant.
	StartedAt time.Time
}

// ProcessEnd is how a process ended.
type ProcessEnd struct {
	Known    bool   // whether the rest is; else this host does not tell
	ExitCode int    // where Signal is empty
	Signal   string // the name, without SIG, of the signal that ended it
}

var (
	// ErrNoProcess says that no process of the box has the pid: not one of its
	// commands, nor of what they have started.
	ErrNoProcess = errors.New("no process of the box has this pid")
	// ErrProcessReplaced says that another process has the pid now.
	ErrProcessReplaced = errors.New("another process has this pid now")
	// ErrTooManyWaits says that as many wait for processes of the box as can.
	ErrTooManyWaits = errors.New("as many wait for processes of this box as can")
)
