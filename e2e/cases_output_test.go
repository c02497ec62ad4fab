package e2e

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
)

// printed are the cases of what comes out of a shell's commands.
var printed = []shellCase{
	{name: "A29 bytes that are not UTF-8", play: play{run(`printf '\xff\xfe'`, prints("//4="))}},
	{name: "A29 a character cut by a pause", play: play{run(`printf '\xf0\x9f'; sleep .2; printf '\x98\x80'`, prints("😀"))}},
	{name: "A30 a NUL", play: play{run(`printf 'a\0b\n'`, prints("a\x00b\n")), run(`printf 'a\0b\n' | wc -c`, prints("4\n"))}},
	{name: "A32 a terminal's questions", play: play{
		run(`printf '\e[6n\e[c'`, prints("\x1b[6n\x1b[c")), run("echo clean", prints("clean\n")),
		run(`printf '\e[6n\e[c' >/dev/tty`), run("read -t 0; echo $?", prints("1\n")),
		run(`printf '\e[6n\e[c\e[?1049h\e[?2004h\ec'`, onTerminal, anything()), run("echo clean", prints("clean\n")),
	}},
	{name: "A34 echo on the terminal", play: play{run("echo hello", onTerminal, prints("hello\n")), run("echo hello >&2", onTerminal, prints("hello\n"))}},
	{name: "A34 echo past the output", play: play{run("echo seen >/dev/tty; echo out", prints("out\n")), onTTY("seen\n")}},
	{name: "A42 carriage returns", play: play{run(`printf '10%%\r20%%\n'`, prints("10%\r20%\n")), run(`printf '10%%\r20%%\n'`, onTerminal, prints("10%\r20%\n"))}},
	{name: "A43 a long line on the terminal", play: play{run(`printf '%0300d\n' 1`, onTerminal, prints(strings.Repeat("0", 299)+"1\n"))}},
	{name: "A44 ps ax is not cut", play: play{
		run("bash -c ': " + strings.Repeat("x", 300) + "-end; sleep MARK; :' &"), live(1), run("ps ax >list; grep \"^ *$! \" list | grep -c 'x\\{300\\}-end'", prints("1\n")), run("kill %1; pkill -P $! 2>/dev/null; true", anyError()),
	}},
	{name: "A45 no newline is added", play: play{run("printf abc", prints("abc")), run("printf def", onTerminal, prints("def"))}},
	{name: "A49 merged", play: play{
		run("echo o1; echo e1 >&2; echo o2; echo e2 >&2", with(object{"merge_stderr": true}), prints("o1\ne1\no2\ne2\n")),
		run("echo o1; echo e1 >&2", onTerminal, prints("o1\ne1\n")),
	}},
	{name: "A50 a failure in a subshell", play: play{run("(echo boom >&2; exit 1)", exits(1), complains("boom\n"))}},
	{name: "A54 characters and variables", play: play{
		run(`printf é | wc -m`, prints("1\n")), run(`x=é; echo ${#x}`, prints("1\n")),
		run(`echo $LANG $USER; [ -d "$HOME" ] && [ -w "$HOME" ] && echo home; echo $PATH`, prints("C.UTF-8 user\nhome\n"+documentedPath+"\n")),
	}},
	{name: "A56 a missing program", play: play{run("nosuchcmd", exits(127), complains("nosuchcmd: command not found")), run("./nosuch", exits(127), complains("No such file"))}},
	{name: "A57 an interactive bash", play: play{run("bash --norc -ic 'echo x' 2>/dev/null", prints("x\n")), run("bash --norc -ic 'echo x'", onTerminal, printing("x\n")), run("echo ok", prints("ok\n"))}},
	{name: "A28 much output", play: play{run("head -c 100000000 /dev/zero | tr '\\0' x", anything()), totals(100_000_000), run("echo ok", prints("ok\n"))}},
	{name: "A28 endless output is killed", play: play{run("yes", with(object{"wait_ms": 300}), statusRunning()), signaled("KILL", isKilled("signal"), anything()), run("echo ok", prints("ok\n"))}},
	{name: "A28 endless output on the terminal", play: play{run("yes", onTerminal, with(object{"wait_ms": 300}), statusRunning()), presses("ctrl-c"), ends(exits(130), anything()), run("echo ok", prints("ok\n"))}},
	{name: "what is written to descriptors by name", play: play{
		run("echo a >/dev/stdout; echo b >/dev/stderr; echo c >/dev/fd/1", prints("a\nc\n"), complains("b\n")), run("cat <(echo a) <(echo b)", prints("a\nb\n")),
		run("echo c | tee >(cat >f)", prints("c\n")), run("exec 7>&1; echo d >&7; exec 7>&-", prints("d\n")),
	}},
	{name: "a redirection of all lasts for its command", play: play{run("exec >f 2>&1; echo in f"), run("cat f", prints("in f\n"))}},
	{name: "a control character on the terminal is shown as it is", play: play{run(`printf 'a\tb\bc\a\n'`, onTerminal, prints("a\tb\bc\a\n"))}},
	{name: "10 000 lines", play: play{run("seq 10000", with(object{"output_bytes": 100_000}), prints(string(numbers(10_000)))), run("seq 10000", onTerminal, with(object{"output_bytes": 100_000}), prints(string(numbers(10_000))))}},
	{name: "the size of the terminal", in: object{"cols": 123, "rows": 45}, play: play{run("stty size </dev/tty", prints("45 123\n")), resized(90, 30), run("stty size </dev/tty", prints("30 90\n"))}},
	{name: "the output of commands stays apart", play: play{
		run("(sleep .3; echo late) & echo one", printing("one\n")), run("echo two; wait; echo three", prints("two\nthree\n"), anyError()),
	}},
	{name: "what looks like a frame is output", play: play{
		run("echo 0 > 0.0; echo 'NONCE.0'; printf '\\0\\0\\1{\"exit\":0}'; (exit 8)", exits(8), anything()), run("echo ok", prints("ok\n")),
	}},
}

