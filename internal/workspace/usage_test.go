package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"envapi/core"
)

// counted counts as Usage should, in the plainest way.
func counted(t *testing.T, root string) (size, files int64) {
	t.Helper()
	seen := map[uint64]bool{}
	must(t, filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		var st unix.Stat_t
		must(t, unix.Lstat(path, &st))
		if !seen[st.Ino] {
			seen[st.Ino] = true
			size, files = size+st.Blocks*512, files+1
		}
		return nil
	}))
	return size, files
}

func wantUsage(t *testing.T, w *Workspaces, size, files int64) {
	t.Helper()
	s, f, err := w.Usage(t.Context(), testID(1), "")
	if err != nil || s != size || f != files {
		t.Errorf("Usage gave %d bytes, %d files, %v; want %d, %d", s, f, err, size, files)
	}
}

func TestUsageOfAnEmptyFolderIsZero(t *testing.T) {
	w := open(t, t.TempDir())
	create(t, w, testID(1))
	wantUsage(t, w, 0, 0)
	if _, _, err := w.Usage(t.Context(), testID(2), ""); err == nil {
		t.Error("a folder was counted that is not there")
	}
}

func TestUsageCountsEachFileOnceAndFollowsNoLink(t *testing.T) {
	w := open(t, t.TempDir())
	path := create(t, w, testID(1))
	outside := t.TempDir()
	must(t, os.WriteFile(filepath.Join(outside, "big"), make([]byte, 1<<20), 0o600))
	for i := range 700 {
		dir := filepath.Join(path, fmt.Sprint(i%7), fmt.Sprint(i))
		must(t, os.MkdirAll(dir, 0o700))
		must(t, os.WriteFile(filepath.Join(dir, "file"), make([]byte, i*13), 0o600))
		must(t, os.Link(filepath.Join(dir, "file"), filepath.Join(path, fmt.Sprint("again", i))))
		must(t, os.Symlink(outside, filepath.Join(dir, "link")))
	}
	sparse, err := os.Create(filepath.Join(path, "sparse"))
	must(t, err)
	must(t, sparse.Truncate(4<<30))
	must(t, sparse.Close())
	must(t, unix.Mkfifo(filepath.Join(path, "fifo"), 0o600))
	size, files := counted(t, path)
	wantUsage(t, w, size, files)
	if size > 100<<20 || files != 7+700*3+2 {
		t.Errorf("the reference count is %d bytes, %d files", size, files)
	}
}

func TestUsageCountsSharesWhereTooManyFilesAreLinked(t *testing.T) {
	c := counter{linked: map[uint64]struct{}{}}
	for ino := range uint64(maxLinked) {
		c.linked[ino] = struct{}{}
	}
	for range 4 {
		c.add(&unix.Stat_t{Ino: maxLinked, Nlink: 4, Blocks: 8, Mode: unix.S_IFREG})
	}
	c.add(&unix.Stat_t{Ino: 1, Nlink: 4, Blocks: 8, Mode: unix.S_IFREG})
	if c.size != 4096 || len(c.linked) != maxLinked {
		t.Errorf("counted %d bytes with %d inodes in memory", c.size, len(c.linked))
	}
}

func TestUsageEndsWithItsContext(t *testing.T) {
	w := open(t, t.TempDir())
	_ = nest(t, create(t, w, testID(1)), "d", 10).Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Microsecond)
	defer cancel()
	if _, _, err := w.Usage(ctx, testID(1), ""); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Usage gave %v", err)
	}
}

// Whoever moves a directory while the count is in it must not lead it out of
// the folder.
func TestUsageIsNotLedOutOfTheFolder(t *testing.T) {
	dir := t.TempDir()
	deep := "inside" + strings.Repeat("/d", heldLevels)
	must(t, os.MkdirAll(filepath.Join(dir, deep, "a/b"), 0o700))
	must(t, os.Mkdir(filepath.Join(dir, "outside"), 0o700))
	top, err := unix.Open(filepath.Join(dir, "inside"), unix.O_DIRECTORY, 0)
	must(t, err)
	c := counter{dir: top}
	defer c.close()
	goDown := func(name string) {
		t.Helper()
		var st unix.Stat_t
		must(t, unix.Fstatat(c.dir, name, &st, 0))
		if went, err := c.down(entry{name: name}, st.Ino); !went || err != nil {
			t.Fatalf("down gave %v, %v", went, err)
		}
	}
	for range heldLevels {
		goDown("d")
	}
	held := c.above[heldLevels-1]
	goDown("a")
	goDown("b")
	must(t, os.Rename(filepath.Join(dir, deep, "a/b"), filepath.Join(dir, "outside/b")))
	must(t, c.up())
	if c.ino != held.ino || !c.partial || len(c.above) != heldLevels-1 {
		t.Errorf("it is %d levels deep in %d, partial %v; want %d", len(c.above), c.ino, c.partial, held.ino)
	}
}

