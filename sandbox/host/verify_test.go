package host

import (
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"envapi/sandbox"
	"envapi/sandbox/landlock"
)

// good gives what a program says in a place where everything holds, and claims of
// everything that is looked at.
func good(tier sandbox.Tier) place {
	uid := strconv.Itoa(ProbeUID(tier))
	f := facts{
		"euid": {"1000"}, "workspace": {"probe"}, "temporary": {"works"}, "init": {"1"}, "fd": {"0", "1", "2"},
		"uid_map": {"1000 " + uid + " 1"}, "interface": {"lo"},
		"status.Uid": {strings.Join([]string{uid, uid, uid, uid}, "\t")}, "status.NoNewPrivs": {"1"}, "status.Seccomp": {"2"},
		"status.Seccomp_filters": {"99"}, "limit.core": {"0"}, "limit.files": {"16384"}, "limit.processes": {strconv.Itoa(probeProcesses)},
		"tcp": {"Operation not permitted"}, "udp": {"Operation not permitted"},
		"cgroup": {"7:memory:/envapi-1/2", "3:cpu,cpuacct:/envapi-1/2", "2:pids:/envapi-1/2", "0::/"},
	}
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapAmb", "CapBnd"} {
		f["status."+set] = []string{"0000000000000000"}
	}
	for _, kind := range []string{"cgroup", "ipc", "mnt", "net", "pid", "user", "uts"} {
		f["namespace"] = append(f["namespace"], kind+":[1]")
	}
	p := place{tier: tier, facts: f}
	for _, name := range slices.Sorted(maps.Keys(looks)) {
		p.claimed = append(p.claimed, sandbox.Control{Name: name, Enforced: true, Detail: "cgroup v1"})
	}
	return p
}

// off gives the controls that were found not in force.
func off(p place) string {
	var names []string
	for _, c := range p.controls() {
		if !c.Enforced {
			names = append(names, c.Name)
		}
	}
	return strings.Join(names, " ")
}

func TestWhereEverythingHoldsNothingIsFound(t *testing.T) {
	for _, tier := range sandbox.Tiers {
		p := good(tier)
		if got := off(p); got != "" {
			t.Errorf("%s: %s", tier, got)
		}
		if err := p.escape(); err != nil {
			t.Errorf("%s: %v", tier, err)
		}
	}
}

func TestAControlThatIsNotInForceIsFound(t *testing.T) {
	if landlock.ABI() < landlock.ABIScopes {
		t.Skip("what Landlock forbids is looked at where the kernel has it")
	}
	for name, c := range map[string]struct {
		tiers string // where, by first letters
		fact  string
		said  []string
		want  string
	}{
		"the service's uid":                  {"u", "status.Uid", []string{"0\t0\t0\t0"}, "uid"},
		"another mapping":                    {"n", "uid_map", []string{"0 0 4294967295"}, "uid"},
		"a file of the service":              {"d", "canary", []string{"opened"}, "files"},
		"a file that all may read":           {"du", "open_canary", []string{"opened"}, "files landlock"},
		"another init":                       {"n", "init", []string{"77"}, "processes_hidden"},
		"a signal to the service":            {"du", "service_signal", []string{"sent"}, "signals"},
		"a signal to the init":               {"dun", "init_signal", []string{"sent"}, "landlock"},
		"another interface":                  {"n", "interface", []string{"lo", "eth0"}, "network"},
		"a port of the loopback":             {"du", "tcp", []string{"Connection refused"}, "network"},
		"a datagram":                         {"du", "udp", []string{"connected"}, "network"},
		"a network that could not be tried":  {"du", "tcp", nil, "network"},
		"an effective capability":            {"dun", "status.CapEff", []string{"0000000000000001"}, "capabilities"},
		"a bounding set":                     {"un", "status.CapBnd", []string{"000001ffffffffff"}, "capabilities"},
		"new privileges":                     {"dun", "status.NoNewPrivs", []string{"0"}, "no_new_privs"},
		"no filter":                          {"dun", "status.Seccomp", []string{"0"}, "seccomp"},
		"no filter but the service's":        {"dun", "status.Seccomp_filters", []string{"0"}, "seccomp"},
		"one descriptor more":                {"dun", "fd", []string{"0", "1", "2", "7"}, "descriptors"},
		"core dumps":                         {"dun", "limit.core", []string{"unlimited"}, "core_dumps"},
		"more open files":                    {"dun", "limit.files", []string{"1048576"}, "open_files"},
		"the service's cgroup":               {"dun", "cgroup", []string{"7:memory:/", "3:cpu,cpuacct:/", "2:pids:/", "0::/"}, "cpu memory processes"},
		"the memory cgroup of somebody else": {"dun", "cgroup", []string{"7:memory:/x", "3:cpu,cpuacct:/envapi-1/2", "2:pids:/envapi-1/2"}, "memory"},
	} {
		for _, tier := range sandbox.Tiers {
			if !strings.Contains(c.tiers, string(tier[0])) {
				continue
			}
			p := good(tier)
			p.facts[c.fact] = c.said
			if got := off(p); got != c.want {
				t.Errorf("%s, %s: found %q, want %q", name, tier, got, c.want)
			}
		}
	}
}

