package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/internal/require"
	"envapi/sandbox/fsuser"
)

const (
	// secret is in every file outside and in none inside, secretName in every name.
	secret     = "the secret of somebody else"
	secretName = "canary"
	raceBound  = 3 // seconds
)

// race is an environment whose program swaps names while its files are worked on.
type race struct {
	t       *testing.T
	path    string // of the folder on the host
	outside string
	uid     int
	tree    core.FileTree
	stop    chan struct{}

	mu   sync.Mutex
	done map[string]int // operations that succeeded, by name; swaps too
}

// TestNothingOutsideIsReachedWhileNamesAreSwapped: everything outside is open to the
// environment's user, so that only the resolution of paths protects it.
func TestNothingOutsideIsReachedWhileNamesAreSwapped(t *testing.T) {
	r := newRace(t)
	before := r.describeOutside()
	var all sync.WaitGroup
	for _, swap := range []func(root int) error{r.swapDirectories, r.swapFiles, r.moveAbout} {
		all.Go(func() { r.swap(swap) })
	}
	for _, work := range []func(n int){r.read, r.write, r.tidy, r.copy, r.move, r.seek, r.pack} {
		all.Go(func() { r.work(work) })
	}
	time.AfterFunc(time.Duration(require.Rounds(t, raceBound))*time.Second, func() { close(r.stop) })
	all.Wait()
	if after := r.describeOutside(); after != before {
		t.Errorf("outside there is\n%s\nand there was\n%s", after, before)
	}
	r.wantNoSecret()
	for _, name := range []string{
		"swap directories", "swap files", "move about",
		"stat", "open", "write", "make directory", "remove", "copy", "move", "list", "search", "export",
	} {
		if r.done[name] == 0 {
			t.Errorf("%q never succeeded: nothing was tried", name)
		}
	}
	t.Log(r.done)
}

func newRace(t *testing.T) *race {
	t.Helper()
	base := t.TempDir()
	for dir := base; dir != os.TempDir(); dir = filepath.Dir(dir) {
		must(t, os.Chmod(dir, 0o755))
	}
	r := &race{
		t: t, outside: filepath.Join(base, "outside"),
		stop: make(chan struct{}), done: map[string]int{},
	}
	if os.Geteuid() == 0 {
		r.uid = modelUID
	}
	for _, dir := range []string{"", "sub", "deep"} {
		must(t, os.MkdirAll(filepath.Join(r.outside, dir), 0o755))
		must(t, os.Chmod(filepath.Join(r.outside, dir), 0o777))
		for _, name := range []string{"file", secretName, secretName + ".go"} {
			name = filepath.Join(r.outside, dir, name)
			must(t, os.WriteFile(name, []byte(secret), 0o600))
			must(t, os.Chmod(name, 0o666))
		}
	}
	data := filepath.Join(base, "data")
	must(t, os.Mkdir(data, 0o755))
	w := open(t, data)
	must(t, w.Create(t.Context(), testID(1), r.uid))
	r.path = w.Path(testID(1))
	tree, err := w.Files(testID(1), r.uid, "")
	must(t, err)
	t.Cleanup(func() { must(t, tree.Close()) })
	r.tree = tree
	return r
}

// describeOutside says everything of what is outside that an operation could change.
func (r *race) describeOutside() string {
	var all strings.Builder
	must(r.t, filepath.WalkDir(r.outside, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		must(r.t, unix.Lstat(path, &st))
		fmt.Fprintln(&all, path, st.Ino, st.Mode, st.Uid, st.Nlink, st.Size, st.Mtim, st.Ctim)
		return nil
	}))
	return all.String()
}

// wantNoSecret looks through all that is inside.
func (r *race) wantNoSecret() {
	must(r.t, filepath.WalkDir(r.path, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		r.see(path, string(text))
		return err
	}))
}

// see fails the test where something outside was read.
func (r *race) see(what, text string) {
	if strings.Contains(text, secret) {
		r.t.Errorf("%s gave the secret", what)
	}
	if strings.Contains(text, secretName) {
		r.t.Errorf("%s gave a name from outside", what)
	}
}

func (r *race) count(name string, err error) {
	var known *core.Error
	if err != nil && (!errors.As(err, &known) || known.Code == core.CodeInternal) {
		r.t.Errorf("%s: %v", name, err)
	}
	r.tally(name, err)
}

