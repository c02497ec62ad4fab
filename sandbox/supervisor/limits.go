package supervisor

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"envapi/sandbox"
	"envapi/sandbox/cgroup"
	"envapi/sandbox/protocol"
)

const (
	// maxOpenFiles is how many descriptors a process in a box may have: more
	// than builds and servers use, and far from what would hurt the host.
	maxOpenFiles = 16384
	// maxLocked is how much memory a process may lock: the kernel's own default.
	maxLocked = 8 << 20
	// reserve is how much address space a process may have above the box's
	// memory where no cgroup bounds that: runtimes reserve much more than they
	// use.
	reserve = 16 << 30
	// maxPending is how many signals may wait, and timers exist, in a box, and
	// maxQueued how long its POSIX message queues may be. In a user namespace both
	// count for whoever made it too: a fraction of the kernel's own default, so
	// that one box leaves something to the others and to the host.
	maxPending = 4096
	maxQueued  = 256 << 10
	// ownProcesses is more than the threads of an init, which are of the same
	// uid as the box's processes.
	ownProcesses = 64
	// strangers is what the service's user may have in other containers, and what
	// he starts after a box was made, where all that is his counts.
	strangers = 1024
)

// Limits gives the resource limits of every process in a box: what the kernel
// bounds for each alone, and what groups does not bound for all together. ownUID
// says whether no process outside of the box is of its uid in its user namespace.
func Limits(l sandbox.Limits, ownUID bool, groups *cgroup.Parent) []protocol.Limit {
	limits := []protocol.Limit{
		{Resource: unix.RLIMIT_CORE, Value: 0},
		{Resource: unix.RLIMIT_NOFILE, Value: maxOpenFiles},
		{Resource: unix.RLIMIT_MEMLOCK, Value: maxLocked},
		{Resource: unix.RLIMIT_SIGPENDING, Value: maxPending},
		{Resource: unix.RLIMIT_MSGQUEUE, Value: maxQueued},
	}
	add := func(resource int, value int64) {
		limits = append(limits, protocol.Limit{Resource: resource, Value: uint64(value)}) //nolint:gosec // never negative
	}
	if l.FileBytes > 0 {
		add(unix.RLIMIT_FSIZE, l.FileBytes)
	}
	if l.Processes > 0 {
		if n := processLimit(int64(l.Processes), ownUID, groups); n > 0 {
			add(unix.RLIMIT_NPROC, n)
		}
	}
	if _, ok := groups.Holds(cgroup.Memory); !ok && l.MemoryBytes > 0 {
		add(unix.RLIMIT_DATA, l.MemoryBytes)
		add(unix.RLIMIT_AS, l.MemoryBytes+reserve)
	}
	return limits
}

// processLimit gives the RLIMIT_NPROC of a box that may have so many processes; 0
// is none.
func processLimit(processes int64, ownUID bool, groups *cgroup.Parent) int64 {
	_, bounded := groups.Holds(cgroup.Processes)
	switch {
	case bounded && ownUID:
		// The cgroup is exact. This counts the init and a reaper per command too,
		// and is here for the day that the cgroup is not.
		return 2*processes + ownProcesses
	case ownUID:
		return processes
	case bounded:
		return 0
	default:
		// What all of the user's have counts, also for other boxes. It bounds none
		// of them exactly, and leaves the host to others.
		return int64(tasksOf(os.Getuid())) + 2*processes + ownProcesses + strangers
	}
}

// LimitControls says which limits are in force in a tier, and how.
func LimitControls(ownUID bool, groups *cgroup.Parent) []sandbox.Control {
	return []sandbox.Control{
		memoryControl(groups),
		processesControl(ownUID, groups),
		cpuControl(groups),
		{Name: "file_size", Enforced: true, Detail: "RLIMIT_FSIZE per process, where it is limited"},
		{Name: "open_files", Enforced: true, Detail: fmt.Sprintf("RLIMIT_NOFILE %d per process", maxOpenFiles)},
		{Name: "core_dumps", Enforced: true, Detail: "RLIMIT_CORE 0"},
	}
}

func memoryControl(groups *cgroup.Parent) sandbox.Control {
	how, ok := groups.Holds(cgroup.Memory)
	if ok {
		return sandbox.Control{Name: "memory", Enforced: true, Detail: how + ": all processes of an environment together, with their files in memory"}
	}
	return sandbox.Control{Name: "memory", Detail: "only each process by itself (RLIMIT_DATA, RLIMIT_AS), not what an environment's use together; " + how}
}

func processesControl(ownUID bool, groups *cgroup.Parent) sandbox.Control {
	how, ok := groups.Holds(cgroup.Processes)
	switch {
	case ok:
		return sandbox.Control{Name: "processes", Enforced: true, Detail: how + ": all processes and threads of an environment"}
	case ownUID:
		return sandbox.Control{Name: "processes", Enforced: true, Detail: "RLIMIT_NPROC, counted per environment with its init; " + how}
	default:
		return sandbox.Control{Name: "processes", Detail: "only those of the service's user together (RLIMIT_NPROC), not an environment's; " + how}
	}
}

func cpuControl(groups *cgroup.Parent) sandbox.Control {
	how, ok := groups.Holds(cgroup.CPU)
	if ok {
		how += ": an equal share for every account, and of it for each of its environments, and a quota where it is limited"
	}
	return sandbox.Control{Name: "cpu", Enforced: ok, Detail: how}
}
