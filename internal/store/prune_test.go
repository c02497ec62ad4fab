package store

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"envapi/core"
	"envapi/internal/random"
)

// endedAt is how a command ends some time after noon.
func endedAt(after time.Duration) core.CommandEnd {
	end, at := exited(0), noon.Add(after)
	end.EndedAt = &at
	return end
}

func mustEnd(tb testing.TB, s *Store, id string, after time.Duration) {
	tb.Helper()
	if err := s.FinishCommand(context.Background(), id, endedAt(after)); err != nil {
		tb.Fatal(err)
	}
}

func mustClose(tb testing.TB, s *Store, id string, after time.Duration) {
	tb.Helper()
	at := noon.Add(after)
	if err := s.CloseShell(context.Background(), id, core.ShellEnd{Reason: core.CloseByCaller, ClosedAt: &at}); err != nil {
		tb.Fatal(err)
	}
}

// remnants gives the ids in order.
func remnants(t testing.TB, got []core.Remnant, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]string, len(got))
	for i, r := range got {
		ids[i] = r.ID
	}
	return fmt.Sprint(ids)
}

func TestOldCommands(t *testing.T) {
	s := openNew(t)
	ctx := t.Context()
	mustCreate(t, s, alice, "env_1")
	mustCreate(t, s, bob, "env_2")
	mustRun(t, s, alice, "env_1", "last", "first", "runs")
	mustRun(t, s, bob, "env_2", "middle", "lost")
	mustEnd(t, s, "last", 3*time.Minute)
	mustEnd(t, s, "first", time.Minute)
	mustEnd(t, s, "middle", 2*time.Minute)
	if err := s.FinishCommand(ctx, "lost", core.CommandEnd{Status: core.CommandLost}); err != nil { // at a time that nobody knows
		t.Fatal(err)
	}
	start := time.Time{}
	for _, c := range []struct {
		environment  string
		from, before time.Time
		limit        int
		want         string
	}{
		{"", start, noon.Add(time.Hour), 10, "[first middle last]"},
		{"", start, noon.Add(time.Hour), 2, "[first middle]"},
		{"", start, noon.Add(2 * time.Minute), 10, "[first]"}, // before, not at
		{"", noon.Add(2 * time.Minute), noon.Add(time.Hour), 10, "[middle last]"},
		{"env_1", start, noon.Add(time.Hour), 10, "[first last]"},
		{"env_1", noon.Add(2 * time.Minute), noon.Add(time.Hour), 10, "[last]"},
		{"env_2", start, noon.Add(time.Hour), 10, "[middle]"},
		{"env_3", start, noon.Add(time.Hour), 10, "[]"},
	} {
		old, err := s.OldCommands(ctx, c.environment, c.from, c.before, c.limit)
		if got := remnants(t, old, err); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
	old, err := s.OldCommands(ctx, "env_2", start, noon.Add(time.Hour), 1)
	if want := (core.Remnant{ID: "middle", EnvironmentID: "env_2", EndedAt: core.At(noon.Add(2 * time.Minute)).Time}); err != nil || len(old) != 1 || old[0] != want {
		t.Errorf("%+v, %v", old, err)
	}
}

func TestRemoveCommandsTakesTheirKeysAndLeavesWhatRuns(t *testing.T) {
	s := openNew(t)
	ctx := t.Context()
	mustCreate(t, s, alice, "env_1")
	ids := []string{"gone"}
	for i := range removeAtOnce + 3 { // more than one transaction removes
		id := fmt.Sprint("cmd_", i)
		if _, _, _, err := s.CreateCommand(ctx, cmd(alice, "env_1", id), 1<<20, key(id, "f")); err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			mustEnd(t, s, id, time.Minute)
		}
		ids = append(ids, id)
	}
	kept := ids[len(ids)-1]
	if err := s.RemoveCommands(ctx, ids[:len(ids)-1]); err != nil {
		t.Fatal(err)
	}
	if got := idsOf(t, 50, commandIDs(s, alice, "", "")); got != kept+" cmd_0" {
		t.Errorf("left are %q", got)
	}
	for id, want := range map[string]string{"cmd_0": "cmd_0", "cmd_1": "", "cmd_501": "", kept: kept} {
		wantMade(t, s, alice, key(id, "f"), want)
	}
	if err := s.FinishCommand(ctx, "cmd_0", exited(0)); err != nil {
		t.Errorf("what ran cannot end: %v", err)
	}
	if err := s.RemoveCommands(ctx, nil); err != nil {
		t.Error(err)
	}
}

