package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"envapi/internal/testbin"
)

const (
	// theTree is what an environment holds.
	theTree = aTree + `
chmod 2750 b; python3 -c "import os, random
os.setxattr('a/one', 'user.note', b'kept'); open('b/noise', 'wb').write(random.Random(1).randbytes(300000))"`
	// theTreeNow prints all that can be told of a folder, a line for each name; what stands
	// after the last @ is the time.
	theTreeNow = `
import hashlib, os, stat
def show(p):
    s = os.lstat(p)
    more = ""
    if stat.S_ISREG(s.st_mode):
        more = "%d %s %s" % (s.st_size, hashlib.sha256(open(p, "rb").read()).hexdigest(), "sparse" if s.st_blocks * 512 < s.st_size else "")
    if stat.S_ISLNK(s.st_mode):
        more = os.readlink(p)
    for n in sorted(os.listxattr(p, follow_symlinks=False)):
        more += " %s=%r" % (n, os.getxattr(p, n, follow_symlinks=False))
    print(ascii(p), oct(s.st_mode), s.st_nlink, more, "@%d" % s.st_mtime_ns)
print(oct(os.lstat(".").st_mode))
for top, dirs, files in os.walk("."):
    dirs.sort()
    for name in sorted(dirs + files):
        show(os.path.join(top, name))
`
)

// faultBed is a service that can be killed at a step, and one case.
type faultBed struct {
	faultCase
	t    *testing.T
	s    *service
	file string // that package faults reads
	// new is what the files become, without times; found out by the run that is traced.
	new string
}

// faultScene is what there is before a call.
type faultScene struct {
	place
	mark    string // of the process that runs, where one does
	running string // its command
	ended   string // a command that has ended
	tree    string
}

func newFaultBed(t *testing.T, c faultCase) *faultBed {
	t.Helper()
	file := filepath.Join(t.TempDir(), "faults")
	s := start(t, config{
		program: testbin.WithFaults,
		env:     map[string]string{"FAULTS_FILE": file},
	})
	return &faultBed{faultCase: c, t: t, s: s, file: file}
}

func (b *faultBed) arm(line string) {
	b.t.Helper()
	armFaults(b.t, b.file, line)
}

// armFaults gives package faults its line, in one step.
func armFaults(t *testing.T, file, line string) {
	t.Helper()
	err := os.WriteFile(file+".new", []byte(line+"\n"), 0o600)
	if err == nil {
		err = os.Rename(file+".new", file)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (b *faultBed) disarm() {
	b.t.Helper()
	if err := os.Remove(b.file); err != nil {
		b.t.Fatal(err)
	}
}

// scene makes an environment for the case: with files, a command that has ended and one
// that runs.
func (b *faultBed) scene() faultScene {
	b.t.Helper()
	p := b.s.place(b.t)
	p.sh(b.t, theTree+"\n"+b.prepare)
	w := faultScene{place: p, mark: mark(), tree: b.tree(p)}
	w.ended = p.exec(b.t, object{"command": "echo out; exit 9", "idempotency_key": "ended"}).ID
	w.running = p.background(b.t, "echo began; sleep "+w.mark).ID
	p.output(b.t, w.running, object{"wait_ms": 10000})
	mustRun(b.t, w.mark, 1)
	if b.archived {
		p.must(b.t, "archive_environment", p.in(nil))
	}
	return w
}

// tree is what can be told of an environment's folder.
func (b *faultBed) tree(p place) string {
	b.t.Helper()
	c := p.exec(b.t, object{"argv": []string{"python3", "-c", theTreeNow}})
	if c.exit() != 0 || c.Stdout.Truncated {
		b.t.Fatalf("cannot look at the folder: %s", c.brief())
	}
	return c.Stdout.Text
}

// timeless is a tree without the times.
func timeless(tree string) string {
	var all strings.Builder
	for line := range strings.Lines(tree) {
		at := strings.LastIndexByte(line, '@')
		if at < 0 {
			at = len(line)
		}
		all.WriteString(line[:at] + "\n")
	}
	return all.String()
}

// faultStep is the n-th step of a name.
type faultStep struct {
	name  string
	n     int
	lives bool // the service lives on
}

func (f faultStep) String() string { return fmt.Sprintf("at %s (%d)", f.name, f.n) }

// traced makes the call and gives its steps, those in the background after the answer
// among them. Where a transaction begins is left out: nothing is on the disk then that is
// not before its commit, and a call learns the same.
func (b *faultBed) traced() []faultStep {
	b.t.Helper()
	b.arm("trace")
	w := b.scene()
	before := b.trace()
	answer, err := b.call(b.t.Context(), w.place)
	if err != nil {
		b.t.Fatalf("%s: %v", b.operation, err)
	}
	names := b.trace()[len(before):]
	b.disarm()
	if b.files {
		b.new = timeless(b.tree(w.place))
	}
	b.check(w, faultStep{"the end", 1, true}, answer, nil)
	var steps []faultStep
	seen := map[string]int{}
	for _, name := range names {
		if seen[name]++; !strings.HasPrefix(name, "store.begin ") {
			steps = append(steps, faultStep{name, seen[name], false})
		}
	}
	return steps
}

// trace gives the steps until now, when nothing more comes by itself: that is when the
// trash is empty.
func (b *faultBed) trace() (names []string) {
	b.t.Helper()
	err := eventually(func() error {
		names = strings.Split(readFile(b.t, b.file+".trace"), "\n")
		begun, freed := count(names, "workspace.trash begun"), count(names, "workspace.trash freed")
		if left := entries(b.t, filepath.Join(b.s.data, "trash")); len(left) > 0 || begun != freed {
			return fmt.Errorf("the trash holds %v; of %d folders %d are freed", left, begun, freed)
		}
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return names
}

func count(all []string, what string) (n int) {
	for _, one := range all {
		if one == what {
			n++
		}
	}
	return n
}

// entries are the names in a folder.
func entries(t *testing.T, dir string) []string {
	t.Helper()
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range all {
		names = append(names, e.Name())
	}
	slices.Sort(names)
	return names
}

// failedAt has a step of the call fail.
func (b *faultBed) failedAt(at faultStep) {
	b.t.Helper()
	w := b.scene()
	b.arm(fmt.Sprintf("once %d %s", at.n, at.name))
	ctx, cancel := context.WithTimeout(b.t.Context(), patience)
	defer cancel()
	answer, err := b.call(ctx, w.place)
	b.disarm()
	if err != nil {
		isProblem(b.t, "internal|unavailable", at.String(), answer, err)
		b.again(w.place, at.String(), false)
	}
	b.s.stop(b.t)
	b.s = b.s.restart(b.t)
	w.rest = b.s.rest
	b.check(w, at, object{}, nil)
}

// killedAt has the service killed at a step of the call, and starts it again.
func (b *faultBed) killedAt(at faultStep) {
	b.t.Helper()
	w := b.scene()
	b.arm(fmt.Sprintf("kill %d %s", at.n, at.name))
	ctx, cancel := context.WithTimeout(b.t.Context(), patience)
	defer cancel()
	answer, err := b.call(ctx, w.place) // answered, where the step comes after that
	if !b.s.wait(patience) {
		b.t.Fatalf("%s: it was not reached: %v", at, err)
	}
	b.disarm()
	mends := b.toMend()
	b.s = b.s.restart(b.t)
	w.rest = b.s.rest
	for _, id := range mends {
		if !strings.Contains(b.s.output.String(), id) {
			b.t.Errorf("%s: nothing is said of %s, which was mended:\n%s", at, id, b.said())
		}
	}
	b.check(w, at, answer, err)
}
