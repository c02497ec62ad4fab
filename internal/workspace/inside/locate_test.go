package inside_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/internal/workspace/inside"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newRoot(t testing.TB) (*inside.Root, string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	dir = filepath.Join(dir, "folder")
	must(t, os.Mkdir(dir, 0o700))
	f, err := os.Open(dir)
	must(t, err)
	root := inside.NewRoot(f, 0, "/workspace", dir)
	t.Cleanup(func() { must(t, root.Close()) })
	return root, dir
}

func code(err error) core.Code {
	var e *core.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// model resolves paths by names alone, one after the other: slowly, and right only as
// long as nothing changes.
type model struct {
	root    string
	aliases []string
	links   int
}

// errNone are the model's words for what Locate fails with.
var (
	errOutside = errors.New("outside")
	errLoop    = errors.New("loop")
	errMissing = errors.New("missing")
	errNoDir   = errors.New("no directory")
)

// resolve gives the real path that a path below the folder leads to. Its last name
// need not be there.
func (m *model) resolve(at, path string, follow bool) (string, error) {
	parts := strings.Split(path, "/")
	slash, dot := false, false
	for len(parts) > 0 && (parts[len(parts)-1] == "" || parts[len(parts)-1] == ".") {
		slash, dot = slash || len(parts) > 1, dot || parts[len(parts)-1] == "."
		parts = parts[:len(parts)-1]
	}
	for i, name := range parts {
		last := i == len(parts)-1
		var err error
		if at, err = m.step(at, name, last, follow || slash); err != nil {
			return "", err
		}
		if info, err := os.Lstat(at); err == nil && (!last || slash) && !info.IsDir() {
			return "", errNoDir
		} else if err != nil && dot {
			return "", errMissing // what is in it must be there
		}
	}
	return at, nil
}

func (m *model) step(at, name string, last, follow bool) (string, error) {
	switch {
	case name == "" || name == ".":
		return at, nil
	case name == ".." && at == m.root:
		return "", errOutside
	case name == "..":
		return filepath.Dir(at), nil
	}
	next := at + "/" + name
	info, err := os.Lstat(next)
	if err != nil {
		if !last {
			return "", errMissing
		}
		return next, nil
	}
	if info.Mode()&os.ModeSymlink == 0 || last && !follow {
		return next, nil
	}
	if m.links++; m.links > 40 {
		return "", errLoop
	}
	to, err := os.Readlink(next)
	if err != nil {
		return "", err
	}
	if !strings.HasPrefix(to, "/") {
		return m.through(at, to, last)
	}
	for _, alias := range m.aliases {
		if rest, ok := strings.CutPrefix(to, alias); ok && (rest == "" || rest[0] == '/') {
			return m.through(m.root, rest, last)
		}
	}
	return "", errOutside
}

// through resolves what is in a link. What does not end the path must be there.
func (m *model) through(at, to string, last bool) (string, error) {
	got, err := m.resolve(at, to, true)
	if err == nil && !last {
		if _, missing := os.Lstat(got); missing != nil {
			return "", errMissing
		}
	}
	return got, err
}

func held(t testing.TB, f *os.File) string {
	t.Helper()
	name, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(int(f.Fd())))
	must(t, err)
	return name
}

// FuzzLocate holds Locate to the model, over trees with two links that lead anywhere,
// and to this: what it finds is in the folder.
func FuzzLocate(f *testing.F) {
	for _, seed := range [][3]string{
		{"dir/file", "dir", "/workspace/dir"},
		{"one/two/file", "../..", "/etc"},
		{"one/../two", "dir/sub", "/workspace/../x"},
		{"one", "two", "one"},
		{"one/one/one/file", ".", "dir/"},
		{"two/../../x", "dir", "/workspace/one/sub"},
		{"dir/up/up/up/file", "/workspace/", "//"},
		{"two/", "dir/file", "/workspace/dir/file"},
		{"./dir//sub/.././file/.", "", ""},
		{"one/x/..", "none", "none/none"},
	} {
		f.Add(seed[0], seed[1], seed[2], true)
		f.Add(seed[0], seed[1], seed[2], false)
	}
	root, dir := newRoot(f)
	must(f, os.MkdirAll(dir+"/dir/sub", 0o700))
	must(f, os.WriteFile(dir+"/dir/file", nil, 0o600))
	must(f, os.Symlink("..", dir+"/dir/up"))
	f.Fuzz(func(t *testing.T, path, one, two string, follow bool) {
		for name, to := range map[string]string{"one": one, "two": two} {
			_ = os.Remove(dir + "/" + name)
			if to != "" && os.Symlink(to, dir+"/"+name) != nil {
				return // that is no link's content
			}
		}
		rel, err := root.Relative(path)
		if err != nil {
			return
		}
		at, err := root.Locate(rel, inside.Mode{Follow: follow})
		compare(t, dir, rel, follow, at, err)
	})
}

