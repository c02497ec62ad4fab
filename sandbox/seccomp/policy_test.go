package seccomp

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"envapi/internal/random"
)

// The boxes of the tiers.
var (
	namespaceTier = Shares{}
	userTier      = Shares{Namespaces: true}
	directoryTier = Shares{Namespaces: true, UID: true}
	tiers         = []Shares{namespaceTier, userTier, directoryTier}
)

// high are bits of an argument that the kernel does not look at.
const high = 0xdead_beef << 32

// row is a call and what must become of it. Only names the architecture where
// not all have the call.
type row struct {
	call string
	args []uint64
	want verdict
	in   []Shares // nil: every tier
	only string
}

var rows = []row{
	{call: "getppid", want: allow},
	{call: "execve", want: allow},
	{call: "open", want: allow, only: "amd64"},
	{call: "newfstatat", want: allow, only: "amd64"},
	{call: "fstatat", want: allow, only: "arm64"},

	{call: "clone3", want: notNamed},
	{call: "io_setup", want: notNamed},
	{call: "memfd_secret", want: notNamed},
	{call: "statmount", want: notNamed},
	{call: "uselib", want: notNamed, only: "amd64"},

	{call: "clone", args: []uint64{uint64(unix.SIGCHLD)}, want: allow},
	{call: "clone", args: []uint64{unix.CLONE_VM | unix.CLONE_VFORK | uint64(unix.SIGCHLD)}, want: allow},
	{call: "clone", args: []uint64{unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND | unix.CLONE_THREAD | unix.CLONE_SYSVSEM}, want: allow},
	{call: "clone", args: []uint64{unix.CLONE_NEWTIME}, want: allow}, // an exit signal
	{call: "clone", args: []uint64{unix.CLONE_NEWUSER}, want: refuse},
	{call: "clone", args: []uint64{high | unix.CLONE_NEWNS | uint64(unix.SIGCHLD)}, want: refuse},
	{call: "clone", args: []uint64{unix.CLONE_NEWPID}, want: refuse},
	{call: "clone", args: []uint64{unix.CLONE_NEWNET}, want: refuse},
	{call: "clone", args: []uint64{unix.CLONE_NEWIPC}, want: refuse},
	{call: "clone", args: []uint64{unix.CLONE_NEWUTS}, want: refuse},
	{call: "clone", args: []uint64{unix.CLONE_NEWCGROUP}, want: refuse},

	{call: "ioctl", args: []uint64{0, unix.TCGETS}, want: allow},
	{call: "ioctl", args: []uint64{0, 0x5412}, want: refuse},
	{call: "ioctl", args: []uint64{0, high | 0x5412}, want: refuse},
	{call: "ioctl", args: []uint64{0, 0x541c}, want: refuse},
	{call: "ioctl", args: []uint64{0, high | 0x541c}, want: refuse},
	{call: "ioctl", args: []uint64{0, 0x5423}, want: refuse},
	{call: "ioctl", args: []uint64{0, 0x401c5820}, want: refuse},
	{call: "ioctl", args: []uint64{0, 0x40086602}, want: refuse},
	{call: "ioctl", args: []uint64{0, 0x800c6613}, want: refuse},
	{call: "ioctl", args: []uint64{0, 0xc0506617}, want: refuse},
	{call: "ioctl", args: []uint64{0x5412, 0}, want: allow},
	{call: "fcntl", args: []uint64{0, unix.F_GETFL}, want: allow},
	{call: "fcntl", args: []uint64{0, high | 1024}, want: refuse},
	{call: "fcntl", args: []uint64{0, 1040}, want: refuse},

	{call: "ptrace", args: []uint64{0}, want: allow}, // PTRACE_TRACEME
	{call: "ptrace", args: []uint64{unix.PTRACE_CONT}, want: allow},
	{call: "ptrace", args: []uint64{16}, want: refuse},
	{call: "ptrace", args: []uint64{high | 0x4206}, want: refuse},
	{call: "prctl", args: []uint64{unix.PR_SET_NAME}, want: allow},
	{call: "prctl", args: []uint64{35}, want: refuse},
	{call: "prlimit64", args: []uint64{0}, want: allow},
	{call: "prlimit64", args: []uint64{1}, want: refuse},
	{call: "mmap", args: []uint64{0, 1 << 21, 3, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS}, want: allow},
	{call: "mmap", args: []uint64{0, 1 << 21, 3, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | 0x40000}, want: refuse},
	{call: "memfd_create", args: []uint64{0, unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING}, want: allow},
	{call: "memfd_create", args: []uint64{0, high | unix.MFD_CLOEXEC | 0x4}, want: refuse},
	{call: "personality", args: []uint64{0}, want: allow},
	{call: "personality", args: []uint64{8}, want: allow},
	{call: "personality", args: []uint64{0x20000}, want: allow},
	{call: "personality", args: []uint64{0x20008}, want: allow},
	{call: "personality", args: []uint64{0xffffffff}, want: allow},
	{call: "personality", args: []uint64{0x0400000}, want: refuse}, // READ_IMPLIES_EXEC

	{call: "socket", args: []uint64{unix.AF_UNIX, unix.SOCK_STREAM}, want: allow, in: []Shares{namespaceTier}},
	{call: "socket", args: []uint64{unix.AF_UNIX, unix.SOCK_STREAM, unix.AF_UNIX}, want: allow, in: []Shares{namespaceTier}},
	{call: "socket", args: []uint64{unix.AF_UNIX, unix.SOCK_SEQPACKET}, want: allow, in: []Shares{namespaceTier}},
	{call: "socket", args: []uint64{unix.AF_INET, unix.SOCK_STREAM | unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK, 0}, want: allow, in: []Shares{namespaceTier}},
	{call: "socket", args: []uint64{unix.AF_INET6, unix.SOCK_STREAM, unix.IPPROTO_TCP}, want: allow, in: []Shares{namespaceTier}},
	{call: "socket", args: []uint64{unix.AF_INET6, unix.SOCK_DGRAM, unix.IPPROTO_UDP}, want: allow, in: []Shares{namespaceTier}},
	{call: "socket", args: []uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE}, want: allow, in: []Shares{namespaceTier}},
	{call: "socket", args: []uint64{unix.AF_INET, high | unix.SOCK_RAW | unix.SOCK_CLOEXEC, unix.IPPROTO_TCP}, want: refuse},
	{call: "socket", args: []uint64{unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_TCP}, want: refuse},
	{call: "socket", args: []uint64{unix.AF_INET, unix.SOCK_SEQPACKET, 0}, want: refuse},
	{call: "socket", args: []uint64{unix.AF_INET, unix.SOCK_STREAM, 262}, want: noSuchProtocol, in: []Shares{namespaceTier}},
	{call: "socket", args: []uint64{unix.AF_INET6, unix.SOCK_STREAM, high | 132}, want: noSuchProtocol, in: []Shares{namespaceTier}},
	{call: "socket", args: []uint64{unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP}, want: noSuchProtocol, in: []Shares{namespaceTier}},
	{call: "socket", args: []uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER}, want: noSuchProtocol, in: []Shares{namespaceTier}},
	{call: "socket", args: []uint64{high | unix.AF_VSOCK, unix.SOCK_STREAM}, want: noSuchFamily, in: []Shares{namespaceTier}},
	{call: "socket", args: []uint64{unix.AF_ALG, unix.SOCK_SEQPACKET}, want: noSuchFamily, in: []Shares{namespaceTier}},
	{call: "socket", args: []uint64{unix.AF_PACKET, unix.SOCK_RAW}, want: noSuchFamily, in: []Shares{namespaceTier}},
	{call: "socket", args: []uint64{unix.AF_UNSPEC, 0}, want: noSuchFamily, in: []Shares{namespaceTier}},
	{call: "socket", args: []uint64{unix.AF_UNIX, unix.SOCK_STREAM}, want: refuse, in: []Shares{userTier, directoryTier}},
	{call: "socket", args: []uint64{unix.AF_INET, unix.SOCK_STREAM}, want: refuse, in: []Shares{userTier, directoryTier}},
	{call: "socket", args: []uint64{unix.AF_INET6, unix.SOCK_DGRAM}, want: refuse, in: []Shares{userTier, directoryTier}},
	{call: "socket", args: []uint64{unix.AF_NETLINK, unix.SOCK_RAW}, want: refuse, in: []Shares{userTier, directoryTier}},
	{call: "connect", want: allow, in: []Shares{namespaceTier}},
	{call: "connect", want: refuse, in: []Shares{userTier, directoryTier}},
	{call: "socketpair", args: []uint64{unix.AF_UNIX, unix.SOCK_STREAM | unix.SOCK_CLOEXEC}, want: allow},
	{call: "socketpair", args: []uint64{unix.AF_UNIX, unix.SOCK_SEQPACKET}, want: allow},
	{call: "socketpair", args: []uint64{unix.AF_UNIX, unix.SOCK_DGRAM}, want: allow, in: []Shares{namespaceTier}},
	{call: "socketpair", args: []uint64{unix.AF_UNIX, high | unix.SOCK_CLOEXEC | unix.SOCK_DGRAM}, want: refuse, in: []Shares{userTier, directoryTier}},
	{call: "socketpair", args: []uint64{unix.AF_UNIX, unix.SOCK_RAW}, want: refuse, in: []Shares{userTier, directoryTier}},
	{call: "socketpair", args: []uint64{unix.AF_TIPC, unix.SOCK_STREAM}, want: noSuchFamily},
	{call: "setsockopt", args: []uint64{0, unix.IPPROTO_TCP, unix.TCP_NODELAY}, want: allow},
	{call: "setsockopt", args: []uint64{0, unix.SOL_SOCKET, unix.TCP_ULP}, want: allow},
	{call: "setsockopt", args: []uint64{0, unix.IPPROTO_TCP, unix.TCP_ULP}, want: refuse},

	{call: "sendto", args: []uint64{0, 0, 0, unix.MSG_NOSIGNAL | unix.MSG_DONTWAIT}, want: allow},
	{call: "sendto", args: []uint64{0, 0, 0, unix.MSG_NOSIGNAL | unix.MSG_OOB}, want: refuse},
	{call: "sendmmsg", args: []uint64{0, 0, 0, high | unix.MSG_OOB}, want: refuse},
	{call: "sendmsg", args: []uint64{0, 0, unix.MSG_NOSIGNAL, unix.MSG_OOB}, want: allow},
	{call: "sendmsg", args: []uint64{0, 0, unix.MSG_OOB}, want: refuse},

	{call: "sched_setaffinity", args: []uint64{0}, want: allow},
	{call: "sched_setaffinity", args: []uint64{7}, want: allow, in: []Shares{namespaceTier, userTier}},
	{call: "sched_setaffinity", args: []uint64{7}, want: refuse, in: []Shares{directoryTier}},
	{call: "sched_setscheduler", args: []uint64{7}, want: refuse, in: []Shares{directoryTier}},
	{call: "sched_setparam", args: []uint64{7}, want: refuse, in: []Shares{directoryTier}},
	{call: "sched_setattr", args: []uint64{7}, want: refuse, in: []Shares{directoryTier}},
	{call: "setpriority", args: []uint64{0, 0}, want: allow},
	{call: "setpriority", args: []uint64{2, 0}, want: allow, in: []Shares{namespaceTier, userTier}},
	{call: "setpriority", args: []uint64{0, 7}, want: allow, in: []Shares{namespaceTier, userTier}},
	{call: "ioprio_set", args: []uint64{3, 0}, want: allow, in: []Shares{namespaceTier, userTier}},
	{call: "ioprio_set", args: []uint64{1, 7}, want: allow, in: []Shares{namespaceTier, userTier}},
	{call: "setpriority", args: []uint64{2, 0}, want: refuse, in: []Shares{directoryTier}},
	{call: "setpriority", args: []uint64{0, 7}, want: refuse, in: []Shares{directoryTier}},
	{call: "ioprio_set", args: []uint64{1, 0}, want: allow},
	{call: "ioprio_set", args: []uint64{3, 0}, want: refuse, in: []Shares{directoryTier}},
	{call: "ioprio_set", args: []uint64{1, 7}, want: refuse, in: []Shares{directoryTier}},
}