func TestCasesOfOutput(t *testing.T) { playEach(t, printed) }

// onTTY sees what the latest command wrote to the terminal beside its output.
func onTTY(text string) step { return settled("tty", text) }

// totals sees how much the latest command has printed.
func totals(n int64) step {
	return func(t *testing.T, s *stage) {
		t.Helper()
		if s.last.Stdout.Total != n || s.last.Stdout.Omitted <= 0 {
			t.Errorf("%d bytes, %d omitted, want %d", s.last.Stdout.Total, s.last.Stdout.Omitted, n)
		}
	}
}

func resized(cols, rows int) step {
	return func(t *testing.T, s *stage) {
		t.Helper()
		s.must(t, "resize_shell", s.ref(object{"cols": cols, "rows": rows}))
	}
}

func TestB9B11LongOutputOfAShellIsCountedAndReadable(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		sh := s.place(t).open(t, nil)
		for exit := range 2 {
			c := sh.run(t, fmt.Sprintf("seq 1 500000; (exit %d)", exit), nil)
			if c.exit() != exit || !c.Stdout.Truncated || !bytes.Equal(sh.whole(t, c.ID, "stdout"), numbers(500_000)) {
				t.Errorf("exit %d, %d bytes, or read_output gave other bytes", c.exit(), c.Stdout.Total)
			}
		}
	})
}

func TestB13ManyCommandsInAShellLeaveNothing(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		sh, pid := s.place(t).open(t, nil), s.cmd.Process.Pid
		many := func(n int) {
			for i := range n {
				if c := sh.run(t, "true", nil); c.Status != "exited" || c.exit() != 0 {
					t.Fatalf("command %d: %s %d", i, c.Status, c.exit())
				}
			}
		}
		ofBash := func() string { return strings.TrimSpace(sh.run(t, "ls /proc/$$/fd | wc -l", nil).Stdout.Text) }
		before := ofBash()
		many(200)
		memory, tasks, files := resident(t, pid), threads(t, pid), descriptors(pid)
		many(1500)
		if n := resident(t, pid); n > memory+32<<20 {
			t.Errorf("memory went from %d to %d bytes", memory, n)
		}
		if n := threads(t, pid); n > tasks+8 {
			t.Errorf("threads went from %d to %d", tasks, n)
		}
		if n := descriptors(pid); n > files+8 {
			t.Errorf("descriptors went from %d to %d", files, n)
		}
		if n := ofBash(); n != before || n == "" {
			t.Errorf("descriptors of bash went from %s to %s", before, n)
		}
	})
}

