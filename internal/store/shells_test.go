package store

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"envapi/core"
)

func shell(o core.Owner, environmentID, id string) core.ShellRecord {
	at := core.At(noon).Time
	return core.ShellRecord{
		ID: id, EnvironmentID: environmentID, Owner: o, Kind: core.ShellCommand, Cols: 80, Rows: 24, Cwd: "/workspace",
		OpenedAt: at, LastActivityAt: at, State: core.ShellOpen,
	}
}

func mustOpen(tb testing.TB, s *Store, o core.Owner, environmentID string, ids ...string) {
	tb.Helper()
	for _, id := range ids {
		if _, _, _, err := s.CreateShell(context.Background(), shell(o, environmentID, id), 1<<20, core.Idempotency{}); err != nil {
			tb.Fatal(err)
		}
	}
}

func closed(reason string) core.ShellEnd {
	at := core.At(noon.Add(time.Minute)).Time
	return core.ShellEnd{Reason: reason, ClosedAt: &at}
}

func TestShellComesBackAsItWasMade(t *testing.T) {
	s := openNew(t)
	ctx := context.Background()
	mustCreate(t, s, alice, "env_1")
	want := shell(alice, "env_1", "sh_1")
	want.Name, want.Kind, want.Cwd = "ä", core.ShellTerminal, "/workspace/\x01"
	if _, env, _, err := s.CreateShell(ctx, want, 1, core.Idempotency{}); err != nil || env.ID != "env_1" {
		t.Fatal(env, err)
	}
	if got, err := s.Shell(ctx, alice, "sh_1"); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("open\n%+v, %v, want\n%+v", got, err, want)
	}
	later := core.At(noon.Add(time.Second)).Time
	if err := s.UpdateShell(ctx, "sh_1", 132, 50, later); err != nil {
		t.Fatal(err)
	}
	code := 3
	end := closed(core.CloseExited)
	end.ExitCode = &code
	if err := s.CloseShell(ctx, "sh_1", end); err != nil {
		t.Fatal(err)
	}
	want.Cols, want.Rows, want.LastActivityAt, want.State, want.ShellEnd = 132, 50, *end.ClosedAt, core.ShellClosed, end
	if got, err := s.Shell(ctx, alice, "sh_1"); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("closed\n%+v, %v, want\n%+v", got, err, want)
	}
	if env, err := s.Environment(ctx, alice, "env_1"); err != nil || !env.LastActivityAt.Equal(*end.ClosedAt) {
		t.Errorf("the environment was last active at %v, %v", env.LastActivityAt, err)
	}
	for _, id := range []string{"sh_1", "sh_2"} { // a shell ends once
		if err := s.CloseShell(ctx, id, closed("closed")); !errors.Is(err, core.ErrNoRecord) {
			t.Errorf("closing %s: %v", id, err)
		}
	}
	if _, err := s.Shell(ctx, bob, "sh_1"); !errors.Is(err, core.ErrNoRecord) {
		t.Errorf("bob sees it: %v", err)
	}
}

func TestACommandOfAShell(t *testing.T) {
	s := openNew(t)
	ctx := context.Background()
	mustCreate(t, s, alice, "env_1")
	mustOpen(t, s, alice, "env_1", "sh_1")
	c := cmd(alice, "env_1", "cmd_1")
	c.ShellID = "sh_1"
	if _, _, _, err := s.CreateCommand(ctx, c, 1, noKey); err != nil {
		t.Fatal(err)
	}
	begun := core.At(noon.Add(time.Second)).Time
	if err := s.BeginCommand(ctx, "cmd_1", begun); err != nil {
		t.Fatal(err)
	}
	end := exited(0)
	at := core.At(noon.Add(2 * time.Second)).Time
	end.EndedAt, end.ShellClosed, end.Cwd, end.Late.TTY = &at, true, "/tmp", 7
	if err := s.FinishCommand(ctx, "cmd_1", end); err != nil {
		t.Fatal(err)
	}
	got, err := s.Command(ctx, alice, "cmd_1")
	if err != nil || got.ShellID != "sh_1" || got.Cwd != "/tmp" || !got.ShellClosed || got.Late.TTY != 7 || !got.StartedAt.Equal(begun) {
		t.Errorf("%+v, %v", got, err)
	}
	if sh, err := s.Shell(ctx, alice, "sh_1"); err != nil || sh.Cwd != "/tmp" || !sh.LastActivityAt.Equal(at) {
		t.Errorf("%+v, %v", sh, err)
	}
	if err := s.BeginCommand(ctx, "cmd_1", begun); !errors.Is(err, core.ErrNoRecord) {
		t.Errorf("one that has ended begins: %v", err)
	}
	if err := s.FinishCommand(ctx, "cmd_2", end); !errors.Is(err, core.ErrNoRecord) {
		t.Errorf("one that never was ends: %v", err)
	}
}

func TestShellsAreListed(t *testing.T) {
	s := openNew(t)
	ctx := context.Background()
	mustCreate(t, s, alice, "env_1", "env_2")
	mustCreate(t, s, bob, "env_3")
	mustOpen(t, s, alice, "env_1", "a", "b", "c")
	mustOpen(t, s, alice, "env_2", "d")
	mustOpen(t, s, bob, "env_3", "e")
	if err := s.CloseShell(ctx, "b", closed(core.CloseByCaller)); err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		f    core.ListShellsInput
		want string
	}{
		{core.ListShellsInput{}, "[d c b a]"},
		{core.ListShellsInput{EnvironmentID: "env_1"}, "[c b a]"},
		{core.ListShellsInput{EnvironmentID: "env_1", State: "open"}, "[c a]"},
		{core.ListShellsInput{State: "closed"}, "[b]"},
		{core.ListShellsInput{EnvironmentID: "env_3"}, "[]"},
	} {
		for _, limit := range []int{1, 2, 50} {
			ids := []string{}
			for c.f.Limit = limit; ; {
				items, next, err := s.ListShells(ctx, alice, c.f)
				if err != nil {
					t.Fatal(err)
				}
				for _, sh := range items {
					ids = append(ids, sh.ID)
				}
				if c.f.Cursor = next; next == "" {
					break
				}
			}
			if fmt.Sprint(ids) != c.want {
				t.Errorf("%d, by %d: got %v, want %s", i, limit, ids, c.want)
			}
		}
	}
	if open, err := s.CountShells(ctx, "env_1"); err != nil || open != 2 {
		t.Errorf("%d are open, %v", open, err)
	}
}