// refusedByName are refused in every tier, whatever the arguments.
const refusedByName = `unshare setns mount umount2 pivot_root chroot
open_tree open_tree_attr move_mount fsopen fsconfig fsmount fspick mount_setattr
open_by_handle_at name_to_handle_at swapon swapoff quotactl quotactl_fd acct fanotify_init fanotify_mark
io_uring_setup io_uring_enter io_uring_register bpf perf_event_open userfaultfd add_key request_key keyctl
process_vm_readv process_vm_writev process_madvise kcmp pidfd_getfd
mbind set_mempolicy get_mempolicy set_mempolicy_home_node migrate_pages move_pages
init_module finit_module delete_module kexec_load kexec_file_load reboot settimeofday clock_settime
sethostname setdomainname syslog vhangup lookup_dcookie nfsservctl`

// ipc is refused where the ipc namespace is the host's.
const ipc = `shmget shmat shmctl semget semop semtimedop semctl msgget msgsnd msgrcv msgctl mq_open mq_unlink`

// table gives all rows.
func table() []row {
	all := slices.Clone(rows)
	for _, call := range strings.Fields(refusedByName) {
		all = append(all, row{call: call, want: refuse}, row{call: call, args: []uint64{high | 1, 2, 3}, want: refuse})
	}
	for _, call := range []string{"ioperm", "iopl", "modify_ldt"} {
		all = append(all, row{call: call, want: refuse, only: "amd64"})
	}
	for _, call := range strings.Fields(ipc) {
		all = append(all, row{call: call, want: allow, in: []Shares{namespaceTier}},
			row{call: call, want: refuse, in: []Shares{userTier, directoryTier}})
	}
	return all
}

