package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// framing are the cases of what is carried to bash, and of what comes back.
var framing = []shellCase{
	{name: "A1 set -e ends the shell", play: play{
		run("set -euo pipefail"), run("false", exits(1), closing("exited")), run("echo ok", goneFor("exited")),
	}},
	{name: "A1 set -e lets a test fail", play: play{
		run("set -e"), run("if false; then :; fi; false || echo on", prints("on\n")), run("echo ok", prints("ok\n")),
	}},
	{name: "A1 set -u", play: play{
		run("set -u"), run("echo $nosuch; echo after", exits(1), complains("nosuch: unbound variable")), run("echo ok", prints("ok\n")),
	}},
	{name: "A1 pipefail lasts", play: play{run("set -o pipefail"), run("false | true", exits(1)), run("true | true")}},
	{name: "A5 an array before a failure", play: play{run("A=(); false", exits(1))}},
	{name: "A6 PROMPT_COMMAND", play: play{
		run("PROMPT_COMMAND=true"), run("false", exits(1)), run("echo $?", prints("1\n")),
		run("PROMPT_COMMAND='echo prompted; false'"), run("(exit 9)", exits(9)), run("true"),
	}},
	{name: "A8 $? of the call before", play: play{
		run("false", exits(1)), run("echo $?", prints("1\n")), run("echo $?", prints("0\n")),
		run("(exit 255)", exits(255)), run("", exits(0)), run("return 5", exits(5)), run("echo $?", prints("5\n")),
	}},
	{name: "A9 a heredoc", play: play{
		run("cat > f <<E\none\ntwo\nE"), run("od -An -c f | tr -d ' \\n'", prints(`one\ntwo\n`)),
		run("cat > g <<E\nlast\nE\n"), run("cat g", prints("last\n")),
		run("cat <<-E\n\t\tindented\n\tE", prints("indented\n")), run("cat <<< here", prints("here\n")),
	}},
	{name: "A10 a quoted heredoc", play: play{
		run("cat <<'E'\n"+awkward+"\nE", prints(awkward+"\n")), run("echo ok", prints("ok\n")),
	}},
	{name: "A12 what hides the end of a line", play: play{
		run(`echo a \`, prints("a \\\n")), run("echo a # x", prints("a\n")), run("echo a; #", prints("a\n")),
		run("echo b ;", prints("b\n")), run("echo c &&\n\n echo d", prints("c\nd\n")), run("echo e # '", prints("e\n")),
		run("# nothing"), run("\n\n\n"), run(" \t "),
	}},
	{name: "A13 what is not finished", play: play{
		run("echo 'x", exits(2), complains("unexpected EOF")), run("echo $(", exits(2), complains("unexpected EOF")),
		run("cat <<E\nbody", prints("body\n"), complains("here-document")), run("echo ok", prints("ok\n")),
		run(`echo "x`, exits(2), anyError()), run("echo `", exits(2), anyError()), run("echo ${", exits(2), anyError()),
		run("echo ok", prints("ok\n")),
	}},
	{name: "A14 a syntax error", play: play{
		run("ls |", exits(2), complains("syntax error")), run("if true; then", exits(2), anyError()), run("fi", exits(2), anyError()),
		run("((", exits(2), anyError()), run("f() {", exits(2), anyError()), run("&& x", exits(2), anyError()),
		run(")", exits(2), anyError()), run("}", exits(2), anyError()), run("case x in", exits(2), anyError()),
		run("echo ok", prints("ok\n")),
	}},
	{name: "A15 several lines", play: play{
		run("echo \"a\nb\"", prints("a\nb\n")), run("(exit 7)", exits(7)), run("echo 1\nfalse\necho 2\n(exit 3)", prints("1\n2\n"), exits(3)),
		run("for i in 1 2\ndo\n echo $i\ndone", prints("1\n2\n")),
	}},
	{name: "A39 what lasts", play: play{
		run("cd /tmp; export A=1; f() { echo hi; }; declare -x B=2; shopt -s globstar; alias g='echo al'; L=(1 '2 3'); declare -A M=([k]=v); set -f; umask 027"),
		run(`pwd; echo $A $B "${L[1]}" ${M[k]}; f; g; shopt globstar | tr '\t' ' '; echo *; umask; env | grep -c '^[AB]=[12]$'`,
			prints("/tmp\n1 2 2 3 v\nhi\nal\nglobstar        on\n*\n0027\n2\n")),
		run("set -- x y; OPTIND=3; trap 'echo usr' USR1"), run("echo $2 $# $OPTIND; kill -USR1 $$", prints("y 2 3\nusr\n")),
	}},
	{name: "A40 the directory", play: play{
		run("mkdir -p a/b; cd a/b; pwd -P >/dev/null"), run("cd .. && cd - >/dev/null; basename $PWD", prints("b\n")),
		run("cd /usr/bin", leaves("/usr/bin")), run("false", exits(1), leaves("/usr/bin")), run("(cd /)", leaves("/usr/bin")),
		run("cd /nosuch", exits(1), complains("No such file"), leaves("/usr/bin")),
	}},
	{name: "A40 a directory that is gone", play: play{
		run("mkdir -p gone && cd gone && rmdir ../gone"), saysInNext("deleted"), run("echo ok", prints("ok\n"), anyError()),
		run("cd /", leaves("/")),
	}},
	{name: "A52 a second command", play: play{
		run("until [ -e go ]; do sleep .05; done; echo first", with(object{"wait_ms": 0}), anything(), statusRunning()),
		isBusy(),
		queued("touch done; echo second"),
		run("true", isRefused("shell_busy")),
		elsewhere("touch go"), ends(prints("second\n")), run("echo third", prints("third\n")),
	}},
	{name: "A46 a command shell reads no .bashrc", play: play{
		elsewhere("cd; printf 'exec zsh\\nset -C\\nsleep 60\\n' > .bashrc; cp .bashrc .profile; cp .bashrc .bash_profile"),
		reopened(), run("echo ok > f; echo ok > f; cat f", prints("ok\n")), elsewhere("cd; rm .bashrc .profile .bash_profile"),
	}},
	{name: "A38 a long command", play: play{
		run(": "+strings.Repeat("x", 300_000)+"; echo whole", prints("whole\n")),
		run("cat <<'E' | wc -c\n"+strings.Repeat(strings.Repeat("y", 99)+"\n", 9_000)+"E", prints("900000\n")),
		run(": "+strings.Repeat("x", 2<<20), isRefused("too_large")), run("echo ok", prints("ok\n")),
	}},
	{name: "a NUL is refused", play: play{run("echo a\x00b", isRefused("invalid_argument")), run("echo ok", prints("ok\n"))}},
	{name: "CRLF is bash's to judge", play: play{run("echo a\r\necho b\r", prints("a\r\nb\r\n")), run("true\r", exits(127), anyError())}},
	{name: "many statements", play: play{run(strings.Repeat("n=$((n+1))\n", 10_000)), run("echo $n", prints("10000\n"))}},
	{name: "names of ours mean nothing", play: play{
		run("nonce=1 code=2 cwd=3 FRAME=4; status() { echo no; }; record() { echo no; }; readonly PS1 PS2 IFS; readonly x=1; true"),
		run("echo ok", prints("ok\n")), run("x=2; echo not reached", exits(1), anyError()), run("(exit 6)", exits(6)),
	}},
}

func TestCasesOfFraming(t *testing.T) { playEach(t, framing) }

// saysInNext looks for a word in what the latest answer says to do next.
func saysInNext(word string) step {
	return func(t *testing.T, s *stage) {
		t.Helper()
		if !strings.Contains(s.last.Next, word) {
			t.Errorf("next is %q, want %q in it", s.last.Next, word)
		}
	}
}

// statusRunning is what runs, whether or not it waits for input.
func statusRunning() want { return func(o *outcome) { o.status = "running" } }

// isBusy tries a second command, whose refusal names the running one.
func isBusy() step {
	return func(t *testing.T, s *stage) {
		t.Helper()
		p := s.refuse(t, "shell_busy", "run_in_shell", s.ref(object{"command": "echo mixed"}))
		if p.Status != 409 || p.CommandID != s.last.ID {
			t.Errorf("it is busy with %q (%d), want %q", p.CommandID, p.Status, s.last.ID)
		}
	}
}

// queued puts a command in line.
func queued(script string) step {
	return run(script, with(object{"queue": true, "wait_ms": 0}), statusRunning())
}

// hostile are scripts that break shells. After each, the shell must take the
// next command as if nothing was, or be closed and say why: "" where it lives,
// else the reason, or both where bash may do either.
var hostile = []struct {
	name, script string
	after        string
	wants        []want
}{
	{name: "A55 break 2", script: "break 2", wants: []want{anyError()}},
	{name: "A55 set -n", script: "set -n", after: " corrupt"},
	{name: "A55 set -n in a function", script: "f() { set -n; }; f", after: " corrupt"},
	{name: "A55 builtin is a function", script: "builtin() { :; }"},
	{name: "A55 exec >/dev/null", script: "exec >/dev/null"},
	{name: "A55 exec 2>&1", script: "exec 2>&1; echo x >&2", wants: []want{prints("x\n")}},
	{name: "A55 kill -9 $$", script: "kill -9 $$", after: "exited", wants: []want{dies("KILL"), closing("exited")}},
	{name: "A55 kill -9 of its own process", script: "kill -9 $BASHPID", after: "exited", wants: []want{dies("KILL"), closing("exited")}},
	{name: "A55 kill -SEGV $$", script: "kill -SEGV $$", after: "exited", wants: []want{dies("SEGV"), closing("exited")}},
	{name: "A55 kill -HUP $$", script: "kill -HUP $$", after: "exited", wants: []want{dies("HUP"), closing("exited")}},
	{name: "A55 kill -TERM $$ is ignored by bash", script: "kill -TERM $$"},
	{name: "A55 set -x", script: "set -x", wants: []want{anyError()}},
	{name: "A55 set -v", script: "set -v", wants: []want{anyError()}},
	{name: "A55 trap '' INT", script: "trap '' INT TERM HUP QUIT"},
	{name: "A55 closing descriptors", script: "exec 3>&- 4>&- 5>&-"},
	{name: "A55 closing all descriptors", script: "for i in {0..255}; do eval \"exec $i>&-\"; done", after: " corrupt exited"},
	{name: "A55 closing bash's own descriptor", script: "exec 255<&-; exec 254<&-", after: " corrupt exited"},
	{name: "A55 stty -echo", script: "stty -echo"},
	{name: "stty raw", script: "stty raw -echo"},
	{name: "stty 0", script: "stty 0; :", after: " exited", wants: []want{anyError()}},
	{name: "exec 0<&-", script: "exec 0<&-"},
	{name: "exec </dev/null", script: "exec </dev/null"},
	{name: "exec < of a file of commands", script: "echo 'echo intruder; exit 44' > cmds; exec <cmds", after: " corrupt exited"},
	{name: "logout", script: "logout", wants: []want{exits(1), anyError()}},
	{name: "kill -STOP $$", script: "(sleep .3; kill -CONT $$) & kill -STOP $$"},
	{name: "set -o posix", script: "set -o posix"},
	{name: "set -r", script: "set -r", after: "corrupt", wants: []want{corrupts()}},
	{name: "set -C", script: "set -C"},
	{name: "set -t", script: "set -t", after: " corrupt exited"},
	{name: "set -m off", script: "set +m"},
	{name: "extdebug with a DEBUG trap", script: "shopt -s extdebug; trap false DEBUG", after: "corrupt", wants: []want{corrupts()}},
	{name: "a DEBUG trap", script: "trap 'true dbg' DEBUG"},
	{name: "an ERR trap", script: "trap 'echo err >&2' ERR"},
	{name: "a RETURN trap", script: "trap 'false' RETURN"},
	{name: "a trap that returns", script: "trap 'return 3' DEBUG", after: " corrupt exited", wants: []want{anyEnd()}},
	{name: "an EXIT trap", script: "trap 'exit 7' EXIT"},
	{name: "exec of what is not there", script: "exec nosuchprogram", after: " exited", wants: []want{anyEnd(), anyError()}},
	{name: "PS1 with a command", script: "PS1='$(sleep 1)'; PS4='$(echo x)'"},
	{name: "PROMPT_COMMAND that exits", script: "PROMPT_COMMAND='exit 4'", after: "exited", wants: []want{exitsOr(0, 4)}},
	{name: "PROMPT_COMMAND that is broken", script: "PROMPT_COMMAND='(('"},
	{name: "enable -n of builtins", script: "enable -n exit cd echo eval source . : read printf", after: " corrupt"},
	{name: "functions named as builtins", script: "cd() { :; }; exit() { :; }; eval() { :; }; source() { :; }; .() { echo caught; }; echo() { printf 'alive\\n'; }", after: " corrupt", wants: []want{anyEnd(), anyError()}},
	{name: "aliases", script: `shopt -s expand_aliases; alias echo='printf "%s\n"'; alias .=true; alias exec=true`},
	{name: "unset PATH", script: "unset PATH HOME PWD IFS"},
	{name: "IFS of digits", script: "IFS=0123456789/."},
	{name: "ulimit -n 3", script: "ulimit -n 3", after: "corrupt", wants: []want{corrupts()}},
	{name: "ulimit -f 0", script: "ulimit -f 0", after: " corrupt exited"},
	{name: "ulimit -v", script: "ulimit -v 20000", after: " corrupt exited", wants: []want{anyEnd(), anyError()}},
	{name: "umask 777", script: "umask 777", after: " corrupt"},
	{name: "a huge environment", script: "export BIG=$(head -c 200000 /dev/zero | tr '\\0' x)", wants: []want{anyError()}},
	{name: "exec -a", script: "exec -a other bash -c 'exit 9'", after: "exited", wants: []want{exits(9), closing("exited")}},
	{name: "a coprocess", script: "coproc cat; echo hi >&${COPROC[1]}; read -u ${COPROC[0]} x; [ $x = hi ]", wants: []want{anyError()}},
	{name: "deep recursion", script: "f() { f; }; FUNCNEST=500; f", wants: []want{exits(1), anyError()}},
	{name: "recursion without an end", script: "ulimit -s 512; exec 2>/dev/null; f() { f; }; f", after: "exited", wants: []want{dies("SEGV"), closing("exited"), anyError()}},
	{name: "removing every frame", script: "rm -rf /run/envapi \"$TMPDIR\"/* \"$TMPDIR\"/.[!.]* 2>/dev/null; :", after: "corrupt", wants: []want{corrupts()}},
	{name: "TMOUT", script: "TMOUT=1", after: " exited"},
	{name: "IGNOREEOF", script: "IGNOREEOF=10; set -o ignoreeof"},
	{name: "HISTFILE", script: "set -o history; HISTFILE=$PWD/h; history -a; set -H"},
	{name: "set -o vi", script: "set -o vi; bind '\"a\":\"b\"' 2>/dev/null; :"},
	{name: "readonly all", script: "readonly PATH HOME PWD OLDPWD IFS PS1 PS2; :"},
	{name: "LANG", script: "export LANG=C LC_ALL=POSIX"},
	{name: "set -k -a -B -h -E -T -P", script: "set -kahETP +B"},
	{name: "shopt of all kinds", script: "shopt -s nullglob failglob nocasematch lastpipe inherit_errexit compat31 xpg_echo extglob"},
}

func exitsOr(codes ...int) want {
	return func(o *outcome) { o.exits = codes }
}

// corrupts is what a shell that cannot say how a command ended says of it.
func corrupts() want {
	return func(o *outcome) { o.status, o.reason, o.closes, o.errAny = "killed", "shell_closed", "corrupt", true }
}

func anyEnd() want { return func(o *outcome) { o.anyEnd = true } }

func TestA55AShellThatIsBroken(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		p := s.place(t)
		for _, c := range hostile {
			t.Run(c.name, func(t *testing.T) {
				st := p.stage(t, nil)
				st.mayClose = true
				run(c.script, c.wants...)(t, st)
				st.livesOrSays(t, c.after)
			})
		}
		p.sh(t, "echo unharmed")
	})
}

// livesOrSays finds out what became of the shell.
func (s *stage) livesOrSays(t *testing.T, after string) {
	t.Helper()
	first := s.attempt(t, "echo alive; (exit 3)")
	got := s.record(t)
	if got.State == "closed" {
		if got.CloseReason == "" || !strings.Contains(after, got.CloseReason) {
			t.Errorf("the shell is closed: %q, want one of %q", got.CloseReason, after)
		}
		s.refuse(t, "shell_closed", "run_in_shell", s.ref(object{"command": "true"}))
		return
	}
	if after != "" && after[0] != ' ' {
		t.Errorf("the shell is %s, want closed for %q", got.State, after)
	}
	if first == nil || first.exit() != 3 || !strings.Contains(first.Stdout.Text, "alive\n") {
		t.Errorf("the next command gave %s", first.brief())
	}
	if c := s.run(t, "true", nil); c.Status != "exited" || c.exit() != 0 {
		t.Errorf("the one after it gave %s %d", c.Status, c.exit())
	}
}

// attempt runs a command where the shell may be closed, or close.
func (s *stage) attempt(t *testing.T, script string) *command {
	t.Helper()
	answer, err := s.timed(t, "run_in_shell", s.ref(object{"command": script, "wait_ms": longWait}))
	if err != nil {
		return nil
	}
	c := as[command](t, answer)
	if c.Status == "running" {
		t.Errorf("it still runs: %s", fmt.Sprint(c.Next))
	}
	return &c
}

// TestA55AShellThatCannotFork: what it says is true all the same. It takes its time,
// since bash tries again for 15 seconds.
func TestA55AShellThatCannotFork(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		sh := s.place(t).open(t, nil)
		sh.run(t, "ulimit -u 1", nil)
		if c := sh.run(t, "true", nil); c.Status != "exited" || c.exit() != 0 {
			t.Errorf("true gave %s %d: %s", c.Status, c.exit(), c.Stderr.Text)
		}
		if c := sh.run(t, "sh -c 'exit 3'", nil); c.Status != "exited" || c.exit() == 0 {
			t.Errorf("a fork that failed gave %s %d: %s", c.Status, c.exit(), c.Stderr.Text)
		}
		if c := sh.run(t, "true", nil); c.Status != "exited" || c.exit() != 0 {
			t.Errorf("true after that gave %s", c.brief())
		}
	})
}
