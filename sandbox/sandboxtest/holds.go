package sandboxtest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"envapi/sandbox"
)

// Leak opens a directory of the host so that every child inherits it, unless
// somebody closes it, as the service's own parent may have done. It is called
// before the first box is made.
func Leak(t testing.TB) {
	t.Helper()
	fd, err := unix.Open("/", unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
}

// holds: what a command finds, and what it cannot do.
func holds(t *testing.T, tier Tier) {
	f := tier.box(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("ENVAPI_SECRET_OF_THE_SERVICE", "1")
	for _, c := range controls(tier, secret) {
		if !c.holds {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			if got := f.script(c.script); strings.TrimSuffix(got.stdout, "\n") != c.want {
				t.Errorf("got %q (%q), want %q", got.stdout, got.stderr, c.want)
			}
		})
	}
	t.Run("D2 the environment is the documented one", func(t *testing.T) { environment(t, f) })
	t.Run("every namespace is its own", func(t *testing.T) { namespaces(t, tier, f) })
	t.Run("D14 kill -9 -1 hits only the caller's own", func(t *testing.T) { killEverything(t, tier) })
}

// control is a script that tries something, and what it must print.
type control struct {
	name, script, want string
	holds              bool // in this tier
}

// controls are what a tier must hold; secret is a file of the service's.
func controls(tier Tier, secret string) []control {
	return []control{
		{"never uid 0", `[ $UID != 0 ] && [ $EUID != 0 ] && echo no`, "no", true},
		{"no capabilities", `grep -c -E '^Cap(Inh|Prm|Eff|Amb):.0000000000000000$' /proc/self/status`, "4", true},
		{"no new privileges", `grep NoNewPrivs /proc/self/status | cut -f2`, "1", true},
		{"D2 only descriptors 0, 1 and 2", `for f in /proc/$$/fd/*; do [ -e $f ] && echo -n "${f##*/} "; done`, "0 1 2 ", true},
		{"resource limits", `ulimit -c; ulimit -n; ulimit -l`, "0\n16384\n8192", true},
		{"a limit of processes", `echo $(($(ulimit -u) < 2000))`, "1", tier.Namespaces || tier.UID != 0},
		{"limits cannot be raised", `ulimit -n 16385 2>/dev/null || echo refused`, "refused", true},
		{"D12 it goes first when the host has no memory left", `echo $(($(cat /proc/self/oom_score_adj) >= 500))`, "1", true},
		{"no descriptor refers to the host's mounts", `grep -c "^$(grep mnt_id /proc/self/fdinfo/0 | cut -f2) " /proc/self/mountinfo`, "1", tier.Namespaces},
		{"a host name of its own", `uname -n`, "envapi", tier.Namespaces},
		{"no mount obeys setuid", `grep -v -c nosuid /proc/mounts`, "0", tier.Namespaces},
		{"device nodes work in /dev only", `grep -v nodev /proc/mounts | cut -d' ' -f2 | grep -v '^/dev/'`, "", tier.Namespaces},
		{"only what is the box's own can be written", `cut -d' ' -f2,4 /proc/mounts | grep -v ' ro' | cut -d' ' -f1 | grep -v '^/dev/' | sort | tr '\n' ' '`, "/proc /run/envapi /tmp /workspace ", tier.Namespaces},
		{"no programs in /dev and /proc", `grep -E ' /(dev|proc)' /proc/mounts | grep -v -c noexec`, "0", tier.Namespaces},
		{"/tmp and /dev/shm are bounded", `df -B1 --output=size /tmp /dev/shm | tail -n 2 | tr -s ' \n' ' '`, "536870912 67108864 ", tier.Namespaces},
		{"umask", `umask`, "0022", true},
		{"signals have their defaults", `grep -E 'Sig(Blk|Ign)' /proc/self/status | cut -f2 | tr '\n' ' '`, "0000000000000000 0000000000000000 ", true},
		{"the workspace can be written and is home", `echo x >~/file && cat "$HOME/file"`, "x", true},
		{"the temporary folder can be written", `echo x >"$TMPDIR/file" && cat "$TMPDIR/file"`, "x", true},
		{"a file of the service cannot be read", `cat ` + secret + ` 2>/dev/null || echo refused`, "refused", tier.Confined || tier.UID != 0},
		{"system folders cannot be written", `: 2>/dev/null >/usr/x || : 2>/dev/null >/etc/x || echo refused`, "refused", true},
		{"D1 the init cannot be changed", `(: >/proc/1/exe) 2>/dev/null || chmod 0 /proc/1/exe 2>/dev/null || echo refused`, "refused", true},
		{"D2 the init cannot be read", `cat /proc/1/environ 2>/dev/null || ls /proc/1/fd 2>/dev/null || echo refused`, "refused", true},
		{"D8 the kernel cannot be configured", `for f in /proc/sys/kernel/core_pattern /proc/sysrq-trigger /proc/sys/kernel/hostname; do (echo x >$f) 2>/dev/null && echo $f; done; echo refused`, "refused", true},
		{"D5 no mounts", `mount -t tmpfs x /tmp 2>/dev/null || echo refused`, "refused", true},
		{"D5 no mounts in namespaces of its own either", `unshare -Urm mount -t tmpfs x /tmp 2>/dev/null || echo refused`, "refused", tier.Confined},
		{"D11 no device nodes and no chown", `mknod d c 1 3 2>/dev/null || : >c && chown 0 c 2>/dev/null || echo refused`, "refused", true},
		{"its own process tree", `ls -d /proc/[0-9]* | wc -l | awk '{ print ($1 < 20) ? "own" : "host" }'`, "own", tier.Namespaces},
		{"D17 no network", `cat /proc/net/dev | grep -c -v -E 'Inter|face|lo:'`, "0", tier.Namespaces},
		{"D17 nothing leaves", `(: </dev/tcp/192.0.2.1/9) 2>/dev/null || echo refused`, "refused", true},
		{"one uid exists", `wc -l </proc/self/uid_map; cut -c11-21 /proc/self/uid_map | grep -c '\b0\b'`, "1\n0", tier.Namespaces},
		{"the root cannot be written", `(: >/x) 2>/dev/null || echo refused`, "refused", true},
		{"loopback works", `exec 3<>/dev/tcp/127.0.0.1/9 2>/dev/null; ip -o link show lo 2>/dev/null | grep -c UP || grep -c 'lo:' /proc/net/dev`, "1", tier.Namespaces},
	}
}

func environment(t *testing.T, f fixture) {
	got := f.run(sandbox.Command{Argv: []string{"env"}, Env: map[string]string{"OWN": "a=b", "LANG": "C"}})
	var names []string
	for line := range strings.Lines(got.stdout) {
		name, _, _ := strings.Cut(line, "=")
		names = append(names, name)
	}
	slices.Sort(names)
	want := []string{"GIT_CONFIG_NOSYSTEM", "GIT_PAGER", "HOME", "LANG", "LOGNAME", "OWN", "PAGER", "PATH", "SHELL", "TERM", "TMPDIR", "USER"}
	if !slices.Equal(names, want) {
		t.Errorf("got %q", names)
	}
	if !strings.Contains(got.stdout, "OWN=a=b\n") || !strings.Contains(got.stdout, "LANG=C\n") {
		t.Errorf("the caller's own do not win: %q", got.stdout)
	}
}

func namespaces(t *testing.T, tier Tier, f fixture) {
	for _, name := range []string{"cgroup", "ipc", "mnt", "net", "pid", "user", "uts"} {
		outside, err := os.Readlink("/proc/self/ns/" + name)
		if err != nil {
			t.Fatal(err)
		}
		inside := strings.TrimSpace(f.script("readlink /proc/self/ns/" + name).stdout)
		if tier.Namespaces && (inside == "" || inside == outside) {
			t.Errorf("%s: inside it is %q, outside %q", name, inside, outside)
		}
	}
}

// killEverything is tried only where it cannot reach the machine that runs the
// test.
func killEverything(t *testing.T, tier Tier) {
	if !tier.Namespaces && (tier.UID == 0 || !tier.Confined) {
		t.Skip("in this tier a signal to all reaches everything of the uid that the box does not refuse")
	}
	victim, other := tier.box(t), tier.other().box(t)
	running, _, _ := other.start(sandbox.Command{Script: "sleep 300"})
	const script = "sleep 300 & kill -9 1; kill -TERM 1; kill -STOP 1; kill -9 -1; sleep 300"
	if tier.Namespaces {
		survives(t, victim, script)
	} else { // the init, which is the box's own, may be hit too
		p, _, _ := victim.start(sandbox.Command{Script: script})
		await(t, p.Done(), "a command that kills everything does not end")
	}
	select {
	case <-running.Done():
		t.Error("a command of another box was ended")
	default:
	}
}

// survives: a box is of use after its commands have killed all that they can.
func survives(t *testing.T, f fixture, script string) {
	for range 40 { // it is a race between the reaper and its leader
		if got := f.script(script); got.Signal != "KILL" {
			t.Errorf("got %+v", got)
		}
	}
	if got := f.script("echo usable"); got.stdout != "usable\n" {
		t.Errorf("the box is of no use afterwards: %+v", got)
	}
}