// in6 gives six arguments.
func in6(args []uint64) (six [6]uint64) {
	copy(six[:], args)
	return six
}

// run runs a program as the kernel would. The interpreter reads packets, which
// are big endian.
func run(t testing.TB, vm *bpf.VM, audit, number uint32, args [6]uint64) verdict {
	t.Helper()
	data := binary.BigEndian.AppendUint32(nil, number)
	data = binary.BigEndian.AppendUint32(data, audit)
	data = binary.BigEndian.AppendUint64(data, 0x7fff_1234_5678) // the instruction pointer
	for _, a := range args {
		data = binary.BigEndian.AppendUint32(data, uint32(a))
		data = binary.BigEndian.AppendUint32(data, uint32(a>>32))
	}
	got, err := vm.Run(data)
	if err != nil {
		t.Fatal(err)
	}
	return verdict(got)
}

func vmOf(t testing.TB, m machine, s Shares) *bpf.VM {
	t.Helper()
	program, err := m.compile(policy(), s)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := encode(program); err != nil {
		t.Fatal(err)
	}
	vm, err := bpf.NewVM(program)
	if err != nil {
		t.Fatal(err)
	}
	return vm
}

func TestWhatBecomesOfACall(t *testing.T) {
	for name, m := range machines() {
		for _, s := range tiers {
			vm := vmOf(t, m, s)
			for _, r := range table() {
				if r.only != "" && r.only != name || r.in != nil && !slices.Contains(r.in, s) {
					continue
				}
				number, ok := m.table.SyscallNames[r.call]
				if !ok {
					t.Errorf("%s has no %s", name, r.call)
					continue
				}
				if got := run(t, vm, uint32(m.table.ID), uint32(number), in6(r.args)); got != r.want {
					t.Errorf("%s %+v: %s%#x: got %#x, want %#x", name, s, r.call, r.args, got, r.want)
				}
			}
		}
	}
}

