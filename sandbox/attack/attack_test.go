package attack_test

import (
	"bytes"
	"net"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"envapi/sandbox"
	"envapi/sandbox/attack"
)

func TestEveryRowSaysWhatItIs(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range attack.Rows() {
		if seen[r.ID] || r.ID == "" || strings.ContainsAny(r.ID, " \t") {
			t.Errorf("%q is no name, or twice there", r.ID)
		}
		seen[r.ID] = true
		if r.Stands == "" || !strings.HasPrefix(r.Tries, "to ") {
			t.Errorf("%s does not say what it tries: %q, for %q", r.ID, r.Tries, r.Stands)
		}
		if r.Expect == (attack.Expect{}) {
			t.Errorf("%s is held nowhere", r.ID)
		}
		for _, verdict := range []string{r.Expect.Directory, r.Expect.User, r.Expect.Namespace} {
			if strings.Contains(verdict, "ESCAPED") || strings.Contains(verdict, "failed") {
				t.Errorf("%s expects %q", r.ID, verdict)
			}
		}
	}
	if len(seen) < 200 {
		t.Errorf("there are only %d", len(seen))
	}
}

func TestAVerdictIsJudgedByItsPlace(t *testing.T) {
	row := attack.Row{ID: "x", Expect: attack.Expect{Directory: "refused EACCES", User: "refused EPERM | refused EACCES", Namespace: "refused ENOENT", Landlock: 3}}
	for _, c := range []struct {
		name        string
		place       attack.Place
		said        string
		claimed, ok bool
	}{
		{"exactly", attack.Place{Tier: sandbox.TierNamespace}, "refused ENOENT\n", true, true},
		{"another errno", attack.Place{Tier: sandbox.TierNamespace}, "refused EACCES", true, false},
		{"an escape", attack.Place{Tier: sandbox.TierNamespace}, "ESCAPED: x", true, false},
		{"nothing", attack.Place{Tier: sandbox.TierNamespace}, "", true, false},
		{"one of two", attack.Place{Tier: sandbox.TierUser, Landlock: 3}, "refused EACCES", true, true},
		{"enough Landlock", attack.Place{Tier: sandbox.TierDirectory, Landlock: 7}, "ESCAPED: x", true, false},
		{"too little Landlock", attack.Place{Tier: sandbox.TierDirectory, Landlock: 2}, "ESCAPED: x", false, true},
	} {
		if got := attack.Judge(c.place, row, c.said); got.Claimed != c.claimed || got.OK != c.ok {
			t.Errorf("%s: got %+v", c.name, got)
		}
	}
}

func TestBaitTellsWhetherItWasTouched(t *testing.T) {
	dir := t.TempDir()
	bait, err := attack.Lay(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := bait.Touched(); err != nil {
		t.Errorf("untouched, it says %v", err)
	}
	if err := os.WriteFile(dir+"/secret", []byte("else"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := bait.Touched(); err == nil || !strings.Contains(err.Error(), "the secret was changed") {
		t.Errorf("with another secret: %v", err)
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(t.Context(), "unix", bait.Targets().Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := bait.Touched(); err == nil || !strings.Contains(err.Error(), "the unix socket was reached") {
		t.Errorf("after a visit: %v", err)
	}
	if err := bait.Close(); err != nil {
		t.Error(err)
	}
	for _, path := range []string{dir + "/secret", bait.Targets().Socket} {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s is left", path)
		}
	}
	if _, err := unix.SysvShmAttach(bait.Targets().Memory, 0, 0); err == nil {
		t.Error("the shared memory is left")
	}
}

func TestAnUnknownAttackIsAnswered(t *testing.T) {
	var out bytes.Buffer
	if code := attack.Main([]string{"none-of-these"}, &out); os.Getuid() != 0 && (code != 2 || !strings.Contains(out.String(), "tiocsti")) {
		t.Errorf("got %d, %q", code, out.String())
	}
}

func TestNothingIsTriedAsRoot(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root is refused; root's pass runs this")
	}
	var out bytes.Buffer
	attack.Main([]string{"mount-umount"}, &out)
	if !strings.HasPrefix(out.String(), "ESCAPED: it is root") {
		t.Errorf("got %q", out.String())
	}
}
