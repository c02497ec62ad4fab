// Package protocol is what a supervisor and the init of one of its boxes say
// to each other, over one stream socket that only the two of them hold.
//
//	supervisor                                   init
//	    │  exec, descriptors 0–4 (see below)       │
//	    │ ───────────────────────────────────────▶ │
//	    │  Request{Setup}          [mount trees]   │
//	    │ ───────────────────────────────────────▶ │  stages, in order
//	    │        Report{Ready} or Report{Failed}   │
//	    │ ◀─────────────────────────────────────── │  Failed: init ends
//	    │  Request{Spawn{ID}}    [status, stdio …] │
//	    │ ───────────────────────────────────────▶ │  start reaper  ┐
//	    │  or Report{Refused{ID}}                  │                │ reaper
//	    │ ◀─────────────────────────────────────── │                ┤
//	    │              Status{Started} or {Failed} │  start leader  │
//	    │ ◀────────────────────────────────────────┼─ status pipe ─ ┤
//	    │                            Status{Ended} │  leader was    │
//	    │ ◀────────────────────────────────────────┼─ waited for ── ┤
//	    │                              end of file │  no process of │
//	    │ ◀────────────────────────────────────────┼─ it is left ── ┘
//	    │  Request{Signal{Seq, ID}}                │
//	    │ ───────────────────────────────────────▶ │
//	    │                    Report{Signaled{Seq}} │  KILL: tree is gone
//	    │ ◀─────────────────────────────────────── │
//	    │  Request{Count{Seq}} / Report{Counted}   │
//	    │  Request{Mark{Seq, ID}} / Report{Marked} │
//	    │  Request{List{Seq}}      [file of 4 MiB] │
//	    │ ───────────────────────────────────────▶ │  two looks at /proc
//	    │    Report{Listed}   the file has Listing │
//	    │ ◀─────────────────────────────────────── │
//	    │  Request{Strike{Seq}} / Report{Signaled} │  one process, or a tree
//	    │  Request{Wait{Seq, End}} / Report{Found} │
//	    │                      Report{Waited{End}} │  it has ended, or
//	    │ ◀─────────────────────────────────────── │  Request{Cancel{End}}
//	    │  end of file                             │
//	    │ ───────────────────────────────────────▶ │  kill all, end
//
// Every command has a status pipe, on which its reaper speaks (status.go). When
// the reaper has ended, the init says Report{Gone{ID}}. If the command killed its
// reaper, the init says in its place, before that, how the leader ended:
// Report{Ended{ID}}, which the reaper may just have said too.
//
// A frame is an 8-byte header (length of the body, number of descriptors, both
// uint32, little endian) and a JSON body with exactly one member. Descriptors
// travel with the header, and only towards the init. The supervisor believes
// nothing that an init says beyond the fate of that init's own commands: a
// frame or a listing that is malformed, too large or out of turn ends the box.
//
// Not protected: an init that lies about its own commands deceives only the
// owner of its environment.
package protocol

import "syscall"

// The descriptors of a new init, by number.
const (
	ControlFD = 3 // the socket
	BinaryFD  = 4 // the sealed copy of the init's program; closed at once
)

// Bounds of a frame's body. A request holds at most a command's argv and env,
// which the operations bound to a few MiB as JSON; a report is small.
const (
	MaxRequest = 16 << 20
	MaxReport  = 4 << 10
	// MaxGroups is how many cgroups a leader enters at most.
	MaxGroups = 4
	// MaxFDs is how many descriptors come with one request at most.
	MaxFDs = 6 + MaxGroups
)

// Request is what the supervisor asks; exactly one member is set.
type Request struct {
	Setup  *Setup  `json:"setup,omitempty"`
	Spawn  *Spawn  `json:"spawn,omitempty"`
	Signal *Signal `json:"signal,omitempty"`
	Count  *Count  `json:"count,omitempty"`
	Mark   *Mark   `json:"mark,omitempty"`
	List   *List   `json:"list,omitempty"`
	Strike *Strike `json:"strike,omitempty"`
	Wait   *Wait   `json:"wait,omitempty"`
	Cancel *Cancel `json:"cancel,omitempty"`
}

