package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// hasty is a deployment in which things are idle soon.
func hasty(tier string) config {
	return config{tier: tier, env: map[string]string{
		"ENVAPI_REAPER_INTERVAL_MS": "100", "ENVAPI_SHELL_IDLE_MS": "1000", "ENVAPI_ENVIRONMENT_IDLE_MS": "2500", "ENVAPI_BOX_IDLE_MS": "1000",
		"ENVAPI_MIN_ENVIRONMENT_IDLE_MS": "1000",
	}}
}

// says waits until the service has logged a line with all the words.
func (s *service) says(t *testing.T, words ...string) {
	t.Helper()
	err := eventually(func() error {
		for line := range strings.Lines(s.output.String()) {
			all := true
			for _, word := range words {
				all = all && strings.Contains(line, word)
			}
			if all {
				return nil
			}
		}
		return fmt.Errorf("the log has no line with %q:\n%s", words, s.output)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func onEachHastyTier(t *testing.T, test func(t *testing.T, s *service)) {
	t.Helper()
	for _, tier := range tiers() {
		t.Run(tier, func(t *testing.T) {
			t.Parallel()
			test(t, start(t, hasty(tier)))
		})
	}
}

func TestAnIdleShellIsClosedAndItsBackgroundLivesOn(t *testing.T) {
	onEachHastyTier(t, func(t *testing.T, s *service) {
		p, m := s.place(t), mark()
		sh := p.open(t, nil)
		sh.run(t, "sleep "+m+" &", nil)
		busy := p.open(t, nil)
		running := busy.run(t, "sleep 300", object{"wait_ms": 0})
		s.says(t, "a shell is closed", sh.id)
		if _, err := sh.call(t.Context(), "run_in_shell", sh.ref(object{"command": "true"})); isProblem(t, "shell_closed", "run_in_shell", nil, err).Reason != "idle" {
			t.Errorf("got %v", err)
		}
		mustRun(t, m, 1)
		if got := s.get(t, running.ID, 0); got.Status != "running" {
			t.Errorf("what runs is %+v", got)
		}
	})
}

func TestAnIdleEnvironmentIsArchivedAndComesBackWhenUsed(t *testing.T) {
	onEachHastyTier(t, func(t *testing.T, s *service) {
		idle, busy := s.place(t), s.place(t)
		idle.sh(t, "echo kept > file")
		running := busy.background(t, "sleep 300")
		s.says(t, "an environment is archived", idle.id)
		if env := s.must(t, "get_environment", idle.in(nil)); env["state"] != "archived" || env["archives_at"] != nil {
			t.Errorf("got %v", env)
		}
		if isThere(s.folderOf(idle.id)) {
			t.Error("its folder is there")
		}
		if got := idle.sh(t, "cat file"); got != "kept\n" {
			t.Errorf("it came back with %q", got)
		}
		if env := s.must(t, "get_environment", busy.in(nil)); env["state"] != "active" || env["archives_at"] != nil {
			t.Errorf("one in which a command runs is %v", env)
		}
		if got := s.get(t, running.ID, 0); got.Status != "running" {
			t.Errorf("what runs is %+v", got)
		}
	})
}

func TestASandboxInWhichNothingLivesIsLetGo(t *testing.T) {
	onEachHastyTier(t, func(t *testing.T, s *service) {
		p := s.place(t)
		s.must(t, "update_environment", p.in(object{"idle_ms": 3_600_000}))
		p.sh(t, `echo x > "$TMPDIR/scratch"; echo y > kept`)
		s.says(t, "a sandbox is let go", p.id)
		if got := p.sh(t, `ls "$TMPDIR" | grep -c scratch; cat kept`); got != "0\ny\n" {
			t.Errorf("got %q", got)
		}
		if strings.Contains(s.output.String(), "an environment is archived") {
			t.Error("it was archived, although it has a longer time of its own")
		}
	})
}

// Calls that come just when the environment, its shell and its sandbox are idle for long
// enough are all answered.
func TestCallsThatRaceTheReaperWin(t *testing.T) {
	for _, tier := range tiers() {
		t.Run(tier, func(t *testing.T) {
			t.Parallel()
			c := hasty(tier)
			c.env["ENVAPI_ENVIRONMENT_IDLE_MS"] = "1000"
			s := start(t, c)
			const places = 6
			errs := make(chan error, places)
			for range places {
				p := s.place(t)
				p.sh(t, "seq 20000 > numbers")
				go func() { errs <- errors.Join(p.racesTheReaper(), p.racesTheReaper()) }()
			}
			for range places {
				if err := <-errs; err != nil {
					t.Error(err)
				}
			}
			t.Logf("archived %d times", strings.Count(s.output.String(), "an environment is archived"))
		})
	}
}

func (p place) racesTheReaper() error {
	pause := time.Duration(950+rand.IntN(200)) * time.Millisecond
	time.Sleep(pause) // it is the time that is raced
	answer, err := p.call(context.Background(), "exec", p.in(object{"command": "tail -n 1 numbers", "wait_ms": longWait}))
	if err != nil {
		return fmt.Errorf("after %v: %w", pause, err)
	}
	if stdout, ok := answer["stdout"].(object); !ok || stdout["text"] != "20000\n" {
		return fmt.Errorf("after %v: got %v", pause, answer)
	}
	return nil
}
