package sandboxtest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"envapi/internal/random"
	"envapi/sandbox"
)

// scripts is how many are tried, where -rapid.checks asks for no other number.
const scripts = "30"

// deep is the way below each script's folder where it begins: it can go upwards a
// dozen times and is still among its own.
const deep = "1/2/3/4/5/6/7/8/9/10/11/12"

// trace is what a statement left.
type trace struct {
	code           int
	cwd            string
	stdout, stderr string
}

// String is for the message of a failure.
func (s trace) String() string {
	return fmt.Sprintf("%d in %q, out %+q, err %+q", s.code, s.cwd, s.stdout, s.stderr)
}

// agreement: statements that are run one by one in a shell do what they do as one
// script: the same codes, directories, output and variables, whatever they are.
func agreement(t *testing.T, tier Tier) {
	checks := flag.Lookup("rapid.checks")
	if checks.Value.String() == checks.DefValue {
		_ = checks.Value.Set(scripts)
		defer func() { _ = checks.Value.Set(checks.DefValue) }()
	}
	f := tier.box(t)
	run := 0
	random.Check(t, func(rt *rapid.T) {
		run++
		statements := drawScript(rt)
		ours := f.inShell(rt, statements, f.folder(t, rt, run, "shell"))
		theirs := f.asScript(rt, statements, f.folder(t, rt, run, "script"))
		for i := range max(len(ours), len(theirs)) {
			if i >= len(ours) || i >= len(theirs) {
				rt.Fatalf("the shell ended after %d statements, the script after %d:\n%s", len(ours), len(theirs), listing(statements))
			}
			if ours[i] != theirs[i] {
				rt.Fatalf("statement %d: %s\nin the shell: %v\nas a script:  %v\nall of them:\n%s", i, statements[i].text, ours[i], theirs[i], listing(statements))
			}
		}
	})
}

func listing(statements []statement) string {
	var b strings.Builder
	for i, s := range statements {
		fmt.Fprintf(&b, "%3d  %+q\n", i, s.text)
	}
	return b.String()
}

// folder makes the folder of one run, and gives it as commands see it.
func (f fixture) folder(t *testing.T, rt *rapid.T, run int, name string) string {
	top := filepath.Join("agreement-"+strconv.Itoa(run), name)
	path := filepath.Join(f.workspace, top, deep)
	if err := os.MkdirAll(path, 0o755); err != nil { //nolint:gosec // for the box's uid
		rt.Fatal(err)
	}
	for at := path; at != f.workspace; at = filepath.Dir(at) {
		if f.uid != 0 && os.Geteuid() == 0 {
			if err := os.Chown(at, f.uid, f.uid); err != nil {
				rt.Fatal(err)
			}
		}
	}
	t.Cleanup(func() { _ = os.RemoveAll(filepath.Dir(filepath.Join(f.workspace, top))) })
	return filepath.Join(f.inside, top)
}

// ownHome is the environment of a script in its folder.
func ownHome(folder string) map[string]string {
	return map[string]string{"HOME": folder + "/" + deep, "LC_ALL": "C.UTF-8"}
}

// inShell runs each statement for itself.
func (f fixture) inShell(rt *rapid.T, statements []statement, folder string) (traces []trace) {
	ctx := f.t.Context()
	shell, err := f.box.OpenShell(ctx, sandbox.ShellSpec{
		Env: ownHome(folder), Dir: folder + "/" + deep, Size: sandbox.Size{Cols: 80, Rows: 24}, Output: &capture{},
	})
	if err != nil {
		rt.Fatalf("cannot open a shell: %v", err)
	}
	defer func() {
		if err := shell.Kill(ctx); err != nil {
			rt.Errorf("cannot end the shell: %v", err)
		}
	}()
	for _, s := range statements {
		var stdout, stderr capture
		p, err := shell.Run(ctx, sandbox.ShellCommand{Script: s.text, Stdout: &stdout, Stderr: &stderr})
		if err != nil {
			rt.Fatalf("cannot run %q after %v: %v", s.text, traces, err)
		}
		await(f.t, p.Done(), "it did not end: "+s.text)
		r := p.Result()
		if r.Signal != "" || r.Lost || r.Shell == nil || r.Shell.Corrupt {
			rt.Fatalf("%q ended as %+v, %+v\n%s", s.text, r, r.Shell, listing(statements))
		}
		one := trace{r.ExitCode, r.Shell.Cwd, stdout.String(), stderr.String()}
		if r.Shell.Ended {
			return append(traces, one.plain(folder, true))
		}
		traces = append(traces, one.plain(folder, false))
	}
	rt.Fatalf("the shell outlived its exit")
	return nil
}

