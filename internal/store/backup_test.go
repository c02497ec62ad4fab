package store

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"envapi/core"
)

// TestABackupOfEachSchemaKeepsIt, since the service that wrote it may be the one that
// serves it again, and every row.
func TestABackupOfEachSchemaKeepsIt(t *testing.T) {
	for schema := 1; schema <= newestSchema(t); schema++ {
		t.Run(fmt.Sprint(schema), func(t *testing.T) {
			path, to := filepath.Join(t.TempDir(), "envapi.db"), filepath.Join(t.TempDir(), "copy.db")
			pool := kept(t, schema, path)
			before := content(t, pool)
			b, err := NewBackup(t.Context(), path, to)
			if err != nil {
				t.Fatal(err)
			}
			all, err := b.Environments(t.Context())
			if err != nil || len(all) < 2 {
				t.Fatalf("it has %v, %v", all, err)
			}
			for _, env := range all {
				now, there, err := b.Now(t.Context(), env.ID)
				if err != nil || !there || now.State != env.State {
					t.Errorf("now it is %+v, %v, %v", now, there, err)
				}
			}
			if err := b.Finish(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			copied := raw(t, to)
			for query, rows := range before {
				if got := lines(t, copied, query); !slices.Equal(got, rows) && !strings.Contains(query, "host_uids") {
					t.Errorf("%s\ngives\n%s\nand gave\n%s", query, strings.Join(got, "\n"), strings.Join(rows, "\n"))
				}
			}
			if got := lines(t, copied, `SELECT max(version_id) FROM goose_db_version`); got[0] != fmt.Sprint(schema) {
				t.Errorf("its schema is %s", got)
			}
		})
	}
}

// TestABackupDropsAllOfAnEnvironment, in each schema, and nothing of another.
func TestABackupDropsAllOfAnEnvironment(t *testing.T) {
	for schema := 1; schema <= newestSchema(t); schema++ {
		path, to := filepath.Join(t.TempDir(), "envapi.db"), filepath.Join(t.TempDir(), "copy.db")
		kept(t, schema, path)
		b, err := NewBackup(t.Context(), path, to)
		if err != nil {
			t.Fatal(err)
		}
		all, err := b.Environments(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		gone := all[0]
		if err := b.Drop(t.Context(), gone.ID, true); err != nil {
			t.Fatal(err)
		}
		for _, env := range all[1:] {
			if err := b.Settle(t.Context(), env.ID, nil); err != nil {
				t.Error(err)
			}
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		copied := raw(t, to)
		if got := lines(t, copied, `SELECT count(*) FROM environments`); got[0] != fmt.Sprint(len(all)-1) {
			t.Errorf("schema %d: %v are left of %d", schema, got, len(all))
		}
		for _, query := range []string{
			`SELECT count(*) FROM commands WHERE environment_id = '` + gone.ID + `'`,
			`SELECT count(*) FROM environments WHERE state <> '` + string(core.StateActive) + `'`,
			`SELECT count(*) FROM pragma_foreign_key_check`,
		} {
			if got := lines(t, copied, query); got[0] != "0" {
				t.Errorf("schema %d: %s: %v", schema, query, got)
			}
		}
	}
}

// TestABackupHasNoCommandThatWasRemovedMeanwhile: its output may be gone.
func TestABackupHasNoCommandThatWasRemovedMeanwhile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "envapi.db")
	s := openAt(t, path)
	mustCreate(t, s, alice, "env_a")
	for _, id := range []string{"cmd_old", "cmd_kept"} {
		mustRun(t, s, alice, "env_a", id)
		if _, err := s.LoseRunning(t.Context(), core.CommandEnd{Status: core.CommandLost, EndedAt: &noon}, core.CommandEnd{}); err != nil {
			t.Fatal(err)
		}
	}
	mustRun(t, s, alice, "env_a", "cmd_running")
	to := filepath.Join(t.TempDir(), "copy.db")
	b, err := NewBackup(t.Context(), path, to)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.RemoveCommands(t.Context(), []string{"cmd_old"}); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]bool{"cmd_old": true, "cmd_running": true, "cmd_none": false} {
		if has, err := b.HasOutput(t.Context(), "env_a", id); err != nil || has != want {
			t.Errorf("it has %s: %v, %v", id, has, err)
		}
	}
	if err := b.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if got := lines(t, raw(t, to), `SELECT id FROM commands ORDER BY id`); !slices.Equal(got, []string{"cmd_kept", "cmd_running"}) {
		t.Errorf("it has %v", got)
	}
}

// TestABackupOfWhatIsNoStoreIsRefused: damaged, or of a newer program.
func TestABackupOfWhatIsNoStoreIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "envapi.db")
	pool := kept(t, newestSchema(t), path)
	if _, err := pool.ExecContext(t.Context(), `INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, 1)`); err != nil {
		t.Fatal(err)
	}
	_, err := NewBackup(t.Context(), path, filepath.Join(t.TempDir(), "copy.db"))
	if err == nil || !strings.Contains(err.Error(), "99") {
		t.Errorf("of a newer schema: %v", err)
	}
	noise := filepath.Join(t.TempDir(), "noise.db")
	if err := os.WriteFile(noise, []byte(strings.Repeat("noise", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	if b, err := NewBackup(t.Context(), noise, filepath.Join(t.TempDir(), "copy.db")); err == nil {
		t.Error("a file of noise makes a backup", b.Close())
	}
}

// TestABackupSaysHowToCopyWhatCanOnlyBeRead: SQLite's own words would not.
func TestABackupSaysHowToCopyWhatCanOnlyBeRead(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write to any folder")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "envapi.db")
	s, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	_, err = NewBackup(t.Context(), path, filepath.Join(t.TempDir(), "copy.db"))
	if err == nil || !strings.Contains(err.Error(), "cp -a") {
		t.Errorf("it says %v", err)
	}
}
