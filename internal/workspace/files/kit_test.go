package files_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/internal/workspace/files"
	"envapi/internal/workspace/inside"
)

const (
	testID = "env_00000000000000000000000001"
	// somebody is a uid of nobody here.
	somebody = 65531
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		crash(dir, os.Getenv(crashPoint))
		return
	}
	goleak.VerifyTestMain(m)
}

// kit is a store with the folder of one environment, which is somebody's where the
// test is root.
type kit struct {
	t     testing.TB
	dir   string // the data folder
	path  string // the environment's folder
	uid   int
	store *files.Store
	tree  *files.Tree

	mu   sync.Mutex
	gone []string // in the trash
}

func newKit(t testing.TB) *kit {
	t.Helper()
	return openKit(t, t.TempDir())
}

// openKit opens a data folder that may have been used before.
func openKit(t testing.TB, dir string) *kit {
	t.Helper()
	k := &kit{t: t, dir: dir, path: filepath.Join(dir, "workspaces", testID)}
	must(t, os.MkdirAll(k.path, 0o700))
	must(t, os.MkdirAll(filepath.Join(dir, "trash"), 0o700))
	if os.Geteuid() == 0 {
		k.uid = somebody
		must(t, os.Chown(k.path, somebody, somebody))
	}
	live, trash := k.open("workspaces"), k.open("trash")
	var err error
	k.store, err = files.Open(dir, live, trash, func(_, name string) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.gone = append(k.gone, name)
	})
	must(t, err)
	root := inside.NewRoot(k.open("workspaces/"+testID), k.uid, "/workspace", k.path)
	k.tree = k.store.Tree(testID, root, k.uid)
	t.Cleanup(func() {
		must(t, errors.Join(k.tree.Close(), root.Close(), k.store.Close(), live.Close(), trash.Close()))
	})
	return k
}

func (k *kit) open(name string) *os.File {
	k.t.Helper()
	f, err := os.Open(filepath.Join(k.dir, name))
	must(k.t, err)
	return f
}

// inside does something in the folder as a program of the environment's would, also
// in the middle of a change: on a thread of its own.
func (k *kit) inside(do func() error) {
	k.t.Helper()
	done := make(chan error)
	go func() {
		err := do()
		if k.uid != 0 {
			err = errors.Join(err, filepath.WalkDir(k.path, func(path string, _ os.DirEntry, err error) error {
				var st unix.Stat_t
				if err := errors.Join(err, unix.Lstat(path, &st)); err != nil || int(st.Uid) == k.uid {
					return err
				}
				return os.Lchown(path, k.uid, k.uid)
			}))
		}
		done <- err
	}()
	if err := <-done; err != nil {
		k.t.Error(err)
	}
}

// put makes a file in the folder, past the tree.
func (k *kit) put(name, content string, mode os.FileMode) {
	k.t.Helper()
	k.inside(func() error {
		path := filepath.Join(k.path, name)
		return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), mode), os.Chmod(path, mode))
	})
}

func (k *kit) link(target, name string) {
	k.t.Helper()
	k.inside(func() error { return os.Symlink(target, filepath.Join(k.path, name)) })
}

// want says what a file in the folder must hold, seen past the tree.
func (k *kit) want(name, content string) {
	k.t.Helper()
	got, err := os.ReadFile(filepath.Join(k.path, name))
	if err != nil || string(got) != content {
		k.t.Errorf("%q holds %q, %v; want %q", name, got, err, content)
	}
}

func (k *kit) wantNone(name string) {
	k.t.Helper()
	if _, err := os.Lstat(filepath.Join(k.path, name)); !errors.Is(err, os.ErrNotExist) {
		k.t.Errorf("there is %q: %v", name, err)
	}
}

func (k *kit) stage(content string) core.Staged {
	k.t.Helper()
	s, err := k.tree.Stage(k.t.Context(), strings.NewReader(content), -1)
	must(k.t, err)
	return s
}

// commit makes one change of a file.
func (k *kit) commit(c core.Change, content string) (core.Committed, error) {
	k.t.Helper()
	c.Put = k.stage(content)
	done, err := k.tree.Commit(k.t.Context(), []core.Change{c})
	if err != nil {
		return core.Committed{}, err
	}
	return done[0], nil
}

func (k *kit) write(path, content string) error {
	k.t.Helper()
	_, err := k.commit(core.Change{Path: path}, content)
	return err
}

func (k *kit) read(path string) (string, error) {
	f, err := k.tree.Open(context.Background(), path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<20))
	return string(text), err
}

func (k *kit) tag(path string) string {
	k.t.Helper()
	f, err := k.tree.Open(k.t.Context(), path)
	must(k.t, err)
	defer f.Close()
	tag, err := f.ETag(k.t.Context(), true)
	must(k.t, err)
	return tag
}

// wantClean says that nothing is left in the staging folder.
func (k *kit) wantClean() {
	k.t.Helper()
	entries, err := os.ReadDir(filepath.Join(k.dir, "staging", testID))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		k.t.Fatal(err)
	}
	for _, e := range entries {
		k.t.Errorf("left in the staging folder: %s", e.Name())
	}
	if n := k.store.Locks(); n != 0 {
		k.t.Errorf("%d locks are left", n)
	}
}

func code(err error) core.Code {
	var e *core.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

func wantCode(t testing.TB, err error, want ...core.Code) {
	t.Helper()
	if !slices.Contains(want, code(err)) {
		t.Errorf("got %v, want %v", err, want)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func statOf(t testing.TB, path string) (st unix.Stat_t) {
	t.Helper()
	must(t, unix.Lstat(path, &st))
	return st
}
