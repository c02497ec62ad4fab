package e2e

import (
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"envapi/internal/testbin"
)

func TestD18NoProcessOutlivesAKilledService(t *testing.T) {
	for _, tier := range tiers() {
		t.Run(tier, func(t *testing.T) {
			t.Parallel()
			s := start(t, config{tier: tier, env: map[string]string{"ENVAPI_MAX_RUNNING_COMMANDS": "60"}})
			p, m := s.place(t), mark()
			var ids []string
			for i := range 50 {
				ids = append(ids, p.background(t, fmt.Sprintf("echo began %d; setsid sleep %s & wait", i, m)).ID)
			}
			mustRun(t, m, 50)
			for _, id := range ids {
				p.output(t, id, object{"wait_ms": 10000}) // until it has begun to write
			}
			s.kill()
			err := within(time.Second, func() error {
				if n := alive(m); n != 0 {
					return fmt.Errorf("%d processes are left a second after the service", n)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}

			again := s.restart(t)
			for i, id := range ids {
				c := again.rest.get(t, id, 0)
				if c.Status != "lost" || c.Reason != "service_stopped" || c.ExitCode != nil {
					t.Errorf("after the restart it is %+v", c)
				}
				if want := fmt.Sprintf("began %d\n", i); c.Stdout.Text != want {
					t.Errorf("its output is %q, want %q", c.Stdout.Text, want)
				}
			}
		})
	}
}

func TestEnvironmentsAndResultsSurviveARestart(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		p := s.place(t)
		p.sh(t, "echo kept > file; ln -s file link; chmod 741 file")
		c := p.exec(t, object{"command": "echo out; exit 9"})
		m := mark()
		running := p.background(t, "sleep "+m)
		mustRun(t, m, 1)
		s.stop(t)
		if n := alive(m); n != 0 {
			t.Errorf("%d processes are left after a clean stop", n)
		}
		p.rest = s.restart(t).rest
		if got := p.rest.get(t, c.ID, 0); got.exit() != 9 || got.Stdout.Text != "out\n" {
			t.Errorf("the command is %+v", got)
		}
		if got := p.rest.get(t, running.ID, 0); got.Status != "lost" {
			t.Errorf("what ran is %s", got.Status)
		}
		if got := p.sh(t, "cat link; stat -c %a file"); got != "kept\n741\n" {
			t.Errorf("the folder has %q", got)
		}
	})
}

func TestB17IdempotencyHoldsOverARestart(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		create := object{"name": "once", "idempotency_key": "create"}
		p := place{s.rest, as[struct{ ID string }](t, s.must(t, "create_environment", create)).ID}
		run := object{"command": "echo ran >> log; wc -l < log", "idempotency_key": "run"}
		c := p.exec(t, run)
		open := p.in(object{"name": "once", "idempotency_key": "open"})
		sh := as[shellRecord](t, p.must(t, "open_shell", open))
		inShell := object{"shell_id": sh.ID, "command": "echo ran >> slog; sleep 60", "idempotency_key": "in shell", "wait_ms": 0}
		r := as[command](t, p.must(t, "run_in_shell", inShell))
		if again := as[command](t, p.must(t, "run_in_shell", inShell)); again.ID != r.ID || again.Status != "running" {
			t.Errorf("while it runs the same key gives %+v", again)
		}
		if err := eventually(func() error {
			if got := p.sh(t, "cat slog 2>&1 || :"); got != "ran\n" {
				return fmt.Errorf("the shell ran %q", got)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		s.kill()
		p.rest = s.restart(t).rest
		if again := as[struct{ ID string }](t, p.must(t, "create_environment", create)).ID; again != p.id {
			t.Errorf("the same key made %s, then %s", p.id, again)
		}
		if again := p.exec(t, run); again.ID != c.ID || again.Stdout.Text != "1\n" {
			t.Errorf("the same key ran %s, then %+v", c.ID, again)
		}
		if again := as[shellRecord](t, p.must(t, "open_shell", open)); again.ID != sh.ID || again.State != "closed" || again.CloseReason != "service_restarted" {
			t.Errorf("the same key opened %s, then %+v", sh.ID, again)
		}
		if again := as[command](t, p.must(t, "run_in_shell", inShell)); again.ID != r.ID || again.Status != "lost" {
			t.Errorf("the same key ran %s in a shell, then %+v", r.ID, again)
		}
		if got := p.sh(t, "cat slog"); got != "ran\n" {
			t.Errorf("the shell ran %q", got)
		}
		p.refuse(t, "idempotency_mismatch", "open_shell", p.in(object{"idempotency_key": "open"}))
		p.refuse(t, "idempotency_mismatch", "create_environment", object{"name": "other", "idempotency_key": "create"})
		p.refuse(t, "idempotency_mismatch", "exec", p.in(object{"command": "true", "idempotency_key": "run"}))
	})
}

func TestASecondServiceOnTheSameFolderIsRefused(t *testing.T) {
	t.Parallel()
	s := start(t, config{})
	second := launch(t, config{data: s.data})
	if !second.wait(patience) {
		t.Fatal("it runs")
	}
	if text := second.output.String(); second.status == nil || !strings.Contains(text, fmt.Sprint(s.cmd.Process.Pid)) {
		t.Errorf("it ended with %v and does not say who has the folder:\n%s", second.status, text)
	}
	local := exec.CommandContext(t.Context(), testbin.Path(t, "envapi-mcp"))
	local.Env = settings(s.config, nil)
	if out, err := local.CombinedOutput(); err == nil || !strings.Contains(string(out), fmt.Sprint(s.cmd.Process.Pid)) {
		t.Errorf("envapi-mcp gave %v and\n%s", err, out)
	}
	if status, _, err := s.probe(t.Context(), "/ready"); err != nil || status != http.StatusOK {
		t.Errorf("the first is not ready any more: %d %v", status, err)
	}
}
