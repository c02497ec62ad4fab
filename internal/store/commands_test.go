package store

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"envapi/core"
)

func TestCommandComesBackAsItWasMade(t *testing.T) {
	s := openNew(t)
	ctx := context.Background()
	mustCreate(t, s, alice, "env_1")
	c := cmd(alice, "env_1", "cmd_1")
	c.Command, c.Cwd, c.MergeStderr = "printf 'a\x00b\xff'\n", "/workspace/ä\x01", true
	c.CommandEnd = exited(1) // is not believed
	made, _, _, err := s.CreateCommand(ctx, c, 1, noKey)
	c.StartedAt = core.At(noon).Time
	c.CommandEnd = core.CommandEnd{Status: core.CommandRunning}
	if err != nil || !reflect.DeepEqual(made, c) {
		t.Fatalf("made\n%+v, %v, want\n%+v", made, err, c)
	}
	if got, err := s.Command(ctx, alice, "cmd_1"); err != nil || !reflect.DeepEqual(got, c) {
		t.Errorf("running\n%+v, %v, want\n%+v", got, err, c)
	}

	cpu, memory := int64(0), int64(1<<40)
	code, processes, at := 130, int64(2), core.At(noon.Add(time.Minute)).Time
	for i, end := range []core.CommandEnd{
		{
			Status: core.CommandExited, ExitCode: &code, EndedAt: &at,
			Usage: &core.CommandUsage{CPUMS: &cpu, PeakMemoryBytes: &memory, Processes: &processes},
			Late:  core.LateOffsets{Stdout: 1 << 33, Stderr: 2, All: 3},
		},
		{Status: core.CommandSignaled, Signal: "TERM", EndedAt: &at, Usage: &core.CommandUsage{CPUMS: &cpu}},
		{Status: core.CommandKilled, Reason: core.ReasonSignal, EndedAt: &at},
		{Status: core.CommandOutOfMemory, ExitCode: new(int), Advice: "use less: \"memory_bytes\"", EndedAt: &at},
		{Status: core.CommandLost, Reason: core.ReasonSandboxFailed},
	} {
		id := "end_" + string(rune('a'+i))
		mustRun(t, s, alice, "env_1", id)
		if err := s.FinishCommand(ctx, id, end); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Command(ctx, alice, id); err != nil || !reflect.DeepEqual(got.CommandEnd, end) {
			t.Errorf("ended\n%+v, %v, want\n%+v", got.CommandEnd, err, end)
		}
	}
}

func TestACommandEndsOnce(t *testing.T) {
	s := openNew(t)
	ctx := context.Background()
	mustCreate(t, s, alice, "env_1")
	mustRun(t, s, alice, "env_1", "cmd_1")
	if err := s.FinishCommand(ctx, "cmd_1", exited(7)); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"cmd_1", "cmd_2"} {
		if err := s.FinishCommand(ctx, id, exited(0)); !errors.Is(err, core.ErrNoRecord) {
			t.Errorf("finishing %s: %v", id, err)
		}
	}
	if got, err := s.Command(ctx, alice, "cmd_1"); err != nil || *got.ExitCode != 7 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestCommandsOnlyInActiveEnvironments(t *testing.T) {
	s := openNew(t)
	ctx := context.Background()
	mustCreate(t, s, alice, "env_1")
	if _, _, _, err := s.CreateCommand(ctx, cmd(alice, "env_1", "cmd_1"), 10, key("k", "f")); err != nil {
		t.Fatal(err)
	}
	for _, state := range []core.EnvironmentState{core.StateResetting, core.StateDeleting} {
		_, err := s.UpdateEnvironment(ctx, alice, "env_1", func(e *core.EnvironmentRecord) error {
			e.State = state
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		_, _, _, err = s.CreateCommand(ctx, cmd(alice, "env_1", "cmd_2"), 10, noKey)
		if e := core.AsError(err); e.Code != core.CodeEnvironmentBusy || e.Facts["state"] != string(state) || e.Facts["retry_after_ms"] == nil {
			t.Errorf("while %s: %v", state, err)
		}
		if _, _, again, err := s.CreateCommand(ctx, cmd(alice, "env_1", "cmd_2"), 10, key("k", "f")); err != nil || !again {
			t.Errorf("a retry while %s: %v, %v", state, again, err)
		}
	}
}

func TestLoseRunning(t *testing.T) {
	s := openNew(t)
	ctx := context.Background()
	mustCreate(t, s, alice, "env_1")
	mustCreate(t, s, bob, "env_2")
	mustRun(t, s, alice, "env_1", "ended", "alices")
	mustRun(t, s, bob, "env_2", "bobs")
	inShell := cmd(bob, "env_2", "in a shell")
	inShell.ShellID = "sh_1"
	if _, _, _, err := s.CreateCommand(ctx, inShell, 10, noKey); err != nil {
		t.Fatal(err)
	}
	if err := s.FinishCommand(ctx, "ended", exited(0)); err != nil {
		t.Fatal(err)
	}
	at := core.At(noon).Time
	alone := core.CommandEnd{Status: core.CommandLost, Reason: core.ReasonServiceStopped, Advice: "a", EndedAt: &at}
	with := core.CommandEnd{Status: core.CommandLost, Reason: core.ReasonServiceStopped, Advice: "s", ShellClosed: true, EndedAt: &at}
	for _, want := range []int{3, 0} {
		if lost, err := s.LoseRunning(ctx, alone, with); err != nil || lost != want {
			t.Errorf("lost %d, %v, want %d", lost, err, want)
		}
	}
	for id, want := range map[string]core.CommandEnd{"bobs": alone, "in a shell": with} {
		if got, err := s.Command(ctx, bob, id); err != nil || !reflect.DeepEqual(got.CommandEnd, want) {
			t.Errorf("%s: %+v, %v", id, got, err)
		}
	}
	if running, err := s.CountRunning(ctx, "env_1"); err != nil || running != 0 {
		t.Errorf("%d run, %v", running, err)
	}
}

func TestDropCommandFreesItsPlaceAndItsKey(t *testing.T) {
	s := openNew(t)
	ctx := context.Background()
	mustCreate(t, s, alice, "env_1")
	for _, id := range []string{"cmd_1", "cmd_2"} {
		if _, _, again, err := s.CreateCommand(ctx, cmd(alice, "env_1", id), 1, key("k", "f")); err != nil || again {
			t.Fatal(id, again, err)
		}
		for range 2 {
			if err := s.DropCommand(ctx, id); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Command(ctx, alice, id); !errors.Is(err, core.ErrNoRecord) {
			t.Errorf("it is still there: %v", err)
		}
	}
}
