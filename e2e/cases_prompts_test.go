package e2e

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"
)

// onTerminal gives the command the terminal for its output too, and short waits
// only briefly, for what is expected to run on.
var (
	onTerminal = with(object{"tty": true})
	briefly    = with(object{"wait_ms": 700})
)

// asking are the cases of what waits for input in a shell, and of what does not.
var asking = []shellCase{
	{name: "A18 cat", play: play{run("cat", prompts()), types("hi\n"), settled("stdout", "hi\n"), eof(), ends(prints("hi\n")), run("echo ok", prints("ok\n"))}},
	{name: "A18 grep", play: play{run("grep foo", prompts()), types("bar\nfoo 1\n"), eof(), ends(prints("foo 1\n"))}},
	{name: "A18 the REPL of python", play: play{
		run("python3", prompts(), anyError()), types("print(6*7)\n"), settled("stdout", "42"), types("exit(3)\n"), ends(exits(3), anything()), run("echo ok", prints("ok\n")),
	}},
	{name: "A18 input() of python", play: play{run(`python3 -c 'print("got", input("name? "))'`, prompts(), anything()), types("x\n"), ends(printing("got x\n"), anyError())}},
	{name: "A18 what reads the terminal by name", play: play{run("head -1 </dev/tty", prompts()), types("by name\n"), ends(prints("by name\n"))}},
	{name: "A18 two readers in a pipe", play: play{run("cat | tr a-z A-Z", prompts()), types("up\n"), eof(), ends(prints("UP\n"))}},
	{name: "A18 a wait again", play: play{run("read x; read y; echo $x$y", prompts()), types("1\n"), settledAsking(), types("2\n"), ends(prints("12\n"))}},
	{name: "A20 read on the terminal", play: play{
		run("read x; echo got $x", onTerminal, prompts()), isBusy(), types("hello\n"), ends(printing("got hello\n")), run("echo ok", prints("ok\n")),
	}},
	{name: "A20 read without it", play: play{run("read x; echo got $x", prompts()), isBusy(), types("hello\n"), ends(prints("got hello\n"))}},
	{name: "A20 input nobody read is dropped", play: play{
		run("read x", prompts()), types("one\ntwo\nthree\n"), ends(), run("read -t 0; echo $?", prints("1\n")), run("read y", prompts(), briefly), types("four\n"), ends(), run("echo $x $y", prints("one four\n")),
	}},
	{name: "A21 read -s", play: play{
		run("read -s -p 'Password: ' p; echo got $p", prompts(), anything()), types("secret\n"), ends(prints("got secret\n"), anyError()), noEcho("secret"), run("stty -a </dev/tty | grep -c ' echo '", prints("1\n")),
	}},
	{name: "A21 getpass is shown and can be killed", play: play{
		run("python3 -c 'import getpass; print(getpass.getpass())'", prompts(), anything()), settled("all", "Password: "), signaled("KILL", isKilled("signal"), anything()),
		run("stty -a </dev/tty | grep -c ' echo '", prints("1\n")),
	}},
	{name: "A21 getpass is answered", play: play{
		run("python3 -c 'import getpass; print(getpass.getpass()[::-1])'", prompts(), anything()), types("terces\n"), ends(printing("secret\n"), anyError()), noEcho("terces"),
	}},
	{name: "A21 a passphrase", play: play{
		run("openssl genpkey -algorithm ed25519 -aes-256-cbc -pass pass:secret -out k", anything()), run("openssl pkey -in k -pubout", prompts(), anything()),
		types("secret\n"), ends(printing("BEGIN PUBLIC KEY"), anyError()), noEcho("secret"),
	}},
	{name: "A21 git's credentials", play: play{
		run("printf 'protocol=https\\nhost=x\\n\\n' | git credential fill", prompts(), anything()), settled("all", "Username for"), types("me\n"), settledAsking(),
		types("pw\n"), ends(printing("password=pw"), anyError()),
	}},
	{name: "A35 ctrl-c at a prompt", play: play{run("read x; echo not", prompts()), presses("ctrl-c"), ends(exits(130)), run("echo ok", prints("ok\n"))}},
	{name: "A35 ctrl-d at a prompt", play: play{run("read x; echo $?", prompts()), presses("ctrl-d"), ends(prints("1\n")), run("echo ok", prints("ok\n"))}},
	{name: "A41 git log does not page", play: play{
		run("git init -q . && git -c user.name=A -c user.email=a@example.org commit -q --allow-empty -m first", anything()),
		run("git log --format=%s", onTerminal, printing("first")), run("git log --format=%s", prints("first\n")),
	}},
	{name: "A41 less pages when asked", play: play{
		run("seq 500 > f; less f", onTerminal, prompts()), types("q"), ends(anything()), run("echo ok", prints("ok\n")),
	}},
	{name: "A41 vim runs and is seen", play: play{
		run("echo 'text of f' > f; vim -u NONE f", onTerminal, prompts()), onScreen("text of f"), types(":q!\n"), ends(anything()), run("echo ok", prints("ok\n")),
	}},
	{name: "A41 vim can be killed", play: play{
		run("vim -u NONE f", onTerminal, prompts()), signaled("KILL", isKilled("signal"), anything()), run("echo ok", prints("ok\n")),
		run("stty -a </dev/tty | grep -c ' icanon '", prints("1\n")),
	}},
	{name: "top runs and is left", play: play{run("top -d 60", onTerminal, with(object{"wait_ms": 3000}), statusRunning()), types("q"), ends(anything())}},
	{name: "select", play: play{run("select x in a b; do echo $x; break; done", prompts(), anything()), types("2\n"), ends(prints("b\n"), anyError())}},
	{name: "read -t", play: play{run("read -t 1 x", prompts()), over(), ends(exits(142)), run("echo ok", prints("ok\n"))}},
	{name: "read -n 1", play: play{run("read -n 1 x; echo \"<$x>\"", prompts()), types("k"), ends(prints("<k>\n"))}},
	{name: "stty raw and a key", play: play{run("stty raw -echo </dev/tty; head -c 3 | od -An -c | tr -d ' '", prompts()), presses("up"), ends(prints(`033[A` + "\n"))}},
	{name: "read -e", play: play{run("read -e x; echo $x", onTerminal, prompts()), types("edited\n"), ends(printing("edited\n"))}},

	{name: "A18 sleep does not ask", play: play{run("sleep 30", briefly, runsOn()), presses("ctrl-c"), ends(exits(130))}},
	{name: "A18 computing does not ask", play: play{run("while :; do :; done", briefly, runsOn()), presses("ctrl-c"), ends(exits(130))}},
	{name: "A18 a reader of a pipe does not ask", play: play{run("mkfifo p; cat p", briefly, runsOn()), presses("ctrl-c"), ends(exits(130))}},
	{name: "A18 a reader of a slow pipe does not ask", play: play{run("sleep 30 | cat", briefly, runsOn()), presses("ctrl-c"), ends(exits(130))}},
	{name: "A18 wait does not ask", play: play{run("sleep 30 & wait", briefly, runsOn()), presses("ctrl-c"), ends(exits(130)), run("kill %1", anyError())}},
	{name: "a reader in the background is stopped and does not ask", play: play{
		run("cat & sleep 30", briefly, runsOn()), presses("ctrl-c"), ends(exits(130), anyError()), run("jobs", printing("Stopped"), anyError()), run("kill -9 %1", anyError()),
	}},
}

