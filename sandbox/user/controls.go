package user

import (
	"envapi/sandbox"
	"envapi/sandbox/landlock"
	"envapi/sandbox/supervisor"
)

// Controls says what is meant to hold in this tier.
func (h *Host) Controls() []sandbox.Control {
	abi := h.config.Landlock
	controls := []sandbox.Control{
		{Name: "uid", Enforced: true, Detail: "a host uid and gid of the environment's own"},
		{Name: "files", Enforced: true, Detail: "Landlock: the system's programs read-only, the own workspace and temporary folder"},
		{Name: "processes_hidden", Detail: "the host's processes can be listed"},
		{Name: "signals", Enforced: true, Detail: "Landlock scope: only the own box's processes (ABI 6)"},
		{Name: "process_ownership", Enforced: true, Detail: "a process that is signalled must descend from the box's init and have its uid"},
		supervisor.HostIPC(),
		supervisor.HostNetwork(abi),
		supervisor.HostUnixSockets(),
		supervisor.HostTerminals(abi),
		supervisor.HostTemporary(),
	}
	if abi == 0 {
		controls[1].Detail = "by permission alone, since the kernel has no Landlock: what everybody on the host may read can be read"
	}
	if abi < landlock.ABIScopes {
		controls[3].Detail = "by uid: only the environment's own processes, its init among them (Landlock ABI 6 would spare it)"
	}
	controls = append(controls, supervisor.LimitControls(true, h.config.Groups)...)
	return append(controls, supervisor.CommonControls(abi)...)
}