// tally counts what succeeded.
func (r *race) tally(name string, err error) {
	if err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.done[name]++
	}
}

func (r *race) over() bool {
	select {
	case <-r.stop:
		return true
	default:
		return false
	}
}

// swap does something in the folder over and over, as a program in it. It follows no
// link itself: what changes outside, the operations have changed.
func (r *race) swap(do func(root int) error) {
	root, err := unix.Open(r.path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		r.t.Error(err)
		return
	}
	defer unix.Close(root)
	err = fsuser.Do(r.uid, r.uid, func() error {
		for !r.over() {
			if err := do(root); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		r.t.Error(err)
	}
}

// directoryIn makes a directory of a directory, and opens it where it is one.
func directoryIn(dir int, name string) (int, error) {
	_ = unix.Mkdirat(dir, name, 0o755)
	return unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
}

func fileIn(dir int, name string) {
	f, err := unix.Openat(dir, name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o644)
	if err == nil {
		_, _ = unix.Write(f, []byte("inside\n"))
		_ = unix.Close(f)
	}
}

func exchangeIn(dir int, a, b string) error {
	return unix.Renameat2(dir, a, dir, b, unix.RENAME_EXCHANGE)
}

// swapDirectories lets dir, and sub in it, be a directory and a link in turn.
func (r *race) swapDirectories(root int) error {
	_ = unix.Symlinkat(r.outside, root, "other")
	if dir, err := directoryIn(root, "dir"); err == nil {
		fileIn(dir, "file")
		_ = unix.Symlinkat("../other/sub", dir, "way")
		_ = unix.Symlinkat(r.outside+"/sub", dir, "other")
		if sub, err := directoryIn(dir, "sub"); err == nil {
			fileIn(sub, "file")
			_ = unix.Close(sub)
		}
		r.tally("swap directories", exchangeIn(dir, "sub", "other"))
		_ = unix.Close(dir)
	}
	_ = exchangeIn(root, "dir", "other")
	return nil
}

// swapFiles lets file be a file, a link and a FIFO in turn.
func (r *race) swapFiles(root int) error {
	fileIn(root, "file")
	_ = unix.Symlinkat(r.outside+"/file", root, "leaf")
	_ = unix.Symlinkat("dir/../../../../outside/file", root, "up")
	_ = unix.Mkfifoat(root, "fifo", 0o644)
	for _, name := range []string{"leaf", "up", "fifo"} {
		r.tally("swap files", exchangeIn(root, "file", name))
		_ = exchangeIn(root, "file", name)
	}
	return nil
}

// moveAbout moves a directory up and down, so that what is above it changes.
func (r *race) moveAbout(root int) error {
	var st unix.Stat_t
	if unix.Fstatat(root, "deep", &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		if high, err := directoryIn(root, "high"); err == nil {
			if low, err := directoryIn(high, "low"); err == nil {
				if deep, err := directoryIn(low, "deep"); err == nil {
					fileIn(deep, "file")
					_ = unix.Close(deep)
				}
				r.tally("move about", unix.Renameat(low, "deep", root, "deep"))
				_ = unix.Close(low)
			}
			_ = unix.Close(high)
		}
	}
	if high, err := directoryIn(root, "high"); err == nil {
		if low, err := directoryIn(high, "low"); err == nil {
			_ = unix.Renameat2(root, "deep", low, "deep", unix.RENAME_NOREPLACE)
			_ = unix.Close(low)
		}
		_ = unix.Close(high)
	}
	return nil
}

func (r *race) work(do func(n int)) {
	for n := 0; !r.over(); n++ {
		do(n)
	}
}

// aims are paths whose parts are swapped.
var aims = []string{
	"file", "dir/file", "dir/sub/file", "dir/way/file", "other/file", "other/sub/file", "leaf", "up",
	"high/low/deep/file", "high/low/deep/../../../file", "deep/../dir/file", "high/low/deep/../../../../../../outside/file",
	"deep/../../../../outside/file",
}

func aim(n int) string { return aims[n%len(aims)] }

func (r *race) read(n int) {
	ctx := r.t.Context()
	info, err := r.tree.Stat(ctx, aim(n), true)
	r.count("stat", err)
	if info.Type == core.TypeFile && info.Size == int64(len(secret)) {
		r.t.Errorf("stat of %s gave a file from outside", aim(n))
	}
	f, err := r.tree.Open(ctx, aim(n))
	r.count("open", err)
	if err != nil {
		return
	}
	defer f.Close()
	text, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<20))
	r.count("read", err)
	r.see("open of "+aim(n), string(text))
}

