package host

import (
	"log/slog"
	"os"
	"strings"
	"testing"

	"envapi/internal/testbin"
	"envapi/sandbox"
	"envapi/sandbox/landlock"
	"envapi/sandbox/sandboxtest"
	"envapi/sandbox/supervisor"
)

// boaster is a tier on the host's file tree and without Landlock that claims to
// hold what it does not.
type boaster struct{ tier }

func (boaster) Controls() []sandbox.Control {
	return []sandbox.Control{
		{Name: "files", Enforced: true, Detail: "so it says"},
		{Name: "landlock", Enforced: true, Detail: "so it says"},
		{Name: "processes_hidden", Enforced: true, Detail: "so it says"},
		{Name: "no_new_privs", Enforced: true, Detail: "which is true"},
	}
}

func newBoaster(t *testing.T) (sandbox.Tier, tier, Options) {
	t.Helper()
	launcher, err := supervisor.NewLauncher(testbin.Init(t))
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Private: sandboxtest.Folder(t), Log: slog.New(slog.DiscardHandler)}
	name := sandbox.TierDirectory
	if os.Geteuid() == 0 {
		name = sandbox.TierUser
	}
	weak := newTier(name, launcher, nil, 0, o)
	t.Cleanup(func() {
		_ = weak.Close()
		_ = launcher.Close()
	})
	return name, boaster{weak}, o
}

func TestWhatATierClaimsIsNotBelieved(t *testing.T) {
	if landlock.ABI() < landlock.ABIScopes {
		t.Skip("what Landlock forbids is looked at where the kernel has it")
	}
	name, tier, o := newBoaster(t)
	controls, err := probe(t.Context(), name, tier, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range controls {
		if c.Enforced != (c.Name == "no_new_privs") || !c.Enforced && !strings.Contains(c.Detail, "the probe found") {
			t.Errorf("got %+v", c)
		}
	}
}

func TestATierThatLetsProgramsEscapeIsNone(t *testing.T) {
	_, tier, o := newBoaster(t)
	if _, err := probe(t.Context(), sandbox.TierNamespace, tier, o); err == nil || !strings.Contains(err.Error(), "cannot contain a program") {
		t.Errorf("got %v", err)
	}
}