func TestOldShellsAreThoseWithoutCommands(t *testing.T) {
	s := openNew(t)
	ctx := t.Context()
	mustCreate(t, s, alice, "env_1")
	mustCreate(t, s, bob, "env_2")
	for _, id := range []string{"b", "open", "a", "used"} {
		if _, _, _, err := s.CreateShell(ctx, shell(alice, "env_1", id), 10, key(id, "f")); err != nil {
			t.Fatal(err)
		}
	}
	mustOpen(t, s, bob, "env_2", "bobs")
	c := cmd(alice, "env_1", "cmd_1")
	c.ShellID = "used"
	if _, _, _, err := s.CreateCommand(ctx, c, 1, noKey); err != nil {
		t.Fatal(err)
	}
	mustEnd(t, s, "cmd_1", time.Second)
	for id, after := range map[string]time.Duration{"a": time.Minute, "bobs": 2 * time.Minute, "b": 3 * time.Minute, "used": time.Minute} {
		mustClose(t, s, id, after)
	}
	want := func(before time.Duration, limit int, want string) {
		t.Helper()
		old, err := s.OldShells(ctx, noon.Add(before), limit)
		if got := remnants(t, old, err); got != want {
			t.Errorf("before noon%+v: %s, want %s", before, got, want)
		}
	}
	want(time.Hour, 10, "[a bobs b]")
	want(time.Hour, 2, "[a bobs]")
	want(time.Minute, 10, "[]")
	if err := s.RemoveShells(ctx, []string{"a", "open", "used", "gone"}); err != nil {
		t.Fatal(err)
	}
	want(time.Hour, 10, "[bobs b]")
	for id, made := range map[string]string{"a": "", "b": "b", "open": "open", "used": "used"} {
		wantMade(t, s, alice, key(id, "f"), made)
		if _, err := s.Shell(ctx, alice, id); (made == "") != errors.Is(err, core.ErrNoRecord) {
			t.Errorf("%s: %v", id, err)
		}
	}
	if err := s.RemoveCommands(ctx, []string{"cmd_1"}); err != nil {
		t.Fatal(err)
	}
	want(time.Hour, 10, "[used bobs b]")
}

