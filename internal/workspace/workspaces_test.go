package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testID gives the id of the nth environment of a test.
func testID(n int) string { return fmt.Sprintf("env_%026d", n) }

func open(t testing.TB, dir string) *Workspaces {
	t.Helper()
	w, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w
}

func create(t testing.TB, w *Workspaces, id string) string {
	t.Helper()
	if err := w.Create(t.Context(), id, 0); err != nil {
		t.Fatal(err)
	}
	return w.Path(id)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func names(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	var found []string
	for _, e := range entries {
		found = append(found, e.Name())
	}
	return found
}

func wantNames(t testing.TB, dir string, want ...string) {
	t.Helper()
	if got := names(t, dir); !slices.Equal(got, want) {
		t.Fatalf("in %s there is %q; want %q", filepath.Base(dir), got, want)
	}
}

// waitFor waits until a thing has happened, a minute at most.
func waitFor(t testing.TB, what string, happened <-chan struct{}) {
	t.Helper()
	select {
	case <-happened:
	case <-time.After(time.Minute):
		t.Fatalf("%s did not happen within a minute", what)
	}
}

// remove removes a workspace and waits until its space is free.
func remove(t testing.TB, w *Workspaces, id string) {
	t.Helper()
	freed := make(chan struct{})
	must(t, w.Remove(t.Context(), id, func() { close(freed) }))
	waitFor(t, "the freeing of a workspace", freed)
}

func TestWhatIsNoIDIsRefused(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir)
	good := testID(1)
	for _, id := range []string{
		"", ".", "..", "env_", "x", good + "/", "../" + good, good[:29], good + "0", "env_" + strings.Repeat("A", 26),
		"env_" + strings.Repeat("0", 23) + "/..", "env_" + strings.Repeat("0", 25) + "\n", good + "\x00",
	} {
		ctx := t.Context()
		if w.Create(ctx, id, 0) == nil || w.Reset(ctx, id, 0) == nil || w.Remove(ctx, id, nil) == nil || w.Path(id) != "" {
			t.Errorf("%q was accepted", id)
		}
		if _, _, err := w.Usage(ctx, id, ""); err == nil {
			t.Errorf("%q was counted", id)
		}
	}
	wantNames(t, filepath.Join(dir, "workspaces"))
	wantNames(t, filepath.Join(dir, "trash"))
}

func TestFoldersAreClosedToOthers(t *testing.T) {
	dir := t.TempDir()
	defer unix.Umask(unix.Umask(0o177)) // whatever the umask
	w := open(t, dir)
	create(t, w, testID(1))
	for path, want := range map[string]os.FileMode{
		"workspaces": 0o711, "trash": 0o700, "workspaces/" + testID(1): 0o700,
	} {
		info, err := os.Stat(filepath.Join(dir, path))
		must(t, err)
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", path, got, want)
		}
	}
}

func TestCreateKeepsWhatIsThere(t *testing.T) {
	w := open(t, t.TempDir())
	path := create(t, w, testID(1))
	must(t, os.WriteFile(filepath.Join(path, "f"), nil, 0o600))
	create(t, w, testID(1))
	wantNames(t, path, "f")
	ids, err := w.IDs()
	must(t, err)
	if !slices.Equal(ids, []string{testID(1)}) {
		t.Errorf("the ids are %q", ids)
	}
	wantNames(t, w.trash.Name())
}

func TestCreateNeverTakesALinkForAFolder(t *testing.T) {
	w := open(t, t.TempDir())
	must(t, os.Symlink(t.TempDir(), w.Path(testID(1))))
	if w.Create(t.Context(), testID(1), 0) == nil {
		t.Fatal("a symbolic link was taken for the folder")
	}
}

