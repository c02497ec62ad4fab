package store

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"modernc.org/sqlite"

	"envapi/core"
)

// dev is who filled the kept stores.
var dev = core.Owner{Account: "dev", Profile: "default"}

// kept lays out the store of an earlier schema, as testdata has it.
func kept(t *testing.T, schema int, path string) *sql.DB {
	t.Helper()
	dump, err := os.ReadFile(fmt.Sprintf("testdata/schema-%d.sql", schema))
	if err != nil {
		t.Fatalf("a migration needs a kept store of the schema before it, see testdata/README.md: %v", err)
	}
	pool := raw(t, path)
	if _, err := pool.ExecContext(t.Context(), string(dump)); err != nil {
		t.Fatal(err)
	}
	return pool
}

// raw opens a file with nothing of ours.
func raw(t *testing.T, path string) *sql.DB {
	t.Helper()
	pool, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(WAL)")
	if err != nil {
		t.Fatal(err)
	}
	pool.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = pool.Close() })
	return pool
}

// lines gives the rows of a query, a line each.
func lines(t *testing.T, pool *sql.DB, query string) []string {
	t.Helper()
	rows, err := pool.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(query, err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for rows.Next() {
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new(any)
		}
		if err := rows.Scan(values...); err != nil {
			t.Fatal(err)
		}
		line := make([]string, len(columns))
		for i, value := range values {
			line[i] = fmt.Sprint(*value.(*any))
		}
		all = append(all, strings.Join(line, "|"))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// content gives what is in a store, by query, so that the same can be asked after
// columns were added. Tables of goose's and of SQLite's own are left out.
func content(t *testing.T, pool *sql.DB) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, table := range lines(t, pool, `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT GLOB 'sqlite_*' AND name NOT GLOB 'goose_*'`) {
		columns := lines(t, pool, `SELECT name FROM pragma_table_info('`+table+`') WHERE name != 'flushes'`) // a clock
		query := `SELECT ` + strings.Join(columns, ", ") + ` FROM ` + table + ` ORDER BY 1, 2`
		all[query] = lines(t, pool, query)
	}
	return all
}

// TestEachSchemaIsUpgraded fails when a migration was added without a kept store of
// the schema before it.
func TestEachSchemaIsUpgraded(t *testing.T) {
	newest := newestSchema(t)
	for schema := 1; schema <= newest; schema++ {
		if _, err := os.Stat(fmt.Sprintf("testdata/schema-%d.sql", schema)); schema == newest && err != nil {
			break // it may still change
		}
		t.Run(fmt.Sprint(schema), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "envapi.db")
			pool := kept(t, schema, path)
			before := content(t, pool)
			if err := pool.Close(); err != nil {
				t.Fatal(err)
			}
			began := time.Now().Truncate(time.Millisecond)
			s := openAt(t, path)
			if from, to := s.Upgraded(); from != int64(schema) || to != int64(newest) {
				t.Errorf("it says that it went from %d to %d", from, to)
			}
			keptAll(t, path, before)
			keptRecords(t, s, before)
			keptKeys(t, s, path, schema, began)
			mustCreate(t, s, dev, "env_new")
			mustRun(t, s, dev, "env_new", "cmd_new")
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if from, to := openAt(t, path).Upgraded(); from != to {
				t.Errorf("opened again it went from %d to %d", from, to)
			}
		})
	}
}