func TestPruneKeys(t *testing.T) {
	s := openNew(t)
	ctx := t.Context()
	e := env(alice, "env_1")
	if _, _, err := s.CreateEnvironment(ctx, e, plenty, noUIDs, key("env", "f")); err != nil {
		t.Fatal(err)
	}
	used := func(id string, after time.Duration) {
		t.Helper()
		c := cmd(alice, "env_1", id)
		c.StartedAt = noon.Add(after)
		if _, _, _, err := s.CreateCommand(ctx, c, 1<<20, key(id, "f")); err != nil {
			t.Fatal(err)
		}
	}
	used("old", time.Minute)
	used("older", -time.Minute)
	used("young", time.Hour)
	used("old", 5*time.Hour) // a later use of a key does not make it younger
	if _, _, _, err := s.CreateShell(ctx, shell(alice, "env_1", "sh_1"), 10, key("sh", "f")); err != nil {
		t.Fatal(err)
	}
	prune := func(before time.Duration, limit, want int) {
		t.Helper()
		if n, err := s.PruneKeys(ctx, noon.Add(before), limit); err != nil || n != want {
			t.Errorf("pruned %d, %v, want %d", n, err, want)
		}
	}
	prune(-time.Hour, 10, 0)
	prune(time.Hour, 0, 0)
	prune(time.Hour, 1, 1)
	wantMade(t, s, alice, key("older", "f"), "") // the oldest first
	wantMade(t, s, alice, key("old", "f"), "old")
	prune(time.Hour, 10, 3)
	wantMade(t, s, alice, key("old", "f"), "")
	wantMade(t, s, alice, key("sh", "f"), "")
	wantMade(t, s, alice, key("env", "f"), "")
	wantMade(t, s, alice, key("young", "f"), "young")
	prune(time.Hour, 10, 0)
	if _, err := s.Command(ctx, alice, "old"); err != nil {
		t.Errorf("its command went with the key: %v", err)
	}
	err := s.write(ctx, s.quick, "make many keys", func(ctx context.Context, tx *statements) error { // more than one transaction forgets them
		_, err := tx.exec(ctx, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
			INSERT INTO idempotency SELECT 'alice', 'default', 'many', i, 'f', 'cmd_' || i, ? FROM n`, removeAtOnce+20, noon.UnixMilli())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	prune(time.Hour, removeAtOnce+10, removeAtOnce+10)
	prune(time.Hour, removeAtOnce+10, 10)
}

// Pruning never takes a command that runs, a shell that is open, or a key that is
// younger than the bound, whatever there is.
func TestPruningTakesOnlyWhatIsOld(t *testing.T) {
	s := openNew(t)
	ctx := context.Background()
	mustCreate(t, s, alice, "env_1")
	n := 0
	random.Check(t, func(t *rapid.T) {
		minutes := func(what string) time.Duration {
			return time.Duration(rapid.IntRange(0, 20).Draw(t, what)) * time.Minute
		}
		type thing struct {
			id           string
			shell        bool
			began, ended time.Duration // ended -1: it lives
		}
		var things []thing
		for range rapid.IntRange(0, 12).Draw(t, "things") {
			n++
			th := thing{id: fmt.Sprint("id_", n), shell: rapid.Bool().Draw(t, "shell"), began: minutes("began"), ended: -1}
			if rapid.Bool().Draw(t, "ends") {
				th.ended = th.began + minutes("lasts")
			}
			at := noon.Add(th.began + th.ended)
			var err error
			if th.shell {
				sh := shell(alice, "env_1", th.id)
				sh.OpenedAt = noon.Add(th.began)
				_, _, _, err = s.CreateShell(ctx, sh, 1<<20, key(th.id, "f"))
				if at = noon.Add(th.ended); err == nil && th.ended >= 0 {
					err = s.CloseShell(ctx, th.id, core.ShellEnd{Reason: core.CloseByCaller, ClosedAt: &at})
				}
			} else {
				c := cmd(alice, "env_1", th.id)
				c.StartedAt = noon.Add(th.began)
				_, _, _, err = s.CreateCommand(ctx, c, 1<<20, key(th.id, "f"))
				if err == nil && th.ended >= 0 {
					err = s.FinishCommand(ctx, th.id, endedAt(th.ended))
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			things = append(things, th)
		}
		ended, keys := minutes("ended before"), minutes("keys before")
		commands, err := s.OldCommands(ctx, "", time.Time{}, noon.Add(ended), 1<<20)
		shells, err2 := s.OldShells(ctx, noon.Add(ended), 1<<20)
		all := func(old []core.Remnant) (ids []string) {
			for _, r := range old {
				ids = append(ids, r.ID)
			}
			return ids
		}
		_, err3 := s.PruneKeys(ctx, noon.Add(keys), 1<<20)
		if err := errors.Join(err, err2, err3, s.RemoveCommands(ctx, all(commands)), s.RemoveShells(ctx, all(shells))); err != nil {
			t.Fatal(err)
		}
		for _, th := range things {
			var err error
			if th.shell {
				_, err = s.Shell(ctx, alice, th.id)
			} else {
				_, err = s.Command(ctx, alice, th.id)
			}
			gone := th.ended >= 0 && th.ended < ended
			if gone != errors.Is(err, core.ErrNoRecord) {
				t.Fatalf("%+v with a bound of %v: %v", th, ended, err)
			}
			made, err := s.Made(ctx, alice, key(th.id, "f"))
			if forgotten := gone || th.began < keys; err != nil || forgotten != (made == "") {
				t.Fatalf("the key of %+v with bounds of %v and %v: %q, %v", th, ended, keys, made, err)
			}
		}
	})
}

// What looks for what is old reads no more than it finds.
func TestLooksForTheOldUseTheirIndexes(t *testing.T) {
	s := openNew(t)
	ctx := t.Context()
	for _, look := range []func() error{
		func() error { _, err := s.OldCommands(ctx, "", noon, noon, 1); return err },
		func() error { _, err := s.OldCommands(ctx, "env_1", noon, noon, 1); return err },
		func() error { _, err := s.OldShells(ctx, noon, 1); return err },
		func() error { _, err := s.PruneKeys(ctx, noon, 1); return err },
		func() error { _, _, err := s.IdleEnvironments(ctx, noon, "", 1); return err },
		func() error { return s.TouchEnvironments(ctx, map[string]time.Time{"env_1": noon}) },
		func() error { return s.RemoveCommands(ctx, []string{"cmd_1"}) },
		func() error { return s.RemoveShells(ctx, []string{"sh_1"}) },
	} {
		if err := look(); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		on                *statements
		query, index, way string
	}{
		{s.lists, "commands_by_end", "SEARCH commands USING INDEX commands_by_end", `ended_ms>\? AND ended_ms<\?`},
		{s.lists, "commands_of_environment_by_end", "SEARCH commands USING INDEX commands_of_environment_by_end", `environment_id=\? AND ended_ms>\? AND ended_ms<\?`},
		{s.lists, "shells_by_end", "SEARCH shells USING INDEX shells_by_end", `closed_ms<\?`},
		{s.quick.statements, "idempotency_by_age", "SEARCH idempotency USING COVERING INDEX idempotency_by_age", `created_ms<\?`},
		{s.lists, "environments_by_activity", "SEARCH environments USING INDEX environments_by_activity", `last_activity_ms>\? AND last_activity_ms<\?`},
		{s.quick.statements, "UPDATE environments SET last_activity_ms = later.value", "SEARCH environments USING INDEX sqlite_autoindex_environments_1", `id=\?`},
		{s.quick.statements, "DELETE FROM commands WHERE id IN", "SEARCH commands USING INDEX sqlite_autoindex_commands_1", `id=\?`},
		{s.quick.statements, "DELETE FROM shells WHERE id IN", "SEARCH shells USING INDEX sqlite_autoindex_shells_1", `id=\?`},
	} {
		plan := planOf(t, s, c.on, c.query)
		search := regexp.MustCompile(regexp.QuoteMeta(c.index) + `.*` + c.way)
		if !search.MatchString(plan) || strings.Contains(plan, "TEMP B-TREE FOR ORDER") {
			t.Errorf("of %s: %s", c.query, plan)
		}
	}
}

// planOf gives the plan of the one query that was run on these statements with a text
// in it.
func planOf(t *testing.T, s *Store, on *statements, text string) string {
	t.Helper()
	for query := range on.prepared {
		if !strings.Contains(query, text+" ") && !strings.Contains(query, text+"\n") {
			continue
		}
		plan, err := collect(t.Context(), s.reads, func(row scanner) (step string, err error) {
			var ignored int
			err = row.Scan(&ignored, &ignored, &ignored, &step)
			return step, err
		}, `EXPLAIN QUERY PLAN `+query, make([]any, strings.Count(query, "?"))...)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(plan, "; ")
	}
	t.Fatalf("no query has %q", text)
	return ""
}
