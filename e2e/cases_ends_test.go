package e2e

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// endings are the cases of how commands in a shell end, and shells with them.
var endings = []shellCase{
	{name: "A3 exit with a child in the background", play: play{
		run("sleep MARK & exit 3", exits(3), closing("exited")), live(0), run("true", goneFor("exited")),
	}},
	{name: "A3 exit in a function, in a subshell, without a code", play: play{
		run("(exit 4)", exits(4)), run("f() { exit 6; }; false; f", exits(6), closing("exited")),
	}},
	{name: "A3 exit takes the code of what was before", play: play{run("false"+"\nexit", exits(1), closing("exited"))}},
	{name: "A3 an EXIT trap", play: play{run("trap 'echo bye; exit 7' EXIT"), run("exit 3", exits(7), prints("bye\n"), closing("exited"))}},
	{name: "A4 exec replaces the shell", play: play{run("exec sh -c 'echo replaced; exit 5'", exits(5), prints("replaced\n"), closing("exited"))}},
	{name: "A4 exec of what runs on", play: play{
		run("exec sleep MARK", with(object{"wait_ms": 200}), statusRunning()), live(1), signaled("KILL", isKilled("signal"), closing("killed")), none(),
	}},
	{name: "A4 exec of what takes longer", play: play{run("exec sh -c 'sleep 2; echo late; exit 6'", exits(6), prints("late\n"), closing("exited"))}},
	{name: "A4 a kill of the parent", play: play{
		run("sh -c 'kill -9 $PPID'", dies("KILL"), closing("exited")), elsewhere("true"), beside(run("echo lives", prints("lives\n"))),
	}},
	{name: "A4 a kill of bash's parent", play: play{run("kill $PPID; kill -HUP $PPID; true", anyError()), run("echo lives", prints("lives\n"))}},
	{name: "A22 the end is the command's", play: play{
		run("(while :; do echo x; sleep .1; done) & echo fg", printing("fg\n")), late(), run("echo ok", prints("ok\n")),
		run("kill %1; wait %1 2>/dev/null", exits(143), anyError()),
	}},
	{name: "A22 a child that holds the output", play: play{run("sleep MARK &"), live(1), run("jobs | grep -c Running", prints("1\n")), closes(nil), none()}},
	{name: "A23 nohup lives on", play: play{
		run("nohup sleep MARK >/dev/null 2>&1 & echo $! > pid"), live(1), run("kill -0 $!"), run("ps ax | grep -c '[s]leep MARK'", prints("1\n")),
		closes(object{"keep_background": true}), live(1), elsewhere("kill $(cat pid)"), live(0),
	}},
	{name: "A23 nohup goes with its shell", play: play{
		run("nohup sleep MARK >/dev/null 2>&1 & setsid sleep MARK & disown -a"), live(2), closes(nil), none(),
	}},
	{name: "A24 a timeout of a pipe", play: play{
		run("sleep MARK | cat", with(object{"timeout_ms": 1000}), timesOut()), none(), tookFrom(1000, 3000), run("echo ok", prints("ok\n")),
	}},
	{name: "A24 a timeout of what left its session", play: play{
		run("setsid setsid sleep MARK & sleep MARK", with(object{"timeout_ms": 1000}), timesOut()), none(), run("echo ok", prints("ok\n")),
	}},
	{name: "A24 a timeout of what is bash's own", play: play{
		run("while :; do :; done", with(object{"timeout_ms": 500}), timesOut()), run("echo ok", prints("ok\n")),
	}},
	{name: "A24 a timeout of what does not come back", play: play{
		run("trap '' INT; while :; do :; done", with(object{"timeout_ms": 500}), timesOut(), closing("timed_out")), run("true", goneFor("timed_out")),
	}},
	{name: "A26 a timeout leaves what was before", play: play{
		run("sleep MARK &"), live(1), run("sleep 500", with(object{"timeout_ms": 500}), timesOut()), live(1), run("kill %1"),
	}},
	{name: "A27 many children", play: play{
		run("for i in $(seq 300); do (sleep 0 &); done"), run("for i in $(seq 200); do sh -c 'sleep .1 &'; done"), run("wait"),
		noZombies(),
	}},
	{name: "A35 ctrl-c", play: play{
		run("sleep 60; echo not", with(object{"wait_ms": 200}), runsOn()), presses("ctrl-c"), ends(exits(130)), run("echo $?", prints("130\n")),
	}},
	{name: "A35 ctrl-c by a signal", play: play{
		run("sleep MARK", with(object{"wait_ms": 200}), statusRunning()), live(1), interrupted(), ends(exits(130)), none(), run("echo ok", prints("ok\n")),
	}},
	{name: "A35 the empty command", play: play{run(""), run("   "), run("\n"), run("false", exits(1)), run("")}},
	{name: "A36 ctrl-c of a loop", play: play{
		run("while :; do sleep 1; done", with(object{"wait_ms": 200}), statusRunning()), presses("ctrl-c"), ends(exits(130)), run("echo ok", prints("ok\n")),
	}},
	{name: "A36 ctrl-c of a loop that starts nothing", play: play{
		run("while :; do :; done", with(object{"wait_ms": 200}), statusRunning()), presses("ctrl-c"), ends(exits(130)), run("echo ok", prints("ok\n")),
	}},
	{name: "A36 ctrl-c of a grandchild", play: play{
		elsewhere("printf 'import time\\nprint(\"up\", flush=True)\\nwhile True: time.sleep(.1)\\n' > loop.py"),
		run("sh -c 'python3 loop.py'", with(object{"wait_ms": 100}), statusRunning()), settled("stdout", "up"),
		presses("ctrl-c"), ends(exits(130), anything()), run("echo ok", prints("ok\n")),
	}},
	{name: "A36 ctrl-c leaves the background", play: play{
		run("sleep MARK & sleep 60", with(object{"wait_ms": 300}), statusRunning()), live(1), presses("ctrl-c"), ends(exits(130)), live(1), run("kill %1"),
	}},
	{name: "ctrl-\\", play: play{
		run("sleep 60", with(object{"wait_ms": 200}), statusRunning()), presses(`ctrl-\`), ends(exits(131), anyError()), run("echo ok", prints("ok\n")),
	}},
	{name: "ctrl-z stops a job", play: play{
		run("sleep MARK", with(object{"wait_ms": 200}), statusRunning()), live(1), presses("ctrl-z"), ends(exits(148), anything()),
		run("jobs", printing("Stopped"), anyError()), run("bg", anything()), run("jobs", printing("Running"), anyError()), run("kill %1", anyError()), live(0),
	}},
	{name: "fg of a job", play: play{
		run("sleep .5 &"), run("fg", anything()), run("wait; echo ok", prints("ok\n")), run("fg", exits(1), anyError()),
	}},
	{name: "wait, disown, and a job's code", play: play{
		run("(exit 9) &"), run("wait $!", exits(9), anyError()), run("sleep MARK & disown; jobs"), live(1),
	}},
	{name: "TERM of a command", play: play{
		run("sleep MARK", with(object{"wait_ms": 100}), statusRunning()), live(1), sent("TERM"), ends(exits(143), anyError()), none(), run("echo ok", prints("ok\n")),
	}},
	{name: "A58 KILL of a tree", play: play{
		run("sh -c 'sleep MARK & wait'", with(object{"wait_ms": 100}), statusRunning()), live(1), signaled("KILL", isKilled("signal")), none(), run("echo ok", prints("ok\n")),
	}},
	{name: "A58 KILL of what left its session", play: play{
		run("setsid -w sleep MARK & wait", with(object{"wait_ms": 100}), statusRunning()), live(2), signaled("KILL", isKilled("signal")), none(), run("echo ok", prints("ok\n")),
	}},
	{name: "A58 KILL of what ignores signals", play: play{
		run("sh -c \"trap '' INT TERM HUP; sleep MARK; sleep MARK\"", with(object{"wait_ms": 100}), statusRunning()), live(1),
		signaled("KILL", isKilled("signal")), none(), run("echo ok", prints("ok\n")),
	}},
	{name: "A59 one shell is stuck and another runs", play: play{
		run("cat", prompts()), beside(run("echo other", prints("other\n")), closes(nil)), types("on\n"), eof(), ends(prints("on\n")),
	}},
	{name: "A60 a signal after the end", play: play{run("(exit 4)", exits(4)), signaled("KILL", exits(4)), run("echo ok", prints("ok\n"))}},
	{name: "closing ends what runs", play: play{
		run("sleep MARK", with(object{"wait_ms": 100}), statusRunning()), live(1), closes(nil), none(), endsWithItsShell(),
	}},
	{name: "closing ends who waits in line", play: play{
		run("sleep MARK", with(object{"wait_ms": 100}), statusRunning()), queued("echo never"), closes(nil), endsWithItsShell(),
	}},
	{name: "who waits in line can be taken out", play: play{
		run("sleep MARK", with(object{"wait_ms": 100}), statusRunning()), queued("echo never"), signaled("KILL", isKilled("signal")), closes(nil),
	}},
}

func TestCasesOfEnds(t *testing.T) { playEach(t, endings) }

// endsWithItsShell sees that the latest command was killed with its shell.
func endsWithItsShell() step {
	return func(t *testing.T, s *stage) {
		t.Helper()
		if c := s.get(t, s.last.ID, longWait); c.Status != "killed" || c.Reason != "shell_closed" || c.ExitCode != nil {
			t.Errorf("it is %s %s", c.Status, c.Reason)
		}
	}
}

// sent sends a signal whose answer may come before the end.
func sent(signal string) step {
	return func(t *testing.T, s *stage) {
		t.Helper()
		s.signal(t, s.last.ID, signal)
	}
}

func interrupted() step { return sent("INT") }

// late waits until the latest command's late output is marked.
func late() step {
	return func(t *testing.T, s *stage) {
		t.Helper()
		if err := eventually(func() error {
			c := s.get(t, s.last.ID, 0)
			if c.Late == nil {
				return fmt.Errorf("late_from_offset is missing")
			}
			if p := s.output(t, c.ID, object{"stream": "stdout", "offset": c.Late["stdout"]}); !strings.HasPrefix(p.Data, "x\n") {
				return fmt.Errorf("from %d on there is %q", c.Late["stdout"], p.Data)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	}
}

// tookFrom bounds the latest command's time; most is generous, for busy hosts.
func tookFrom(least, most int64) step {
	return func(t *testing.T, s *stage) {
		t.Helper()
		if d := s.last.DurationMS; d < least || d > most {
			t.Errorf("it took %d ms", d)
		}
	}
}

// noZombies waits until the box has none.
func noZombies() step {
	return func(t *testing.T, s *stage) {
		t.Helper()
		if err := eventually(func() error {
			if out := s.sh(t, "ps -u $(id -u) -o stat= | grep -c '^Z' || :"); out != "0\n" {
				return fmt.Errorf("%s zombies", strings.TrimSpace(out))
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	}
}

func TestA61AnEnvironmentTakesItsShellsAlong(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		for _, how := range []struct{ operation, reason string }{
			{"reset_environment", "environment_reset"}, {"delete_environment", ""},
		} {
			p, m := s.place(t), mark()
			sh := p.open(t, nil)
			sh.run(t, "nohup sleep "+m+" >/dev/null 2>&1 &", nil)
			c := sh.run(t, "sleep "+m, object{"wait_ms": 100})
			mustRun(t, m, 2)
			p.must(t, how.operation, p.in(nil))
			if n := alive(m); n != 0 {
				t.Errorf("%d processes are left after %s", n, how.operation)
			}
			if how.reason == "" {
				p.refuse(t, "not_found", "run_in_shell", sh.ref(object{"command": "true"}))
				continue
			}
			if refused := p.refuse(t, "shell_closed", "run_in_shell", sh.ref(object{"command": "true"})); refused.Reason != how.reason || refused.Status != 410 {
				t.Errorf("the shell is refused with %d %q", refused.Status, refused.Reason)
			}
			if got := p.rest.get(t, c.ID, 0); got.Status != "killed" || got.Reason != how.reason {
				t.Errorf("the command is %s %s", got.Status, got.Reason)
			}
		}
	})
}

// TestAKilledServiceLosesItsShellsAndSaysSo: nothing pretends that they live.
func TestAKilledServiceLosesItsShellsAndSaysSo(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		p, m := s.place(t), mark()
		sh := p.open(t, nil)
		sh.run(t, "sleep "+m+" &", nil)
		c := sh.run(t, "echo kept; sleep "+m, object{"wait_ms": 100})
		p.shows(t, c.ID, "stdout", "kept\n")
		mustRun(t, m, 2)
		s.kill()
		mustRun(t, m, 0)
		again := s.restart(t)
		sh.place.rest = again.rest
		if got := sh.record(t); got.State != "closed" || got.CloseReason != "service_restarted" {
			t.Errorf("the shell is %s %s", got.State, got.CloseReason)
		}
		if refused := sh.refuse(t, "shell_closed", "run_in_shell", sh.ref(object{"command": "true"})); refused.Reason != "service_restarted" {
			t.Errorf("the shell is refused with %q", refused.Reason)
		}
		if got := sh.get(t, c.ID, 0); got.Status != "lost" || got.ExitCode != nil || got.Stdout.Text != "kept\n" {
			t.Errorf("the command is %+v", got)
		}
	})
}

func TestA59ShellsDoNotHinderEachOther(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		p := s.place(t)
		stuck := p.open(t, nil)
		stuck.run(t, "cat", nil)
		shells := make([]shell, 4)
		for i := range shells {
			shells[i] = p.open(t, nil)
		}
		var wg sync.WaitGroup
		for i, sh := range shells {
			wg.Go(func() {
				for n := range 25 {
					begin, id := time.Now(), fmt.Sprintf("%d-%d", i, n)
					answer, err := sh.tryRun("echo "+id+"; echo e"+id+" >&2", nil)
					if err != nil || answer.Stdout.Text != id+"\n" || answer.Stderr.Text != "e"+id+"\n" || time.Since(begin) > atOnce {
						t.Errorf("%s gave %+v %v after %s", id, answer, err, time.Since(begin))
						return
					}
				}
			})
		}
		wg.Wait()
		shells[0].must(t, "close_shell", shells[0].ref(nil))
		if got := shells[1].run(t, "echo on", nil); got.Stdout.Text != "on\n" {
			t.Errorf("after another was closed: %+v", got)
		}
		if got := stuck.record(t); got.State != "open" || got.Running == "" {
			t.Errorf("the stuck one is %+v", got)
		}
	})
}