func TestCommandsAreListedByShell(t *testing.T) {
	s := openNew(t)
	ctx := context.Background()
	mustCreate(t, s, alice, "env_1")
	mustOpen(t, s, alice, "env_1", "sh_1", "sh_2")
	for i, shellID := range []string{"", "sh_1", "sh_2", "sh_1"} {
		c := cmd(alice, "env_1", fmt.Sprint("cmd_", i))
		c.ShellID = shellID
		if _, _, _, err := s.CreateCommand(ctx, c, 10, noKey); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.FinishCommand(ctx, "cmd_1", exited(0)); err != nil {
		t.Fatal(err)
	}
	for want, f := range map[string]core.ListCommandsInput{
		"[cmd_3 cmd_1]": {ShellID: "sh_1"},
		"[cmd_3]":       {ShellID: "sh_1", Status: "running", EnvironmentID: "env_1"},
		"[]":            {ShellID: "sh_3"},
	} {
		items, _, err := s.ListCommands(ctx, alice, f)
		ids := []string{}
		for _, c := range items {
			ids = append(ids, c.ID)
		}
		if err != nil || fmt.Sprint(ids) != want {
			t.Errorf("got %v, %v, want %s", ids, err, want)
		}
	}
}

func TestCloseShells(t *testing.T) {
	s := openNew(t)
	ctx := context.Background()
	mustCreate(t, s, alice, "env_1")
	mustCreate(t, s, bob, "env_2")
	mustOpen(t, s, alice, "env_1", "ended", "alices")
	mustOpen(t, s, bob, "env_2", "bobs")
	if err := s.CloseShell(ctx, "ended", closed(core.CloseByCaller)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{2, 0} {
		if n, err := s.CloseShells(ctx, noon, core.CloseServiceRestarted); err != nil || n != want {
			t.Errorf("closed %d, %v, want %d", n, err, want)
		}
	}
	if sh, err := s.Shell(ctx, alice, "ended"); err != nil || sh.Reason != core.CloseByCaller {
		t.Errorf("%+v, %v", sh, err)
	}
	if sh, err := s.Shell(ctx, bob, "bobs"); err != nil || sh.State != core.ShellClosed || sh.Reason != core.CloseServiceRestarted {
		t.Errorf("%+v, %v", sh, err)
	}
}

func TestShellsOnlyInActiveEnvironmentsAndWithin(t *testing.T) {
	s := openNew(t)
	ctx := context.Background()
	mustCreate(t, s, alice, "env_1", "env_2")
	made := together(t, 200, core.CodeQuotaExceeded, func(i int) error {
		_, _, _, err := s.CreateShell(ctx, shell(alice, "env_1", fmt.Sprint("sh_", i)), 10, core.Idempotency{})
		return err
	})
	if open, err := s.CountShells(ctx, "env_1"); made != 10 || open != 10 || err != nil {
		t.Errorf("made %d, %d are open, %v", made, open, err)
	}
	_, _, _, err := s.CreateShell(ctx, shell(alice, "env_1", "more"), 10, core.Idempotency{})
	wantQuota(t, err, "shells", 10, 10)
	lower := 1
	_, err = s.UpdateEnvironment(ctx, alice, "env_2", func(e *core.EnvironmentRecord) error {
		e.Limits.Shells = &lower
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	mustOpen(t, s, alice, "env_2", "one")
	_, _, _, err = s.CreateShell(ctx, shell(alice, "env_2", "two"), 10, core.Idempotency{})
	wantQuota(t, err, "shells", 1, 1)
	if err := s.DropShell(ctx, "one"); err != nil {
		t.Fatal(err)
	}
	mustOpen(t, s, alice, "env_2", "again")
	for id, code := range map[string]core.Code{"env_x": core.CodeNotFound, "env_2": core.CodeEnvironmentBusy} {
		_, err := s.UpdateEnvironment(ctx, alice, "env_2", func(e *core.EnvironmentRecord) error {
			e.State = core.StateResetting
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := s.CreateShell(ctx, shell(alice, id, "three"), 10, core.Idempotency{}); core.AsError(err).Code != code {
			t.Errorf("%s: %v", id, err)
		}
	}
}

func TestShellsGoWithTheirEnvironment(t *testing.T) {
	s := openNew(t)
	ctx := context.Background()
	mustCreate(t, s, alice, "env_1", "env_2")
	for i := range removeAtOnce + 3 {
		mustOpen(t, s, alice, "env_1", fmt.Sprint("sh_", i))
	}
	mustOpen(t, s, alice, "env_2", "other")
	if err := s.DeleteEnvironment(ctx, alice, "env_1"); err != nil {
		t.Fatal(err)
	}
	items, _, err := s.ListShells(ctx, alice, core.ListShellsInput{Paging: core.Paging{Limit: 200}})
	if err != nil || len(items) != 1 || items[0].ID != "other" {
		t.Errorf("%d are left, %v", len(items), err)
	}
}
