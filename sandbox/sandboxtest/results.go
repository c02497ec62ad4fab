package sandboxtest

import (
	"errors"
	"strings"
	"sync"
	"syscall"
	"testing"

	"envapi/sandbox"
)

// results: an exit code, a signal and a refusal are told as they are.
func results(t *testing.T, tier Tier) {
	f := tier.box(t)
	for _, c := range []struct {
		name    string
		command sandbox.Command
		want    outcome
	}{
		{"zero", sandbox.Command{Script: "true"}, outcome{}},
		{"A35 an empty command is a no-op", sandbox.Command{Script: ""}, code(0)},
		{"A15 a subshell's code", sandbox.Command{Script: "(exit 7)"}, code(7)},
		{"A5 an array before false", sandbox.Command{Script: "A=(); false"}, code(1)},
		{"a script that looks like an option", sandbox.Command{Script: "-c"}, outcome{Result: exit(127), stderr: "bash: line 1: -c: command not found\n"}},
		{"A56 a missing command in a script", sandbox.Command{Script: "nosuchcmd"}, outcome{Result: exit(127), stderr: "bash: line 1: nosuchcmd: command not found\n"}},
		{"A56 a missing program", sandbox.Command{Argv: []string{"nosuchcmd"}}, outcome{Result: exit(127), stderr: "envapi: nosuchcmd: command not found\n"}},
		{"a directory is no program", sandbox.Command{Argv: []string{"/usr"}}, outcome{Result: exit(126), stderr: "envapi: /usr: cannot execute\n"}},
		{"arguments arrive as they are", sandbox.Command{Argv: []string{"printf", "%s|", "a b", "", "*", "$HOME", "é"}}, outcome{stdout: "a b||*|$HOME|é|"}},
		{"a death by signal", sandbox.Command{Script: "kill -TERM $$"}, signal("TERM")},
		{"a death by a fault", sandbox.Command{Script: "kill -SEGV $$"}, signal("SEGV")},
		{"a death by a real-time signal", sandbox.Command{Script: "kill -35 $$"}, signal("RTMIN+1")},
		{"an abort", sandbox.Command{Script: "kill -ABRT $$"}, signal("ABRT")},
		{"128 and a number is no signal", sandbox.Command{Script: "exit 143"}, code(143)},
		{"A3 a background child holds nothing open", sandbox.Command{Script: "sleep 300 & exit 3"}, code(3)},
		{"A13 an unfinished quote", sandbox.Command{Script: "echo 'x"}, outcome{Result: exit(2), stderr: "bash: -c: line 1: unexpected EOF while looking for matching `''\n"}},
		{"A18 cat has an empty input", sandbox.Command{Script: "cat"}, code(0)},
		{"A50 message and code", sandbox.Command{Script: "echo boom >&2; exit 1"}, outcome{Result: exit(1), stderr: "boom\n"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := f.run(c.command)
			got.Used = sandbox.Used{}
			if got != c.want {
				t.Errorf("got %+v\nwant %+v", got, c.want)
			}
		})
	}
	t.Run("A38 a script longer than an argument may be", func(t *testing.T) { longScripts(t, f) })
	t.Run("usage is measured", func(t *testing.T) {
		got := f.script("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done")
		if u := got.Used; u.CPU == nil || *u.CPU <= 0 || u.PeakMemoryBytes == nil || *u.PeakMemoryBytes < 1<<20 {
			t.Errorf("got %+v", u)
		}
	})
	t.Run("a directory that is not there is refused", func(t *testing.T) { wrongDirectory(t, f) })
	t.Run("fifty at the same time keep their results", func(t *testing.T) { manyAtOnce(t, f) })
}

func exit(code int) sandbox.Result { return sandbox.Result{ExitCode: code} }
func code(code int) outcome        { return outcome{Result: exit(code)} }
func signal(name string) outcome   { return outcome{Result: sandbox.Result{Signal: name}} }

func longScripts(t *testing.T, f fixture) {
	filler := strings.Repeat("# a comment line to fill the script\n", 300<<10/36)
	for name, end := range map[string]string{"ends well": "echo $LINENO $#; exit 5", "ends in an error": "echo 'x"} {
		short, long := f.script("\n"+end), f.script(filler+"\n"+end)
		if long.ExitCode != short.ExitCode {
			t.Errorf("%s: got code %d, a short one gives %d: %s", name, long.ExitCode, short.ExitCode, long.stderr)
		}
	}
	got := f.script(filler + "echo first\nls -l /proc/self/fd | wc -l; cat <<'X'\nhere\nX")
	if got.stdout != "first\n5\nhere\n" { // a total line, 0, 1, 2, and the folder itself
		t.Errorf("got %q %q", got.stdout, got.stderr)
	}
}

func wrongDirectory(t *testing.T, f fixture) {
	_, err := f.box.Start(t.Context(), sandbox.Command{Script: "true", Dir: "nowhere", Stdout: &capture{}})
	var refused *sandbox.StartError
	if !errors.As(err, &refused) || !refused.Dir || !errors.Is(err, syscall.ENOENT) {
		t.Errorf("got %v", err)
	}
	if got := f.run(sandbox.Command{Script: "mkdir -p sub; cd sub; pwd", Dir: "."}); got.stdout != f.inside+"/sub\n" {
		t.Errorf("got %+v", got)
	}
	if got := f.run(sandbox.Command{Script: "pwd", Dir: "sub"}); got.stdout != f.inside+"/sub\n" {
		t.Errorf("got %+v", got)
	}
}

func manyAtOnce(t *testing.T, f fixture) {
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			var out capture
			p, err := f.box.Start(t.Context(), sandbox.Command{Argv: []string{"sh", "-c", "echo $0; exit $0", itoa(i)}, Stdout: &out})
			if err != nil {
				t.Error(err)
				return
			}
			<-p.Done()
			if r := p.Result(); r.ExitCode != i || out.String() != itoa(i)+"\n" {
				t.Errorf("command %d: got %+v %q", i, r, out.String())
			}
		})
	}
	all.Wait()
}
