package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"envapi/internal/require"
	"envapi/internal/testbin"
	"envapi/sandbox"
	"envapi/sandbox/host"
	"envapi/sandbox/sandboxtest"
)

// The hosts that are known to take something away are made of this one, in a
// process of the test's own: by a system call filter, as the runtimes of
// containers do it, or by a namespace.

// simulation is what the process is told, by this variable.
const simulation = "ENVAPI_SIMULATED_HOST"

// simulated is one such host.
type simulated struct {
	Lacks   string       // the name of its filter; "" is none
	Tier    sandbox.Tier // only this one
	Private string
	Init    string
}

// lookedAt is what the process found.
type lookedAt struct {
	Report  sandbox.Report
	Refused bool
	Other   string // an error that is no refusal
}

// lookAtSimulated is the process.
func lookAtSimulated(encoded string) {
	var s simulated
	if err := json.Unmarshal([]byte(encoded), &s); err != nil {
		panic(err)
	}
	if s.Lacks != "" {
		if err := install(filters[s.Lacks]); err != nil {
			panic(err)
		}
	}
	var found lookedAt
	h, err := host.New(context.Background(), host.Options{Tier: s.Tier, Private: s.Private, InitPath: s.Init, Log: slog.New(slog.DiscardHandler)})
	var refusal *host.Refusal
	switch {
	case errors.As(err, &refusal):
		found.Report, found.Refused = refusal.Findings, true
	case err != nil:
		found.Other = err.Error()
	default:
		found.Report = h.Report()
		if err := h.Close(); err != nil {
			found.Other = err.Error()
		}
	}
	_ = json.NewEncoder(os.Stdout).Encode(found)
}

// on looks at a simulated host; wrapper is a program that starts the process.
func on(t *testing.T, s simulated, wrapper ...string) sandbox.Report {
	t.Helper()
	found := lookedAt{}
	s.Private, s.Init = sandboxtest.Folder(t), testbin.Init(t)
	encoded, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	words := append(wrapper, self) //nolint:gocritic // of this call alone
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Env = append(os.Environ(), simulation+"="+string(encoded), "GORACE=atexit_sleep_ms=0")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &found)
	}
	if err != nil || found.Other != "" {
		t.Fatalf("%v %s\n%s", err, found.Other, stderr.String())
	}
	return found.Report
}

// filter answers system calls with an errno.
type filter struct {
	errno      syscall.Errno
	calls      []uint32
	namespaces bool // and clone with new namespaces
	prctl      int  // and this operation of prctl; 0 is none
}

var mounting = []uint32{
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT,
	unix.SYS_FSOPEN, unix.SYS_FSMOUNT, unix.SYS_FSCONFIG, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR,
}

var filters = map[string]filter{
	"docker":   {errno: unix.EPERM, calls: append([]uint32{unix.SYS_UNSHARE, unix.SYS_SETNS}, mounting...), namespaces: true},
	"ubuntu":   {errno: unix.EACCES, calls: mounting},
	"landlock": {errno: unix.ENOSYS, calls: []uint32{unix.SYS_LANDLOCK_CREATE_RULESET, unix.SYS_LANDLOCK_ADD_RULE, unix.SYS_LANDLOCK_RESTRICT_SELF}},
	"seccomp":  {errno: unix.EINVAL, calls: []uint32{unix.SYS_SECCOMP}, prctl: unix.PR_SET_SECCOMP},
}

// install puts every thread of this process under a filter, and all that it
// starts.
func install(f filter) error {
	const (
		load, jumpEqual, jumpSet, ret = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ, unix.BPF_JMP | unix.BPF_JSET, unix.BPF_RET
		number, firstArgument         = 0, 16 // offsets in struct seccomp_data
		newNamespaces                 = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
			unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP
	)
	refuse := unix.SockFilter{Code: ret, K: unix.SECCOMP_RET_ERRNO | uint32(f.errno)}
	program := []unix.SockFilter{{Code: load, K: number}}
	for _, call := range f.calls {
		program = append(program, unix.SockFilter{Code: jumpEqual, K: call, Jf: 1}, refuse)
	}
	if f.namespaces {
		program = append(program, unix.SockFilter{Code: jumpEqual, K: unix.SYS_CLONE, Jf: 3},
			unix.SockFilter{Code: load, K: firstArgument}, unix.SockFilter{Code: jumpSet, K: newNamespaces, Jf: 1}, refuse)
	}
	if f.prctl != 0 {
		program = append(program, unix.SockFilter{Code: jumpEqual, K: unix.SYS_PRCTL, Jf: 3},
			unix.SockFilter{Code: load, K: firstArgument}, unix.SockFilter{Code: jumpEqual, K: uint32(f.prctl), Jf: 1}, refuse)
	}
	program = append(program, unix.SockFilter{Code: ret, K: unix.SECCOMP_RET_ALLOW})
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	header := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&header)))
	if errno != 0 {
		return errno
	}
	return nil
}

// of gives what was found of a tier.
func of(r sandbox.Report, tier sandbox.Tier) sandbox.TierReport {
	return r.Tiers[slices.IndexFunc(r.Tiers, func(t sandbox.TierReport) bool { return t.Tier == tier })]
}

