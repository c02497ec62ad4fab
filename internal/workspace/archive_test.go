package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/internal/require"
	"envapi/sandbox/fsuser"
)

// ample is room for everything.
var ample = core.DiskUse{Bytes: 1 << 50, Files: 1 << 40}

// archiveUID owns the folders of these tests where they are root.
func archiveUID() int {
	if os.Geteuid() == 0 {
		return testUID
	}
	return 0
}

// filled makes a folder with files in it.
func filled(t testing.TB, w *Workspaces, id string) string {
	t.Helper()
	must(t, w.Create(t.Context(), id, archiveUID()))
	path := w.Path(id)
	must(t, os.Chmod(filepath.Dir(w.dir), 0o711))
	must(t, os.Chmod(filepath.Dir(filepath.Dir(w.dir)), 0o711))
	must(t, fsuser.Do(archiveUID(), archiveUID(), func() error {
		in := func(name string) string { return filepath.Join(path, name) }
		return errors.Join(
			os.MkdirAll(in("d/e"), 0o700), os.WriteFile(in("d/file"), bytes.Repeat([]byte("x"), 100_000), 0o640),
			os.Link(in("d/file"), in("name")), os.Symlink("/etc", in("link")), unix.Mkfifo(in("fifo"), 0o600),
			unix.Mknod(in("socket"), unix.S_IFSOCK|0o600, 0),
			os.Chmod(in("d/e"), 0), os.Chmod(in("d/file"), 0),
		)
	}))
	return path
}

// shape says of a folder what archiving must not change.
func shape(t testing.TB, path string) string {
	t.Helper()
	var text strings.Builder
	must(t, filepath.WalkDir(path, func(at string, _ os.DirEntry, err error) error {
		if errors.Is(err, os.ErrPermission) {
			return nil // a directory that is closed, of which all but what is in it was told
		}
		info, err := os.Lstat(at)
		if err == nil && info.Mode().Type() != os.ModeSocket {
			fmt.Fprintln(&text, strings.TrimPrefix(at, path), info.Mode(), info.ModTime().UnixNano())
		}
		return err
	}))
	return text.String()
}

// eventuallyEmpty waits until the janitor has freed what is in the trash.
func eventuallyEmpty(t testing.TB, w *Workspaces) {
	t.Helper()
	for end := time.Now().Add(time.Minute); len(names(t, w.trash.Name())) > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("in the trash is still %q", names(t, w.trash.Name()))
		}
	}
}

func TestAWorkspaceGoesIntoAnArchiveAndComesBack(t *testing.T) {
	w := open(t, t.TempDir())
	id, uid := testID(1), archiveUID()
	path := filled(t, w, id)
	defer unix.Umask(unix.Umask(0o377)) // whatever the umask
	want := shape(t, path)
	usage, err := w.Measure(t.Context(), id, "")
	must(t, err)
	for range 2 { // in place of the one that is there
		a, err := w.Pack(t.Context(), id, uid)
		must(t, err)
		file := filepath.Join(w.archives.Name(), id+".tar.zst")
		info, err := os.Stat(file)
		must(t, err)
		if info.Mode() != 0o600 || info.Size() != a.Bytes || a.Content != usage || time.Since(a.At) > time.Hour {
			t.Errorf("it is %v, %d bytes, and was said to be %+v; the folder takes %+v", info.Mode(), info.Size(), a, usage)
		}
	}
	if got := shape(t, path); got != want {
		t.Errorf("packing has made it\n%s\nof\n%s", got, want)
	}
	wantNames(t, w.archives.Name(), id+".tar.zst")
	must(t, w.Vacate(t.Context(), id))
	wantNames(t, w.dir)
	eventuallyEmpty(t, w)
	must(t, w.Unpack(t.Context(), id, uid))
	if got := shape(t, path); got != want {
		t.Errorf("it came back as\n%s\nand was\n%s", got, want)
	}
	ids, err := w.ArchiveIDs()
	if err != nil || !slices.Equal(ids, []string{id}) {
		t.Errorf("the archives are %q, %v", ids, err)
	}
	must(t, w.DropArchive(t.Context(), id))
	must(t, w.DropArchive(t.Context(), id))
	if err := w.Unpack(t.Context(), id, uid); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without an archive: %v", err)
	}
	eventuallyEmpty(t, w)
}

func TestUnpackTakesThePlaceOfAFolder(t *testing.T) {
	w := open(t, t.TempDir())
	id, uid := testID(1), archiveUID()
	path := filled(t, w, id)
	must(t, os.Chmod(path, 0o500))
	want := shape(t, path)
	if _, err := w.Pack(t.Context(), id, uid); err != nil {
		t.Fatal(err)
	}
	must(t, os.Chmod(path, 0o700))
	must(t, os.WriteFile(filepath.Join(path, "new"), nil, 0o600))
	must(t, os.Chmod(path, 0))
	must(t, w.Unpack(t.Context(), id, uid))
	if got := shape(t, path); got != want {
		t.Errorf("it came back as\n%s\nand was\n%s", got, want)
	}
	must(t, os.Chmod(path, 0o700))
	eventuallyEmpty(t, w)
}