// TestA46ATerminalWithAnUnusualBashrc: it is there within a bound, whatever its
// files do, and shows what they did.
func TestA46ATerminalWithAnUnusualBashrc(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		p := s.place(t)
		for _, c := range []struct{ name, rc, first, typed, shows string }{
			{"none", "", "$", "echo $((6*7))x\n", "42x"},
			{"a program that is not there", "exec zsh", "zsh", "", ""},
			{"noclobber", "set -C", "$", ": > n; echo more > n\n", "cannot overwrite"},
			{"200 functions", "for i in {1..200}; do eval \"f$i() { echo hi$i; }\"; done", "$", "f200\n", "hi200"},
			// Bash waits itself: a ctrl-c between the fork and the exec of a sleep may
			// reach neither.
			{"a long wait", "echo be patient; until ((SECONDS > 60)); do :; done", "be patient", "\x03echo $((6*7))x\n", "42x"},
			{"an exit", "echo bye; exit 4", "bye", "", ""},
		} {
			t.Run(c.name, func(t *testing.T) {
				p.exec(t, object{"command": `cd; printf '%s\n' "$RC" >.bashrc; echo '. ~/.bashrc' >.bash_profile`, "env": object{"RC": c.rc}})
				sh := p.open(t, object{"kind": "terminal"})
				sh.terminalShows(t, c.first)
				if c.typed != "" {
					sh.types(t, object{"data": c.typed})
					sh.terminalShows(t, c.shows)
					sh.refuse(t, "invalid_argument", "run_in_shell", sh.ref(object{"command": "true"}))
				}
			})
		}
		p.sh(t, "cd; rm -f .bashrc .bash_profile")
	})
}

// terminalShows waits until a text has come to the terminal.
func (s shell) terminalShows(t *testing.T, text string) {
	t.Helper()
	err := eventually(func() error {
		got := as[page](t, s.must(t, "read_shell", s.ref(object{"wait_ms": 50, "limit_bytes": 1 << 20})))
		if !contains(got.bytes(t), text) {
			return fmt.Errorf("the terminal shows %q, want %q", got.Data, text)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestA48AServiceOnATerminalIsNotStopped: shells have job control, and none of it
// reaches the service's own terminal.
func TestA48AServiceOnATerminalIsNotStopped(t *testing.T) {
	for _, tier := range tiers() {
		t.Run(tier, func(t *testing.T) {
			t.Parallel()
			s := startOnTerminal(t, tier)
			p := s.place(t)
			sh := p.open(t, nil)
			if c := sh.run(t, "bash --norc -ic 'echo x' 2>/dev/null", nil); c.Stdout.Text != "x\n" {
				t.Errorf("in a shell: %+v", c)
			}
			if c := p.exec(t, object{"command": "bash --norc -ic 'echo x' 2>/dev/null"}); c.Stdout.Text != "x\n" {
				t.Errorf("by exec: %+v", c)
			}
			p.open(t, object{"kind": "terminal"}).terminalShows(t, "$")
			p.exec(t, object{"command": "stty tostop; cat </dev/tty; kill -TTOU 0; :", "wait_ms": 1000})
			if state := processState(t, s.cmd.Process.Pid); state == "T" {
				t.Error("the service is stopped")
			}
			s.must(t, "get_status", nil)
		})
	}
}

// startOnTerminal starts a service whose controlling terminal is the test's.
func startOnTerminal(t *testing.T, tier string) *service {
	t.Helper()
	ours, its, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ours.Close() })
	defer its.Close()
	return start(t, config{tier: tier, prepare: func(cmd *exec.Cmd) {
		cmd.Stdin = its
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	}})
}

// processState is the letter of a process's state.
func processState(t *testing.T, pid int) string {
	t.Helper()
	stat := readFile(t, fmt.Sprintf("/proc/%d/stat", pid))
	return strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])[0]
}

// TestA48ThisTestHasATerminal is here so that the case cannot pass without one.
func TestA48ThisTestHasATerminal(t *testing.T) {
	_, its, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer its.Close()
	cmd := exec.Command("sh", "-c", ": </dev/tty")
	cmd.Stdin, cmd.SysProcAttr = its, &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
