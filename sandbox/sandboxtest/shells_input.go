package sandboxtest

import (
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"envapi/sandbox"
)

// shellsUsed: what a shell's commands read and write, where they are, and that
// there are many of them.
func shellsUsed(t *testing.T, tier Tier) {
	f := tier.box(t)
	t.Run("A20 input reaches the command that reads", func(t *testing.T) { shellInput(t, f.in(t)) })
	t.Run("A20 input is for one command", func(t *testing.T) { shellInputOfOne(t, f.in(t)) })
	t.Run("A32 A55 the terminal begins anew", func(t *testing.T) { shellTerminalAnew(t, f.in(t)) })
	t.Run("A43 output on the terminal", func(t *testing.T) { shellOnTerminal(t, f.in(t)) })
	t.Run("A40 the directory is told", func(t *testing.T) { shellDirectory(t, f.in(t)) })
	t.Run("A49 merged output keeps its order", func(t *testing.T) { shellMerged(t, f.in(t)) })
	t.Run("A22 late bytes belong to their command", func(t *testing.T) { shellLate(t, f.in(t)) })
	t.Run("A38 a long script", func(t *testing.T) { shellLong(t, f.in(t)) })
	t.Run("A52 one at a time", func(t *testing.T) { shellBusy(t, f.in(t)) })
	t.Run("A59 two side by side", func(t *testing.T) { shellsApart(t, f.in(t)) })
	t.Run("a directory or variables of its own", func(t *testing.T) { shellSpecs(t, f.in(t)) })
	t.Run("a shell for people", func(t *testing.T) { shellForPeople(t, f.in(t)) })
	t.Run("B13 a thousand commands leave nothing", func(t *testing.T) { shellLeaks(t, f.in(t)) })
}

func shellInput(t *testing.T, f fixture) {
	sh := f.shell(sandbox.ShellSpec{})
	if _, err := sh.Terminal().Write(t.Context(), []byte("x\n")); !errors.Is(err, sandbox.ErrInputClosed) {
		t.Errorf("where nothing runs: got %v", err)
	}
	p, stdout, _ := sh.start(sandbox.ShellCommand{Script: `read x; echo "got $x"; cat; echo end`})
	for _, line := range []string{"hello\n", "second\n"} {
		if n, err := p.Terminal().Write(t.Context(), []byte(line)); err != nil || n != len(line) {
			t.Fatalf("got %d, %v", n, err)
		}
	}
	eventually(t, "it has read", func() bool { return stdout.String() == "got hello\nsecond\n" })
	if err := p.Input().End(t.Context()); err != nil {
		t.Fatal(err)
	}
	await(t, p.Done(), "it did not see the end")
	if stdout.String() != "got hello\nsecond\nend\n" {
		t.Errorf("got %q", stdout.String())
	}
}

// shellInputOfOne: what is typed for a command never comes to another, be it typed
// late or not read.
func shellInputOfOne(t *testing.T, f fixture) {
	sh := f.shell(sandbox.ShellSpec{})
	ended, _, _ := sh.start(sandbox.ShellCommand{Script: "true"})
	await(t, ended.Done(), "it did not end")
	p, stdout, _ := sh.start(sandbox.ShellCommand{Script: `read x; echo "got $x"`})
	if n, err := ended.Terminal().Write(t.Context(), []byte("for the one before\n")); n != 0 || !errors.Is(err, sandbox.ErrInputClosed) {
		t.Errorf("typed for a command that has ended: got %d, %v", n, err)
	}
	if _, err := p.Terminal().Write(t.Context(), []byte("for this\n")); err != nil {
		t.Fatal(err)
	}
	await(t, p.Done(), "it did not end")
	if stdout.String() != "got for this\n" {
		t.Errorf("got %q", stdout.String())
	}
	p, stdout, _ = sh.start(sandbox.ShellCommand{Script: `echo ready; sleep 300`})
	eventually(t, "it runs", func() bool { return stdout.String() != "" })
	eventually(t, "ctrl-c ends it", func() bool { // a program that is just being started loses it
		if _, err := p.Terminal().Write(t.Context(), []byte("rm -rf /\nexit 9\n\x03")); err != nil && !errors.Is(err, sandbox.ErrInputClosed) {
			t.Fatal(err)
		}
		select {
		case <-p.Done():
			return true
		case <-time.After(100 * time.Millisecond):
			return false
		}
	})
	if got := sh.run("read -t 0.1 x; echo \"$?$x\""); p.Result().ExitCode != 130 || got.stdout != "142\n" {
		t.Errorf("got %+v, and then %q", p.Result(), got.stdout)
	}
}

