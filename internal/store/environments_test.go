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

func TestEnvironmentComesBackAsItWasMade(t *testing.T) {
	s := openNew(t)
	ctx := context.Background()
	running, processes, idle := 3, 40, 90*time.Second+time.Millisecond
	e := core.EnvironmentRecord{
		ID:             "env_1",
		Owner:          core.Owner{Account: "a\x00b'\"", Profile: "p\xff😀"},
		Name:           "name\n\x00\xfe'; DROP TABLE environments; --",
		Labels:         map[string]string{"": "", "k\x00\"\\": "v\u2028<>&"},
		State:          core.StateActive,
		Limits:         core.EnvironmentLimits{RunningCommands: &running, Processes: &processes},
		Idle:           &idle,
		CreatedAt:      noon,
		LastActivityAt: noon.Add(time.Hour),
		Archive:        &core.Archive{At: core.At(noon).Time, Bytes: 1 << 40, Content: core.DiskUse{Bytes: 1 << 41, Files: 7}},
	}
	made, again, err := s.CreateEnvironment(ctx, e, plenty, core.UIDRange{First: 7, End: 8}, noKey)
	if err != nil || again {
		t.Fatal(again, err)
	}
	e.HostUID = 7
	e.CreatedAt, e.LastActivityAt = core.At(e.CreatedAt).Time, core.At(e.LastActivityAt).Time
	if !reflect.DeepEqual(made, e) {
		t.Errorf("made\n%+v, want\n%+v", made, e)
	}
	got, err := s.Environment(ctx, e.Owner, e.ID)
	if err != nil || !reflect.DeepEqual(got, e) {
		t.Errorf("got\n%+v, %v, want\n%+v", got, err, e)
	}
	all, err := s.AllEnvironments(ctx)
	if err != nil || !reflect.DeepEqual(all, []core.EnvironmentRecord{e}) {
		t.Errorf("all are %+v, %v", all, err)
	}
}

// What is another's answers as what never was, for every method.
func TestRecordsOfOthersAreAbsent(t *testing.T) {
	s := openNew(t)
	ctx := context.Background()
	mustCreate(t, s, alice, "env_1")
	mustRun(t, s, alice, "env_1", "cmd_1")
	for _, o := range []core.Owner{bob, alice2, {}, {Account: "alice"}, {Account: "ALICE", Profile: "default"}} {
		for _, id := range []string{"env_1", "env_2", "", "\x00", "env_1\x00", "%", "ENV_1"} {
			if _, err := s.Environment(ctx, o, id); !errors.Is(err, core.ErrNoRecord) {
				t.Errorf("Environment(%v, %q): %v", o, id, err)
			}
			if err := s.DeleteEnvironment(ctx, o, id); !errors.Is(err, core.ErrNoRecord) {
				t.Errorf("DeleteEnvironment(%v, %q): %v", o, id, err)
			}
			_, err := s.UpdateEnvironment(ctx, o, id, func(*core.EnvironmentRecord) error {
				t.Errorf("UpdateEnvironment(%v, %q) shows it", o, id)
				return nil
			})
			if !errors.Is(err, core.ErrNoRecord) {
				t.Errorf("UpdateEnvironment(%v, %q): %v", o, id, err)
			}
			if _, _, _, err = s.CreateCommand(ctx, cmd(o, id, "cmd_2"), 10, noKey); core.AsError(err).Code != core.CodeNotFound {
				t.Errorf("CreateCommand(%v, %q): %v", o, id, err)
			}
		}
		if _, err := s.Command(ctx, o, "cmd_1"); !errors.Is(err, core.ErrNoRecord) {
			t.Errorf("Command(%v): %v", o, err)
		}
	}
	if _, err := s.Environment(ctx, alice, "env_1"); err != nil {
		t.Error(err)
	}
	if _, err := s.Command(ctx, alice, "cmd_1"); err != nil {
		t.Error(err)
	}
}

func TestUpdateEnvironment(t *testing.T) {
	s := openNew(t)
	ctx := context.Background()
	mustCreate(t, s, alice, "env_1")
	updated, err := s.UpdateEnvironment(ctx, alice, "env_1", func(e *core.EnvironmentRecord) error {
		e.Name, e.Labels, e.State = "new", map[string]string{"a": "b"}, core.StateResetting
		e.ID, e.Owner, e.HostUID, e.CreatedAt = "env_2", bob, 5, time.Now()
		return nil
	})
	want := env(alice, "env_1")
	want.Name, want.Labels, want.State = "new", map[string]string{"a": "b"}, core.StateResetting
	want.CreatedAt, want.LastActivityAt = core.At(noon).Time, core.At(noon).Time
	if err != nil || !reflect.DeepEqual(updated, want) {
		t.Errorf("updated to\n%+v, %v, want\n%+v", updated, err, want)
	}

	mine := errors.New("mine")
	_, err = s.UpdateEnvironment(ctx, alice, "env_1", func(e *core.EnvironmentRecord) error {
		e.Name = "newer"
		return mine
	})
	if !errors.Is(err, mine) {
		t.Errorf("the error of change became %v", err)
	}
	if got, err := s.Environment(ctx, alice, "env_1"); err != nil || got.Name != "new" {
		t.Errorf("after a failed change: %+v, %v", got, err)
	}
}

