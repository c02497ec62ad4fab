package boxinit

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"envapi/sandbox/protocol"
)

func TestAThreadThatIsNotLockedDownIsFound(t *testing.T) {
	good := "Name:\tx\nCapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n" +
		"CapBnd:\t0000000000000000\nCapAmb:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n"
	for name, c := range map[string]struct {
		status string
		ok     bool
	}{
		"locked down":            {good, true},
		"a permitted capability": {strings.Replace(good, "CapPrm:\t0", "CapPrm:\t1", 1), false},
		"an ambient capability":  {strings.Replace(good, "CapAmb:\t0", "CapAmb:\t2", 1), false},
		"new privileges":         {strings.Replace(good, "NoNewPrivs:\t1", "NoNewPrivs:\t0", 1), false},
		"a line that is missing": {strings.Replace(good, "NoNewPrivs:\t1\n", "", 1), false},
		"no filter":              {strings.Replace(good, "Seccomp:\t2", "Seccomp:\t0", 1), false},
		"nothing":                {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "status")
			if err := os.WriteFile(file, []byte(c.status), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := verifyThread(file, held); (err == nil) != c.ok {
				t.Errorf("got %v", err)
			}
		})
	}
	if err := verifyThread(filepath.Join(t.TempDir(), "gone"), held); err != nil {
		t.Errorf("a thread that has ended: %v", err)
	}
}

func TestAStageThatFailsIsNamedWithItsErrno(t *testing.T) {
	failed := runStages(&protocol.Setup{Namespaces: true}, nil)
	if failed == nil || failed.Stage != "identity" {
		t.Errorf("a process that is not the first of its namespace became init: %+v", failed)
	}
	before := stages
	defer func() { stages = before }()
	stages = []stage{{"one", nil, func(*protocol.Setup, []int) error { return unix.EPERM }}}
	if failed := runStages(&protocol.Setup{}, nil); failed == nil || failed.Stage != "one" || failed.Errno != unix.EPERM {
		t.Errorf("got %+v", failed)
	}
}

func TestPrivilegesAreDroppedBeforeWhatCommandsInherit(t *testing.T) {
	var order []string
	for _, s := range stages {
		order = append(order, s.name)
	}
	for _, pair := range [][2]string{
		{"pivot", "capabilities"},
		{"loopback", "capabilities"},
		{"capabilities", "landlock"},
		{"no_new_privs", "landlock"},
		{"landlock", "seccomp"},
		{"seccomp", "verify"},
	} {
		if slices.Index(order, pair[0]) >= slices.Index(order, pair[1]) {
			t.Errorf("%s does not come before %s", pair[0], pair[1])
		}
	}
}

func TestProgramsAreLookedForAsAShellDoes(t *testing.T) {
	for _, c := range []struct{ name, path, want string }{
		{"ls", "/usr/bin:/bin", "/usr/bin/ls /bin/ls"},
		{"./ls", "/usr/bin", "./ls"},
		{"/bin/ls", "/usr/bin", "/bin/ls"},
		{"ls", ".::relative:/bin", "/bin/ls"}, // nothing relative: the workspace is no place for programs
		{"ls", "", ""},
	} {
		if got := strings.Join(candidates(c.name, c.path), " "); got != c.want {
			t.Errorf("%q in %q: got %q, want %q", c.name, c.path, got, c.want)
		}
	}
}

func TestASpawnWithOtherDescriptorsThanItSaysIsRefused(t *testing.T) {
	spawn := &protocol.Spawn{Argv: []string{"true"}, Merge: true}
	if _, err := newPlan(spawn, []int{5, 6, 7}, nil); err == nil {
		t.Error("three were taken for two")
	}
	if _, err := newPlan(&protocol.Spawn{Merge: true}, []int{5, 6}, nil); err == nil {
		t.Error("nothing to run was accepted")
	}
	if _, err := newPlan(&protocol.Spawn{Argv: []string{"a\x00b"}, Merge: true}, []int{5, 6}, nil); err == nil {
		t.Error("an argument with a NUL was accepted")
	}
	p, err := newPlan(&protocol.Spawn{Argv: []string{"true"}, Stdin: true, Script: true}, []int{9, 5, 6, 7, 8}, nil)
	if err != nil || p.report != 9 || p.stdout != 5 || p.stderr != 6 || p.stdin != 7 || p.script != 8 {
		t.Errorf("got %+v, %v", p, err)
	}
}