// shellTerminalAnew: whatever a command did to the terminal, the next one finds it
// as it was, and nothing in it.
func shellTerminalAnew(t *testing.T, f fixture) {
	sh := f.shell(sandbox.ShellSpec{})
	before := sh.run("stty -a").stdout
	for _, script := range []string{"stty raw", "stty -echo", "stty intr x", `printf '\e[6n\e[c' >/dev/tty`, "stty sane; stty cols 80 rows 24"} {
		sh.run(script)
		if got := sh.run("stty -a").stdout; got != before {
			t.Errorf("after %q: %q, not %q", script, got, before)
		}
	}
	p, _, _ := sh.start(sandbox.ShellCommand{Script: "sleep 0.2"})
	if _, err := p.Terminal().Write(t.Context(), []byte("typed ahead\n")); err != nil {
		t.Fatal(err)
	}
	await(t, p.Done(), "it did not end")
	if got := sh.run("read -t 0.1 x; echo \"$?$x\"").stdout; got != "142\n" {
		t.Errorf("what nobody read came to another: %q", got)
	}
	var seen capture
	p, _, _ = sh.start(sandbox.ShellCommand{Script: "echo to the tty >/dev/tty; echo out", Terminal: &seen})
	await(t, p.Done(), "it did not end")
	if seen.String() != "to the tty\n" || !strings.Contains(sh.terminal.String(), "to the tty\n") {
		t.Errorf("got %q, and %q in all", seen.String(), sh.terminal.String())
	}
}

func shellOnTerminal(t *testing.T, f fixture) {
	sh := f.shell(sandbox.ShellSpec{})
	p, stdout, stderr := sh.start(sandbox.ShellCommand{Script: "printf '%0300d\\n' 1; echo e >&2; test -t 1 -a -t 2; stty size", OnTerminal: true})
	await(t, p.Done(), "it did not end")
	if want := strings.Repeat("0", 299) + "1\ne\n24 80\n"; stdout.String() != want || stderr.String() != "" || p.Result().ExitCode != 0 {
		t.Errorf("got %q and %q", stdout.String(), stderr.String())
	}
	if err := sh.Terminal().Resize(sandbox.Size{Cols: 100, Rows: 30}); err != nil {
		t.Fatal(err)
	}
	if got := sh.run("stty size"); got.stdout != "30 100\n" {
		t.Errorf("got %q", got.stdout)
	}
}

func shellDirectory(t *testing.T, f fixture) {
	sh := f.shell(sandbox.ShellSpec{})
	cwd := func(script, want string, gone bool) {
		t.Helper()
		if got := sh.run(script).Shell; got.Cwd != want || got.CwdGone != gone {
			t.Errorf("%q: got %+v, want %q", script, *got, want)
		}
	}
	cwd("true", f.inside, false)
	cwd("mkdir -p 'd d/x'; cd 'd d'", f.inside+"/d d", false)
	cwd("mkdir 'x (deleted)'; cd 'x (deleted)'", f.inside+"/d d/x (deleted)", false)
	cwd("cd ../x; rmdir ../x", f.inside+"/d d/x", true)
	cwd("cd ~; (cd /)", f.inside, false)
	if got := sh.run("cd / && pwd"); got.stdout != "/\n" || got.Shell.Cwd != "/" {
		t.Errorf("got %q %+v", got.stdout, *got.Shell)
	}
}

func shellMerged(t *testing.T, f fixture) {
	sh := f.shell(sandbox.ShellSpec{})
	var out capture
	p, err := sh.Run(t.Context(), sandbox.ShellCommand{Script: "for i in 1 2 3; do echo o$i; echo e$i >&2; done", Stdout: &out})
	if err != nil {
		t.Fatal(err)
	}
	await(t, p.Done(), "it did not end")
	if out.String() != "o1\ne1\no2\ne2\no3\ne3\n" {
		t.Errorf("got %q", out.String())
	}
}

func shellLate(t *testing.T, f fixture) {
	sh := f.shell(sandbox.ShellSpec{})
	p, stdout, _ := sh.start(sandbox.ShellCommand{Script: "(until [ -e late ]; do sleep 0.01; done; echo late) & echo early; head -c 3145728 /dev/zero >&2"})
	await(t, p.Done(), "the end was held up")
	if stdout.String() != "early\n" {
		t.Errorf("at the end: %q", stdout.String())
	}
	select {
	case <-p.Quiet():
		t.Error("it is said to be quiet while a child can write")
	default:
	}
	if got := sh.run(":>late; echo next"); got.stdout != "next\n" {
		t.Errorf("the next one got %q", got.stdout)
	}
	await(t, p.Quiet(), "it did not become quiet")
	if stdout.String() != "early\nlate\n" {
		t.Errorf("after it: %q", stdout.String())
	}
}

func shellLong(t *testing.T, f fixture) {
	sh := f.shell(sandbox.ShellSpec{})
	for _, size := range []int{300 << 10, 1 << 20} {
		script := "x='" + strings.Repeat("a", size) + "'; echo ${#x}"
		if got := sh.run(script); got.stdout != itoa(size)+"\n" || got.ExitCode != 0 {
			t.Errorf("%d bytes: got %q %q", size, got.stdout, got.stderr)
		}
	}
}