func TestCommandsMoveTheLastActivityForwardOnly(t *testing.T) {
	s := openNew(t)
	ctx := context.Background()
	mustCreate(t, s, alice, "env_1")
	at := func(want time.Duration) {
		t.Helper()
		got, err := s.Environment(ctx, alice, "env_1")
		if err != nil || !got.LastActivityAt.Equal(core.At(noon.Add(want)).Time) {
			t.Errorf("%v, %v, want %v after noon", got.LastActivityAt, err, want)
		}
	}
	start := func(id string, after time.Duration) {
		t.Helper()
		c := cmd(alice, "env_1", id)
		c.StartedAt = noon.Add(after)
		if _, _, _, err := s.CreateCommand(ctx, c, 10, noKey); err != nil {
			t.Fatal(err)
		}
	}
	start("cmd_1", time.Hour)
	at(time.Hour)
	start("cmd_2", time.Minute) // a clock that was set back
	at(time.Hour)
	end, ended := exited(0), noon.Add(2*time.Hour)
	end.EndedAt = &ended
	if err := s.FinishCommand(ctx, "cmd_2", end); err != nil {
		t.Fatal(err)
	}
	at(2 * time.Hour)
}

func TestDeleteEnvironmentTakesItsCommandsAndLeavesOthers(t *testing.T) {
	s := openNew(t)
	ctx := context.Background()
	mustCreate(t, s, alice, "env_1", "env_2")
	for i := range removeAtOnce + 1 { // more than one transaction removes
		id := fmt.Sprintf("c%d", i)
		if _, _, _, err := s.CreateCommand(ctx, cmd(alice, "env_1", id), 1<<20, key(id, "f")); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, _, err := s.CreateCommand(ctx, cmd(alice, "env_2", "other"), 1, key("other", "f")); err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteEnvironment(ctx, alice, "env_1"); err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteEnvironment(ctx, alice, "env_1"); !errors.Is(err, core.ErrNoRecord) {
		t.Errorf("deleting twice: %v", err)
	}
	if got := idsOf(t, 50, commandIDs(s, alice, "", "")); got != "other" {
		t.Errorf("the commands left are %q", got)
	}
	var keys int
	if err := s.reads.row(ctx, `SELECT count(*) FROM idempotency`).Scan(&keys); err != nil || keys != 1 {
		t.Errorf("%d keys are left, %v", keys, err)
	}
	if _, _, again, err := s.CreateCommand(ctx, cmd(alice, "env_2", "new"), 1, key("other", "f")); err != nil || !again {
		t.Errorf("the other's key: %v, %v", again, err)
	}
}

func TestDropEnvironmentLeavesNoTrace(t *testing.T) {
	s := openNew(t)
	ctx := context.Background()
	uids := core.UIDRange{First: 100, End: 101}
	for i := range 3 {
		id := fmt.Sprintf("env_%d", i)
		e, again, err := s.CreateEnvironment(ctx, env(alice, id), core.EnvironmentQuota{PerAccount: 1, PerProfile: 1}, uids, key("k", "f"))
		if err != nil || again || e.HostUID != 100 {
			t.Fatalf("time %d: %+v, %v, %v", i, e, again, err)
		}
		mustRun(t, s, alice, id, "cmd_"+id)
		for range 2 {
			if err := s.DropEnvironment(ctx, id); err != nil {
				t.Fatal(err)
			}
		}
	}
	if ids, err := s.UnreleasedUIDs(ctx); err != nil || len(ids) != 0 {
		t.Errorf("unreleased: %v, %v", ids, err)
	}
}

func TestClaimAccount(t *testing.T) {
	s := openNew(t)
	for _, account := range []string{"first", "second", "first"} {
		if served, err := s.ClaimAccount(context.Background(), account); err != nil || served != "first" {
			t.Errorf("for %s: %q, %v", account, served, err)
		}
	}
	s = openNew(t)
	served := make(chan string, 20)
	for i := range cap(served) {
		go func() {
			account, err := s.ClaimAccount(context.Background(), fmt.Sprint(i))
			if err != nil {
				t.Error(err)
			}
			served <- account
		}()
	}
	first := <-served
	for range cap(served) - 1 {
		if account := <-served; account != first {
			t.Errorf("both %q and %q are served", first, account)
		}
	}
}