func newestSchema(t *testing.T) int {
	t.Helper()
	all, err := migrations.ReadDir("migrations")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// keptAll makes sure that no row is lost or changed, and that the schema is that of a
// new store.
func keptAll(t *testing.T, path string, before map[string][]string) {
	t.Helper()
	pool := raw(t, path)
	for query, rows := range before {
		if after := lines(t, pool, query); !slices.Equal(rows, after) {
			t.Errorf("%s\ngave\n%s\nand gives\n%s", query, strings.Join(rows, "\n"), strings.Join(after, "\n"))
		}
	}
	for query, want := range map[string]string{`PRAGMA integrity_check`: "ok", `SELECT count(*) FROM pragma_foreign_key_check`: "0"} {
		if got := lines(t, pool, query); !slices.Equal(got, []string{want}) {
			t.Errorf("%s: %v", query, got)
		}
	}
	const schema = `SELECT type, name, tbl_name, replace(sql, '"', '') FROM sqlite_schema WHERE name NOT GLOB 'goose_*' ORDER BY type, name`
	fresh := raw(t, emptyStore(t))
	if got, want := lines(t, pool, schema), lines(t, fresh, schema); !slices.Equal(got, want) {
		t.Errorf("the schema is\n%s\nand of a new store\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if err := pool.Close(); err != nil {
		t.Fatal(err)
	}
}

// keptRecords reads each through the store: its columns are taken as they are meant.
func keptRecords(t *testing.T, s *Store, before map[string][]string) {
	t.Helper()
	ctx := context.Background()
	all, err := s.AllEnvironments(ctx)
	if err != nil || len(all) != 2 {
		t.Fatalf("environments %+v, %v", all, err)
	}
	for _, e := range all {
		work := e.Name == "work" && e.State == core.StateActive && e.Labels["team"] == "red" && e.Limits.Shells != nil && *e.Limits.Shells == 4
		other := e.Name == "archived" && (e.State == core.StateActive) == (e.Archive == nil)
		if !work && !other || e.Owner != dev || e.HostUID == 0 || e.CreatedAt.IsZero() || e.Idle != nil {
			t.Errorf("an environment is %+v", e)
		}
	}
	uids, err := s.TakenUIDs(ctx)
	if err != nil || len(uids) != 2 || uids[0] == uids[1] {
		t.Errorf("uids %v, %v", uids, err)
	}
	ends := map[core.CommandStatus]int{}
	for query, rows := range before {
		for _, row := range rows {
			id := strings.Split(row, "|")[1]
			switch {
			case strings.HasSuffix(query, "FROM commands ORDER BY 1, 2"):
				c, err := s.Command(ctx, dev, id)
				if err != nil || c.Command == "" || (c.EndedAt == nil) != (c.Status == core.CommandRunning) {
					t.Errorf("%s is %+v, %v", id, c, err)
				}
				ends[c.Status]++
			case strings.HasSuffix(query, "FROM shells ORDER BY 1, 2"):
				if sh, err := s.Shell(ctx, dev, id); err != nil || sh.Name == "" || (sh.ClosedAt == nil) != (sh.State == core.ShellOpen) {
					t.Errorf("%s is %+v, %v", id, sh, err)
				}
			}
		}
	}
	if ends[core.CommandExited] < 5 || ends[core.CommandSignaled] != 1 || ends[core.CommandTimedOut] != 1 || ends[core.CommandKilled] != 1 ||
		ends[core.CommandLost]+ends[core.CommandRunning] != 2 {
		t.Errorf("commands by their end: %v", ends)
	}
}

// keptKeys makes sure that keys hold, and that those that were kept without their age
// are as young as the upgrade.
func keptKeys(t *testing.T, s *Store, path string, schema int, began time.Time) {
	t.Helper()
	ctx := context.Background()
	rows, err := raw(t, path).QueryContext(ctx, `SELECT operation, key, fingerprint, resource_id FROM idempotency`)
	if err != nil {
		t.Fatal(err)
	}
	var keys []core.Idempotency
	var made []string
	for rows.Next() {
		var k core.Idempotency
		var id string
		if err := rows.Scan(&k.Operation, &k.Key, &k.Fingerprint, &id); err != nil {
			t.Fatal(err)
		}
		keys, made = append(keys, k), append(made, id)
	}
	if err := rows.Err(); err != nil || len(keys) != 4 {
		t.Errorf("keys %v, %v", keys, err)
	}
	for i, k := range keys {
		wantMade(t, s, dev, k, made[i])
	}
	if schema < 4 {
		if n, err := s.PruneKeys(ctx, began, 10); err != nil || n != 0 {
			t.Errorf("pruned %d, %v", n, err)
		}
	}
	if n, err := s.PruneKeys(ctx, began.AddDate(100, 0, 0), 10); err != nil || n != len(keys) {
		t.Errorf("pruned %d, %v", n, err)
	}
	if old, err := s.OldCommands(ctx, "", time.Time{}, began.AddDate(100, 0, 0), 100); err != nil || len(old) < 9 {
		t.Errorf("old commands: %v, %v", old, err)
	}
}

// upgradeAndDieEnv has the test binary be upgradeAndDie: "STEP PATH".
const upgradeAndDieEnv = "ENVAPI_TEST_UPGRADE_AND_DIE"

// upgradeAndDie opens a store and is killed at a step of that: before a row is changed,
// or before a transaction is committed. Where there are fewer steps it ends with 0.
func upgradeAndDie(order string) {
	var at, step int32
	var path string
	if _, err := fmt.Sscan(order, &at, &path); err != nil {
		panic(err)
	}
	die := func() int32 {
		if step++; step == at {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // until it is dead
		}
		return 0
	}
	sqlite.RegisterConnectionHook(func(conn sqlite.ExecQuerierContext, _ string) error {
		hooks := conn.(sqlite.HookRegisterer)
		hooks.RegisterCommitHook(die)
		hooks.RegisterPreUpdateHook(func(sqlite.SQLitePreUpdateData) { die() })
		return nil
	})
	if _, err := Open(context.Background(), path); err != nil {
		panic(err)
	}
	os.Exit(0)
}

func TestAnUpgradeThatIsKilledLeavesTheOldOrTheNew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "envapi.db")
	pool := kept(t, 3, path)
	before := content(t, pool)
	if err := pool.Close(); err != nil {
		t.Fatal(err)
	}
	old := read(t, path)
	found := map[string]int{}
	for step, alive := 1, false; !alive; step++ {
		path := filepath.Join(t.TempDir(), "envapi.db")
		write(t, path, old)
		alive = diesAt(t, step, path)
		pool := raw(t, path)
		found[lines(t, pool, `SELECT max(version_id) FROM goose_db_version`)[0]]++
		for query, rows := range before {
			if after := lines(t, pool, query); !slices.Equal(rows, after) {
				t.Errorf("killed at step %d: %s\ngave\n%s\nand gives\n%s", step, query, strings.Join(rows, "\n"), strings.Join(after, "\n"))
			}
		}
		if err := pool.Close(); err != nil { // puts the log into the file
			t.Fatal(err)
		}
		s := openAt(t, path)
		if from, to := s.Upgraded(); from < 3 || to != int64(newestSchema(t)) {
			t.Errorf("killed at step %d it went on from %d to %d", step, from, to)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if found["3"] < 4 || len(found) < 2 {
		t.Errorf("after so many kills it had these schemas: %v", found)
	}
}

// diesAt has an upgrade killed at a step, and says whether there was none.
func diesAt(t *testing.T, step int, path string) (alive bool) {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s", upgradeAndDieEnv, step, path))
	out, err := child.CombinedOutput()
	if err != nil && !strings.Contains(err.Error(), "killed") {
		t.Fatalf("it ended with %v:\n%s", err, out)
	}
	return err == nil
}