func shellBusy(t *testing.T, f fixture) {
	sh := f.shell(sandbox.ShellSpec{})
	p, _, _ := sh.start(sandbox.ShellCommand{Script: "sleep 300"})
	if _, err := sh.Run(t.Context(), sandbox.ShellCommand{Script: "true"}); !errors.Is(err, sandbox.ErrShellBusy) {
		t.Errorf("got %v", err)
	}
	kill(t, p)
	var all sync.WaitGroup
	var mu sync.Mutex
	ran := 0
	for range 8 { // whoever gets it has it alone
		all.Go(func() {
			for range 20 {
				var out capture
				p, err := sh.Run(t.Context(), sandbox.ShellCommand{Script: "echo one; sleep 0.001; echo two", Stdout: &out})
				if errors.Is(err, sandbox.ErrShellBusy) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				<-p.Done()
				if out.String() != "one\ntwo\n" {
					t.Errorf("got %q", out.String())
				}
				mu.Lock()
				ran++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if ran == 0 {
		t.Error("nobody got it")
	}
}

func shellsApart(t *testing.T, f fixture) {
	stuck, other := f.shell(sandbox.ShellSpec{}), f.shell(sandbox.ShellSpec{})
	p, _, _ := stuck.start(sandbox.ShellCommand{Script: "cat"})
	for range 20 {
		if got := other.run("cd /; X=1; echo $X"); got.stdout != "1\n" {
			t.Errorf("got %q", got.stdout)
		}
	}
	kill(t, stuck)
	await(t, p.Done(), "its command is not done")
	if got := other.run("echo $X"); got.stdout != "1\n" {
		t.Errorf("after the end of the other: got %q", got.stdout)
	}
}

func shellSpecs(t *testing.T, f fixture) {
	sh := f.shell(sandbox.ShellSpec{Dir: "/usr", Env: map[string]string{"OWN": "a=b", "PS1": "$(exit 3)", "PROMPT_COMMAND": "false"}})
	if got := sh.run("echo $OWN; pwd"); got.stdout != "a=b\n/usr\n" {
		t.Errorf("got %q", got.stdout)
	}
	var failure *sandbox.StartError
	if _, err := f.box.OpenShell(t.Context(), sandbox.ShellSpec{Dir: "/nosuch"}); !errors.As(err, &failure) || !failure.Dir {
		t.Errorf("a directory that is not there: got %v", err)
	}
	var unfit *sandbox.BashError
	for name, value := range map[string]string{"PATH": "/nosuch", "PROMPT_COMMAND": "exit 3"} {
		if _, err := f.box.OpenShell(t.Context(), sandbox.ShellSpec{Env: map[string]string{name: value}}); !errors.As(err, &unfit) {
			t.Errorf("a shell whose bash cannot run commands for %s: got %v", name, err)
		}
	}
}

func shellForPeople(t *testing.T, f fixture) {
	sh := f.shell(sandbox.ShellSpec{Interactive: true})
	eventually(t, "it prompts", func() bool { return strings.Contains(sh.terminal.String(), "$") })
	if _, err := sh.Run(t.Context(), sandbox.ShellCommand{Script: "true"}); err == nil {
		t.Error("it runs commands")
	}
	if _, err := sh.Terminal().Write(t.Context(), []byte("echo $((6*7)); exit 3\r")); err != nil {
		t.Fatal(err)
	}
	await(t, sh.Done(), "it did not end")
	if !strings.Contains(sh.terminal.String(), "42\r\n") || sh.Result().ExitCode != 3 {
		t.Errorf("got %q, %+v", sh.terminal.String(), sh.Result())
	}
}

// shellLeaks: nothing grows with the commands.
func shellLeaks(t *testing.T, f fixture) {
	sh := f.shell(sandbox.ShellSpec{})
	count := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	const look = `ls -A "$(dirname "$BASH_SOURCE")" | wc -l; ls /proc/$$/fd | wc -l`
	at := sh.run(look).stdout
	before := count()
	for i := range 1000 {
		if got := sh.run("(exit " + itoa(i%256) + ")"); got.ExitCode != i%256 {
			t.Fatalf("got %+v", got)
		}
	}
	eventually(t, "no descriptor is left", func() bool { return count() <= before })
	sh.run("true") // after another code there is a file for it
	if got := sh.run(look).stdout; got != at || !strings.HasPrefix(got, "5\n") {
		t.Errorf("files and descriptors: %q, before it %q", got, at)
	}
	kill(t, sh)
	quiet := time.Now()
	await(t, sh.Quiet(), "it is not quiet")
	if took := time.Since(quiet); took > 5*time.Second {
		t.Errorf("it became quiet after %v", took)
	}
	eventually(t, "no descriptor of the shell is left", func() bool { return count() < before })
}
