package sandboxtest

import (
	"context"
	"strings"
	"testing"
	"time"

	"envapi/sandbox"
)

// shellsKilled: what ends a shell's command ends all of it, and nothing else.
func shellsKilled(t *testing.T, tier Tier) {
	f := tier.box(t)
	for _, c := range killings() {
		t.Run(c.name, func(t *testing.T) { c.run(t, f.in(t)) })
	}
	t.Run("what was there before lives on", func(t *testing.T) { sparesBackground(t, f.in(t)) })
	t.Run("a kill after the end is no error", func(t *testing.T) { killedAfterEnd(t, f.in(t)) })
	t.Run("a signal at the end does not reach the next", func(t *testing.T) { signalledAtTheEnd(t, f.in(t)) })
	t.Run("A36 signals reach the command", func(t *testing.T) { signalled(t, f.in(t)) })
	t.Run("a shell is killed with all it has", func(t *testing.T) { shellKilled(t, f.in(t)) })
	t.Run("a shell is left, and its background is not", func(t *testing.T) { shellLeft(t, f.in(t)) })
	t.Run("D18 a box that ends takes its shells along", func(t *testing.T) { shellsOfClosedBox(t, tier) })
}

// killing is a command that is killed when it has said that it is ready.
type killing struct {
	name, script string
	ends         bool // the shell with it
}

func killings() []killing {
	return []killing{
		{"A58 a child that waits", `sh -c 'sleep 300 & echo ready; wait'; echo not here`, false},
		{"A58 a session of its own", `setsid --wait sleep 300 & echo ready; wait; echo not here`, false},
		{"A24 a pipe", `echo ready; sleep 999 | cat; echo not here`, false},
		{"D13 what hides and hears nothing", strings.ReplaceAll(hiding, "echo started", "echo ready"), false},
		{"a loop of a builtin", `echo ready; while :; do :; done`, false},
		{"A36 a loop of programs", `echo ready; while :; do sleep 0.01; done; echo not here`, false},
		{"what reads the terminal", `echo ready; read x; echo not here`, false},
		{"what is stopped", `sh -c 'echo ready; kill -STOP $$; sleep 300'; while :; do sleep 1; done`, false},
		{"a shell that is stopped", `echo ready; kill -STOP $$; sleep 300`, false},
		{"a trap for INT that goes on", `trap : INT; echo ready; while :; do sleep 0.01; done`, true},
		{"A55 INT is ignored", `trap '' INT; echo ready; while :; do sleep 0.01; done`, true},
		{"another program in its place", `echo ready; exec sleep 300`, false},
	}
}

func (k killing) run(t *testing.T, f fixture) {
	sh := f.shell(sandbox.ShellSpec{})
	p, stdout, _ := sh.start(sandbox.ShellCommand{Script: k.script})
	eventually(t, "it is ready", func() bool { return strings.Contains(stdout.String(), "ready") })
	began := time.Now()
	kill(t, p)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	got := p.Result()
	ends := got.Shell.Ended
	if got.Signal != "KILL" || got.Shell.Corrupt || k.ends && !ends {
		t.Errorf("got %+v %+v", got, *got.Shell)
	}
	if strings.Contains(stdout.String(), "not here") {
		t.Error("it went on without what was killed")
	}
	if ends {
		await(t, sh.Done(), "its shell is not done")
		// How bash ended is said just before it is waited for, lest nobody knows.
		eventually(t, "bash was waited for", func() bool { return f.count() == 0 })
	} else {
		if left := sh.run("trap - INT; echo usable"); left.stdout != "usable\n" || left.ExitCode != 0 {
			t.Errorf("afterwards: %q %q", left.stdout, left.stderr)
		}
		eventually(t, "only bash is left", func() bool { return f.count() == 1 }) // it waits for zombies
		kill(t, sh)
	}
	if n := f.count(); n != 0 {
		t.Errorf("%d processes are left", n)
	}
}

func sparesBackground(t *testing.T, f fixture) {
	sh := f.shell(sandbox.ShellSpec{})
	if got := sh.run("(while :; do sleep 0.05; echo . >>beat; done) & setsid sleep 47111 & sleep 47112 & disown"); got.Shell.Shared {
		t.Error("a shell that was alone is said to be shared")
	}
	eventually(t, "the session of its own is there", func() bool { return sh.run("pgrep -f '^sleep 47111'").ExitCode == 0 })
	p, stdout, _ := sh.start(sandbox.ShellCommand{Script: "sleep 47113 & setsid sleep 47114 & echo ready; sleep 47115"})
	eventually(t, "it is ready", func() bool { return stdout.String() != "" })
	kill(t, p)
	if !p.Result().Shell.Shared {
		t.Error("a shell with a background is said to be alone")
	}
	got := sh.run("ps -eo args= | grep -o '[s]leep 4711[0-9]' | sort | tr '\\n' ' '; wc -l <beat")
	if !strings.HasPrefix(got.stdout, "sleep 47111 sleep 47112 ") || strings.Contains(got.stdout, "sleep 47113") {
		t.Errorf("got %q", got.stdout)
	}
	before := sh.run("wc -l <beat").stdout
	eventually(t, "the loop goes on", func() bool { return sh.run("wc -l <beat").stdout != before })
	kill(t, sh)
	if n := f.count(); n != 0 {
		t.Errorf("%d processes are left", n)
	}
}

func killedAfterEnd(t *testing.T, f fixture) {
	sh := f.shell(sandbox.ShellSpec{})
	p, _, _ := sh.start(sandbox.ShellCommand{Script: "sleep 300 & (exit 4)"})
	await(t, p.Done(), "it did not end")
	kill(t, p)
	if err := p.Signal(t.Context(), "TERM"); err != nil || p.Result().ExitCode != 4 || p.Result().Signal != "" {
		t.Errorf("got %v %+v", err, p.Result())
	}
	if got := sh.run("jobs -p | wc -l"); got.stdout != "1\n" {
		t.Errorf("its background: got %q", got.stdout)
	}
	kill(t, sh)
}