func TestCasesOfPrompts(t *testing.T) { playEach(t, asking) }

// settledAsking waits until the latest command waits for input again.
func settledAsking() step {
	return func(t *testing.T, s *stage) {
		t.Helper()
		s.expect(t, "get_command", object{"command_id": s.last.ID, "wait_ms": longWait}, wanted([]want{prompts(), anything()}))
	}
}

// over waits until the latest command has ended, which may have asked for input
// until then.
func over() step {
	return func(t *testing.T, s *stage) {
		t.Helper()
		if err := eventually(func() error {
			if c := s.get(t, s.last.ID, 0); c.Status == "running" {
				return errors.New("it runs on: " + c.Next)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	}
}

// noEcho sees that the terminal did not show what was typed.
func noEcho(text string) step {
	return func(t *testing.T, s *stage) {
		t.Helper()
		if got := s.output(t, s.last.ID, object{"stream": "tty"}); contains(got.bytes(t), text) {
			t.Errorf("the terminal shows %q", got.Data)
		}
	}
}

// onScreen waits until the terminal shows a text.
func onScreen(text string) step {
	return func(t *testing.T, s *stage) {
		t.Helper()
		s.screenShows(t, text)
	}
}

// TestA21AProgramWithATerminalOfItsOwn: the same kinds by exec.
func TestA21AProgramWithATerminalOfItsOwn(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		p := s.place(t)
		for _, c := range []struct{ name, script, input, prints string }{
			{"A20 read", "read x; echo got $x", "hello\n", "got hello\n"},
			{"A18 cat", "cat", "line\n\x04", "line\nline\n"},
			{"A21 a password", "read -s -p 'Password: ' p; echo; echo got ${#p}", "secret\n", "Password: \ngot 6\n"},
			{"A18 python", "python3 -c 'print(input(\"? \")[::-1])'", "abc\n", "cba\n"},
			{"A57 an interactive bash", "bash --norc -i", "echo $((6*7))x; exit 5\n", "42x"},
		} {
			t.Run(c.name, func(t *testing.T) {
				begin := time.Now()
				got := p.exec(t, object{"command": c.script, "tty": object{"cols": 80, "rows": 24}})
				if d := time.Since(begin); d > atOnce || got.Status != "running" || known(got.Waiting) != "true" {
					t.Fatalf("after %s it is %s, waiting %s: %q", d, got.Status, known(got.Waiting), got.Stdout.Text)
				}
				p.must(t, "write_input", object{"command_id": got.ID, "data": c.input})
				end := p.rest.get(t, got.ID, longWait)
				if end.Status != "exited" || !contains([]byte(end.Stdout.Text), c.prints) || end.Stderr.Text != "" {
					t.Errorf("it came to %s", end.brief())
				}
			})
		}
	})
}

// TestOpenInput: what stdin_open is for.
func TestOpenInput(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		p := s.place(t)
		c := p.exec(t, object{"command": "while read x; do echo got $x; done; echo end", "stdin": "first\n", "stdin_open": true, "wait_ms": 0})
		p.shows(t, c.ID, "stdout", "got first\n")
		p.must(t, "write_input", object{"command_id": c.ID, "data": "second\n"})
		p.shows(t, c.ID, "stdout", "got second\n")
		p.must(t, "write_input", object{"command_id": c.ID, "data": encode([]byte("third\n")), "encoding": "base64", "eof": true})
		if end := p.rest.get(t, c.ID, longWait); end.exit() != 0 || end.Stdout.Text != "got first\ngot second\ngot third\nend\n" {
			t.Errorf("it came to %s %d %q", end.Status, end.exit(), end.Stdout.Text)
		}
		p.refuse(t, "input_closed", "write_input", object{"command_id": c.ID, "data": "x"})
		plain := p.background(t, "sleep 30")
		p.refuse(t, "input_closed", "write_input", object{"command_id": plain.ID, "data": "x"})
		full := p.exec(t, object{"command": "sleep 30", "stdin_open": true, "wait_ms": 0})
		taken := as[shellRecord](t, p.must(t, "write_input", object{"command_id": full.ID, "data": string(numbers(100_000)), "wait_ms": 200}))
		if taken.Written <= 0 || taken.Written >= int64(len(numbers(100_000))) {
			t.Errorf("a program that does not read took %d bytes", taken.Written)
		}
	})
}

