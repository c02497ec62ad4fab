package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestA22ACommandEndsWithItsLeaderAndLateOutputIsMarked(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		p := s.place(t)
		c := p.exec(t, object{"command": "(while :; do echo late; sleep .1; done) & echo fg"})
		if c.Status != "exited" || c.exit() != 0 || !strings.Contains(c.Stdout.Text, "fg\n") {
			t.Fatalf("got %+v", c)
		}
		err := eventually(func() error {
			if c = p.rest.get(t, c.ID, 0); c.Late == nil {
				return errors.New("late_from_offset is missing")
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		got := p.output(t, c.ID, object{"stream": "stdout", "offset": c.Late["stdout"]})
		if !strings.HasPrefix(got.Data, "late\n") || c.Late["stdout"] < 3 {
			t.Errorf("from the late offset %d on there is %q", c.Late["stdout"], got.Data)
		}
		p.must(t, "reset_environment", p.in(nil))
		total := p.output(t, c.ID, object{"stream": "stdout", "tail_bytes": 1}).Total
		if again := p.output(t, c.ID, object{"stream": "stdout", "offset": total, "wait_ms": 500}); again.Total != total {
			t.Errorf("it still writes after a reset")
		}
	})
}

func TestA23BackgroundProcessesLiveUntilTheEnvironmentDoes(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		p, m := s.place(t), mark()
		p.sh(t, "nohup sleep "+m+" >/dev/null 2>&1 & echo $! > pid")
		p.sh(t, `kill -0 "$(cat pid)"`)
		mustRun(t, m, 1)
		p.must(t, "delete_environment", p.in(nil))
		if n := alive(m); n != 0 {
			t.Errorf("%d left when delete_environment had answered", n)
		}
	})
}

func TestA24A26ATimeoutEndsTheTreeAndNothingElse(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		p, m, other := s.place(t), mark(), mark()
		bystander := p.background(t, "sleep "+other)
		mustRun(t, other, 1)
		c := p.exec(t, object{"command": "setsid sleep " + m + " & sleep " + m + " | cat", "timeout_ms": 1000})
		if c.Status != "timed_out" || c.ExitCode != nil {
			t.Errorf("got %+v", c)
		}
		if c.DurationMS < 1000 || c.DurationMS > 1500 {
			t.Errorf("it took %d ms, want 1000 and at most 500 of grace", c.DurationMS)
		}
		if n := alive(m); n != 0 {
			t.Errorf("%d processes of its tree are left", n)
		}
		if got := p.rest.get(t, bystander.ID, 0); got.Status != "running" || alive(other) != 1 {
			t.Errorf("the other command is %s", got.Status)
		}
		select {
		case <-s.ended:
			t.Error("the service has ended")
		default:
		}
	})
}

func TestA27NoZombieIsLeft(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		p := s.place(t)
		p.sh(t, "for i in $(seq 500); do (sleep 0 &); done")
		p.exec(t, object{"command": "for i in $(seq 1000); do sh -c 'sleep .1 &'; done", "wait_ms": 45000})
		err := eventually(func() error {
			if z := zombies(s.cmd.Process.Pid); z != 0 {
				return fmt.Errorf("%d zombies", z)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestA58B15AKillEndsTheWholeTree(t *testing.T) {
	for _, script := range []string{
		"sh -c 'sleep %s & wait'",
		"setsid sleep %s & wait",
		"trap '' HUP INT TERM; sleep %[1]s; sleep %[1]s",
		"(setsid setsid sleep %s &) ; sleep 1000",
	} {
		t.Run(script, func(t *testing.T) {
			onEachTier(t, func(t *testing.T, s *service) {
				p, m := s.place(t), mark()
				c := p.background(t, fmt.Sprintf(script, m))
				mustRun(t, m, 1)
				got := p.signal(t, c.ID, "KILL")
				if got.Status != "killed" || got.Reason != "signal" || got.ExitCode != nil {
					t.Errorf("got %+v", got)
				}
				if n := alive(m); n != 0 {
					t.Errorf("%d are left when signal_command had answered", n)
				}
			})
		})
	}
}

func TestB15TwoKillsInParallelWithTheEnd(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		p := s.place(t)
		for range 20 {
			c := p.background(t, "sleep 0.02")
			var wg sync.WaitGroup
			answers := make([]object, 2)
			for i := range answers {
				wg.Go(func() {
					answers[i], _ = p.call(context.Background(), "signal_command", object{"command_id": c.ID, "signal": "KILL"})
				})
			}
			wg.Wait()
			end := p.rest.get(t, c.ID, 10000)
			for _, a := range answers {
				if got := as[command](t, a); got.Status != end.Status || got.exit() != end.exit() {
					t.Errorf("a kill answered %s %d, the command says %s %d", got.Status, got.exit(), end.Status, end.exit())
				}
			}
		}
	})
}

func TestA60ASignalAfterTheEndGivesTheResult(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		p := s.place(t)
		c := p.exec(t, object{"command": "exit 4"})
		if got := p.signal(t, c.ID, "KILL"); got.Status != "exited" || got.exit() != 4 {
			t.Errorf("got %+v", got)
		}
	})
}

