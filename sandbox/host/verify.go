package host

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"envapi/sandbox"
	"envapi/sandbox/landlock"
	"envapi/sandbox/proctree"
)

// groupPrefix is how the names of the service's cgroups begin (groups.go).
const groupPrefix = "/envapi-"

// place is a probed tier: what it claims to hold, and what a program in a box of
// it has found.
type place struct {
	tier    sandbox.Tier
	facts   facts
	claimed []sandbox.Control
}

// namespaced says whether boxes have namespaces of their own.
func (p place) namespaced() bool { return p.tier == sandbox.TierNamespace }

// escape says what the program could do that no tier may let it, whose box is
// then none. What it finds beyond that is the controls'.
func (p place) escape() error {
	f := p.facts
	switch {
	case f.last("euid") == "0" || f.last("euid") == "":
		return errors.New("cannot contain a program: commands run as root")
	case f.last("workspace") != "probe":
		return errors.New("cannot run a program: the workspace cannot be written")
	case f.last("temporary") != "works":
		return errors.New("cannot run a program: the temporary folder cannot be written")
	case f.has("kernel"):
		return errors.New("cannot contain a program: the kernel can be configured: " + f.last("kernel"))
	case f.has("system"):
		return errors.New("cannot contain a program: the system's folders can be written: " + f.last("system"))
	case f.has("canary") && p.tier != sandbox.TierDirectory: // there it is a file of the same user's
		return errors.New("cannot contain a program: a file of the service can be read")
	}
	if p.namespaced() {
		return p.shared()
	}
	return nil
}

// shared says which namespace is the service's own, of those that a box should
// have for itself.
func (p place) shared() error {
	for _, kind := range []string{"cgroup", "ipc", "mnt", "net", "pid", "user", "uts"} {
		if !p.ownNamespace(kind) {
			return fmt.Errorf("cannot contain a program: its %s namespace is not its own", kind)
		}
	}
	return nil
}

func (p place) ownNamespace(kind string) bool {
	outside, err := os.Readlink("/proc/self/ns/" + kind)
	inside := p.facts.namespace(kind)
	return err == nil && inside != "" && inside != outside
}

// controls gives what the tier claims, corrected by what was found.
func (p place) controls() []sandbox.Control {
	controls := slices.Clone(p.claimed)
	for i, c := range controls {
		look, ok := looks[c.Name]
		if !ok || !c.Enforced {
			continue
		}
		if found := look(p); found != "" {
			controls[i].Enforced, controls[i].Detail = false, "the probe found that it is not in force: "+found
		}
	}
	return controls
}

// looks say by control what a program found that contradicts it; "" is nothing. A
// control without a line is not visible from inside: what puts it in force fails
// the making of the box where it cannot.
var looks = map[string]func(place) string{
	"uid":              place.lookAtUID,
	"files":            place.lookAtFiles,
	"processes_hidden": place.lookAtProcesses,
	"signals":          place.lookAtSignals,
	"ipc":              func(p place) string { return p.inNamespace("ipc") },
	"network":          place.lookAtNetwork,
	"terminals":        place.lookAtTerminals,
	"landlock":         place.lookAtLandlock,
	"capabilities":     place.lookAtCapabilities,
	"no_new_privs":     func(p place) string { return p.status("NoNewPrivs", "1") },
	"seccomp":          place.lookAtSeccomp,
	"descriptors":      place.lookAtDescriptors,
	"core_dumps":       func(p place) string { return p.limit("core", 0) },
	"open_files":       func(p place) string { return p.limit("files", 16384) },
	"memory":           func(p place) string { return p.lookAtGroup("memory", p.claim("memory")) },
	"cpu":              func(p place) string { return p.lookAtGroup("cpu", p.claim("cpu")) },
	"processes":        place.lookAtProcessLimit,
}

func (p place) claim(name string) sandbox.Control {
	i := slices.IndexFunc(p.claimed, func(c sandbox.Control) bool { return c.Name == name })
	if i < 0 {
		return sandbox.Control{}
	}
	return p.claimed[i]
}

// status compares a line of the program's /proc/self/status.
func (p place) status(name, want string) string {
	if got := p.facts.last("status." + name); got != want {
		return fmt.Sprintf("%s is %q", name, got)
	}
	return ""
}

func (p place) inNamespace(kind string) string {
	if p.namespaced() && !p.ownNamespace(kind) {
		return "the " + kind + " namespace is not its own"
	}
	return ""
}

func (p place) lookAtUID() string {
	uid := strconv.Itoa(ProbeUID(p.tier))
	if p.namespaced() {
		if want := "1000 " + uid + " 1"; p.facts.last("uid_map") != want {
			return fmt.Sprintf("uids are mapped as %q", p.facts["uid_map"])
		}
		return ""
	}
	return p.status("Uid", strings.Join([]string{uid, uid, uid, uid}, "\t"))
}

