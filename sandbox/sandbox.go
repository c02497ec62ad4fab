package sandbox

import (
	"context"
	"errors"
	"io"
	"time"
)

// Tier is a strength of containment.
type Tier string

// The tiers, weakest first.
const (
	TierDirectory Tier = "directory"
	TierUser      Tier = "user"
	TierNamespace Tier = "namespace"
)

// Tiers lists the tiers, weakest first.
var Tiers = []Tier{TierDirectory, TierUser, TierNamespace}

// Host makes boxes of one tier on this machine.
type Host interface {
	// Tier is the tier of every box.
	Tier() Tier
	// Report says what the probes found; it holds nothing secret.
	Report() Report
	// NeedsUID says whether Spec.UID must be a host uid of the environment's
	// own.
	NeedsUID() bool
	// WorkspacePath gives the path at which commands see a workspace that is
	// at path on the host.
	WorkspacePath(path string) string
	// Open makes a box and returns when commands can be started in it.
	Open(ctx context.Context, spec Spec) (Box, error)
	// Close ends every box.
	Close() error
}

// Report says which tiers this host can have and what the active one holds.
type Report struct {
	Tier          Tier         `json:"tier" doc:"What contains commands."`
	Tiers         []TierReport `json:"tiers" doc:"Every tier that exists, weakest first, as probed on this host."`
	Controls      []Control    `json:"controls" doc:"What the active tier holds, control by control."`
	SingleAccount bool         `json:"single_account" doc:"Whether the tier cannot keep accounts apart, so that only one is served."`
}

// TierReport is what the probe of one tier found.
type TierReport struct {
	Tier      Tier   `json:"tier" doc:"The tier."`
	Available bool   `json:"available" doc:"Whether this host can have it."`
	Reason    string `json:"reason,omitempty" doc:"Why not."`
	Needs     string `json:"needs,omitempty" doc:"What would have to change on this host for it to be available."`
	// Controls are there for an available tier.
	Controls []Control `json:"controls,omitempty" doc:"What it holds here, control by control, where it is available."`
}

// Control is one thing that a tier holds, or does not and why. What a program in
// the probe's box can see of it was looked at there.
type Control struct {
	Name     string `json:"name" doc:"What it is called in the documentation of the sandbox."`
	Enforced bool   `json:"enforced" doc:"Whether it is in force."`
	Detail   string `json:"detail,omitempty" doc:"How, or why not."`
}

// Spec is what a box is made of.
type Spec struct {
	ID        string // names the box in logs
	Workspace string // the folder on the host
	UID       int    // the host uid and gid of its processes, where NeedsUID
	Account   string // whose it is: what the boxes of an account use is weighed together against what others do
	Limits    Limits // what its processes may use together
}

// Limits bound what all processes of a box use together. Which of them this host
// enforces, and how, is in the report.
type Limits struct {
	Processes   int   // at one time; at least 1
	MemoryBytes int64 // with the files of /tmp and /dev/shm where those are in memory; 0: no limit
	CPUPercent  int   // of one core; 0: no limit, only a fair share
	FileBytes   int64 // the length of the longest file; 0: no limit
}

// Usage is what the processes of a box use now.
type Usage struct {
	Processes   int
	MemoryBytes *int64 // nil where this host does not count it
}

// Box is the containment of one environment. Its methods may be called from
// many goroutines.
type Box interface {
	// Start starts a command. It fails with *StartError where this command
	// cannot be started, with ErrNoTerminal where it was to have one and there
	// is none left, with ErrBoxClosed where the box is gone and the
	// command was not started, with ErrStartUnknown where the box went away so
	// that nobody knows.
	Start(ctx context.Context, c Command) (Process, error)
	// OpenShell starts a shell and returns when it takes commands; an interactive
	// one, when it was started. It fails as Start does.
	OpenShell(ctx context.Context, spec ShellSpec) (Shell, error)
	// Usage says what the processes that live in the box use.
	Usage(ctx context.Context) (Usage, error)
	// Processes lists the processes that live in the box, in the order of their pids.
	// It takes a fifth of a second, in which their use of the processors is measured.
	Processes(ctx context.Context) ([]ProcessInfo, error)
	// SignalProcess sends a signal, by name without SIG, to a process of the box, with
	// tree also to what descends from it, and says how many it reached. That the process
	// is of the box and the one that is meant is checked by the kernel's own tie, on the
	// descriptor that is then signalled. KILL returns when what it reached has ended. It
	// fails with ErrNoProcess, ErrProcessReplaced or ErrBoxClosed.
	SignalProcess(ctx context.Context, ref ProcessRef, signal string, tree bool) (reached int, err error)
	// WaitProcess waits for the end of a process of the box, until ctx ends. One that
	// was there and ends with the box has ended, and no more is known. Also where ctx
	// has ended already it looks once, and tells of a process that is not there or has
	// ended. It fails as SignalProcess does, with ErrTooManyWaits, and with ctx's error.
	WaitProcess(ctx context.Context, ref ProcessRef) (ProcessEnd, error)
	// Temporary is where on the host's disk its commands have their temporary
	// files, which end with it; "" where those are in memory.
	Temporary() string
	// Done is closed when the box is gone and with it every process in it.
	Done() <-chan struct{}
	// Close kills everything in the box and returns when it is gone.
	Close() error
}