func TestRemoveTakesTheArchiveToo(t *testing.T) {
	w := open(t, t.TempDir())
	id := testID(1)
	filled(t, w, id)
	_, err := w.Pack(t.Context(), id, archiveUID())
	must(t, err)
	remove(t, w, id)
	wantNames(t, w.archives.Name())
	wantNames(t, w.dir)
}

func TestAForkIsAFolderOfItsOwn(t *testing.T) {
	w := open(t, t.TempDir())
	from, to, uid := testID(1), testID(2), archiveUID()
	path := filled(t, w, from)
	want, other := shape(t, path), uid
	if uid != 0 {
		other++
	}
	must(t, w.Copy(t.Context(), from, to, other, ample))
	if got := shape(t, w.Path(to)); got != want {
		t.Errorf("the copy is\n%s\nand the folder\n%s", got, want)
	}
	var st unix.Stat_t
	must(t, unix.Lstat(filepath.Join(w.Path(to), "d"), &st))
	if other != 0 && int(st.Uid) != other {
		t.Errorf("it belongs to %d", st.Uid)
	}
	must(t, os.Remove(filepath.Join(w.Path(to), "name")))
	if got := shape(t, path); got != want {
		t.Errorf("a change of the copy has made the folder\n%s", got)
	}
	eventuallyEmpty(t, w)
	if err := w.Copy(t.Context(), testID(3), testID(4), uid, ample); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
	wantNames(t, w.dir, from, to)
}

func TestADamagedArchiveLeavesTheFolder(t *testing.T) {
	w := open(t, t.TempDir())
	id, uid := testID(1), archiveUID()
	path := filled(t, w, id)
	_, err := w.Pack(t.Context(), id, uid)
	must(t, err)
	file := filepath.Join(w.archives.Name(), id+".tar.zst")
	content, err := os.ReadFile(file)
	must(t, err)
	must(t, os.WriteFile(file, content[:len(content)-5], 0o600))
	want := shape(t, path)
	err = w.Unpack(t.Context(), id, uid)
	if e := core.AsError(err); e.Code != core.CodeInternal || !strings.Contains(e.Error(), "damaged") {
		t.Errorf("got %v", err)
	}
	if got := shape(t, path); got != want {
		t.Errorf("the folder is\n%s\nand was\n%s", got, want)
	}
	eventuallyEmpty(t, w)
	must(t, w.Vacate(t.Context(), id))
	if w.Unpack(t.Context(), id, uid) == nil {
		t.Error("it was unpacked")
	}
	wantNames(t, w.dir)
	eventuallyEmpty(t, w)
	must(t, os.Remove(file))
	must(t, os.Symlink("/etc/passwd", file)) // by who could tamper with the data folder
	if err := w.Unpack(t.Context(), id, uid); !errors.Is(err, unix.ELOOP) {
		t.Errorf("a link: %v", err)
	}
}

func TestWhatIsCancelledLeavesNothing(t *testing.T) {
	w := open(t, t.TempDir())
	id, uid := testID(1), archiveUID()
	filled(t, w, id)
	ctx, cancel := context.WithCancel(t.Context())
	w.point = func(string) { t.Error("it was made") }
	cancel()
	if _, err := w.Pack(ctx, id, uid); !errors.Is(err, context.Canceled) {
		t.Errorf("packing gave %v", err)
	}
	wantNames(t, w.archives.Name())
	if err := w.Copy(ctx, id, testID(2), uid, ample); !errors.Is(err, context.Canceled) {
		t.Errorf("copying gave %v", err)
	}
	for _, bad := range []string{"", "..", id + "/", "../" + id} {
		if _, err := w.Pack(t.Context(), bad, uid); err == nil || w.Unpack(t.Context(), bad, uid) == nil ||
			w.Vacate(t.Context(), bad) == nil || w.DropArchive(t.Context(), bad) == nil ||
			w.Copy(t.Context(), bad, testID(2), uid, ample) == nil || w.Copy(t.Context(), id, bad, uid, ample) == nil {
			t.Errorf("%q was taken for an id", bad)
		}
	}
	wantNames(t, w.dir, id)
	eventuallyEmpty(t, w)
}