func TestALimitOfItsOwnIsLookedAtWhereThereIsNoCgroup(t *testing.T) {
	p := good(sandbox.TierUser)
	i := slices.IndexFunc(p.claimed, func(c sandbox.Control) bool { return c.Name == "processes" })
	p.claimed[i].Detail = "RLIMIT_NPROC, counted"
	p.facts["cgroup"] = nil
	p.facts["limit.processes"] = []string{"unlimited"}
	if got := off(p); !strings.Contains(got, "processes") {
		t.Errorf("found %q", got)
	}
}

func TestWhatNoTierMayLetPassIsAnEscape(t *testing.T) {
	for name, c := range map[string]struct {
		tiers, fact string
		said        []string
	}{
		"root":                    {"dun", "euid", []string{"0"}},
		"silence":                 {"dun", "euid", nil},
		"no workspace":            {"dun", "workspace", nil},
		"no temporary folder":     {"dun", "temporary", nil},
		"a setting of the kernel": {"dun", "kernel", []string{"/proc/sys/kernel/core_pattern"}},
		"a system folder":         {"dun", "system", []string{"/usr"}},
		"a file of the service":   {"un", "canary", []string{"opened"}},
		"no namespace":            {"n", "namespace", nil},
	} {
		for _, tier := range sandbox.Tiers {
			p := good(tier)
			p.facts[c.fact] = c.said
			if err := p.escape(); (err != nil) != strings.Contains(c.tiers, string(tier[0])) {
				t.Errorf("%s, %s: %v", name, tier, err)
			}
		}
	}
}

func TestANamespaceOfTheServicesIsFound(t *testing.T) {
	for _, kind := range []string{"cgroup", "ipc", "mnt", "net", "pid", "user", "uts"} {
		own, err := os.Readlink("/proc/self/ns/" + kind)
		if err != nil {
			t.Fatal(err)
		}
		p := good(sandbox.TierNamespace)
		i := slices.Index(p.facts["namespace"], kind+":[1]")
		p.facts["namespace"][i] = own
		if err := p.escape(); err == nil || !strings.Contains(err.Error(), kind) {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

func TestWhatTheScriptSaysIsRead(t *testing.T) {
	f := parseFacts("euid 1000\nstatus.Uid 1\t1\t1\t1\nfd 0\nfd 1\nempty \nnamespace pid:[12]\nnamespace pid_for_children:[13]\n")
	if f.last("euid") != "1000" || f.last("status.Uid") != "1\t1\t1\t1" || len(f["fd"]) != 2 || !f.has("empty") || f.has("none") {
		t.Errorf("got %q", f)
	}
	if f.namespace("pid") != "pid:[12]" || f.namespace("net") != "" {
		t.Errorf("got %q", f["namespace"])
	}
}