func TestAnotherTableOfCallsKills(t *testing.T) {
	const i386, arm = 0x40000003, 0x40000028
	for name, m := range machines() {
		vm, own := vmOf(t, m, Shares{}), uint32(m.table.ID)
		for what, c := range map[string]struct {
			audit, number uint32
			want          verdict
		}{
			"another architecture, 32 bits":  {i386, 20, kill},
			"another architecture, arm":      {arm, 20, kill},
			"no architecture":                {0, 20, kill},
			"a number that nothing has":      {own, 1 << 20, notNamed},
			"the number that a tracer skips": {own, 0xffffffff, allow},
			"the one before it":              {own, 0xfffffffe, map[string]verdict{"amd64": kill, "arm64": notNamed}[name]},
			"the first of x32":               {own, 0x40000000, map[string]verdict{"amd64": kill, "arm64": notNamed}[name]},
			"an allowed one of x32":          {own, 0x40000000 | 39, map[string]verdict{"amd64": kill, "arm64": notNamed}[name]},
		} {
			if got := run(t, vm, c.audit, c.number, [6]uint64{}); got != c.want {
				t.Errorf("%s, %s: got %#x, want %#x", name, what, got, c.want)
			}
		}
	}
}

// TestEveryLineMatters takes away one thing after the other: then some row of
// the table must come out otherwise.
func TestEveryLineMatters(t *testing.T) {
	count := 0
	for i, r := range policy() {
		if r.verdict == allow {
			continue
		}
		for what, mutant := range mutants(r) {
			count++
			changed := slices.Clone(policy())
			changed[i] = mutant
			if !noticed(t, changed) {
				t.Errorf("nothing changes for %s %v without %s", r.calls, r.when, what)
			}
		}
	}
	if count < 100 {
		t.Errorf("only %d were tried", count)
	}
}

