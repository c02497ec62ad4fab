package sandboxtest

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"envapi/sandbox"
)

// shells: a bash that lasts, and whose commands end truly.
func shells(t *testing.T, tier Tier) {
	f := tier.box(t)
	for _, c := range shellSessions() {
		t.Run(c.name, func(t *testing.T) { c.run(t, f.in(t)) })
	}
	t.Run("killed", func(t *testing.T) { shellsKilled(t, tier) })
	t.Run("used", func(t *testing.T) { shellsUsed(t, tier) })
	t.Run("hostile", func(t *testing.T) { shellsHostile(t, tier) })
}

// shellSession is what is run in one shell, one after the other.
type shellSession struct {
	name  string
	steps []shellStep
}

// shellStep is a command, and what must come of it.
type shellStep struct {
	script         string
	code           int
	stdout, stderr string // exactly; "…" in stderr is anything
	ended, corrupt bool
	signal         string
}

// shellSessions are cases that broke others.
func shellSessions() []shellSession { return slices.Concat(plainSessions(), oddSessions()) }

// Steps of a kind.
func says(script, stdout string) shellStep { return shellStep{script: script, stdout: stdout} }
func exits(script string, n int) shellStep { return shellStep{script: script, code: n} }
func quits(script string, n int) shellStep { return shellStep{script: script, code: n, ended: true} }

func spoils(script string) shellStep {
	return shellStep{script: script, ended: true, corrupt: true, signal: "KILL", stderr: "…"}
}