// Report is what the init says; exactly one member is set.
type Report struct {
	Ready    *Ready    `json:"ready,omitempty"`
	Failed   *Failed   `json:"failed,omitempty"`
	Refused  *Refused  `json:"refused,omitempty"`
	Ended    *Ended    `json:"ended,omitempty"`
	Gone     *Gone     `json:"gone,omitempty"`
	Signaled *Signaled `json:"signaled,omitempty"`
	Counted  *Counted  `json:"counted,omitempty"`
	Marked   *Marked   `json:"marked,omitempty"`
	Listed   *Listed   `json:"listed,omitempty"`
	Found    *Found    `json:"found,omitempty"`
	Waited   *Waited   `json:"waited,omitempty"`
}

// Setup says what the init makes of itself before it serves.
type Setup struct {
	Namespaces bool     `json:"namespaces"` // it is PID 1 of new namespaces, with their capabilities
	ID         int      `json:"id"`         // the uid and gid to take: in namespaces the one that is mapped, else one of the host's; 0: keep
	DropGroups bool     `json:"drop_groups"`
	Hostname   string   `json:"hostname,omitempty"`
	Root       []Entry  `json:"root,omitempty"`     // the file tree, made in order; empty: the host's
	Workspace  string   `json:"workspace"`          // the directory to start commands in
	Landlock   []Access `json:"landlock,omitempty"` // what commands may touch; empty: no Landlock
	Filter     []byte   `json:"filter"`             // the system call filter (seccomp.Filter), an array of sock_filter
	Limits     []Limit  `json:"limits"`
}

// EntryKind says what an Entry of the file tree is.
type EntryKind string

// The kinds of entries.
const (
	EntryDir    EntryKind = "dir"    // a directory of the root's own
	EntryLink   EntryKind = "link"   // a symbolic link to Source
	EntryFile   EntryKind = "file"   // a file with the content Source
	EntryBind   EntryKind = "bind"   // Source of the host, with all below it
	EntryTree   EntryKind = "tree"   // the mount tree that came as descriptor FD
	EntryTmpfs  EntryKind = "tmpfs"  // an empty file system of at most Bytes and Inodes
	EntryProc   EntryKind = "proc"   // the processes of this namespace
	EntryDevpts EntryKind = "devpts" // terminals of the box's own
)

// Entry is one thing in a box's file tree. Its parent comes before it.
type Entry struct {
	Kind     EntryKind `json:"kind"`
	Target   string    `json:"target"` // absolute, clean
	Source   string    `json:"source,omitempty"`
	FD       int       `json:"fd,omitempty"` // index of the descriptor
	Writable bool      `json:"writable,omitempty"`
	Device   bool      `json:"device,omitempty"`   // device nodes work
	NoExec   bool      `json:"no_exec,omitempty"`  // programs cannot be run from it
	Optional bool      `json:"optional,omitempty"` // left out where the host has no Source
	Mode     uint32    `json:"mode,omitempty"`
	Bytes    int64     `json:"bytes,omitempty"`
	Inodes   int64     `json:"inodes,omitempty"`
}

// Access is what commands may do below a path, by Landlock.
type Access struct {
	Path     string `json:"path"`
	Write    bool   `json:"write,omitempty"`
	Optional bool   `json:"optional,omitempty"`
}

// Limit is one resource limit, soft and hard.
type Limit struct {
	Resource int    `json:"resource"` // RLIMIT_…
	Value    uint64 `json:"value"`
}

// Terminals is how many a box may have that has a file system of its own for
// them. The kernel has 3072 for all boxes together (kernel.pty.max without its
// reserve).
const Terminals = 64