// mutants gives a rule with one thing missing, by what it is.
func mutants(r rule) map[string]rule {
	all := map[string]rule{"anything": {calls: ""}}
	for _, call := range r.names() {
		mutant := r
		mutant.calls = strings.Join(slices.DeleteFunc(r.names(), func(n string) bool { return n == call }), " ")
		all[call] = mutant
	}
	if r.only != (Shares{}) {
		mutant := r
		mutant.only = Shares{}
		all["its condition on the box"] = mutant
	}
	for i, w := range r.when {
		mutant := r
		mutant.when = slices.Delete(slices.Clone(r.when), i, i+1)
		all[fmt.Sprintf("test %d", i)] = mutant
		for j := range w.values {
			fewer := w
			fewer.values = slices.Delete(slices.Clone(w.values), j, j+1)
			mutant := r
			mutant.when = slices.Clone(r.when)
			mutant.when[i] = fewer
			all[fmt.Sprintf("value %d of test %d", j, i)] = mutant
		}
	}
	return all
}

// noticed says whether a row of the table comes out otherwise by these rules.
func noticed(t *testing.T, rules []rule) bool {
	t.Helper()
	for name, m := range machines() {
		for _, s := range tiers {
			decided := byNumber(t, m, rules, s)
			for _, r := range table() {
				if r.only != "" && r.only != name || r.in != nil && !slices.Contains(r.in, s) {
					continue
				}
				if decide(decided[uint32(m.table.SyscallNames[r.call])], in6(r.args)) != r.want {
					return true
				}
			}
		}
	}
	return false
}

func byNumber(t testing.TB, m machine, rules []rule, s Shares) map[uint32][]rule {
	t.Helper()
	decisions, err := m.decisions(rules, s)
	if err != nil {
		t.Fatal(err)
	}
	decided := map[uint32][]rule{}
	for _, d := range decisions {
		decided[d.number] = d.rules
	}
	return decided
}

// interesting are values that rules compare with, and their neighbours.
func interesting() []uint64 {
	values := []uint64{0, 1, allBits, high}
	for _, r := range policy() {
		for _, w := range r.when {
			for _, v := range w.values {
				values = append(values, uint64(v), uint64(v)+1, uint64(v)|high, uint64(v)|socketType+1)
			}
		}
	}
	return values
}

// TestTheFilterIsThePolicy: the program and the rules evaluated without it agree
// on every call.
func TestTheFilterIsThePolicy(t *testing.T) {
	values := interesting()
	for name, m := range machines() {
		for _, s := range tiers {
			vm, decided := vmOf(t, m, s), byNumber(t, m, policy(), s)
			number := rapid.OneOf(rapid.Uint32Range(0, 600), rapid.Uint32Range(0, x32-1))
			argument := rapid.OneOf(rapid.SampledFrom(values), rapid.Uint64())
			random.Check(t, func(rt *rapid.T) {
				n := number.Draw(rt, "number")
				var args [6]uint64
				for i := range args {
					args[i] = argument.Draw(rt, "argument")
				}
				got, want := run(t, vm, uint32(m.table.ID), n, args), decide(decided[n], args)
				if got != want {
					rt.Fatalf("%s %+v: call %d%#x: the filter says %#x, the rules %#x", name, s, n, args, got, want)
				}
			})
			for n := range uint32(1024) {
				if got, want := run(t, vm, uint32(m.table.ID), n, [6]uint64{}), decide(decided[n], [6]uint64{}); got != want {
					t.Errorf("%s %+v: call %d: the filter says %#x, the rules %#x", name, s, n, got, want)
				}
			}
		}
	}
}

func TestAMisspeltNameIsAnError(t *testing.T) {
	for name, m := range machines() {
		if _, err := m.compile([]rule{{calls: "getppid mont", verdict: refuse}}, Shares{}); err == nil || !strings.Contains(err.Error(), "mont") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	m := machines()["amd64"]
	m.lacks = append(m.lacks, "getppid")
	if _, err := m.compile([]rule{{calls: "getppid"}}, Shares{}); err == nil {
		t.Error("a call that is there is taken for one that is not")
	}
}

func TestEveryRuleHasAReason(t *testing.T) {
	for _, r := range policy() {
		if r.reason == "" || len(r.names()) == 0 {
			t.Errorf("%q has none, or no call", r.calls)
		}
	}
}