// after is a line behind each statement of a script, which says how it ended on
// descriptors of its own. What it does is not traced.
const after = `{ status_=$?; printf '\n%[1]s %%d %%s\n%[1]s' "$status_" "$(builtin pwd -P)" >&9; printf '\n%[1]s' >&8; } 2>/dev/null`

// asScript runs all statements as one script.
func (f fixture) asScript(rt *rapid.T, statements []statement, folder string) (traces []trace) {
	mark := "@" + strings.Repeat("~", 9) + strconv.Itoa(os.Getpid()) + "@"
	var b strings.Builder
	b.WriteString("exec 9>&1 8>&2\n")
	for _, s := range statements {
		if s.status {
			b.WriteString("(exit \"$status_\")\n")
		}
		b.WriteString(s.text + "\n")
		fmt.Fprintf(&b, after+"\n", mark)
	}
	path := filepath.Join(filepath.Dir(folder), "script.sh")
	host := filepath.Join(f.workspace, strings.TrimPrefix(path, f.inside))
	if err := os.WriteFile(host, []byte(b.String()), 0o644); err != nil { //nolint:gosec // for the box's uid to read
		rt.Fatal(err)
	}
	p, stdout, stderr := f.start(sandbox.Command{
		Argv: []string{"bash", "--noprofile", "--norc", path}, Env: ownHome(folder), Dir: folder + "/" + deep,
	})
	await(f.t, p.Done(), "the script did not end")
	out, err := strings.Split(stdout.String(), "\n"+mark), strings.Split(stderr.String(), "\n"+mark)
	// Every statement that was lived through has " CODE CWD" between two marks.
	for i := 0; 2*i+2 < len(out) && i+1 < len(err); i++ {
		code, cwd, _ := strings.Cut(strings.TrimPrefix(out[2*i+1], " "), " ")
		n, failed := strconv.Atoi(code)
		if failed != nil {
			rt.Fatalf("cannot read %q: %v", out, failed)
		}
		traces = append(traces, trace{n, cwd, out[2*i], err[i]}.plain(folder, false))
	}
	last := trace{p.Result().ExitCode, "", out[len(out)-1], err[len(err)-1]}
	return append(traces, last.plain(folder, true))
}

var (
	// where is what bash says of the place of a mistake: an interactive one names
	// itself, and a script the file and line.
	where = regexp.MustCompile(`(?m)^([^\n]*?: line \d+: |bash: )`)
	// traced is what set -x puts before a line: how deep it is, and a file is deeper.
	traced = regexp.MustCompile(`(?m)^\++ `)
	// notice is what an interactive shell says of a job that ended, with where it is now
	// when that is elsewhere than the job began: job control.
	notice = regexp.MustCompile(`(?m)^\[\d+\][ +-].*\n(\(wd now: .*\)\n)?`)
)

// plain takes away what is honestly different.
func (s trace) plain(folder string, ended bool) trace {
	for _, text := range []*string{&s.cwd, &s.stdout, &s.stderr} {
		*text = strings.ReplaceAll(*text, folder, "FOLDER")
	}
	if ended {
		s.cwd = "" // nobody can say
	}
	s.stdout = where.ReplaceAllString(s.stdout, "")
	s.stderr = notice.ReplaceAllString(traced.ReplaceAllString(where.ReplaceAllString(s.stderr, ""), "+ "), "")
	return s
}
