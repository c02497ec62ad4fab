package sandboxtest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"envapi/sandbox"
)

// terminals: a command's terminal is one, and nobody else's.
func terminals(t *testing.T, tier Tier) {
	f := tier.box(t)
	for _, c := range []struct{ name, script, want string }{
		{"it is one, three times", `tty >name; test -t 0 -a -t 1 -a -t 2 && grep -c ^/dev/pts/ name`, "1\n"},
		{"A46 what is written is not changed", `echo hello; printf 'a\0b\r\n\033[1m'`, "hello\na\x00b\r\n\x1b[1m"},
		{"it has a size", `stty size`, "24 80\n"},
		{"it has a name for programs", `echo $TERM`, "xterm-256color\n"},
		{"nothing pages", `echo $PAGER $GIT_PAGER`, "cat cat\n"},
		{"errors are on it too", `echo error >&2`, "error\n"},
		{"only 0, 1 and 2 are open", `ls /proc/self/fd | tr '\n' ' '`, "0 1 2 3 "},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, out := f.onTerminal(c.script)
			await(t, p.Done(), "it did not end")
			if got := out.String(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	t.Run("it controls its session", func(t *testing.T) { controlsItsSession(t, f) })
	if tier.Namespaces || !tier.Confined { // else nothing may be opened by the name of the host's
		t.Run("it can be opened by name", func(t *testing.T) { openedByName(t, f) })
	}
	t.Run("its size is changed, and told", func(t *testing.T) { resized(t, f) })
	t.Run("A22 what lives on writes on", func(t *testing.T) { lateOnTerminal(t, f) })
	t.Run("who closes it is not hung up", func(t *testing.T) { closedByItsLeader(t, f) })
	t.Run("it is killed", func(t *testing.T) { killedOnTerminal(t, f) })
	t.Run("D4 no other box reaches it", func(t *testing.T) { foreignTerminal(t, tier, f) })
	if tier.Namespaces {
		t.Run("D12 there are only so many", func(t *testing.T) { allTerminals(t, tier) })
	}
	t.Run("no descriptor is left", func(t *testing.T) { noDescriptorLeft(t, f) })
	t.Run("a box that ends takes it along", func(t *testing.T) { terminalOfClosedBox(t, tier) })
}

// onTerminal starts a script on a terminal, and gives what is written to that.
func (f fixture) onTerminal(script string) (sandbox.Process, *capture) {
	f.t.Helper()
	var out capture
	p, err := f.box.Start(f.t.Context(), sandbox.Command{
		Script: script, Stdout: &out, Terminal: &sandbox.Size{Cols: 80, Rows: 24},
	})
	if err != nil {
		f.t.Fatalf("cannot start %q: %v", script, err)
	}
	return p, &out
}

// has waits until it is in what was written.
func (c *capture) has(t *testing.T, what string) {
	t.Helper()
	eventually(t, "written: "+what, func() bool { return strings.Contains(c.String(), what) })
}

// controlsItsSession: a program that does not make a terminal its own, as bash would, finds
// it.
func controlsItsSession(t *testing.T, f fixture) {
	p, err := f.box.Start(t.Context(), sandbox.Command{
		Argv: []string{"dd", "if=/dev/null", "of=/dev/tty"}, Stdout: &capture{}, Terminal: &sandbox.Size{Cols: 80, Rows: 24},
	})
	if err != nil {
		t.Fatal(err)
	}
	await(t, p.Done(), "it did not end")
	if p.Result().ExitCode != 0 {
		t.Errorf("got %+v", p.Result())
	}
}

func openedByName(t *testing.T, f fixture) {
	p, out := f.onTerminal(`echo error >/dev/stderr; echo name >$(tty)`)
	await(t, p.Done(), "it did not end")
	if got := out.String(); got != "error\nname\n" {
		t.Errorf("got %q", got)
	}
}

func resized(t *testing.T, f fixture) {
	p, out := f.onTerminal(`trap 'stty size; exit 5' WINCH; echo ready; while :; do read -t 0.05 x; done`)
	out.has(t, "ready")
	if err := p.Terminal().Resize(sandbox.Size{Cols: 132, Rows: 50}); err != nil {
		t.Fatal(err)
	}
	await(t, p.Done(), "it was not told")
	if out.String() != "ready\n50 132\n" || p.Result().ExitCode != 5 {
		t.Errorf("got %q and %+v", out.String(), p.Result())
	}
	await(t, p.Quiet(), "it does not end")
	if err := p.Terminal().Resize(sandbox.Size{Cols: 1, Rows: 1}); !errors.Is(err, sandbox.ErrInputClosed) {
		t.Errorf("after its end: %v", err)
	}
}

// lateOnTerminal: with the leader of a session the kernel ends what is in its
// foreground, unless that will not have it.
func lateOnTerminal(t *testing.T, f fixture) {
	p, out := f.onTerminal(`trap '' HUP; (until [ -e go-on ]; do sleep 0.01; done; echo late) & echo early`)
	await(t, p.Done(), "the end was held up")
	if out.String() != "early\n" {
		t.Errorf("at the end: %q", out.String())
	}
	if _, err := p.Input().Write(t.Context(), []byte("x\n")); !errors.Is(err, sandbox.ErrInputClosed) {
		t.Errorf("a command that has ended is written to: %v", err)
	}
	f.script(": >go-on")
	await(t, p.Quiet(), "it did not become quiet")
	if out.String() != "early\nlate\n" {
		t.Errorf("after it: %q", out.String())
	}
}

// closedByItsLeader: cat closes all that it has before it ends, and others do so to
// go into the background.
func closedByItsLeader(t *testing.T, f fixture) {
	p, out := f.onTerminal(`echo ready; exec <&- >&- 2>&-; until [ -e closed ]; do sleep 0.01; done; exit 3`)
	out.has(t, "ready")
	f.script("sleep 0.1; : >closed")
	await(t, p.Done(), "it did not end")
	if r := p.Result(); r.ExitCode != 3 || r.Signal != "" {
		t.Errorf("got %+v", r)
	}
	await(t, p.Quiet(), "it does not end")
}

func killedOnTerminal(t *testing.T, f fixture) {
	p, out := f.onTerminal(`trap '' HUP INT TERM; sleep 300 & echo ready; sleep 300`)
	out.has(t, "ready")
	kill(t, p)
	if r := p.Result(); r.Signal != "KILL" {
		t.Errorf("got %+v", r)
	}
	await(t, p.Quiet(), "something has it still")
}

// foreignTerminal: whoever else tries every terminal that there is writes to none
// that is another box's.
func foreignTerminal(t *testing.T, tier Tier, f fixture) {
	p, out := f.onTerminal(`echo ready; read x; echo "got $x"`)
	out.has(t, "ready")
	other := tier.other().box(t)
	got := other.script(`for t in /dev/pts/*; do echo WRONG >$t; done 2>/dev/null; exec 3<>/dev/ptmx`)
	if tier.Namespaces != (got.ExitCode == 0) && tier.Confined {
		t.Errorf("/dev/ptmx of the host: %+v", got)
	}
	if _, err := p.Input().Write(t.Context(), []byte("right\n")); err != nil {
		t.Fatal(err)
	}
	await(t, p.Done(), "it did not end")
	if tier.Confined && out.String() != "ready\nright\ngot right\n" {
		t.Errorf("got %q", out.String())
	}
}

// allTerminals: who has taken them all gets no more, and loses nothing else.
func allTerminals(t *testing.T, tier Tier) {
	f := tier.box(t)
	p, out, _ := f.start(sandbox.Command{Script: "while exec {fd}<>/dev/ptmx; do :; done 2>/dev/null; echo taken; sleep 300"})
	out.has(t, "taken")
	_, err := f.box.Start(t.Context(), sandbox.Command{Script: "true", Stdout: &capture{}, Terminal: &sandbox.Size{Cols: 80, Rows: 24}})
	if !errors.Is(err, sandbox.ErrNoTerminal) || errors.Is(err, unix.ENOSPC) {
		t.Errorf("got %v", err)
	}
	if got := f.script("echo usable"); got.stdout != "usable\n" {
		t.Errorf("got %+v", got)
	}
	kill(t, p)
	again, _ := f.onTerminal("exit 4")
	await(t, again.Done(), "it did not end")
	if again.Result().ExitCode != 4 {
		t.Errorf("got %+v", again.Result())
	}
}

// noDescriptorLeft counts those of terminals and pipes: cgroups are kept for the
// next, as many as were ever needed at one time.
func noDescriptorLeft(t *testing.T, f fixture) {
	count := func() int {
		fds, err := filepath.Glob("/proc/self/fd/*")
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, fd := range fds {
			to, _ := os.Readlink(fd) // it may be closed by now
			if strings.HasPrefix(to, "pipe:") || strings.Contains(to, "/pts/") || strings.Contains(to, "ptmx") {
				n++
			}
		}
		return n
	}
	use := func() {
		for range 40 { // a box has no more than 64 at one time
			p, _ := f.onTerminal(`true`)
			await(t, p.Quiet(), "it did not end")
			if p, err := f.box.Start(t.Context(), sandbox.Command{
				Script: "true", Dir: "/nowhere", Stdout: &capture{}, Terminal: &sandbox.Size{Cols: 1, Rows: 1},
			}); err == nil {
				t.Fatalf("it was started: %+v", p)
			}
		}
	}
	use() // and let what the box before this needed settle
	before := count()
	use()
	eventually(t, "as many descriptors as before", func() bool { return count() <= before })
}

func terminalOfClosedBox(t *testing.T, tier Tier) {
	f := tier.box(t)
	p, out := f.onTerminal(`trap '' HUP; echo ready; sleep 300`)
	out.has(t, "ready")
	if err := f.box.Close(); err != nil {
		t.Fatal(err)
	}
	await(t, p.Quiet(), "it does not end with its box")
	if !p.Result().Lost && p.Result().Signal != "KILL" {
		t.Errorf("got %+v", p.Result())
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if n, err := p.Input().Write(ctx, []byte("x")); n != 0 || !errors.Is(err, sandbox.ErrInputClosed) {
		t.Errorf("it takes %d: %v", n, err)
	}
}

// readBack gives what a command has written to a file.
func (f fixture) readBack(name string) string {
	f.t.Helper()
	data, err := os.ReadFile(filepath.Join(f.workspace, name))
	if err != nil {
		f.t.Fatal(err)
	}
	return string(data)
}