func TestOnAFullDiskNothingIsLeft(t *testing.T) {
	dir := t.TempDir()
	err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=3m")
	if errors.Is(err, unix.EPERM) {
		require.Feature(t, "mounts", "this process may not mount: "+err.Error())
	}
	must(t, err)
	t.Cleanup(func() { must(t, unix.Unmount(dir, 0)) })
	w, err := Open(dir)
	must(t, err)
	defer w.Close()
	id, uid := testID(1), archiveUID()
	must(t, w.Create(t.Context(), id, uid))
	noise, err := os.ReadFile("/proc/self/exe")
	must(t, err)
	must(t, os.WriteFile(filepath.Join(w.Path(id), "file"), noise[:2<<20], 0o600))
	must(t, os.Chown(filepath.Join(w.Path(id), "file"), uid, uid))
	if err := w.Copy(t.Context(), id, testID(2), uid, ample); core.AsError(err).Code != core.CodeDiskFull {
		t.Errorf("copying gave %v", err)
	}
	eventuallyEmpty(t, w)
	_, err = w.Pack(t.Context(), id, uid)
	must(t, err)
	if err := w.Unpack(t.Context(), id, uid); core.AsError(err).Code != core.CodeDiskFull {
		t.Errorf("unpacking gave %v", err)
	}
	eventuallyEmpty(t, w)
	must(t, w.DropArchive(t.Context(), id))
	must(t, os.WriteFile(filepath.Join(w.Path(id), "more"), noise[2<<20:2<<20+900<<10], 0o600))
	must(t, os.Chown(filepath.Join(w.Path(id), "more"), uid, uid))
	if _, err := w.Pack(t.Context(), id, uid); core.AsError(err).Code != core.CodeDiskFull {
		t.Errorf("packing gave %v", err)
	}
	wantNames(t, w.archives.Name())
	wantNames(t, w.dir, id)
}

const (
	archiveCrashDir   = "WORKSPACE_TEST_ARCHIVE_DIR"
	archiveCrashPoint = "WORKSPACE_TEST_ARCHIVE_POINT"
)

// TestArchiveCrash is the process that dies: at a point of what it does.
func TestArchiveCrash(t *testing.T) {
	dir, point := os.Getenv(archiveCrashDir), os.Getenv(archiveCrashPoint)
	if dir == "" {
		t.Skip("another test starts it")
	}
	w, err := Open(dir)
	must(t, err)
	what, at, _ := strings.Cut(point, " ")
	w.point = func(now string) {
		if _, now, _ := strings.Cut(now, " "); now == at {
			_ = unix.Kill(os.Getpid(), unix.SIGKILL)
			select {}
		}
	}
	switch what {
	case "pack":
		_, err = w.Pack(t.Context(), testID(1), archiveUID())
	case "unpack":
		err = w.Unpack(t.Context(), testID(1), archiveUID())
	case "copy":
		err = w.Copy(t.Context(), testID(1), testID(2), archiveUID(), ample)
	}
	t.Errorf("it did not die: %v", err)
}

// TestACrashLeavesTheOldOrTheNew: and nothing else once the folders are opened again.
func TestACrashLeavesTheOldOrTheNew(t *testing.T) {
	for _, point := range []string{"pack written", "pack synced", "pack moved", "unpack made", "unpack synced", "unpack moved", "copy made", "copy synced", "copy moved"} {
		t.Run(point, func(t *testing.T) {
			dir := t.TempDir()
			w := open(t, dir)
			id := testID(1)
			path := filled(t, w, id)
			old := shape(t, path)
			_, err := w.Pack(t.Context(), id, archiveUID())
			must(t, err)
			must(t, os.WriteFile(filepath.Join(path, "later"), nil, 0o600))
			must(t, os.Chown(filepath.Join(path, "later"), max(archiveUID(), os.Geteuid()), -1))
			later := shape(t, path)
			must(t, w.Close())
			crash(t, dir, point)
			w = open(t, dir)
			eventuallyEmpty(t, w)
			wantNames(t, w.archives.Name(), id+".tar.zst")
			want := later
			if point == "unpack moved" {
				want = old
			}
			if got := shape(t, path); got != want {
				t.Errorf("the folder is\n%s\nand not\n%s", got, want)
			}
			if point == "copy moved" {
				wantNames(t, w.dir, id, testID(2))
				want = later
				if got := shape(t, w.Path(testID(2))); got != want {
					t.Errorf("the copy is\n%s\nand not\n%s", got, want)
				}
			} else {
				wantNames(t, w.dir, id)
			}
			must(t, w.Unpack(t.Context(), id, archiveUID()))
			want = old
			if point == "pack moved" {
				want = later
			}
			if got := shape(t, path); got != want {
				t.Errorf("the archive has\n%s\nand not\n%s", got, want)
			}
			eventuallyEmpty(t, w)
		})
	}
}

func crash(t *testing.T, dir, point string) {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	cmd := exec.Command(self, "-test.run=^TestArchiveCrash$", "-test.count=1")
	cmd.Env = append(os.Environ(), archiveCrashDir+"="+dir, archiveCrashPoint+"="+point)
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("it ended with %v: %s", err, out)
	}
}