// In the levels that are held nothing is missed, whatever is moved.
func TestUsageMissesNothingWhereUpperDirectoriesAreMoved(t *testing.T) {
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, "inside/a/b"), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "inside/a/b/file"), make([]byte, 8192), 0o600))
	parent, err := os.Open(dir)
	must(t, err)
	defer parent.Close()
	c := counter{linked: map[uint64]struct{}{}, buf: make([]byte, maxPiece)}
	moved := &movesOnce{from: filepath.Join(dir, "inside/a"), to: filepath.Join(dir, "away"), counter: &c}
	must(t, c.count(moved, parent, "inside"))
	if !moved.done || c.partial || c.files != 3 {
		t.Errorf("moved %v, partial %v, %d files", moved.done, c.partial, c.files)
	}
}

// movesOnce is a context that moves a directory once the count is in it: a count
// asks its context at every step.
type movesOnce struct {
	context.Context
	from, to string
	counter  *counter
	done     bool
}

func (m *movesOnce) Err() error {
	if len(m.counter.above) == 1 && !m.done {
		m.done = os.Rename(m.from, m.to) == nil
	}
	return nil
}

// What is nested without end must not keep the rest from being counted.
func TestMeasureSaysWhatItCouldNotCount(t *testing.T) {
	w := open(t, t.TempDir())
	path := create(t, w, testID(1))
	must(t, os.WriteFile(filepath.Join(path, "file"), make([]byte, 8192), 0o600))
	whole, err := w.Measure(t.Context(), testID(1), "")
	if err != nil || whole.Files != 1 || whole.Bytes < 8192 {
		t.Fatalf("got %+v, %v", whole, err)
	}
	_ = nest(t, path, "d", maxDepth+1).Close()
	part, err := w.Measure(t.Context(), testID(1), "")
	if !errors.Is(err, core.ErrPartial) || part.Files < maxDepth || part.Bytes < whole.Bytes {
		t.Errorf("got %+v, %v", part, err)
	}
	if _, _, err := w.Usage(t.Context(), testID(1), ""); !errors.Is(err, core.ErrPartial) {
		t.Errorf("Usage gave %v", err)
	}
	freed := make(chan struct{}) // the test's own removal could not go so deep
	must(t, w.Remove(t.Context(), testID(1), func() { close(freed) }))
	<-freed
}

func TestTemporaryFilesCountUntilTheyAreGone(t *testing.T) {
	w := open(t, t.TempDir())
	path := create(t, w, testID(1))
	must(t, os.WriteFile(filepath.Join(path, "file"), make([]byte, 8192), 0o600))
	temporary := filepath.Join(t.TempDir(), "tmp")
	must(t, os.MkdirAll(filepath.Join(temporary, "d"), 0o700))
	must(t, os.WriteFile(filepath.Join(temporary, "d", "own"), make([]byte, 8192), 0o600))
	must(t, os.Link(filepath.Join(path, "file"), filepath.Join(temporary, "again")))
	use, err := w.Measure(t.Context(), testID(1), temporary)
	if err != nil || use.Files != 3 || use.Bytes < 2*8192 || use.Bytes > 4*8192 {
		t.Errorf("got %+v, %v", use, err)
	}
	must(t, os.RemoveAll(temporary))
	if use, err := w.Measure(t.Context(), testID(1), temporary); err != nil || use.Files != 1 {
		t.Errorf("without the folder: %+v, %v", use, err)
	}
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(path, link))
	if use, err := w.Measure(t.Context(), testID(1), link); err == nil {
		t.Errorf("through a link: %+v", use)
	}
}

func TestMeasureDoesNotWaitForThoseWhoLook(t *testing.T) {
	w := open(t, t.TempDir())
	create(t, w, testID(1))
	for range countsAtOnce {
		w.counting <- struct{}{}
	}
	if _, err := w.Measure(t.Context(), testID(1), ""); err != nil {
		t.Error(err)
	}
}

func TestSpaceIsThatOfTheFileSystem(t *testing.T) {
	w := open(t, t.TempDir())
	space, err := w.Space()
	must(t, err)
	if space.Total.Bytes <= 0 || space.Free.Bytes > space.Total.Bytes || space.Free.Files > space.Total.Files {
		t.Errorf("got %+v", space)
	}
}

func TestCountsWaitForTheirTurnAndNoLongerThanTheyMay(t *testing.T) {
	w := open(t, t.TempDir())
	create(t, w, testID(1))
	for range countsAtOnce {
		w.counting <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := w.Usage(ctx, testID(1), ""); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	counted := make(chan error, 1)
	go func() {
		_, _, err := w.Usage(t.Context(), testID(1), "")
		counted <- err
	}()
	select {
	case err := <-counted:
		t.Errorf("it was counted out of turn, with %v", err)
	default:
	}
	<-w.counting
	if err := <-counted; err != nil {
		t.Error(err)
	}
}