func (p place) lookAtTerminals() string {
	if p.facts.has("terminal") && !p.namespaced() {
		return "a terminal of the host can be made"
	}
	return ""
}

func (p place) lookAtFiles() string {
	switch {
	case p.facts.has("canary"):
		return "a file of the service can be read"
	case p.facts.has("open_canary") && landlock.ABI() > 0:
		return "a file beside the workspace can be read"
	default:
		return ""
	}
}

func (p place) lookAtProcesses() string {
	if p.facts.last("init") != "1" {
		return "its init is not the first process that it sees"
	}
	return p.inNamespace("pid")
}

// lookAtSignals looks for the service; in a pid namespace its pid is nobody's or
// another's.
func (p place) lookAtSignals() string {
	if !p.namespaced() && p.facts.has("service_signal") {
		return "the service can be signalled"
	}
	return p.inNamespace("pid")
}

// lookAtNetwork: without a network of its own no socket may be had, of either
// kind.
func (p place) lookAtNetwork() string {
	if p.namespaced() {
		for _, name := range p.facts["interface"] {
			if name != "lo" {
				return "there is an interface " + strconv.Quote(name)
			}
		}
		return p.inNamespace("net")
	}
	for _, kind := range []string{"tcp", "udp"} {
		for _, said := range p.facts[kind] {
			if said == "connected" || said == "Connection refused" {
				return kind + " reaches the loopback"
			}
		}
		if !p.facts.has(kind) {
			return kind + " could not be tried"
		}
	}
	return ""
}

// lookAtLandlock: what it forbids and nothing else does. In a file tree of the
// box's own that is only the signal to the init, from ABI 6 on; below, the init
// made no box if it could not restrict itself.
func (p place) lookAtLandlock() string {
	switch {
	case !p.namespaced() && p.facts.has("open_canary"):
		return "a file beside the workspace can be read"
	case landlock.ABI() >= landlock.ABIScopes && p.facts.has("init_signal"):
		return "the init can be signalled"
	default:
		return ""
	}
}

func (p place) lookAtCapabilities() string {
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapAmb"} {
		if found := p.status(set, "0000000000000000"); found != "" {
			return found
		}
	}
	if p.tier == sandbox.TierDirectory {
		return "" // a user's bounding set cannot be emptied, and without new privileges is of no use
	}
	return p.status("CapBnd", "0000000000000000")
}

// lookAtSeccomp counts the filters, since the service itself may have been given
// some. Before Linux 5.9 they are not counted.
func (p place) lookAtSeccomp() string {
	if found := p.status("Seccomp", "2"); found != "" {
		return found
	}
	inside, err := strconv.Atoi(p.facts.last("status.Seccomp_filters"))
	outside, err2 := strconv.Atoi(ownStatus("Seccomp_filters"))
	if err == nil && err2 == nil && inside <= outside {
		return "there is no filter but the service's own"
	}
	return ""
}

func (p place) lookAtDescriptors() string {
	if got := strings.Join(p.facts["fd"], " "); got != "0 1 2" {
		return "it has the descriptors " + got
	}
	return ""
}

// limit compares a limit of the program's own with the most that it may be.
func (p place) limit(name string, most int) string {
	said := p.facts.last("limit." + name)
	if n, err := strconv.Atoi(said); err != nil || n > most {
		return fmt.Sprintf("the limit is %q", said)
	}
	return ""
}

// lookAtProcessLimit: by a cgroup, or else by the program's own limit.
func (p place) lookAtProcessLimit() string {
	claim := p.claim("processes")
	if strings.HasPrefix(claim.Detail, "RLIMIT_NPROC") {
		return p.limit("processes", probeProcesses)
	}
	return p.lookAtGroup("pids", claim)
}

// lookAtGroup looks whether the program is in a cgroup of this service's, in the
// hierarchy of a controller: its own in version 1, the one in version 2.
func (p place) lookAtGroup(controller string, claim sandbox.Control) string {
	for _, line := range p.facts["cgroup"] {
		hierarchy, rest, _ := strings.Cut(line, ":")
		controllers, path, _ := strings.Cut(rest, ":")
		version2 := hierarchy == "0" && strings.Contains(claim.Detail, "v2")
		if (version2 || slices.Contains(strings.Split(controllers, ","), controller)) && strings.Contains(path, groupPrefix) {
			return ""
		}
	}
	return "the program is in no cgroup of this service's"
}

// ownStatus gives a line of the service's own /proc/self/status; "" where there
// is none.
func ownStatus(name string) string {
	status, _ := os.ReadFile("/proc/self/status")
	return proctree.Field(status, name)
}
