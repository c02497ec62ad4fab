package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// execCases are the cases of the list that one exec shows, beside oneCalls.
var execCases = []oneCall{
	{name: "A5 an array before a failure", in: object{"command": "A=(); false"}, exit: 1},
	{name: "A9 a heredoc with a final newline", in: object{"command": "cat > f <<E\nx\nE\nod -An -c f | tr -d ' \\n'"}, stdout: `x\n`},
	{name: "A9 a heredoc at the end of the command", in: object{"command": "cat <<E\nx\nE"}, stdout: "x\n"},
	{name: "A10 a quoted heredoc", in: object{"command": "cat <<'E'\n" + awkward + "\nE\n"}, stdout: awkward + "\n"},
	{name: "A12 a trailing backslash", in: object{"command": `echo a \`}, stdout: "a \\\n"},
	{name: "A12 a trailing comment", in: object{"command": "echo a # x"}, stdout: "a\n"},
	{name: "A13 an unfinished substitution", in: object{"command": "echo $("}, exit: 2, stderr: "unexpected EOF"},
	{name: "A13 an unfinished heredoc", in: object{"command": "cat <<E\nbody"}, stdout: "body\n", stderr: "here-document"},
	{name: "A14 a pipe to nothing", in: object{"command": "ls |"}, exit: 2, stderr: "syntax error"},
	{name: "A15 a newline in quotes", in: object{"command": "echo \"a\nb\""}, stdout: "a\nb\n"},
	{name: "A15 a subshell's code", in: object{"command": "(exit 7)"}, exit: 7},
	{name: "A18 read finds the end", in: object{"command": "read x; echo $?"}, stdout: "1\n"},
	{name: "A18 what reads /dev/stdin", in: object{"command": "cat /dev/stdin; wc -c < /dev/stdin"}, stdout: "0\n"},
	{name: "A21 read -s without a terminal", in: object{"command": "read -s -p Password: p"}, exit: 1},
	{name: "A21 getpass without a terminal", in: object{"command": "python3 -W ignore -c 'import getpass; getpass.getpass()'"}, exit: 1, stderr: "EOFError"},
	{name: "A21 a passphrase without a terminal", in: object{"command": "openssl genpkey -algorithm ed25519 -aes-256-cbc -pass pass:secret -out k && openssl pkey -in k"}, exit: 1, stderr: "pass phrase"},
	{name: "A21 git's credentials without a terminal", in: object{"command": "printf 'protocol=https\\nhost=x\\n\\n' | git credential fill"}, exit: 128, stderr: "could not read Username"},
	{name: "A21 /dev/tty without a terminal", in: object{"command": ": </dev/tty"}, exit: 1, stderr: "/dev/tty"},
	{name: "A32 a terminal's questions are bytes", in: object{"command": `printf '\e[6n\e[c'`}, stdout: "\x1b[6n\x1b[c"},
	{name: "A43 a long line", in: object{"command": `printf '%0300d\n' 1`}, stdout: strings.Repeat("0", 299) + "1\n"},
	{
		name: "A44 ps is not cut", in: object{"command": ": " + strings.Repeat("x", 300) + "-end; ps ax >list; grep \"^ *$$ \" list | grep -c 'x\\{300\\}-end'"},
		stdout: "1\n",
	},
	{name: "A45 no newline is added", in: object{"command": "printf abc"}, stdout: "abc"},
	{name: "A45 none is taken away", in: object{"command": `printf '\n\nabc\n\n\n'`}, stdout: "\n\nabc\n\n\n"},
	{name: "A54 characters are UTF-8", in: object{"command": "printf é | wc -m"}, stdout: "1\n"},
	{name: "A54 what is documented", in: object{"command": `echo $TERM $LANG $USER $SHELL; [ "$HOME" = "$PWD" ] && echo home; echo $PATH`}, stdout: "dumb C.UTF-8 user /bin/bash\nhome\n" + documentedPath + "\n"},
	{name: "A57 an interactive bash without a terminal", in: object{"command": "bash -ic 'echo x' 2>/dev/null"}, stdout: "x\n"},
	{name: "a login bash", in: object{"command": "bash -lc 'echo x'"}, stdout: "x\n"},
	{name: "set -e ends it", in: object{"command": "set -e; false; echo not"}, exit: 1},
	{name: "an EXIT trap has the last word", in: object{"command": "trap 'echo bye; exit 7' EXIT; exit 3"}, exit: 7, stdout: "bye\n"},
	{name: "exec replaces it", in: object{"command": "exec sh -c 'exit 5'"}, exit: 5},
	{name: "process substitutions", in: object{"command": "cat <(echo a) <(echo b); echo c | tee >(cat >/dev/null)"}, stdout: "a\nb\nc\n"},
	{name: "/dev/stdout and /dev/stderr", in: object{"command": "echo a > /dev/stdout; echo b > /dev/stderr"}, stdout: "a\n", stderr: "b\n"},
	{name: "/dev/fd", in: object{"command": "echo a | cat /dev/fd/0; echo b > /dev/fd/1"}, stdout: "a\nb\n"},
	{name: "standard output closed", in: object{"command": "exec >&-; echo x"}, exit: 1, stderr: "Bad file descriptor"},
	{name: "a coprocess", in: object{"command": "coproc cat; echo hi >&${COPROC[1]}; read -u ${COPROC[0]} x; echo $x"}, stdout: "hi\n"},
	{name: "a reader that leaves", in: object{"command": "set -o pipefail; yes | head -1"}, stdout: "y\n", exit: 141},
	{name: "CRLF is bash's to judge", in: object{"command": "echo a\r\necho b\r"}, stdout: "a\r\nb\r\n"},
	{name: "code 255", in: object{"command": "exit 255"}, exit: 255},
	{name: "code 256 is 0", in: object{"command": "exit 256"}},
	{name: "a code of bash for a signal of a child", in: object{"command": "sh -c 'kill -9 $$'; exit $?"}, exit: 137, stderr: "Killed"},
	{name: "a program that is not executable", in: object{"command": "echo x > plain; ./plain"}, exit: 126, stderr: "Permission denied"},
	{name: "a program that is a directory", in: object{"command": "mkdir -p dir; ./dir"}, exit: 126, stderr: "directory"},
	{name: "deep recursion", in: object{"command": "FUNCNEST=500; f() { f; }; f"}, exit: 1, stderr: "maximum function nesting"},
	{name: "a script in a variable of the environment", in: object{"command": "eval \"$S\"", "env": object{"S": "echo a\nexit 6"}}, stdout: "a\n", exit: 6},
	{name: "a CRLF and a NUL in stdin", in: object{"command": "od -An -c | tr -d ' '", "stdin": "a\r\n\x00b"}, stdout: "a\\r\\n\\0b\n"},
	{
		name: "a signal by name", in: object{"command": "kill -USR1 $$; sleep 60"}, status: "signaled",
		check: func(c command) string { return differs("signal", c.Signal, "USR1") },
	},
	{
		name: "the KILL of its own", in: object{"command": "kill -9 $$; sleep 60"}, status: "signaled",
		check: func(c command) string { return differs("signal", c.Signal, "KILL") },
	},
	{
		name: "a fault", in: object{"command": "kill -SEGV $$; sleep 60"}, status: "signaled",
		check: func(c command) string { return differs("signal", c.Signal, "SEGV") },
	},
	{name: "10 000 lines", in: object{"command": "seq 10000 | tail -1; seq 10000 | md5sum | cut -c1-8", "output_bytes": 1000}, stdout: "10000\n" + "72d4ff27" + "\n"},
}

// awkward is what quoting goes wrong with.
const awkward = "it's `date` $HOME \\n \\\\ ! !! \"q\" $(x) ${y} # * ? ~ % ü\t\\"

// documentedPath is the PATH of commands where the deployment names none.
const documentedPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/go/bin"

func TestCasesOfExec(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		p := s.place(t)
		for _, c := range execCases {
			t.Run(c.name, func(t *testing.T) { c.compare(t, p.exec(t, c.in)) })
		}
	})
}

// TestA38LengthsOfCommands tries those around the length of one argument, and of
// the most.
func TestA38LengthsOfCommands(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		p := s.place(t)
		for _, n := range []int{4095, 4096, 65_536, 131_071, 131_072, 131_073, 1 << 20} {
			end := "; echo ${#x}"
			script := "x=" + strings.Repeat("y", n-2-len(end)) + end
			if c := p.exec(t, object{"command": script}); c.exit() != 0 || c.Stdout.Text != fmt.Sprintln(n-2-len(end)) {
				t.Errorf("of %d bytes: %s %d %q %q", n, c.Status, c.exit(), c.Stdout.Text, c.Stderr.Text)
			}
		}
		p.refuse(t, "too_large", "exec", p.in(object{"command": strings.Repeat("y", 1<<20+1)}))
	})
}