// Spawn starts a command. Its descriptors are, in this order: the status pipe;
// standard output and, unless Merge, standard error, both unless Silent; standard
// input if Stdin; the script if Script; its controlling terminal if Terminal; for
// each of Groups a file that whoever writes "0" to it enters the cgroup of.
type Spawn struct {
	ID     uint64   `json:"id"`
	Argv   []string `json:"argv"`
	Env    []string `json:"env"`
	Path   string   `json:"path"` // where to look for Argv[0]
	Dir    string   `json:"dir"`  // absolute, or below the workspace
	Merge  bool     `json:"merge,omitempty"`
	Stdin  bool     `json:"stdin,omitempty"`
	Script bool     `json:"script,omitempty"` // becomes ScriptFD of the leader
	// Terminal makes the leader the one that controls a terminal.
	Terminal bool `json:"terminal,omitempty"`
	// Silent makes standard output and error the init's own /dev/null, in place
	// of descriptors.
	Silent bool `json:"silent,omitempty"`
	Groups int  `json:"groups,omitempty"` // how many cgroups the leader enters
}

// ScriptFD is where a leader finds a script that is too long for an argument.
const ScriptFD = 3

// FDs is how many descriptors come with the spawn.
func (s *Spawn) FDs() int {
	n := 1
	for _, has := range []bool{!s.Silent, !s.Silent && !s.Merge, s.Stdin, s.Script, s.Terminal} {
		if has {
			n++
		}
	}
	return n + min(max(s.Groups, 0), MaxGroups)
}

// Signal sends a signal to every process of a command, or to those that the next
// members name. KILL is answered when none of them is left.
type Signal struct {
	Seq    uint64         `json:"seq"`
	ID     uint64         `json:"id"`
	Signal syscall.Signal `json:"signal"`
	// Fresh spares the leader, what was there at the last Mark or began before
	// Since, and what descends from that.
	Fresh bool `json:"fresh,omitempty"`
	// Since is a time in ticks since the host began, as /proc/PID/stat has it.
	Since uint64 `json:"since,omitempty"`
	// Interrupt, with Fresh and KILL, stops the leader before the others are
	// killed, so that it does not go on without them, and then interrupts it.
	Interrupt bool `json:"interrupt,omitempty"`
	// Leader is for the leader alone; a KILL of it is answered at once.
	Leader bool `json:"leader,omitempty"`
}

// Mark notes the processes that a command has now, for Signal.Fresh.
type Mark struct {
	Seq uint64 `json:"seq"`
	ID  uint64 `json:"id"`
}

// Count asks for the number of processes in the box.
type Count struct {
	Seq uint64 `json:"seq"`
}

// Ready says that every stage is done.
type Ready struct{}

// Failed says which stage could not be done; the init ends.
type Failed struct {
	Stage   string        `json:"stage"`
	Errno   syscall.Errno `json:"errno"`
	Message string        `json:"message"`
}

// Refused says that a command was not started, and why.
type Refused struct {
	ID    uint64        `json:"id"`
	Dir   bool          `json:"dir,omitempty"` // its directory is at fault
	Errno syscall.Errno `json:"errno"`
}

// Ended says that the leader of a command without a reaper was waited for.
type Ended struct {
	ID              uint64 `json:"id"`
	WaitStatus      uint32 `json:"wait_status"`
	CPUMicroseconds int64  `json:"cpu_us"`
	PeakMemoryBytes int64  `json:"peak_memory_bytes"`
}

// Gone says that a command that was started has no reaper any more, and that its
// leader has ended. It is the last that is said of it.
type Gone struct {
	ID uint64 `json:"id"`
}

// Signaled answers a Signal or a Strike.
type Signaled struct {
	Seq     uint64        `json:"seq"`
	Errno   syscall.Errno `json:"errno"`
	Reached int           `json:"reached"` // how many processes got it; of a Signal only if it is not KILL
}

// Marked answers a Mark.
type Marked struct {
	Seq   uint64        `json:"seq"`
	Errno syscall.Errno `json:"errno"`
	Alone bool          `json:"alone"` // the leader is the only process
}

// Counted answers a Count.
type Counted struct {
	Seq       uint64        `json:"seq"`
	Processes int           `json:"processes"`
	Errno     syscall.Errno `json:"errno"`
}
