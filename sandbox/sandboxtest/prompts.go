package sandboxtest

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"envapi/internal/require"
	"envapi/sandbox"
)

// desk is a command on a terminal.
type desk struct {
	t       *testing.T
	process sandbox.Process
	output  *capture
}

// seat starts a script on a terminal of its own; it is killed with the test.
func (f fixture) seat(t *testing.T, script string) desk {
	t.Helper()
	f.t = t
	p, output, _ := f.start(sandbox.Command{Script: script, Terminal: &sandbox.Size{Cols: 80, Rows: 24}})
	t.Cleanup(func() {
		if err := p.Kill(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("cannot kill %q: %v", script, err)
		}
		await(t, p.Quiet(), "its terminal did not end")
	})
	return desk{t, p, output}
}

func (d desk) await(text string) {
	d.t.Helper()
	eventually(d.t, "it writes "+text, func() bool { return strings.Contains(d.output.String(), text) })
}

// waits demands that it is seen to wait for input.
func (d desk) waits() {
	d.t.Helper()
	eventually(d.t, "it is seen to wait for input; written: "+d.output.String(), func() bool {
		reading, known := d.process.Terminal().Reading(d.t.Context())
		return reading && known
	})
}

// never demands that it is not, however often it is looked at for a while, and
// that this is known, or not.
func (d desk) never(wantKnown bool) {
	d.t.Helper()
	end := time.Now().Add(300 * time.Millisecond)
	for looks := 0; looks < 5 || time.Now().Before(end); looks++ {
		if reading, known := d.process.Terminal().Reading(d.t.Context()); reading || known != wantKnown {
			d.t.Fatalf("at look %d: reading %v, known %v", looks, reading, known)
		}
	}
}

// script is a name and a script, and the program that it needs.
type script struct{ name, needs, text string }

// asking are scripts that wait for what is typed; each in another way.
var asking = []script{
	{"cat", "cat", "cat"},
	{"read", "bash", "read x"},
	{"read from /dev/tty", "bash", "exec </dev/null; read x </dev/tty"},
	{"a pipeline", "cat", "cat | cat; :"},
	{"a child of a child", "cat", "(:; bash -c 'cat; :'; :); :"},
	{"an interactive shell", "bash", "bash --norc -i"},
	{"a job of an interactive shell", "bash", "bash --norc -ic 'cat; :'"},
	{"python: input()", "python3", `python3 -c 'input("? ")'`},
	{"python: interactive", "python3", "python3 -q -i"},
	{"python: getpass", "python3", "python3 -c 'import getpass; getpass.getpass()'"},
	{"python: asyncio", "python3", "python3 -c 'import asyncio\nasync def main():\n    asyncio.get_running_loop().add_reader(0, print)\n    await asyncio.sleep(300)\nasyncio.run(main())'"},
	{"python: a thread", "python3", "python3 -c 'import threading; threading.Thread(target=input).start()'"},
	{"a password prompt", "openssl", "openssl passwd -5"},
	{"a pager", "less", "seq 1000 | less"},
	{"node: interactive", "node", "node -i"},
}

// busy are scripts that do something else, having said "ready".
var busy = []script{
	{"sleep", "sleep", "echo ready; sleep 300"},
	{"computing", "bash", "echo ready; while :; do :; done"},
	{"a pipe that nobody writes", "cat", "mkfifo fifo-$$; echo ready; cat <fifo-$$"},
	{"wait", "bash", "sleep 300 & echo ready; wait"},
	{"a reader in the background", "cat", "set -m; cat </dev/tty & echo ready; sleep 300; :"},
	{"python: select of a pipe", "python3", "exec python3 -c 'import os, select\nr, w = os.pipe()\nprint(\"ready\", flush=True)\nselect.select([r], [], [])'"},
}

// hidden makes a Python program one that cannot be looked into by its own uid.
const hidden = "import ctypes, getpass, time\nassert ctypes.CDLL(None).prctl(4, 0, 0, 0, 0) == 0\nprint(\"ready\", flush=True)\n"

