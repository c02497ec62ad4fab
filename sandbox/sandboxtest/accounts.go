package sandboxtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"envapi/sandbox"
)

// accountsAreWeighed looks which cgroups boxes are in; what those have of the
// processors is tested in package cgroup.
func accountsAreWeighed(t *testing.T, tier Tier, g Groups) {
	for _, c := range []struct {
		name, one, other string
		groups           int
	}{
		{"one account", "alice", "alice", 1},
		{"two accounts", "alice", "bob", 2},
		{"no account", "", "", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			for account, tier := range map[*string]Tier{&c.one: tier, &c.other: tier.other()} {
				f := tier.boxOfAccount(t, *account)
				f.start(sandbox.Command{Argv: []string{"sleep", "1000"}})
			}
			eventually(t, "both run", func() bool { return len(g.busy(t, 1)) == 2 })
			if got := g.busy(t, 2); len(got) != c.groups {
				t.Errorf("two boxes are in %d groups of accounts, want %d: %v", len(got), c.groups, got)
			}
		})
	}
}

func (tier Tier) boxOfAccount(t *testing.T, account string) fixture {
	t.Helper()
	f := fixture{t: t, workspace: Workspace(t, tier.UID), uid: tier.UID}
	box, err := tier.Open(t.Context(), sandbox.Spec{
		ID: "test", Workspace: f.workspace, UID: tier.UID, Account: account, Limits: sandbox.Limits{Processes: 64},
	})
	if err != nil {
		t.Fatalf("cannot open a box: %v", err)
	}
	f.box = box
	t.Cleanup(func() { _ = box.Close() })
	return f
}

// busy gives the groups that are so many levels above those with processes: one
// above are boxes, two accounts. Those of the hierarchy of the processors only.
func (g Groups) busy(t *testing.T, above int) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, folder := range g.folders(t) {
		if _, err := os.Stat(filepath.Join(folder, "cpu.stat")); err != nil {
			continue
		}
		pids, err := os.ReadFile(filepath.Join(folder, "cgroup.procs"))
		if err != nil || len(strings.TrimSpace(string(pids))) == 0 {
			continue
		}
		if filepath.Base(folder) == "tasks" { // of version 2
			folder = filepath.Dir(folder)
		}
		for range above {
			folder = filepath.Dir(folder)
		}
		found[folder] = true
	}
	return found
}
