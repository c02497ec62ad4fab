package mutation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"envapi/sandbox/cgroup"
	"envapi/sandbox/sandboxtest"
)

const (
	// patience bounds one build and one run.
	patience = 2 * time.Minute
	// ordinary is the uid of who runs the directory tier's tests: nobody's.
	ordinary = 64322
	// mostData keeps a box whose memory is not bounded from taking the machine's:
	// no process of a run may have more.
	mostData = 1 << 30
)

// bench is where the mutants are built and run.
type bench struct {
	root string    // of the module
	dir  string    // for what is built; everybody can pass
	once sync.Once // for the programs as they are
	mu   sync.Mutex
	base map[string]*sync.Once // of the tests' programs as they are, by package
}

func newBench(t *testing.T) *bench {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "mutants-") // the names of sockets in it must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil { // the ordinary user executes what is in it
		t.Fatal(err)
	}
	return &bench{root: root, dir: dir, base: map[string]*sync.Once{}}
}

// folder makes a folder for one mutant, with the programs that its tests start:
// an init of its own where there is an overlay for it.
func (b *bench) folder(t *testing.T, overlay string) string {
	t.Helper()
	dir, err := os.MkdirTemp(b.dir, "mutant-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil { // as above
		t.Fatal(err)
	}
	tmp := filepath.Join(dir, "tmp")
	if err := errors.Join(os.Mkdir(tmp, 0o700), os.Chmod(tmp, 0o711)); err != nil { // a box's uid passes through
		t.Fatal(err)
	}
	b.once.Do(func() {
		b.compile(t, "", "CGO_ENABLED=0", "build", "-o", b.dir+"/", "./cmd/envapi-init", "./sandbox/attack/attacker")
	})
	programs := []string{"attacker", "envapi-init"}
	if overlay != "" {
		programs = programs[:1]
		b.compile(t, overlay, "CGO_ENABLED=0", "build", "-o", dir+"/", "./cmd/envapi-init")
	}
	for _, program := range programs {
		if err := os.Link(filepath.Join(b.dir, program), filepath.Join(dir, program)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// compile runs the go command in the module.
func (b *bench) compile(t *testing.T, overlay, variable string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if overlay != "" {
		args = append([]string{args[0], "-overlay", overlay}, args[1:]...)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = b.root, append(os.Environ(), variable)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// tests gives the tests of a package, as they are or with an overlay.
func (b *bench) tests(t *testing.T, pkg, overlay, dir string) string {
	t.Helper()
	if overlay != "" {
		path := filepath.Join(dir, "tests")
		b.compile(t, overlay, "CGO_ENABLED=0", "test", "-c", "-o", path, "./sandbox/"+pkg)
		return path
	}
	path := filepath.Join(b.dir, pkg+".test")
	b.mu.Lock()
	if b.base[pkg] == nil {
		b.base[pkg] = &sync.Once{}
	}
	once := b.base[pkg]
	b.mu.Unlock()
	once.Do(func() { b.compile(t, "", "CGO_ENABLED=0", "test", "-c", "-o", path, "./sandbox/"+pkg) })
	return path
}

// overlays writes the mutant's files, and gives what to build the init and the
// tests with; "" where nothing of them is another.
func (b *bench) overlays(t *testing.T, m mutation) (ofInit, ofTests string) {
	t.Helper()
	dir, changed := t.TempDir(), map[string]string{}
	path := filepath.Join(dir, "overlay.json")
	for _, e := range m.edits {
		name := filepath.Join(b.root, e.file)
		if _, ok := changed[name]; !ok {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			changed[name] = string(data)
		}
		if !strings.Contains(changed[name], e.before) {
			t.Fatalf("%s no longer has the text\n%s", e.file, e.before)
		}
		changed[name] = strings.ReplaceAll(changed[name], e.before, e.after)
		if inInit := strings.HasPrefix(e.file, "sandbox/boxinit/"); inInit {
			ofInit = path
		} else {
			ofTests = path
		}
	}
	replace := map[string]string{}
	for name, content := range changed {
		replace[name] = filepath.Join(dir, strings.ReplaceAll(strings.TrimPrefix(name, b.root+"/"), "/", "_"))
		if err := os.WriteFile(replace[name], []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return ofInit, ofTests
}

// run runs tests, and gives what they printed and whether they failed.
func (b *bench) run(t *testing.T, m mutation, program, dir string) (string, bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tmp := filepath.Join(dir, "tmp")
	cmd := exec.CommandContext(ctx, "prlimit", fmt.Sprintf("--data=%d", mostData), program,
		"-test.run", m.run, "-test.timeout", (patience / 2).String())
	cmd.Dir = filepath.Join(b.root, "sandbox", m.tests)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + tmp, "TMPDIR=" + tmp, "LANG=C.UTF-8",
		"ENVAPI_TEST_BIN=" + dir, sandboxtest.RunVariable + "=" + filepath.Base(dir), "ENVAPI_REQUIRE=userns,landlock,cgroup",
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWIPC | unix.CLONE_NEWUTS, Unshareflags: unix.CLONE_NEWNS, Pdeathsig: unix.SIGKILL,
	}
	owner := 0
	if m.tests == "directory" {
		owner = ordinary
		cmd.Dir = tmp
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: ordinary, Gid: ordinary}
	}
	if err := os.Chown(tmp, owner, owner); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.CombinedOutput()
	sweep(t, filepath.Base(dir))
	var exited *exec.ExitError
	if err != nil && !errors.As(err, &exited) {
		t.Fatalf("cannot run the tests: %v", err)
	}
	return string(out), err != nil
}

// sweep removes the cgroups of a run. One that had to be ended, because it took too
// long or too much with its control off, did not come to that itself.
func sweep(t *testing.T, run string) {
	t.Helper()
	for _, name := range sandboxtest.GroupsOf(t, run) {
		if err := cgroup.Open(cgroup.Options{Name: name, Log: slog.New(slog.DiscardHandler)}).Close(); err != nil {
			t.Errorf("the cgroups %s are left: %v", name, err)
		}
	}
}

func TestEveryControlIsMissedWhenItIsOff(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can have every tier; root's pass runs this, also for the tier of a user")
	}
	b := newBench(t)
	whole := b.folder(t, "")
	for i, m := range asTheyAre(mutations()) {
		t.Run(fmt.Sprintf("as it is %d", i), func(t *testing.T) {
			if out, failed := b.run(t, m, b.tests(t, m.tests, "", ""), whole); failed {
				t.Fatalf("%s %s fails with every control on:\n%s", m.tests, m.run, out)
			}
		})
	}
	for _, m := range mutations() {
		t.Run("without "+m.control, func(t *testing.T) {
			t.Parallel()
			ofInit, ofTests := b.overlays(t, m)
			dir := b.folder(t, ofInit)
			out, failed := b.run(t, m, b.tests(t, m.tests, ofTests, dir), dir)
			if !failed || !regexp.MustCompile(m.says).MatchString(out) {
				t.Errorf("%s %s should have said %q; failed: %v\n%s", m.tests, m.run, m.says, failed, out)
			}
		})
	}
}

// asTheyAre gives one of the mutations for each of the tests that they name.
func asTheyAre(all []mutation) []mutation {
	seen, some := map[string]bool{}, []mutation(nil)
	for _, m := range all {
		if key := m.tests + " " + m.run; !seen[key] {
			seen[key] = true
			some = append(some, m)
		}
	}
	return some
}