// enforced says whether a tier holds a control.
func enforced(t *testing.T, found sandbox.TierReport, name string) bool {
	t.Helper()
	i := slices.IndexFunc(found.Controls, func(c sandbox.Control) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("%s has no control %s: %+v", found.Tier, name, found)
	}
	return found.Controls[i].Enforced
}

// weaker is the tier that is left where there are no namespaces.
func weaker() sandbox.Tier {
	if os.Geteuid() == 0 {
		return sandbox.TierUser
	}
	return sandbox.TierDirectory
}

// withNamespaces ends a test on a host that lacks what is to be taken away.
func withNamespaces(t *testing.T) {
	t.Helper()
	if found := of(on(t, simulated{}), sandbox.TierNamespace); !found.Available {
		require.Feature(t, "userns", found.Reason)
	}
}

// fallsBack looks whether the weaker tier takes the place of namespaces, and
// whether it is said what would have to change.
func fallsBack(t *testing.T, r sandbox.Report, needs string) {
	t.Helper()
	found := of(r, sandbox.TierNamespace)
	if r.Tier != weaker() || found.Available || !strings.Contains(found.Needs, needs) {
		t.Errorf("the tier is %q; namespace: %+v", r.Tier, found)
	}
	for _, name := range []string{"seccomp", "network", "no_new_privs", "capabilities"} {
		if !enforced(t, of(r, weaker()), name) {
			t.Errorf("%s does not hold %s", weaker(), name)
		}
	}
}

func TestInAContainerWithDockersDefaults(t *testing.T) {
	withNamespaces(t)
	var wrapper []string
	if os.Geteuid() == 0 { // which root of a container has not all capabilities
		wrapper = []string{"setpriv", "--bounding-set", "-all,+chown,+dac_override,+fsetid,+fowner,+mknod,+net_raw,+setgid,+setuid,+setfcap,+setpcap,+net_bind_service,+sys_chroot,+kill,+audit_write"}
	}
	fallsBack(t, on(t, simulated{Lacks: "docker"}, wrapper...), "the container's seccomp profile must allow")
}

// Ubuntu's AppArmor lets the namespaces be made, and refuses what is done in
// them. Which words it gets depends on a setting that this host need not have;
// see TestNeeds.
func TestWhereNamespacesCanBeMadeButNotMounted(t *testing.T) {
	withNamespaces(t)
	fallsBack(t, on(t, simulated{Lacks: "ubuntu"}), "mount")
}

func TestWhereProcIsMasked(t *testing.T) {
	withNamespaces(t)
	if os.Geteuid() != 0 {
		t.Skip("only root can mask it; root's pass runs this")
	}
	// In a mount namespace of its own, with one of its entries covered.
	mask := []string{"unshare", "--mount", "--propagation", "private", "sh", "-c", `mount --bind /dev/null /proc/kallsyms && exec "$0"`}
	if out, err := exec.Command(mask[0], append(mask[1:len(mask):len(mask)], "true")...).CombinedOutput(); err != nil {
		require.Feature(t, "mounts", string(out))
	}
	fallsBack(t, on(t, simulated{}, mask...), "must not mask /proc")
}

func TestWhereUserNamespacesAreUsedUp(t *testing.T) {
	withNamespaces(t)
	// In a user namespace of its own, whose setting is its own.
	wrapper := []string{"unshare", "--user", "--map-user", "1000", "--keep-caps", "sh", "-c", `echo 0 >/proc/sys/user/max_user_namespaces && exec setpriv --inh-caps=-all --ambient-caps=-all "$0"`}
	if out, err := exec.Command(wrapper[0], append(wrapper[1:len(wrapper):len(wrapper)], "true")...).CombinedOutput(); err != nil {
		require.Feature(t, "userns", string(out))
	}
	r := on(t, simulated{}, wrapper...)
	found := of(r, sandbox.TierNamespace)
	if found.Available || !strings.Contains(found.Needs, "user.max_user_namespaces") || r.Tier != sandbox.TierDirectory {
		t.Errorf("the tier is %q; namespace: %+v", r.Tier, found)
	}
}

func TestWhereTheKernelHasNoLandlock(t *testing.T) {
	withNamespaces(t)
	r := on(t, simulated{Lacks: "landlock"})
	if r.Tier != sandbox.TierNamespace || enforced(t, of(r, sandbox.TierNamespace), "landlock") || r.SingleAccount {
		t.Errorf("got %+v", r)
	}
	if !enforced(t, of(r, sandbox.TierNamespace), "files") {
		t.Error("a file tree of the box's own needs no Landlock")
	}
	r = on(t, simulated{Lacks: "landlock", Tier: weaker()})
	root := weaker() == sandbox.TierUser // whose uid keeps accounts apart
	if r.Tier != weaker() || r.SingleAccount == root || enforced(t, of(r, weaker()), "files") != root {
		t.Errorf("got %+v", r)
	}
}

// No tier runs without a filter: in the weaker ones it is what refuses the network.
func TestWhereNoFilterCanBeSet(t *testing.T) {
	withNamespaces(t)
	r := on(t, simulated{Lacks: "seccomp"})
	if r.Tier != "" {
		t.Errorf("the tier is %q", r.Tier)
	}
	for _, tier := range []sandbox.Tier{weaker(), sandbox.TierNamespace} {
		if found := of(r, tier); found.Available || !strings.Contains(found.Needs, "seccomp filters") {
			t.Errorf("got %+v", found)
		}
	}
}
