package store

import (
	"context"
	"database/sql"
	"io/fs"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/pressly/goose/v3"

	"envapi/core"
)

// schema3 is a store as the envapi with schema 3 left it: made by its migrations and
// filled by statements as it wrote them.
func schema3(t *testing.T, path string) {
	t.Helper()
	pool, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(WAL)&_pragma=foreign_keys(1)")
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		t.Fatal(err)
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, pool, files, goose.WithLogger(goose.NopLogger()), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provider.UpTo(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{
		`INSERT INTO environments (id, account, profile, name, labels, state, limits, host_uid, created_ms, last_activity_ms)
			VALUES ('env_1', 'alice', 'default', 'work', '{"k":"v"}', 'active', '{"shells":2}', 100, 1000, 5000)`,
		`INSERT INTO environments (id, account, profile, name, labels, state, limits, host_uid, created_ms, last_activity_ms)
			VALUES ('env_2', 'bob', 'default', '', 'null', 'deleting', '{}', 0, 2000, 2000)`,
		`INSERT INTO host_uids (uid, environment_id) VALUES (100, 'env_1')`,
		`INSERT INTO commands (id, environment_id, account, profile, command, cwd, merge_stderr, started_ms, status, exit_code, ended_ms)
			VALUES ('cmd_1', 'env_1', 'alice', 'default', 'true', '/workspace', 0, 3000, 'exited', 0, 4000)`,
		`INSERT INTO commands (id, environment_id, account, profile, command, cwd, merge_stderr, started_ms, status, shell_id)
			VALUES ('cmd_2', 'env_1', 'alice', 'default', 'sleep 9', '/workspace', 0, 3500, 'running', 'sh_1')`,
		`INSERT INTO shells (id, environment_id, account, profile, name, kind, cols, rows, cwd, opened_ms, last_activity_ms, state)
			VALUES ('sh_1', 'env_1', 'alice', 'default', 'main', 'command', 80, 24, '/workspace', 3000, 3500, 'open')`,
		`INSERT INTO shells (id, environment_id, account, profile, name, kind, cols, rows, cwd, opened_ms, last_activity_ms, state, close_reason, closed_ms)
			VALUES ('sh_2', 'env_1', 'alice', 'default', '', 'terminal', 80, 24, '/workspace', 3000, 3500, 'closed', 'exited', 3600)`,
		`INSERT INTO idempotency (account, profile, operation, key, fingerprint, resource_id)
			VALUES ('alice', 'default', 'op', 'k', 'f', 'cmd_1')`,
		`UPDATE deployment SET account = 'alice'`,
	} {
		if _, err := pool.ExecContext(t.Context(), row); err != nil {
			t.Fatal(row, err)
		}
	}
}

func TestAnUpgradeFromSchema3KeepsEverything(t *testing.T) {
	path := filepath.Join(t.TempDir(), "envapi.db")
	schema3(t, path)
	before := time.Now().Truncate(time.Millisecond)
	s := openAt(t, path)
	ctx := context.Background()

	shells, uid := 2, 100
	want := []core.EnvironmentRecord{
		{
			ID: "env_1", Owner: alice, Name: "work", Labels: map[string]string{"k": "v"}, State: core.StateActive,
			Limits: core.EnvironmentLimits{Shells: &shells}, HostUID: uid, CreatedAt: fromMS(1000), LastActivityAt: fromMS(5000),
		},
		{ID: "env_2", Owner: bob, State: core.StateDeleting, CreatedAt: fromMS(2000), LastActivityAt: fromMS(2000)},
	}
	if all, err := s.AllEnvironments(ctx); err != nil || !reflect.DeepEqual(all, want) {
		t.Errorf("got\n%+v, %v, want\n%+v", all, err, want)
	}
	if got := idsOf(t, 1, commandIDs(s, alice, "", "")); got != "cmd_2 cmd_1" {
		t.Errorf("its commands are %q", got)
	}
	if c, err := s.Command(ctx, alice, "cmd_1"); err != nil || c.ExitCode == nil || *c.ExitCode != 0 || !c.EndedAt.Equal(fromMS(4000)) {
		t.Errorf("%+v, %v", c, err)
	}
	if sh, err := s.Shell(ctx, alice, "sh_1"); err != nil || sh.State != core.ShellOpen || sh.Name != "main" {
		t.Errorf("%+v, %v", sh, err)
	}
	if uids, err := s.TakenUIDs(ctx); err != nil || len(uids) != 1 || uids[0] != uid {
		t.Errorf("uids %v, %v", uids, err)
	}
	if account, err := s.ClaimAccount(ctx, "bob"); err != nil || account != "alice" {
		t.Errorf("it serves %q, %v", account, err)
	}

	// Its key is as young as the upgrade.
	wantMade(t, s, alice, key("k", "f"), "cmd_1")
	if n, err := s.PruneKeys(ctx, before, 10); err != nil || n != 0 {
		t.Errorf("pruned %d, %v", n, err)
	}
	if n, err := s.PruneKeys(ctx, time.Now().Add(time.Minute), 10); err != nil || n != 1 {
		t.Errorf("pruned %d, %v", n, err)
	}

	// What the new schema is for finds the old rows.
	old, err := s.OldCommands(ctx, "", time.Time{}, noon, 10)
	if got := remnants(t, old, err); got != "[cmd_1]" {
		t.Errorf("old commands: %s", got)
	}
	old, err = s.OldShells(ctx, noon, 10)
	if got := remnants(t, old, err); got != "[sh_2]" {
		t.Errorf("old shells: %s", got)
	}
	if got := idleIDs(t, s, noon, 10); len(got) != 1 || got[0] != "env_1" {
		t.Errorf("idle are %v", got)
	}
	mustTurn(t, s, alice, "env_1", core.StateArchived, &packed)
	if e, err := s.Environment(ctx, alice, "env_1"); err != nil || e.Archive == nil || *e.Archive != packed {
		t.Errorf("%+v, %v", e, err)
	}
}