// Command is what to run. Exactly one of Script and Argv is set.
type Command struct {
	ID     string   // what ProcessInfo.Of calls it; nothing in the box sees it
	Script string   // for bash -c; of any length
	Argv   []string // a program, looked up in PATH, and its arguments
	Env    map[string]string
	Dir    string // as seen inside; empty means the workspace
	// Stdin is read until its end or the command's; nil is empty.
	Stdin io.Reader
	// Input keeps standard input open after Stdin, for Process.Input.
	Input bool
	// Terminal, where not nil, gives the command a terminal of its own of this
	// size, as standard input, output and error: Stdout receives what is written
	// to it, echo included, and Stderr nothing. Stdin must be nil.
	Terminal *Size
	// Stdout and Stderr receive the output, each from one goroutine. A nil
	// Stderr means that it goes where Stdout goes. They must not block.
	Stdout, Stderr io.Writer
}

// Process is a started command and every process that descends from it.
type Process interface {
	// Done is closed when the command has ended, which is when its leader was
	// waited for or the box is gone, and what was written until then has been
	// given to Stdout and Stderr. Children may still live and write.
	Done() <-chan struct{}
	// Result says how it ended; valid after Done.
	Result() Result
	// Signal sends a signal, by name without SIG, to every process of the
	// tree. On an ended command it does nothing.
	Signal(ctx context.Context, name string) error
	// Kill ends every process of the tree and returns when none is left.
	Kill(ctx context.Context) error
	// Quiet is closed when no process can write to Stdout or Stderr any more.
	Quiet() <-chan struct{}
	// Input is the way to its standard input: nil unless that was kept open or is
	// a terminal.
	Input() Input
	// Terminal is its terminal, nil where it has none.
	Terminal() Terminal
}

// Result is how a command ended.
type Result struct {
	ExitCode int    // where Signal is empty and Lost is false
	Signal   string // the name, without SIG, of the signal that ended it
	Lost     bool   // the box went away first; nothing is known
	// OutOfMemory says that the kernel killed a process of the command for want
	// of memory, before its leader ended.
	OutOfMemory bool
	// Used is what it used until its leader ended.
	Used Used
	// Shell is there for a command of a shell.
	Shell *ShellState
}

// Used is what a command used. What is not known is nil: nobody counts it here,
// or what the command used cannot be told from what others did.
type Used struct {
	// CPU and PeakMemoryBytes are those of all its processes together where this
	// host counts that, else of the leader and of the children that it waited for.
	CPU             *time.Duration
	PeakMemoryBytes *int64
	// Processes is how many processes and threads of it there were at one time,
	// at most, as the kernel counts them: a zombie is one until it was waited for.
	Processes *int64
}

// StartError says why a command cannot be started. It was not.
type StartError struct {
	Dir bool  // the directory to start in is at fault
	Err error // the system's reason
}

func (e *StartError) Error() string { return "cannot start the command: " + e.Err.Error() }

// Unwrap gives the system's reason.
func (e *StartError) Unwrap() error { return e.Err }

// ErrBoxClosed is what a box answers that is gone.
var ErrBoxClosed = errors.New("the box is closed")

// ErrStartUnknown says that a box went away after it was told to start a
// command and before it answered. Whatever was started is gone with the box.
var ErrStartUnknown = errors.New("the box is closed, and it is not known whether the command was started")