func TestAFolderBelongsToItsUID(t *testing.T) {
	const uid = 123456
	w := open(t, t.TempDir())
	err := w.Create(t.Context(), testID(1), uid)
	if os.Geteuid() != 0 {
		if err == nil {
			t.Fatal("an ordinary user gave a folder away")
		}
		wantNames(t, w.dir)
		wantNames(t, w.trash.Name())
		return
	}
	must(t, err)
	must(t, w.Reset(t.Context(), testID(1), uid))
	var st unix.Stat_t
	must(t, unix.Stat(w.Path(testID(1)), &st))
	if st.Uid != uid || st.Gid != uid {
		t.Errorf("it belongs to %d:%d, want %d:%d", st.Uid, st.Gid, uid, uid)
	}
}

func TestResetSwapsInAnEmptyFolder(t *testing.T) {
	w := open(t, t.TempDir())
	path := create(t, w, testID(1))
	must(t, os.WriteFile(filepath.Join(path, "f"), nil, 0o600))
	held, err := os.Open(path) // as a process would that was left over
	must(t, err)
	defer held.Close()
	must(t, os.Chmod(path, 0))
	must(t, w.Reset(t.Context(), testID(1), 0))
	wantNames(t, path)
	must(t, w.Reset(t.Context(), testID(2), 0)) // there was none
	wantNames(t, w.Path(testID(2)))
	remove(t, w, testID(1)) // is told only when the old folder is gone, too
	wantNames(t, w.trash.Name())
}

func TestRemoveTellsWhenAllOfItIsFreed(t *testing.T) {
	w := open(t, t.TempDir())
	freed := false
	must(t, w.Remove(t.Context(), testID(1), func() { freed = true }))
	if !freed {
		t.Error("removing what is not there did not free at once")
	}
	path := create(t, w, testID(1))
	must(t, os.MkdirAll(filepath.Join(path, "a/b/c"), 0o700))
	remove(t, w, testID(1))
	wantNames(t, w.dir)
	wantNames(t, w.trash.Name())
	create(t, w, testID(1))
	wantNames(t, path)
}

func TestACanceledCallDoesNothing(t *testing.T) {
	w := open(t, t.TempDir())
	create(t, w, testID(1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if w.Create(ctx, testID(2), 0) == nil || w.Reset(ctx, testID(1), 0) == nil || w.Remove(ctx, testID(1), nil) == nil {
		t.Error("a canceled call was answered with success")
	}
	if _, _, err := w.Usage(ctx, testID(1), ""); !errors.Is(err, context.Canceled) {
		t.Errorf("Usage gave %v", err)
	}
	wantNames(t, w.dir, testID(1))
}

// What a crash left in the trash is emptied at the next start, and whoever asks
// for the environment hears when it is gone.
func TestTheTrashOfAnEarlierRunIsEmptied(t *testing.T) {
	dir := t.TempDir()
	must(t, open(t, dir).Close())
	trash := filepath.Join(dir, "trash")
	must(t, os.MkdirAll(filepath.Join(trash, testID(1)+".A/a/b/c/d"), 0o700))
	must(t, os.MkdirAll(filepath.Join(trash, testID(1)+".B"), 0o700))
	must(t, os.WriteFile(filepath.Join(trash, "stray"), nil, 0o600))
	w := open(t, dir)
	remove(t, w, testID(1))
	for _, name := range names(t, trash) {
		if strings.HasPrefix(name, testID(1)) {
			t.Errorf("%s is still there", name)
		}
	}
	remove(t, w, "env_"+strings.Repeat("z", 26)) // after the last of the queue
}

func TestCloseStopsAndTheNextOpenGoesOn(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir)
	path := create(t, w, testID(1))
	for i := range 1000 {
		must(t, os.MkdirAll(filepath.Join(path, fmt.Sprint(i), "a/b"), 0o700))
	}
	must(t, w.Remove(t.Context(), testID(1), func() { t.Error("freed was called before the end") }))
	began := time.Now()
	must(t, w.Close())
	if took := time.Since(began); took > time.Second {
		t.Errorf("Close took %v", took)
	}
	if len(names(t, filepath.Join(dir, "trash"))) == 0 {
		t.Fatal("all was gone before Close: the test is too small")
	}
	w = open(t, dir)
	remove(t, w, testID(1))
	wantNames(t, w.trash.Name())
}
