package host

import (
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"envapi/sandbox"
	"envapi/sandbox/supervisor"
)

// machine is what of the host decides which tiers it can have.
type machine struct {
	root     bool
	filtered bool // the service itself has a system call filter, as in most containers
	// Settings of the kernel, "" where it has none of that name.
	maxUserNamespaces  string
	unprivilegedClone  string
	appArmorRestricted string
}

// thisHost looks at the host.
func thisHost() machine {
	return machine{
		root:               os.Geteuid() == 0,
		filtered:           ownStatus("Seccomp") == "2",
		maxUserNamespaces:  setting("user/max_user_namespaces"),
		unprivilegedClone:  setting("kernel/unprivileged_userns_clone"),
		appArmorRestricted: setting("kernel/apparmor_restrict_unprivileged_userns"),
	}
}

func setting(name string) string {
	value, err := os.ReadFile("/proc/sys/" + name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(value))
}

// What would have to change, in words that name no path of this host's.
const (
	needOrdinaryUser   = "run the service as an ordinary user"
	needRoot           = "run the service as root"
	needPassable       = "let others pass through the data folder and every folder above it (chmod o+x), or put the data folder where they can"
	needUserNamespaces = "set the sysctl user.max_user_namespaces above 0"
	needClone          = "set the sysctl kernel.unprivileged_userns_clone to 1, or run the service as root"
	needProfile        = "the container's seccomp profile must allow clone and unshare with new namespaces, mount, umount2, pivot_root and the calls beside them (for Docker --security-opt seccomp=PROFILE)"
	needAppArmor       = "an AppArmor profile for this program that allows userns, or the sysctl kernel.apparmor_restrict_unprivileged_userns set to 0, or run the service as root"
	needMounts         = "allow mounts in new user namespaces: an AppArmor or SELinux policy, or the container's, refuses them"
	needProc           = "the container must not mask /proc, or the kernel lets no other be mounted (for Docker --security-opt systempaths=unconfined, for Kubernetes procMount: Unmasked)"
	needUIDs           = "the service's own user namespace, its container's, must have the uids of ENVAPI_UID_RANGE"
	needCapabilities   = "leave the service the capabilities SETUID, SETGID, SETPCAP, CHOWN and KILL"
	needSeccomp        = "a kernel with seccomp filters (CONFIG_SECCOMP_FILTER), and a container that lets programs set one: no tier runs without"
	needKernel         = "Linux 5.12 or later, or a container runtime that lets through the newer system calls for mounts"
	needSystem         = "the system's folders must hold bash and the programs it needs"
	needUnknown        = "what the reason names must be allowed"
)

// needs says what would have to change for a tier that cannot be had.
func needs(name sandbox.Tier, err error, m machine) string {
	var stage *supervisor.StageError
	if errors.As(err, &stage) && stage.Stage == "seccomp" {
		return needSeccomp
	}
	switch name {
	case sandbox.TierDirectory:
		if m.root {
			return needOrdinaryUser
		}
	case sandbox.TierUser:
		return userNeeds(stage, err, m)
	case sandbox.TierNamespace:
		return namespaceNeeds(stage, err, m)
	}
	return needUnknown
}

func userNeeds(stage *supervisor.StageError, err error, m machine) string {
	switch {
	case !m.root:
		return needRoot
	case stage != nil && stage.Stage == "landlock" && stage.Errno == unix.EACCES:
		return needPassable
	case errors.Is(err, unix.EACCES): // a command could not enter the workspace
		return needPassable
	case errors.Is(err, unix.EINVAL): // a uid that is not mapped
		return needUIDs
	case errors.Is(err, unix.EPERM):
		return needCapabilities
	default:
		return needUnknown
	}
}

func namespaceNeeds(stage *supervisor.StageError, err error, m machine) string {
	switch {
	case m.maxUserNamespaces == "0", errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EUSERS):
		return needUserNamespaces
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return refusedNeeds(stage, m)
	case m.root && stage == nil && errors.Is(err, unix.EINVAL): // a uid that is not mapped
		return needUIDs
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EINVAL):
		return needKernel
	case stage == nil && strings.Contains(err.Error(), "cannot run a program"):
		return needSystem
	default:
		return needUnknown
	}
}

// refusedNeeds tells apart where it is refused: already at the making of the
// namespaces, which has no stage, or at what is done in them.
func refusedNeeds(stage *supervisor.StageError, m machine) string {
	switch {
	case stage == nil && m.unprivilegedClone == "0" && !m.root:
		return needClone
	case m.appArmorRestricted == "1" && !m.root:
		return needAppArmor
	case stage != nil && stage.Stage == "root" && strings.HasPrefix(stage.Message, "/proc: "):
		return needProc
	case m.filtered:
		return needProfile
	default:
		return needMounts
	}
}