// plainSessions are scripts as anybody may write them.
func plainSessions() []shellSession {
	after := says("echo after", "after\n")
	return []shellSession{
		{"true and false", []shellStep{says("true", ""), exits("false", 1), after}},
		{"A1 set -e ends it with the first that fails", []shellStep{says("set -euo pipefail", ""), quits("false", 1)}},
		{"A1 set -e sees how a command ended", []shellStep{says("set -e; false || true", ""), quits("false && true", 1)}},
		{"A3 exit with a child left", []shellStep{quits("sleep 300 & exit 3", 3)}},
		{"A4 exec", []shellStep{quits("exec sh -c 'exit 5'", 5)}},
		{"A4 exec of what takes longer", []shellStep{quits("exec sh -c 'sleep 1; exit 5'", 5)}},
		{"A4 exec of another bash", []shellStep{{script: "exec bash -c 'sleep 1; echo x; exit 6'", code: 6, stdout: "x\n", ended: true}}},
		{"A55 bash closes what it reads", []shellStep{spoils("for f in /proc/$$/fd/*; do n=${f##*/}; eval \"exec $n>&-\"; done 2>/dev/null; sleep 300")}},
		{"A55 what it reads is taken away", []shellStep{spoils("read -t 0.1 x <&10; read -t 0.1 x <&11; true")}},
		{"A5 arrays", []shellStep{exits("A=(); false", 1)}},
		{"A6 PROMPT_COMMAND", []shellStep{says("PROMPT_COMMAND=true", ""), exits("false", 1), says("PROMPT_COMMAND='false; (exit 9)'", ""), exits("(exit 3)", 3), says("echo $?", "3\n")}},
		{"A8 $? is kept", []shellStep{exits("false", 1), says("echo $?", "1\n"), says("echo $?", "0\n"), exits("(exit 255)", 255), says("echo $?", "255\n")}},
		{"A9 heredocs", []shellStep{says("cat <<E\na\nE", "a\n"), says("cat <<E\na\nE\n", "a\n"), after}},
		{"A10 a quoted heredoc", []shellStep{says("cat <<'E'\n'`$x\\!\"$(no)\nE\n", "'`$x\\!\"$(no)\n")}},
		{"A12 a backslash or comment at the end", []shellStep{says(`echo a \`, "a \\\n"), says("echo a # x", "a\n"), says("echo a #'", "a\n"), after}},
		{"A13 what is not finished", []shellStep{
			{script: "echo 'x", code: 2, stderr: "…"}, {script: "echo $(ls", code: 2, stderr: "…"}, {script: "cat <<E\nx", stdout: "x\n", stderr: "…"}, after,
		}},
		{"A14 a pipe to nothing", []shellStep{{script: "ls |", code: 2, stderr: "…"}, {script: "if true; then", code: 2, stderr: "…"}, after}},
		{"A15 several lines", []shellStep{says("echo \"a\nb\"", "a\nb\n"), exits("(exit 7)", 7), says("echo 1\necho 2\n\necho 3", "1\n2\n3\n")}},
		{"A22 a child that writes on", []shellStep{says("(while :; do echo x; sleep .1; done) >/dev/null & echo fg", "fg\n"), says("kill %1", "")}},
		{"no line of ours is remembered", []shellStep{says("history", "")}},
		{"A30 A45 bytes are exact", []shellStep{says(`printf 'a\0b\n\xff\xfe\r'`, "a\x00b\n\xff\xfe\r"), says("printf abc", "abc")}},
		{"A35 nothing is a command", []shellStep{says("", ""), says("   \n", ""), exits("false", 1), says("# nothing", "")}},
		{"A39 what is set stays", []shellStep{
			says("cd /tmp; export A=1; f() { echo hi; }; declare -x B=2; shopt -s globstar; C=3; alias x='echo alias'", ""),
			says(`f; echo $A $B $C; pwd; shopt globstar | cut -f2; sh -c 'echo $A$B$C'`, "hi\n1 2 3\n/tmp\non\n12\n"), says("x", "alias\n"),
		}},
		{"A50 both streams", []shellStep{{script: "echo boom >&2; (exit 1)", code: 1, stderr: "boom\n"}}},
		{"A54 characters", []shellStep{says("printf é | wc -m", "1\n"), says("echo $LANG $USER $-", "C.UTF-8 user himBs\n")}},
	}
}

// oddSessions are scripts that change the shell itself.
func oddSessions() []shellSession {
	after := says("echo after", "after\n")
	return []shellSession{
		{"A55 break outside of a loop", []shellStep{{script: "break 2", stderr: "…"}, after}},
		{"A55 set -n is not for interactive shells", []shellStep{says("set -n", ""), after}},
		{"A55 functions in the place of builtins", []shellStep{
			says("builtin() { :; }; exit() { :; }; cd() { :; }; command() { :; }; eval() { :; }; source() { :; }; read() { :; }; trap() { :; }; return() { :; }", ""),
			exits("false", 1), after,
		}},
		{"A55 aliases of everything", []shellStep{says(`shopt -s expand_aliases; alias .=false exit=ls :=ls true=false source=x`, ""), exits("command false", 1), after}},
		{"A55 a function in the place of the dot", []shellStep{says(".() { return 0; }", ""), spoils("true")}},
		{"A55 the dot is off", []shellStep{says("enable -n .", ""), spoils("true")}},
		{"A55 its own output is elsewhere", []shellStep{says("exec >/dev/null", ""), after}},
		{"A55 all is closed", []shellStep{says("exec 3>&- 4>&- 5>&-", ""), after}},
		{"A55 kill -9 of itself", []shellStep{{script: "kill -9 $$", signal: "KILL", ended: true}}},
		{"A55 kill of the shell by a child", []shellStep{{script: "sh -c 'kill -9 $PPID'; sleep 300", signal: "KILL", ended: true}}},
		{"A55 set -x", []shellStep{{script: "set -x; echo a", stdout: "a\n", stderr: "+ echo a\n"}, {script: "echo b", stdout: "b\n", stderr: "++ echo b\n"}}},
		{"A55 set -v, -C, -u, -f, -k, -b", []shellStep{says("set -C -u -f -k -b", ""), after, exits("(exit 4)", 4), {script: "echo $nosuch", code: 1, stderr: "…"}, after}},
		{"A55 traps", []shellStep{
			says("trap 'x=1' DEBUG; trap 'y=1' RETURN; trap 'z=1' ERR", ""), exits("false", 1), says("echo $?", "1\n"), after,
		}},
		{"an EXIT trap runs at the end", []shellStep{says("trap 'echo bye' EXIT", ""), {script: "exit 4", code: 4, ended: true, stdout: "bye\n"}}},
		{"an EXIT trap runs where set -e ends bash", []shellStep{{script: "set -e; trap 'echo bye; echo bad >&2' EXIT; echo hi; false", code: 1, ended: true, stdout: "hi\nbye\n", stderr: "bad\n"}}},
		{"an EXIT trap of another command runs where set -e ends bash", []shellStep{
			{script: "set -ex; PS1='(me) '; PROMPT_COMMAND='echo prompt'; trap 'echo bye; exit 7' EXIT", stderr: "…"},
			{script: "false", code: 7, ended: true, stdout: "bye\n", stderr: "++ false\n+ echo bye\n+ exit 7\n"},
		}},
		{"what an EXIT trap writes may be long", []shellStep{{script: "set -e; trap 'printf %0300000d 0; read -t 0.1 x || echo $?' EXIT; false", code: 1, ended: true, stdout: strings.Repeat("0", 300_000) + "142\n"}}},
		{"an ERR trap is not seen twice", []shellStep{says("trap 'echo err' ERR", ""), {script: "false", code: 1, stdout: "err\n"}, {script: "set -e; echo a; false", code: 1, ended: true, stdout: "a\nerr\n"}}},
		{"A56 no such program", []shellStep{{script: "nosuchcmd", code: 127, stderr: "…"}}},
		{"an odd IFS", []shellStep{says("IFS=0123456789", ""), exits("(exit 42)", 42), says("echo \"$?\"", "42\n"), exits("(exit 130)", 130)}},
		{"prompts of any kind", []shellStep{says(`PS1='$(exit 3)\u\w '; PS2=x; PS4=y; PROMPT_COMMAND=('false' 'true')`, ""), exits("false", 1), after}},
		{"posix mode", []shellStep{says("set -o posix", ""), exits("false", 1), after}},
		{"restricted", []shellStep{spoils("set -r")}},
		{"TMOUT is not ours", []shellStep{says("unset TMOUT; readonly TMOUT=", ""), after}},
		{"history and job control", []shellStep{says("set -o history; set -H; echo 'a!b'", "a!b\n"), says("set +m; sleep 0 & wait; echo $?", "0\n"), after}},
		{"what cannot start a process", []shellStep{exits("(exit 9)", 9), says("echo $?", "9\n"), exits("ulimit -u 1; return 7", 7), says("echo $?", "7\n"), exits("false", 1), says("true", "")}},
		{"a return is one", []shellStep{exits("return 3", 3), after}},
		{"exit in a function, a subshell, a pipe", []shellStep{exits("(exit 3)", 3), exits("exit 3 | exit 4", 4), quits("f() { exit 6; }; f", 6)}},
	}
}

func (s shellSession) run(t *testing.T, f fixture) {
	sh := f.shell(sandbox.ShellSpec{})
	for _, shellStep := range s.steps {
		shellStep.run(t, sh)
	}
}

func (s shellStep) run(t *testing.T, sh shellFixture) {
	t.Helper()
	got := sh.run(s.script)
	if got.ExitCode != s.code || got.Signal != s.signal || got.Shell.Ended != s.ended || got.Shell.Corrupt != s.corrupt {
		t.Errorf("%q: got %d %q %+v, want %+v (%q)", s.script, got.ExitCode, got.Signal, *got.Shell, s, got.stderr)
	}
	if got.stdout != s.stdout || s.stderr != "…" && !strings.HasSuffix(got.stderr, s.stderr) {
		t.Errorf("%q: wrote %q and %q, want %q and %q", s.script, got.stdout, got.stderr, s.stdout, s.stderr)
	}
	if !s.ended {
		return
	}
	await(t, sh.Done(), "an ended shell is not done")
	if _, err := sh.Run(t.Context(), sandbox.ShellCommand{Script: "true"}); !errors.Is(err, sandbox.ErrShellClosed) {
		t.Errorf("after its end: got %v", err)
	}
}

// in is the same box for a test below.
func (f fixture) in(t *testing.T) fixture {
	f.t = t
	return f
}

// shellFixture is a shell under test.
type shellFixture struct {
	sandbox.Shell
	t        *testing.T
	terminal *capture
}

// shell opens a shell, which is ended with the test.
func (f fixture) shell(spec sandbox.ShellSpec) shellFixture {
	f.t.Helper()
	terminal := &capture{}
	spec.Output, spec.Size = terminal, sandbox.Size{Cols: 80, Rows: 24}
	sh, err := f.box.OpenShell(f.t.Context(), spec)
	if err != nil {
		f.t.Fatalf("cannot open a shell: %v", err)
	}
	return shellFixture{sh, f.t, terminal}
}

// start starts a command.
func (s shellFixture) start(c sandbox.ShellCommand) (p sandbox.Process, stdout, stderr *capture) {
	s.t.Helper()
	stdout, stderr = &capture{}, &capture{}
	c.Stdout, c.Stderr = stdout, stderr
	p, err := s.Run(s.t.Context(), c)
	if err != nil {
		s.t.Fatalf("cannot run %q: %v", c.Script, err)
	}
	return p, stdout, stderr
}

// run runs a command to its end.
func (s shellFixture) run(script string) outcome {
	s.t.Helper()
	p, stdout, stderr := s.start(sandbox.ShellCommand{Script: script})
	await(s.t, p.Done(), "the command did not end: "+script)
	return outcome{p.Result(), stdout.String(), stderr.String()}
}