func TestA61B3B12ACommandOutlivesItsClient(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		p := s.place(t)
		running := func() []command {
			return as[struct{ Items []command }](t, p.must(t, "list_commands", p.in(object{"status": "running"}))).Items
		}
		ctx, giveUp := context.WithCancel(context.Background())
		defer giveUp()
		ended := make(chan error, 1)
		go func() {
			script := "echo one; until [ -e go ]; do sleep .05; done; echo two"
			_, err := p.call(ctx, "exec", p.in(object{"command": script, "wait_ms": 45000}))
			ended <- err
		}()
		err := eventually(func() error {
			if len(running()) == 0 {
				return errors.New("nothing runs")
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		giveUp()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Fatalf("the client did not give up: %v", err)
		}
		list := running()
		if len(list) != 1 || list[0].ExitCode != nil {
			t.Fatalf("list_commands gives %+v", list)
		}
		p.sh(t, "touch go")
		c := p.rest.get(t, list[0].ID, 45000)
		if c.Status != "exited" || c.exit() != 0 || c.Stdout.Text != "one\ntwo\n" {
			t.Errorf("got %+v", c)
		}
	})
}

func TestB2AWaitIsHonouredOrCut(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		p := s.place(t)
		cut := make(chan command, 1)
		go func() {
			answer, err := p.call(context.Background(), "exec", p.in(object{"command": "sleep 50", "wait_ms": 300000}))
			if err != nil {
				t.Error(err)
			}
			cut <- as[command](t, answer)
		}()
		if c := p.exec(t, object{"command": "sleep 2", "wait_ms": 30000}); c.Status != "exited" || c.DurationMS < 2000 {
			t.Errorf("a wait of 30 s for 2 s gave %+v", c)
		}
		if c := p.exec(t, object{"command": "sleep 50", "wait_ms": 300}); c.Status != "running" || c.Next == "" {
			t.Errorf("a wait of 300 ms for 50 s gave %+v", c)
		}
		c := <-cut
		if c.Status != "running" || c.WaitedMS == nil || *c.WaitedMS < 45000 || *c.WaitedMS > 46000 || c.Next == "" {
			t.Errorf("a wait of 300 s gave %+v", c)
		}
	})
}

func TestB7AWaitHoldsUpNothing(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		p := s.place(t)
		c := p.background(t, "sleep 300")
		var waits sync.WaitGroup
		ctx, stop := context.WithCancel(context.Background())
		for range 20 {
			waits.Go(func() { _, _ = p.call(ctx, "get_command", object{"command_id": c.ID, "wait_ms": 40000}) })
		}
		for range 100 {
			begin := time.Now()
			p.must(t, "list_commands", p.in(nil))
			if d := time.Since(begin); d > time.Second {
				t.Errorf("a list took %s", d)
			}
		}
		stop()
		waits.Wait()
	})
}

func TestB8ATimeoutKeepsTheOutput(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		p := s.place(t)
		c := p.exec(t, object{"command": "while :; do echo tick; echo tick >> ticks; sleep .3; done", "timeout_ms": 1500})
		n, written := strings.Count(c.Stdout.Text, "tick\n"), strings.Count(p.sh(t, "cat ticks"), "tick\n")
		if c.Status != "timed_out" || n == 0 || n > 20 || n != written && n != written+1 {
			t.Errorf("%s with %d ticks, it wrote %d", c.Status, n, written)
		}
	})
}

func TestB17OneKeyRunsOnce(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		p := s.place(t)
		in := p.in(object{"command": "echo ran >> log; sleep .5; wc -l < log", "idempotency_key": "k"})
		ids := make([]string, 20)
		var wg sync.WaitGroup
		for i := range ids {
			wg.Go(func() {
				answer, err := p.call(context.Background(), "exec", in)
				if err != nil {
					t.Error(err)
					return
				}
				c := as[command](t, answer)
				ids[i] = c.ID + " " + c.Stdout.Text
			})
		}
		wg.Wait()
		for _, id := range ids {
			if id != ids[0] || !strings.HasSuffix(id, " 1\n") {
				t.Errorf("one client got %q, another %q", ids[0], id)
			}
		}
		p.refuse(t, "idempotency_mismatch", "exec", p.in(object{"command": "echo other", "idempotency_key": "k"}))
		if got := p.sh(t, "cat log"); got != "ran\n" {
			t.Errorf("the log of runs is %q", got)
		}
	})
}

func TestB21MuchInputForACommandThatReadsNone(t *testing.T) {
	for _, tier := range tiers() {
		t.Run(tier, func(t *testing.T) {
			t.Parallel()
			p := start(t, config{tier: tier, env: map[string]string{"ENVAPI_MAX_RUNNING_COMMANDS": "50"}}).place(t)
			input := strings.Repeat("x", 1<<20)
			var wg sync.WaitGroup
			for range 50 {
				wg.Go(func() {
					answer, err := p.call(context.Background(), "exec", p.in(object{"command": "false", "stdin": input, "wait_ms": 45000}))
					if err != nil {
						t.Error(err)
						return
					}
					if c := as[command](t, answer); c.Status != "exited" || c.exit() != 1 {
						t.Errorf("got %+v", c)
					}
				})
			}
			wg.Wait()
		})
	}
}
