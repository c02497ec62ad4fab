package store

import (
	"bytes"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"envapi/core"
)

// examined examines a store, and sees that nothing of it is changed.
func examined(t *testing.T, path string) *Examination {
	t.Helper()
	before := filesOf(t, filepath.Dir(path))
	x, err := Examine(t.Context(), path, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if x.Store != nil {
			_ = x.Store.Close()
		}
	})
	if x.Store != nil { // as a start does
		if _, err := x.Store.LoseRunning(t.Context(), exited(0), exited(0)); err != nil {
			t.Fatal(err)
		}
	}
	after := filesOf(t, filepath.Dir(path))
	for name, content := range before {
		if !bytes.Equal(after[name], content) {
			t.Errorf("%s is changed", name)
		}
	}
	if len(after) != len(before) {
		t.Errorf("there are %d files, and were %d", len(after), len(before))
	}
	return x
}

func filesOf(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if all[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// A name of the folder for copies means nothing to SQLite, whatever is in it.
func TestACopyIsExaminedInAFolderOfAnyName(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "50%41?mode=memory#x")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	x, err := Examine(t.Context(), killed(t), dir)
	if err != nil {
		t.Fatal(err)
	}
	if x.Store == nil || x.Schema != x.Knows || len(x.Damage) > 0 {
		t.Fatalf("got %+v", x)
	}
	if err := x.Store.Close(); err != nil {
		t.Fatal(err)
	}
}

// killed is a store whose service was killed: what it wrote last is in its log.
func killed(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "envapi.db")
	s := openAt(t, path)
	mustCreate(t, s, alice, "env_1", "env_2")
	mustRun(t, s, alice, "env_1", "cmd_1")
	dead := filepath.Join(t.TempDir(), "envapi.db")
	for _, end := range []string{"", "-wal"} {
		content, err := os.ReadFile(path + end)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dead+end, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dead
}

// change changes a store behind the back of everybody.
func change(t *testing.T, path string, statements ...string) {
	t.Helper()
	pool, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	for _, s := range statements {
		if _, err := pool.ExecContext(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAStoreThatWasKilledIsExaminedWithItsLog(t *testing.T) {
	x := examined(t, killed(t))
	if x.Missing || len(x.Damage) > 0 || x.Refused != nil || x.Schema != x.Knows || x.Store == nil {
		t.Fatalf("found %+v", x)
	}
	all, err := x.Store.AllEnvironments(t.Context())
	if err != nil || len(all) != 2 {
		t.Errorf("the copy has %d environments, %v", len(all), err)
	}
	for id, want := range map[string]bool{"cmd_1": true, "cmd_2": false} {
		if ran, err := x.Store.Ran(t.Context(), "env_1", id); err != nil || ran != want {
			t.Errorf("%s ran: %v, %v", id, ran, err)
		}
	}
	if ran, _ := x.Store.Ran(t.Context(), "env_2", "cmd_1"); ran {
		t.Error("a command ran in another environment")
	}
}

func TestAnExaminationFindsWhatIsWrong(t *testing.T) {
	t.Run("missing", func(t *testing.T) {
		x := examined(t, filepath.Join(t.TempDir(), "envapi.db"))
		if !x.Missing || x.Store == nil {
			t.Errorf("found %+v", x)
		}
	})
	t.Run("older", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "envapi.db")
		if err := kept(t, 3, path).Close(); err != nil {
			t.Fatal(err)
		}
		x := examined(t, path)
		if x.Schema != 3 || x.Knows < 4 || x.Store == nil {
			t.Fatalf("found %+v", x)
		}
	})
	t.Run("newer", func(t *testing.T) {
		path := killed(t)
		change(t, path, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (9000, 1)`)
		x := examined(t, path)
		if x.Store != nil || x.Schema != 9000 || x.Refused == nil || !strings.Contains(x.Refused.Error(), "9000") {
			t.Errorf("found %+v", x)
		}
	})
	t.Run("a row without its environment", func(t *testing.T) {
		path := killed(t)
		change(t, path, `UPDATE commands SET environment_id = 'env_3'`)
		x := examined(t, path)
		if len(x.Damage) != 1 || !strings.Contains(x.Damage[0], "commands") || x.Store == nil {
			t.Errorf("found %+v", x)
		}
	})
	t.Run("a page of nonsense", func(t *testing.T) {
		path := killed(t)
		change(t, path, `PRAGMA wal_checkpoint(TRUNCATE)`)
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt(bytes.Repeat([]byte{0x55}, 12000), 4096); err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
		if x := examined(t, path); len(x.Damage) == 0 || x.Store != nil {
			t.Errorf("found %+v", x)
		}
	})
	t.Run("no database", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "envapi.db")
		if err := os.WriteFile(path, bytes.Repeat([]byte("text "), 2000), 0o600); err != nil {
			t.Fatal(err)
		}
		if x := examined(t, path); len(x.Damage) == 0 || x.Store != nil {
			t.Errorf("found %+v", x)
		}
	})
	t.Run("a link", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "envapi.db")
		if err := os.Symlink(killed(t), path); err != nil {
			t.Fatal(err)
		}
		if _, err := Examine(t.Context(), path, t.TempDir()); err == nil {
			t.Error("a link is followed")
		}
	})
}

func TestUIDsThatAreNotRecordedAreFound(t *testing.T) {
	s := openNew(t)
	if _, _, err := s.CreateEnvironment(t.Context(), env(alice, "env_1"), core.EnvironmentQuota{PerAccount: 9, PerProfile: 9}, core.UIDRange{First: 100, End: 110}, core.Idempotency{}); err != nil {
		t.Fatal(err)
	}
	if ids, err := s.WithoutUID(t.Context()); err != nil || len(ids) > 0 {
		t.Errorf("found %v, %v", ids, err)
	}
	if _, err := s.durable.exec(t.Context(), `UPDATE environments SET host_uid = 101`); err != nil {
		t.Fatal(err)
	}
	if ids, err := s.WithoutUID(t.Context()); err != nil || len(ids) != 1 || ids[0] != "env_1" {
		t.Errorf("found %v, %v", ids, err)
	}
}
