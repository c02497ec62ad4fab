package pack_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/internal/workspace/files"
	"envapi/internal/workspace/inside"
	"envapi/internal/workspace/pack"
	"envapi/sandbox/fsuser"
)

const (
	testID = "env_00000000000000000000000001"
	// somebody is a uid of nobody here.
	somebody = 65531
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// kit is a folder of an environment, and what packs it.
type kit struct {
	t    testing.TB
	home string // where the folder is, and other things that must stay as they are
	dir  string
	uid  int
	*pack.Packer
}

func newKit(t testing.TB) *kit {
	t.Helper()
	return kitIn(t, t.TempDir())
}

func kitIn(t testing.TB, home string) *kit {
	t.Helper()
	k := &kit{t: t, home: home}
	k.dir = filepath.Join(k.home, "workspaces", testID)
	must(t, os.MkdirAll(k.dir, 0o700))
	must(t, os.Mkdir(filepath.Join(k.home, "trash"), 0o700))
	for d := filepath.Dir(k.dir); d != "/" && d != os.TempDir(); d = filepath.Dir(d) {
		must(t, os.Chmod(d, 0o755))
	}
	if os.Geteuid() == 0 {
		k.uid = somebody
		must(t, os.Chown(k.dir, somebody, somebody))
	}
	live, trash, dir := k.open("workspaces"), k.open("trash"), k.open("workspaces/"+testID)
	store, err := files.Open(k.home, live, trash, func(_, name string) {
		_ = fsuser.Do(k.uid, k.uid, func() error { return writable(filepath.Join(k.home, "trash", name)) })
		_ = os.RemoveAll(filepath.Join(k.home, "trash", name))
	})
	must(t, err)
	root := inside.NewRoot(dir, k.uid, "/workspace")
	tree := store.Tree(testID, root, k.uid)
	k.Packer = pack.New(root, tree)
	t.Cleanup(func() {
		k.do(func() error { return writable(k.dir) })
		must(t, errors.Join(tree.Close(), root.Close(), store.Close(), live.Close(), trash.Close()))
	})
	return k
}

// writable lets all below a directory be taken away.
func writable(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if d == nil || !d.IsDir() {
			return nil
		}
		if err := os.Chmod(path, 0o700); err != nil {
			return err
		}
		return nil
	})
}

func (k *kit) open(name string) *os.File {
	k.t.Helper()
	f, err := os.Open(filepath.Join(k.home, name))
	must(k.t, err)
	return f
}

// do runs something as the environment's user.
func (k *kit) do(do func() error) {
	k.t.Helper()
	must(k.t, fsuser.Do(k.uid, k.uid, do))
}

func (k *kit) path(name string) string { return filepath.Join(k.dir, name) }

// put makes a file in the folder, with what is above it.
func (k *kit) put(name, content string) {
	k.t.Helper()
	k.do(func() error {
		return errors.Join(os.MkdirAll(filepath.Dir(k.path(name)), 0o755), os.WriteFile(k.path(name), []byte(content), 0o644))
	})
}

// tree gives all that is below a directory: paths with what they are.
func (k *kit) tree(dir string) map[string]string {
	k.t.Helper()
	all := map[string]string{}
	top := k.path(dir)
	must(k.t, filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == top {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		what := info.Mode().String()
		switch {
		case info.Mode().IsRegular():
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			what += " " + info.ModTime().UTC().Format(time.RFC3339Nano) + " " + string(content) + xattrs(path)
		case info.IsDir():
			what += xattrs(path)
		case info.Mode()&fs.ModeSymlink != 0:
			to, _ := os.Readlink(path)
			what += " " + to
		}
		all[strings.TrimPrefix(path, top+"/")] = what
		return nil
	}))
	return all
}

func xattrs(path string) string {
	list := make([]byte, 4096)
	n, err := unix.Listxattr(path, list)
	if err != nil {
		return ""
	}
	text, names := "", strings.Split(string(list[:n]), "\x00")
	slices.Sort(names)
	for _, name := range names {
		if strings.HasPrefix(name, "user.") {
			value := make([]byte, 4096)
			n, _ := unix.Getxattr(path, name, value)
			text += fmt.Sprintf(" %s=%q", name, value[:max(n, 0)])
		}
	}
	return text
}

func (k *kit) export(path string, c core.Compression) []byte {
	k.t.Helper()
	var b bytes.Buffer
	_, err := k.Export(k.t.Context(), path, &b, c)
	must(k.t, err)
	return b.Bytes()
}

var generous = core.ImportOptions{MaxBytes: 1 << 30, MaxFiles: 100_000}

func (k *kit) unpack(path string, archive []byte, o core.ImportOptions) (core.ImportResult, error) {
	return k.Import(k.t.Context(), path, bytes.NewReader(archive), o)
}

// entry is one of a tar.
type entry struct {
	tar.Header
	content string
}

func file(name, content string) entry {
	return entry{tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(content))}, content}
}

func directory(name string) entry {
	return entry{Header: tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: 0o755}}
}

func symlink(name, to string) entry {
	return entry{Header: tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to, Mode: 0o777}}
}

func hardLink(name, to string) entry {
	return entry{Header: tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: to, Mode: 0o644}}
}

func special(kind byte, name string) entry {
	return entry{Header: tar.Header{Typeflag: kind, Name: name, Mode: 0o644, Devmajor: 1, Devminor: 3}}
}

func tarOf(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := e.Header
		if h.ModTime.IsZero() {
			h.ModTime = time.Unix(1_700_000_000, 0)
		}
		must(t, w.WriteHeader(&h))
		_, err := w.Write([]byte(e.content))
		must(t, err)
	}
	must(t, w.Close())
	return b.Bytes()
}

func wantCode(t testing.TB, err error, code core.Code) *core.Error {
	t.Helper()
	var e *core.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Errorf("got %v; want %s", err, code)
		return &core.Error{}
	}
	return e
}