func (r *race) write(n int) {
	s, err := r.tree.Stage(r.t.Context(), strings.NewReader("written\n"), -1)
	if err != nil {
		r.t.Error(err)
		return
	}
	_, err = r.tree.Commit(r.t.Context(), []core.Change{{Path: aim(n), Put: s, Parents: n%2 == 0, Literal: n%3 == 0}})
	r.count("write", err)
	_, _, err = r.tree.MakeDirectory(r.t.Context(), filepath.Dir(aim(n))+fmt.Sprintf("/made/%d", n%50), true)
	r.count("make directory", err)
}

// tidy removes what the others make.
func (r *race) tidy(n int) {
	path := aim(n)
	if n%4 == 0 {
		path = filepath.Join(filepath.Dir(path), []string{"made", "sub", "way"}[n%3])
	}
	r.count("remove", r.tree.Remove(r.t.Context(), path, true, core.Condition{}))
}

func (r *race) copy(n int) {
	o := core.CopyOptions{Overwrite: n%2 == 0, Parents: n%3 == 0, Limit: 1 << 20, Files: 1 << 10}
	path := aim(n)
	if n%3 == 0 {
		path = filepath.Dir(path)
	}
	to := fmt.Sprintf("copy%d", n%4)
	_, _, err := r.tree.Copy(r.t.Context(), path, to, o)
	r.count("copy", err)
	if n%8 == 0 {
		r.wantNoSecretIn("")
	}
	_ = r.tree.Remove(r.t.Context(), to, true, core.Condition{})
	_, _, err = r.tree.Copy(r.t.Context(), "file", aim(n), o) // onto what is outside
	r.count("copy", err)
}

func (r *race) move(n int) {
	o := core.CopyOptions{Overwrite: true, Parents: n%3 == 0}
	if n%4 == 0 {
		o.If.Match = []string{"*"}
	}
	from := []string{"file", "dir/file", "dir/sub/file", "deep"}[n%4]
	_, err := r.tree.Move(r.t.Context(), from, aim(n/4), o)
	r.count("move", err)
	_, err = r.tree.Move(r.t.Context(), aim(n/4), fmt.Sprintf("moved%d", n%4), o)
	r.count("move", err)
	_ = r.tree.Remove(r.t.Context(), fmt.Sprintf("moved%d", n%4), true, core.Condition{})
}

// wantNoSecretIn searches as the API does.
func (r *race) wantNoSecretIn(path string) {
	found, err := r.tree.Search(r.t.Context(), core.SearchQuery{
		Path: path, Pattern: secret, Literal: true, Hidden: true, Ignored: true, Limit: 10, MaxBytes: 1 << 16,
	})
	r.count("search", err)
	for _, m := range found.Matches {
		r.t.Errorf("search of %q found the secret in %s", path, m.Path)
	}
}

// seek lists and searches.
func (r *race) seek(n int) {
	path := filepath.Dir(aim(n))
	r.wantNoSecretIn(path)
	for _, depth := range []int{0, 1} {
		page, err := r.tree.List(r.t.Context(), core.ListQuery{Path: path, Depth: depth, Hidden: true, Ignored: true, Limit: 1000})
		r.count("list", err)
		for _, e := range page.Entries {
			r.see("list of "+path, e.Path)
		}
	}
}

// pack exports.
func (r *race) pack(n int) {
	var archive bytes.Buffer
	path := filepath.Dir(aim(n))
	ctx, cancel := context.WithTimeout(r.t.Context(), 10*time.Second)
	defer cancel()
	_, err := r.tree.Export(ctx, path, &archive, core.CompressNone)
	r.count("export", err)
	// The target of a link may name what is outside, and is only told.
	r.see("export of "+path, strings.ReplaceAll(archive.String(), r.outside, ""))
}
