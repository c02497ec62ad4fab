package sandboxtest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"envapi/sandbox"
	"envapi/sandbox/attack"
)

// betweenBoxes are the attacks that are tried on another box: on what it shares
// in its own namespaces, or where there are none, on its files and processes.
func betweenBoxes(tier Tier) []attack.Row {
	prefixes := []string{"secret-", "folder-", "service-mem", "service-environ", "service-root", "service-fd", "service-signal", "service-pidfd", "service-ptrace", "service-oom"}
	if tier.Namespaces {
		prefixes = []string{"secret-", "folder-", "abstract", "unix-path", "shared-memory", "message-queue", "semaphore", "posix-queue", "loopback-"}
	}
	return slices.DeleteFunc(attack.Rows(), func(r attack.Row) bool {
		return !slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(r.ID, p) })
	})
}

// neighbours: nothing of one box can be reached from another, be it of the same
// host uid.
func neighbours(t *testing.T, tier Tier) {
	if !tier.Confined {
		t.Skip("without Landlock this tier serves one account only")
	}
	target, attacker := tier.box(t), tier.other().box(t)
	if err := os.Mkdir(filepath.Join(target.workspace, "bait"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(filepath.Join(target.workspace, "bait"), max(tier.UID, os.Geteuid()), -1); err != nil {
		t.Fatal(err)
	}
	_, told, _ := target.start(sandbox.Command{Argv: []string{target.attacker(), "lay", filepath.Join(target.inside, "bait")}})
	eventually(t, "the targets are laid", func() bool { return strings.HasSuffix(told.String(), "\n") })
	bait, program := attack.Told(told.String()), attacker.attacker()
	for _, row := range betweenBoxes(tier) {
		t.Run(row.ID, func(t *testing.T) { attacker.try(t, tier, program, row, bait) })
	}
}

// hostileWorkspace: what lies in a workspace when a box starts leads the setup
// nowhere.
func hostileWorkspace(t *testing.T, tier Tier) {
	outside := t.TempDir()
	workspace := Workspace(t, tier.UID)
	for _, name := range []string{"dev", "proc", "tmp", "etc", "usr", "bin", "lib", "sys", "run", "var", "workspace", "bash", "envapi-init"} {
		if err := os.Symlink(outside, filepath.Join(workspace, name)); err != nil {
			t.Fatal(err)
		}
	}
	box, err := tier.Open(t.Context(), sandbox.Spec{ID: "hostile", Workspace: workspace, UID: tier.UID, Limits: sandbox.Limits{Processes: 64}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = box.Close() }()
	f := fixture{t: t, box: box, workspace: workspace, inside: tier.WorkspacePath(workspace)}
	if got := f.script("cd; echo x >file; echo y >/tmp/y 2>/dev/null; cat file"); got.stdout != "x\n" {
		t.Errorf("the box is of no use: %+v", got)
	}
	if err := box.Close(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) != 0 {
		t.Errorf("outside there is now %v, %v", left, err)
	}
}
