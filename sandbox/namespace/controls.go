package namespace

import (
	"fmt"

	"envapi/sandbox"
	"envapi/sandbox/landlock"
	"envapi/sandbox/protocol"
	"envapi/sandbox/supervisor"
)

// Controls says what holds in this tier.
func (h *Host) Controls() []sandbox.Control {
	uid := sandbox.Control{Name: "uid", Enforced: h.NeedsUID(), Detail: "a host uid of the environment's own; 1000 inside"}
	if !uid.Enforced {
		uid.Detail = "the service's own user, with its groups, since the service is not root; 1000 inside"
	}
	controls := []sandbox.Control{
		uid,
		{Name: "files", Enforced: true, Detail: "a file tree of its own: the system's folders read-only, its folder at " + WorkspacePath},
		{Name: "tmp", Enforced: true, Detail: fmt.Sprintf("/tmp of %d MiB and /dev/shm of %d MiB, in memory, /tmp at most half of what it may have", tmpBytes>>20, shmBytes>>20)},
		{Name: "processes_hidden", Enforced: true, Detail: "a pid namespace, with whose init all end"},
		{Name: "signals", Enforced: true, Detail: "only the own box's processes can be named"},
		{Name: "process_ownership", Enforced: true, Detail: "a process is named, signalled and waited for within its pid namespace"},
		{Name: "ipc", Enforced: true, Detail: "an ipc namespace"},
		{Name: "network", Enforced: true, Detail: "an empty network namespace"},
		{Name: "terminals", Enforced: true, Detail: fmt.Sprintf("a file system of terminals of its own, %d at most", protocol.Terminals)},
		{Name: "unix_sockets", Enforced: true, Detail: "only those of its own file tree and network namespace"},
	}
	controls = append(controls, supervisor.LimitControls(true, h.config.Groups)...)
	return append(controls, supervisor.CommonControls(landlock.ABI())...)
}
