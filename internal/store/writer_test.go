package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"modernc.org/sqlite"

	"envapi/core"
)

// onCommit has f called before each commit of a writer.
func onCommit(t *testing.T, w *writer, f func()) {
	t.Helper()
	err := w.on.(*sql.Conn).Raw(func(conn any) error {
		conn.(sqlite.HookRegisterer).RegisterCommitHook(func() int32 {
			f()
			return 0
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// synchronous gives what is in force on a writer's connection: 1 is NORMAL and
// 2 is FULL.
func synchronous(t *testing.T, w *writer) (mode int) {
	t.Helper()
	if err := w.row(context.Background(), `PRAGMA synchronous`).Scan(&mode); err != nil {
		t.Fatal(err)
	}
	return mode
}

// Every method that writes commits on the connection that keeps its promise.
func TestEachKindOfTransactionCommitsAsSafelyAsPromised(t *testing.T) {
	s := openAt(t, emptyStore(t))
	s.closing() // no flush comes in between
	<-s.stopped
	ctx := context.Background()
	if full, normal := synchronous(t, s.durable), synchronous(t, s.quick); full != 2 || normal != 1 {
		t.Fatalf("synchronous is %d and %d", full, normal)
	}
	committed := ""
	onCommit(t, s.durable, func() { committed += "FULL " })
	onCommit(t, s.quick, func() { committed += "NORMAL " })
	uids := core.UIDRange{First: 1, End: 10}
	create := func(id string) error {
		_, _, err := s.CreateEnvironment(ctx, env(alice, id), plenty, uids, noKey)
		return err
	}
	run := func(id string) error {
		_, _, _, err := s.CreateCommand(ctx, cmd(alice, "env_1", id), 10, key(id, "f"))
		return err
	}
	for _, step := range []struct {
		name string
		do   func() error
		want string
	}{
		{"CreateEnvironment", func() error { return create("env_1") }, "FULL "},
		{"CreateEnvironment again", func() error { return create("env_2") }, "FULL "},
		{"UpdateEnvironment", func() error {
			_, err := s.UpdateEnvironment(ctx, alice, "env_1", func(e *core.EnvironmentRecord) error { e.Name = "n"; return nil })
			return err
		}, "FULL "},
		{"CreateCommand", func() error { return run("cmd_1") }, "NORMAL "},
		{"CreateCommand again", func() error { return run("cmd_2") }, "NORMAL "},
		{"FinishCommand", func() error { return s.FinishCommand(ctx, "cmd_1", exited(0)) }, "NORMAL "},
		{"DropCommand", func() error { return s.DropCommand(ctx, "cmd_1") }, "NORMAL "},
		{"LoseRunning", func() error { _, err := s.LoseRunning(ctx, exited(0), exited(0)); return err }, "NORMAL "},
		{"DeleteEnvironment", func() error { return s.DeleteEnvironment(ctx, alice, "env_1") }, "NORMAL FULL "},
		{"ReleaseUID", func() error { return s.ReleaseUID(ctx, "env_1") }, "FULL "},
		{"DropEnvironment", func() error { return s.DropEnvironment(ctx, "env_2") }, "NORMAL FULL "},
		{"ClaimAccount", func() error { _, err := s.ClaimAccount(ctx, "alice"); return err }, "FULL "},
		{"flush", func() error { return s.flush(ctx) }, "FULL "},
	} {
		if err := step.do(); err != nil {
			t.Errorf("%s: %v", step.name, err)
		}
		if committed != step.want {
			t.Errorf("%s commits %q, want %q", step.name, committed, step.want)
		}
		committed = ""
	}
}

func TestDiskFull(t *testing.T) {
	s := openNew(t)
	ctx := context.Background()
	mustCreate(t, s, alice, "env_1")
	limitPages := func(n int) {
		for _, w := range []*writer{s.quick, s.durable} {
			var pages int
			if err := w.row(ctx, fmt.Sprintf(`PRAGMA max_page_count = %d`, n)).Scan(&pages); err != nil {
				t.Fatal(err)
			}
		}
	}
	limitPages(1) // SQLite takes the pages that there are
	full := func(err error) bool {
		e := core.AsError(err)
		if err != nil && (e.Code != core.CodeDiskFull || strings.Contains(strings.ToLower(e.Detail), "sqlite")) {
			t.Fatalf("the error is %v", err)
		}
		return err != nil
	}
	n := 0
	for ; n < 10_000; n++ {
		if _, _, _, err := s.CreateCommand(ctx, cmd(alice, "env_1", fmt.Sprint("c", n)), 1<<20, key(n, "f")); full(err) {
			break
		}
	}
	if running, err := s.CountRunning(ctx, "env_1"); err != nil || running != n {
		t.Errorf("%d were answered, %d run, %v", n, running, err)
	}
	m := 0
	for ; m < 10_000; m++ {
		if _, _, err := s.CreateEnvironment(ctx, env(alice, fmt.Sprint("e", m)), plenty, noUIDs, noKey); full(err) {
			break
		}
	}
	limitPages(1 << 30)
	if _, _, _, err := s.CreateCommand(ctx, cmd(alice, "env_1", fmt.Sprint("c", n)), 1<<20, key(n, "f")); err != nil {
		t.Errorf("with space again: %v", err)
	}
	mustCreate(t, s, alice, fmt.Sprint("e", m))
}

// lockFile holds SQLite's lock for writing, as another program would, until
// the function that it gives is called.
func lockFile(t *testing.T, s *Store) (unlock func()) {
	t.Helper()
	var path string
	var ignored any
	if err := s.reads.row(context.Background(), `PRAGMA database_list`).Scan(&ignored, &ignored, &path); err != nil {
		t.Fatal(err)
	}
	other, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := other.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.ExecContext(context.Background(), `BEGIN IMMEDIATE`); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := errors.Join(conn.Close(), other.Close()); err != nil {
			t.Error(err)
		}
	}
}

// impatient makes the writers give up on a lock at once.
func impatient(t *testing.T, s *Store) {
	t.Helper()
	for _, w := range []*writer{s.quick, s.durable} {
		if _, err := w.exec(context.Background(), `PRAGMA busy_timeout = 1`); err != nil {
			t.Fatal(err)
		}
	}
}

func TestALockedFileIsUnavailable(t *testing.T) {
	s := openNew(t)
	ctx := context.Background()
	mustCreate(t, s, alice, "env_1")
	impatient(t, s)
	unlock := lockFile(t, s)
	_, _, _, err := s.CreateCommand(ctx, cmd(alice, "env_1", "cmd_1"), 1, noKey)
	if e := core.AsError(err); e.Code != core.CodeUnavailable || e.Facts["retry_after_ms"] == nil || strings.Contains(e.Detail, "SQL") {
		t.Errorf("the error is %v", err)
	}
	if _, err := s.Environment(ctx, alice, "env_1"); err != nil {
		t.Errorf("reading meanwhile: %v", err)
	}
	unlock()
	mustRun(t, s, alice, "env_1", "cmd_1")
}

func TestPingSaysThatAFlushFailed(t *testing.T) {
	s := openNew(t)
	ctx := context.Background()
	mustCreate(t, s, alice, "env_1")
	if err := s.Ping(ctx); err != nil {
		t.Fatal(err)
	}
	impatient(t, s)
	mustRun(t, s, alice, "env_1", "cmd_1")
	unlock := lockFile(t, s)
	eventually(t, "Ping fails", func() bool { return s.Ping(ctx) != nil })
	if err := s.Ping(ctx); err != nil && !strings.Contains(err.Error(), "cannot flush the store") {
		t.Error(err)
	}
	unlock()
	eventually(t, "the next flush succeeds", func() bool { return s.Ping(ctx) == nil })
}

func TestACallerWhoLeavesTheQueueChangesNothing(t *testing.T) {
	s := openNew(t)
	mustCreate(t, s, alice, "env_1")
	ctx, cancel := context.WithCancel(context.Background())
	s.turn <- struct{}{}
	failed := make(chan error)
	go func() { failed <- s.DeleteEnvironment(ctx, alice, "env_1") }()
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	<-s.turn
	if _, err := s.Environment(context.Background(), alice, "env_1"); err != nil {
		t.Error(err)
	}
}

func TestACallerWhoLeavesInTheMiddleGetsTheWholeDone(t *testing.T) {
	s := openNew(t)
	mustCreate(t, s, alice, "env_1")
	ctx, cancel := context.WithCancel(context.Background())
	updated, err := s.UpdateEnvironment(ctx, alice, "env_1", func(e *core.EnvironmentRecord) error {
		e.Name = "new"
		cancel()
		return nil
	})
	if err != nil || updated.Name != "new" {
		t.Errorf("%+v, %v", updated, err)
	}
}

func TestAPanicUndoesItsTransactionAndLetsTheNextIn(t *testing.T) {
	s := openNew(t)
	ctx := context.Background()
	mustCreate(t, s, alice, "env_1")
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was lost")
			}
		}()
		_, _ = s.UpdateEnvironment(ctx, alice, "env_1", func(*core.EnvironmentRecord) error { panic("mine") })
	}()
	mustCreate(t, s, alice, "env_2")
}

// An id that is taken is a mistake of the service, and says nothing of SQL.
func TestAnUnknownFailureIsInternal(t *testing.T) {
	s := openNew(t)
	mustCreate(t, s, alice, "env_1")
	_, _, err := s.CreateEnvironment(context.Background(), env(bob, "env_1"), plenty, noUIDs, noKey)
	e := core.AsError(err)
	if e.Code != core.CodeInternal || strings.Contains(e.Detail, "environments.id") {
		t.Errorf("%v, to the caller %q", err, e.Detail)
	}
	if !strings.Contains(err.Error(), "cannot create the environment") {
		t.Errorf("the log says %q", err)
	}
}
