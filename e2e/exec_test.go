package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// oneCall is one exec and what its answer must be.
type oneCall struct {
	name   string
	in     object
	status string // "" is exited
	exit   int    // with status exited
	stdout string
	stderr string               // must be contained
	check  func(command) string // says what is wrong
}

var oneCalls = []oneCall{
	{name: "A18 cat reads an empty input", in: object{"command": "cat"}},
	{name: "A18 grep reads an empty input", in: object{"command": "grep foo"}, exit: 1},
	{name: "A18 python3 reads an empty input", in: object{"command": "python3"}},
	{
		name: "A29 bytes that are not UTF-8 come as base64",
		in:   object{"command": `printf '\xff\xfe'`}, stdout: "//4=",
		check: func(c command) string { return differs("encoding", c.Stdout.Encoding, "base64") },
	},
	{
		name:   "A29 a character cut by a pause is whole",
		in:     object{"command": `printf '\xf0\x9f'; sleep .2; printf '\x98\x80'`},
		stdout: "😀",
		check:  func(c command) string { return differs("encoding", c.Stdout.Encoding, "utf-8") },
	},
	{
		name: "A30 a NUL is kept",
		in:   object{"command": `printf 'a\0b\n'`}, stdout: "a\x00b\n",
		check: func(c command) string { return differs("total_bytes", c.Stdout.Total, 4) },
	},
	{
		name:   "A38 a command of 300 KB runs",
		in:     object{"command": ": " + strings.Repeat("x", 300_000) + "; echo whole"},
		stdout: "whole\n",
	},
	{name: "A42 carriage returns are kept", in: object{"command": `printf '10%%\r20%%\n'`}, stdout: "10%\r20%\n"},
	{
		name:   "A49 merged streams keep their order",
		in:     object{"command": "echo o1; echo e1 >&2; echo o2; echo e2 >&2", "merge_stderr": true},
		stdout: "o1\ne1\no2\ne2\n",
		check:  func(c command) string { return differs("stderr", c.Stderr.Text, "") },
	},
	{name: "A50 a failure is a result", in: object{"command": "echo boom >&2; exit 1"}, exit: 1, stderr: "boom\n"},
	{name: "A56 a missing program in a script", in: object{"command": "nosuchcmd"}, exit: 127, stderr: "nosuchcmd: command not found"},
	{name: "A56 a missing program in argv", in: object{"argv": []string{"nosuchcmd"}}, exit: 127, stderr: "nosuchcmd"},
	{name: "B1 a long wait answers at the end", in: object{"command": "echo x", "wait_ms": 45000}, stdout: "x\n"},
	{name: "argv is run without a shell", in: object{"argv": []string{"printf", "%s|", "a b", "$HOME", "*"}}, stdout: "a b|$HOME|*|"},
	{name: "a blank command does nothing", in: object{"command": "  "}},
	{name: "stdin is given whole and ends", in: object{"command": "wc -c", "stdin": strings.Repeat("x", 1<<20)}, stdout: "1048576\n"},
	{name: "env and cwd are set", in: object{"command": `mkdir -p d; cd d; echo "$A ${PWD##*/}"`, "env": object{"A": "b c"}}, stdout: "b c d\n"},
	{name: "cwd may be absolute", in: object{"command": "pwd", "cwd": "/usr/bin"}, stdout: "/usr/bin\n"},
	{name: "cwd is relative to the workspace", in: object{"command": "mkdir -p a/b; cd a; echo \"${PWD##*/}\"", "cwd": "."}, stdout: "a\n"},
	{name: "several statements on several lines", in: object{"command": "echo 1\n(exit 7)\necho $?"}, stdout: "1\n7\n"},
	{name: "an unfinished quote is bash's error", in: object{"command": "echo 'x"}, exit: 2, stderr: "unexpected EOF"},
	{
		name: "a signal is a result", in: object{"command": "kill -TERM $$; sleep 60"}, status: "signaled",
		check: func(c command) string { return differs("signal", c.Signal, "TERM") },
	},
}

func differs(what string, got, want any) string {
	if fmt.Sprint(got) == fmt.Sprint(want) {
		return ""
	}
	return fmt.Sprintf("%s is %v, want %v", what, got, want)
}

func TestOneCall(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		p := s.place(t)
		for _, c := range oneCalls {
			t.Run(c.name, func(t *testing.T) {
				got := p.exec(t, c.in)
				c.compare(t, got)
				if again := p.rest.get(t, got.ID, 0); again.Status != got.Status || again.Stdout != got.Stdout {
					t.Errorf("get_command gives %+v, exec gave %+v", again, got)
				}
			})
		}
	})
}

func (c oneCall) compare(t *testing.T, got command) {
	t.Helper()
	status := c.status
	if status == "" {
		status = "exited"
	}
	if got.Status != status || status == "exited" && got.exit() != c.exit {
		t.Errorf("%s %d, want %s %d; stderr: %s", got.Status, got.exit(), status, c.exit, got.Stderr.Text)
	}
	if status != "exited" && got.ExitCode != nil {
		t.Errorf("an exit code %d with status %s", *got.ExitCode, status)
	}
	if got.Stdout.Text != c.stdout {
		t.Errorf("stdout is %q, want %q", got.Stdout.Text, c.stdout)
	}
	if !strings.Contains(got.Stderr.Text, c.stderr) || c.stderr == "" && got.Stderr.Text != "" {
		t.Errorf("stderr is %q, want %q in it", got.Stderr.Text, c.stderr)
	}
	if got.DurationMS > patience.Milliseconds() {
		t.Errorf("it took %d ms", got.DurationMS)
	}
	if c.check != nil {
		if wrong := c.check(got); wrong != "" {
			t.Error(wrong)
		}
	}
}

func TestRefusedExec(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		p := s.place(t)
		for _, c := range []struct {
			name, code string
			in         object
		}{
			{"A38 a command of 2 MB", "too_large", object{"command": ": " + strings.Repeat("x", 2<<20)}},
			{"neither command nor argv", "invalid_argument", object{}},
			{"both", "invalid_argument", object{"command": "true", "argv": []string{"true"}}},
			{"a cwd that is not there", "invalid_argument", object{"command": "true", "cwd": "nowhere"}},
			{"a NUL in the command", "invalid_argument", object{"command": "echo \x00"}},
			{"an unknown field", "invalid_argument", object{"command": "true", "comand": "true"}},
			{"the network", "network_refused", object{"command": "true", "network": true}},
			{"a timeout above the maximum", "invalid_argument", object{"command": "true", "timeout_ms": 1 << 40}},
		} {
			t.Run(c.name, func(t *testing.T) { p.refuse(t, c.code, "exec", p.in(c.in)) })
		}
		if got := p.must(t, "list_commands", p.in(nil))["items"].([]any); len(got) != 0 {
			t.Errorf("a refused exec left %d commands", len(got))
		}
	})
}