// prompts: who waits for what is typed is seen, and nobody else.
func prompts(t *testing.T, tier Tier) {
	f := tier.box(t)
	needs := func(t *testing.T, program string) {
		if f.script("command -v "+program).ExitCode != 0 {
			require.Feature(t, program, "commands do not find it")
		}
	}
	for _, s := range asking {
		t.Run("A18 it waits: "+s.name, func(t *testing.T) {
			needs(t, s.needs)
			f.seat(t, s.text).waits()
		})
	}
	for _, s := range busy {
		t.Run("it does not: "+s.name, func(t *testing.T) {
			needs(t, s.needs)
			d := f.seat(t, s.text)
			d.await("ready")
			d.never(true)
		})
	}
	t.Run("A20 an answer ends the wait", func(t *testing.T) {
		d := f.seat(t, "read x; mkfifo answer; echo got $x; cat <answer; read y; echo and $y")
		d.waits()
		if n, err := d.process.Input().Write(t.Context(), []byte("one\n")); n != 4 || err != nil {
			t.Fatalf("got %d, %v", n, err)
		}
		d.await("got one")
		d.never(true)
		f.script(": >answer")
		d.waits()
	})
	t.Run("in a shell", func(t *testing.T) { f.t = t; promptsInShell(t, f) })
	t.Run("it cannot be looked into", func(t *testing.T) {
		needs(t, "python3")
		f.seat(t, "exec python3 -c '"+hidden+"getpass.getpass()'").waits()
		for _, does := range []string{"input()", "time.sleep(300)"} {
			if os.Geteuid() == 0 && does == "input()" {
				f.seat(t, "exec python3 -c '"+hidden+does+"'").waits()
				continue
			}
			d := f.seat(t, "exec python3 -c '"+hidden+does+"'")
			d.await("ready")
			d.never(os.Geteuid() == 0) // a user is told nothing of it
		}
	})
}

// promptsInShell: a shell that waits for its next command reads no terminal, and
// what it runs may; one for people waits at its prompt.
func promptsInShell(t *testing.T, f fixture) {
	open := func(interactive bool) sandbox.Shell {
		t.Helper()
		s, err := f.box.OpenShell(t.Context(), sandbox.ShellSpec{
			Interactive: interactive, Size: sandbox.Size{Cols: 80, Rows: 24}, Output: &capture{},
		})
		if err != nil {
			t.Fatalf("cannot open a shell: %v", err)
		}
		t.Cleanup(func() {
			if err := s.Kill(context.WithoutCancel(t.Context())); err != nil {
				t.Errorf("cannot kill the shell: %v", err)
			}
		})
		return s
	}
	people := open(true)
	desk{t, people, &capture{}}.waits()

	shell := open(false)
	run := func(script string) desk {
		t.Helper()
		output := &capture{}
		p, err := shell.Run(t.Context(), sandbox.ShellCommand{Script: script, Stdout: output})
		if err != nil {
			t.Fatalf("cannot run %q: %v", script, err)
		}
		return desk{t, p, output}
	}
	desk{t, shell, &capture{}}.never(true)
	for _, script := range []string{"read x; echo got $x", "cat | head -n1 | sed 's/^/got /'", "x=$(head -n1 </dev/tty); echo got $x"} {
		d := run("echo ready; " + script)
		d.waits()
		if n, err := d.process.Input().Write(t.Context(), []byte("one\n\x04")); n != 5 || err != nil {
			t.Fatalf("got %d, %v", n, err)
		}
		await(t, d.process.Done(), "it did not end: "+script)
		if d.output.String() != "ready\ngot one\n" {
			t.Errorf("%s: got %q", script, d.output.String())
		}
	}
	d := run("cat </dev/tty & echo ready; sleep 300")
	d.await("ready")
	d.never(true)
	if err := d.process.Kill(t.Context()); err != nil {
		t.Error(err)
	}
}