// signalledAtTheEnd: who signals a command that is just ending ends nothing of the
// one that comes at once.
func signalledAtTheEnd(t *testing.T, f fixture) {
	sh := f.shell(sandbox.ShellSpec{})
	for i := range 150 {
		name := []string{"KILL", "INT", "TERM"}[i%3]
		script := "sleep 0.00" + itoa(i%8)
		if name != "KILL" { // for others it is waited so long
			script = "read -t 0.04; " + script
		}
		p, _, _ := sh.start(sandbox.ShellCommand{Script: script})
		signalled := make(chan error)
		go func() { signalled <- p.Signal(t.Context(), name) }()
		await(t, p.Done(), "it did not end")
		if p.Result().Shell.Ended {
			sh = f.shell(sandbox.ShellSpec{})
		} else if next := sh.run("sleep 0.02; echo next"); next.ExitCode != 0 || next.stdout != "next\n" {
			t.Fatalf("after %s to the one before: got %+v %q", name, next, next.stdout)
		}
		if err := <-signalled; err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	kill(t, sh)
}

// signalled: the foreground stops, the shell lives.
func signalled(t *testing.T, f fixture) {
	sh := f.shell(sandbox.ShellSpec{})
	for _, c := range []struct {
		script, signal string
		code           int
	}{
		{"echo ready; sleep 60; echo not here", "INT", 130},
		{"echo ready; sleep 60", "QUIT", 131},
		{"echo ready; sleep 60", "TSTP", 148},
		{"echo ready; sleep 60", "TERM", 143},
		{"echo ready; while :; do :; done", "INT", 130},
		{"echo ready; while :; do :; done", "TERM", 130},
		{"echo ready; while :; do sleep 0.01; done", "INT", 130},
		{"sh -c 'trap \"exit 7\" USR1; echo ready; while :; do sleep 0.01; done'", "USR1", 7},
		{`trap "" INT; sh -c 'trap "exit 9" HUP; echo ready; while :; do sleep 0.01; done'; trap - INT; (exit 9)`, "HUP", 9},
	} {
		p, stdout, _ := sh.start(sandbox.ShellCommand{Script: c.script})
		eventually(t, "it is ready", func() bool { return stdout.String() != "" })
		eventually(t, "it has ended", func() bool { // the program may not be there yet
			if err := p.Signal(t.Context(), c.signal); err != nil {
				t.Errorf("%s: %v", c.signal, err)
			}
			select {
			case <-p.Done():
				return true
			case <-time.After(300 * time.Millisecond):
				return false
			}
		})
		if got := p.Result(); got.ExitCode != c.code || got.Signal != "" || got.Shell.Ended || stdout.String() != "ready\n" {
			t.Errorf("%s to %q: got %+v %+v %q", c.signal, c.script, got, *got.Shell, stdout.String())
		}
	}
	if err := sh.Signal(t.Context(), "NOSUCH"); err == nil {
		t.Error("a signal of no name was sent")
	}
	kill(t, sh)
}

func shellKilled(t *testing.T, f fixture) {
	sh := f.shell(sandbox.ShellSpec{})
	sh.run("nohup setsid sleep 300 >/dev/null 2>&1 & sleep 300 &")
	p, stdout, _ := sh.start(sandbox.ShellCommand{Script: "echo ready; sleep 300"})
	eventually(t, "it runs", func() bool { return stdout.String() != "" })
	kill(t, sh)
	await(t, p.Done(), "its command is not done")
	if got := p.Result(); got.Signal != "KILL" || !got.Shell.Ended || got.Shell.Corrupt {
		t.Errorf("got %+v %+v", got, *got.Shell)
	}
	if n := f.count(); n != 0 {
		t.Errorf("%d processes are left", n)
	}
}

func shellLeft(t *testing.T, f fixture) {
	sh := f.shell(sandbox.ShellSpec{})
	sh.run("sleep 300 & setsid sleep 300 &")
	if err := sh.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	await(t, sh.Done(), "a shell that was left is not done")
	eventually(t, "the background is left", func() bool { return f.count() == 2 })
	if err := sh.Leave(t.Context()); err != nil {
		t.Errorf("twice: %v", err)
	}
	kill(t, sh)
	if n := f.count(); n != 0 {
		t.Errorf("%d processes are left", n)
	}
}

func shellsOfClosedBox(t *testing.T, tier Tier) {
	f := tier.box(t)
	idle := f.shell(sandbox.ShellSpec{})
	sh := f.shell(sandbox.ShellSpec{})
	p, stdout, _ := sh.start(sandbox.ShellCommand{Script: "sleep 300 & echo ready; cat"})
	eventually(t, "it runs", func() bool { return stdout.String() != "" })
	if err := f.box.Close(); err != nil {
		t.Fatal(err)
	}
	for _, done := range []<-chan struct{}{p.Done(), p.Quiet(), sh.Done(), sh.Quiet(), idle.Done(), idle.Quiet()} {
		await(t, done, "what a closed box had is not over")
	}
	if got := p.Result(); !got.Lost && got.Signal != "KILL" && got.Signal != "HUP" || !got.Shell.Ended {
		t.Errorf("got %+v %+v", got, *got.Shell)
	}
	if _, err := sh.Run(context.WithoutCancel(t.Context()), sandbox.ShellCommand{}); err == nil {
		t.Error("a shell of a closed box runs something")
	}
}
