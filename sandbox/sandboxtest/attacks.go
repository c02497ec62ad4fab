package sandboxtest

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"envapi/internal/testbin"
	"envapi/sandbox"
	"envapi/sandbox/attack"
	"envapi/sandbox/landlock"
)

// name gives the tier's.
func (tier Tier) name() sandbox.Tier {
	switch {
	case tier.Namespaces:
		return sandbox.TierNamespace
	case tier.UID != 0:
		return sandbox.TierUser
	default:
		return sandbox.TierDirectory
	}
}

func (tier Tier) place() attack.Place {
	p := attack.Place{Tier: tier.name()}
	if tier.Confined {
		p.Landlock = landlock.ABI()
	}
	return p
}

// unreadable makes this process as unreadable as package host makes the service.
func unreadable(t *testing.T) {
	t.Helper()
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0) })
}

// attacks: every attack that there is comes to what the tier says.
func attacks(t *testing.T, tier Tier) {
	unreadable(t)
	f := tier.box(t)
	program := f.attacker()
	bait := lay(t)
	for _, row := range attack.Rows() {
		t.Run(row.ID, func(t *testing.T) {
			f.try(t, tier, program, row, bait)
		})
	}
	if tier.Namespaces {
		if err := bait.Touched(); err != nil {
			t.Error(err)
		}
	}
	if got := f.script("echo usable"); got.stdout != "usable\n" {
		t.Errorf("the box is of no use afterwards: %+v", got)
	}
}

// try tries one attack and judges it.
func (f fixture) try(t *testing.T, tier Tier, program string, row attack.Row, bait *attack.Bait) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	said, err := attack.Try(ctx, f.box, []string{program}, row, bait)
	if err != nil {
		t.Fatal(err)
	}
	judgement := attack.Judge(tier.place(), row, said)
	if !judgement.OK {
		t.Errorf("%s (%s): got %q, want one of %q", row.Tries, row.Stands, said, judgement.Want)
	}
	if !judgement.Claimed {
		t.Logf("not held in this tier: %s: %s", row.Tries, said)
	}
}

// lay makes the targets of the attacks, in a folder that only the test may
// enter.
func lay(t *testing.T) *attack.Bait {
	t.Helper()
	bait, err := attack.Lay(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := bait.Close(); err != nil {
			t.Error(err)
		}
	})
	return bait
}

// attacker copies the program of the attacks into the workspace and gives its
// path inside.
func (f fixture) attacker() string {
	f.t.Helper()
	source, err := os.Open(testbin.Path(f.t, "attacker"))
	if err != nil {
		f.t.Fatal(err)
	}
	defer source.Close()
	const name = "attacker"
	copied, err := os.OpenFile(filepath.Join(f.workspace, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755) //nolint:gosec // a program
	if err != nil {
		f.t.Fatal(err)
	}
	if _, err := io.Copy(copied, source); err != nil {
		f.t.Fatal(err)
	}
	if f.uid != 0 {
		if err := copied.Chown(f.uid, f.uid); err != nil {
			f.t.Fatal(err)
		}
	}
	path := filepath.Join(f.inside, name)
	if err := copied.Close(); err != nil {
		f.t.Fatal(err)
	}
	// An init that is being made has the file open for a moment longer.
	const usage = 2
	eventually(f.t, "the attacker can be executed", func() bool { return f.run(sandbox.Command{Argv: []string{path}}).ExitCode == usage })
	return path
}