// TestInputWhereNobodyReads: the answers are clear.
func TestInputWhereNobodyReads(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		p := s.place(t)
		sh := p.open(t, nil)
		sh.refuse(t, "input_closed", "write_shell", sh.ref(object{"data": "x"}))
		sh.run(t, "sleep 30", object{"wait_ms": 100})
		sh.refuse(t, "invalid_argument", "write_shell", sh.ref(object{"keys": []string{"hyper-x"}}))
		many := string(numbers(20_000))
		if got := as[shellRecord](t, sh.must(t, "write_shell", sh.ref(object{"data": many, "wait_ms": 200}))); got.Written < 1000 || got.Written >= int64(len(many)) {
			t.Errorf("a terminal that nobody reads took %d of %d bytes", got.Written, len(many))
		}
		sh.must(t, "close_shell", sh.ref(nil))
		sh.refuse(t, "shell_closed", "write_shell", sh.ref(object{"data": "x"}))
	})
}

// onATerminal are the cases of programs that exec gives a terminal, which is all
// of their output.
var onATerminal = []oneCall{
	{name: "A34 echo", in: object{"command": "echo hello"}, stdout: "hello\n"},
	{name: "A34 standard error", in: object{"command": "echo hello >&2"}, stdout: "hello\n"},
	{name: "A41 git log", in: object{"command": "git init -q g && cd g && git -c user.name=A -c user.email=a@example.org commit -q --allow-empty -m first && git log --format=%s"}, check: has("first\n"), stdout: anyText},
	{name: "A42 carriage returns", in: object{"command": `printf '10%%\r20%%\n'`}, stdout: "10%\r20%\n"},
	{name: "A43 a long line", in: object{"command": `printf '%0300d\n' 1`}, stdout: strings.Repeat("0", 299) + "1\n"},
	{name: "A45 no newline is added", in: object{"command": "printf abc"}, stdout: "abc"},
	{name: "A57 an interactive bash", in: object{"command": "bash --norc -ic 'echo x'"}, check: has("x\n"), stdout: anyText},
	{name: "it is a terminal", in: object{"command": "test -t 0 && test -t 1 && test -t 2 && tty | cut -c1-5; stty size"}, stdout: "/dev/\n33 111\n"},
	{name: "10 000 lines", in: object{"command": "seq 10000", "output_bytes": 100_000}, stdout: string(numbers(10_000))},
	{name: "a failure", in: object{"command": "nosuchcmd"}, exit: 127, check: has("command not found"), stdout: anyText},
}

// anyText stands for output that check looks at.
const anyText = "\x00any"

func has(text string) func(command) string {
	return func(c command) string { return lacks("stdout", c.Stdout.Text, []string{text}) }
}

func TestCasesOfExecOnATerminal(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		p := s.place(t)
		for _, c := range onATerminal {
			t.Run(c.name, func(t *testing.T) {
				all := object{"tty": object{"cols": 111, "rows": 33}}
				maps.Copy(all, c.in)
				got := p.exec(t, all)
				if c.stdout == anyText {
					c.stdout = got.Stdout.Text
				}
				c.compare(t, got)
			})
		}
	})
}