// compare holds what Locate said to the model.
func compare(t *testing.T, dir, rel string, follow bool, at *inside.Place, err error) {
	t.Helper()
	m := model{root: dir, aliases: []string{"/workspace", dir}}
	want, wrong := m.resolve(dir, rel, follow)
	if err != nil {
		if code(err) == "" {
			t.Errorf("%q: an unknown failure: %v", rel, err)
		}
		if m.links <= 10 && wrong == nil && code(err) != core.CodeInvalidArgument {
			t.Errorf("%q: got %v, the model finds %q", rel, err, want)
		}
		return
	}
	defer at.Close()
	parent := held(t, at.Dir)
	if parent != dir && !strings.HasPrefix(parent, dir+"/") {
		t.Fatalf("%q leads to %q, out of %q", rel, parent, dir)
	}
	if at.Name == ".." || strings.Contains(at.Name, "/") {
		t.Fatalf("%q has the name %q", rel, at.Name)
	}
	got := filepath.Join(parent, at.Name)
	if wrong != nil || got != want {
		t.Errorf("%q: got %q, the model says %q, %v", rel, got, want, wrong)
	}
	if _, err := os.Lstat(got); (err == nil) != at.Exists() {
		t.Errorf("%q: exists is %v, and the system says %v", rel, at.Exists(), err)
	}
}

func TestAbsolutePathsBeginWithAnAlias(t *testing.T) {
	root, dir := newRoot(t)
	for path, want := range map[string]string{
		"a": "a", "": "", "../x": "../x", "/workspace": "", "/workspace/": "", "/workspace//a/": "a/", dir + "/a": "a",
	} {
		if got, err := root.Relative(path); err != nil || got != want {
			t.Errorf("%q: got %q, %v", path, got, err)
		}
	}
	for _, path := range []string{"/", "/etc", "/workspacer", "/workspace-evil/a", dir + "x", "//workspace/a"} {
		if _, err := root.Relative(path); code(err) != core.CodePathOutside {
			t.Errorf("%q: got %v", path, err)
		}
	}
	for _, path := range []string{"a\x00b", strings.Repeat("x", 256), strings.Repeat("a/", 2048)} {
		if _, err := root.Relative(path); code(err) != core.CodeInvalidArgument {
			t.Errorf("%.20q: got %v", path, err)
		}
	}
}

func TestDirectoriesThatAreMissingAreNamed(t *testing.T) {
	root, dir := newRoot(t)
	must(t, os.Mkdir(dir+"/dir", 0o700))
	must(t, os.Symlink("/workspace/dir", dir+"/link"))
	for path, want := range map[string]string{
		"a/b/c": "a/b|c", "dir/a/b/": "a|b", "link/a/b": "a|b", "dir/a": "|a", "a/./b//c/.": "a/b|c", "link/a/b/..": "",
	} {
		at, err := root.Locate(path, inside.Mode{Missing: true})
		if want == "" {
			if code(err) != core.CodeNotFound {
				t.Errorf("%q: got %v", path, err)
			}
			continue
		}
		must(t, err)
		if got := strings.Join(at.Missing, "/") + "|" + at.Name; got != want || at.Exists() {
			t.Errorf("%q: got %q", path, got)
		}
		at.Close()
	}
	if _, err := root.Locate("a/b", inside.Mode{}); code(err) != core.CodeNotFound {
		t.Errorf("got %v", err)
	}
}

func TestFaultsAreSaidInOurWords(t *testing.T) {
	for errno, want := range map[error]core.Code{
		unix.ENOENT: core.CodeNotFound, unix.EACCES: core.CodePermissionDenied, unix.ENOSPC: core.CodeDiskFull,
		unix.EXDEV: core.CodePathOutside, unix.ELOOP: core.CodeSymlinkLoop, unix.EROFS: core.CodePermissionDenied,
	} {
		if got := inside.Fault("x", errno); code(got) != want || !errors.Is(got, errno) {
			t.Errorf("%v: got %v", errno, got)
		}
	}
	if got := inside.Fault("x", unix.EIO); code(got) != "" {
		t.Errorf("got %v", got)
	}
	if inside.Fault("x", nil) != nil {
		t.Error("nothing is a fault")
	}
}

// A path as deep as the kernel takes one works, also where it begins with an absolute
// link, up to the levels that are walked by hand.
func TestDeepPaths(t *testing.T) {
	root, dir := newRoot(t)
	deep := strings.Repeat("d/", 200)
	must(t, os.MkdirAll(dir+"/"+deep, 0o700))
	must(t, os.Symlink("/workspace", dir+"/link"))
	for _, path := range []string{deep + "x", "link/" + deep + "x"} {
		at, err := root.Locate(path, inside.Mode{})
		must(t, err)
		at.Close()
	}
	must(t, os.MkdirAll(dir+"/"+strings.Repeat("d/", 300), 0o700))
	if _, err := root.Locate("link/"+strings.Repeat("d/", 300)+"x", inside.Mode{}); code(err) != core.CodeInvalidArgument {
		t.Errorf("got %v", err)
	}
}
