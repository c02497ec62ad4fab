package supervisor

import (
	"fmt"

	"envapi/sandbox"
	"envapi/sandbox/landlock"
)

// HostNetwork says what holds of the network in the tiers that have the host's.
func HostNetwork(landlockABI int) sandbox.Control {
	c := sandbox.Control{Name: "network", Enforced: true, Detail: "seccomp: no sockets but connected pairs"}
	if landlockABI >= landlock.ABITCP {
		c.Detail += "; Landlock refuses TCP as well"
	}
	return c
}

// HostUnixSockets says what holds of sockets that have paths, in the same tiers.
func HostUnixSockets() sandbox.Control {
	return sandbox.Control{Name: "unix_sockets", Enforced: true, Detail: "seccomp: none, and no pair that could send to one"}
}

// HostTemporary says where temporary files are, in the same tiers.
func HostTemporary() sandbox.Control {
	return sandbox.Control{Name: "tmp", Enforced: true, Detail: "a temporary folder of its own on disk, which counts with the workspace"}
}

// HostIPC says what holds of other communication, in the same tiers.
func HostIPC() sandbox.Control {
	return sandbox.Control{Name: "ipc", Enforced: true, Detail: "seccomp: no System V IPC and no message queues"}
}

// HostTerminals says what holds of terminals, in the same tiers.
func HostTerminals(landlockABI int) sandbox.Control {
	c := sandbox.Control{Name: "terminals", Enforced: landlockABI > 0, Detail: "Landlock: only the own one, which a command is given open; none can be made inside"}
	if !c.Enforced {
		c.Detail = "the kernel has no Landlock: one environment can take all terminals of the host, and open those of its uid"
	}
	return c
}

// CommonControls says what holds in every tier. The disk is not the sandbox's.
func CommonControls(landlockABI int) []sandbox.Control {
	domain := sandbox.Control{Name: "landlock", Enforced: landlockABI > 0, Detail: fmt.Sprintf("ABI %d", landlockABI)}
	if landlockABI == 0 {
		domain.Detail = "the kernel has none"
	}
	return []sandbox.Control{
		domain,
		{Name: "capabilities", Enforced: true, Detail: "none"},
		{Name: "no_new_privs", Enforced: true},
		{Name: "descriptors", Enforced: true, Detail: "only 0, 1 and 2"},
		{Name: "seccomp", Enforced: true, Detail: "a list of what is allowed; another architecture's calls kill"},
	}
}
