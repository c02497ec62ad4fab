package files_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/internal/require"
	"envapi/sandbox/forks"
)

// zeros are as many as are asked for.
type zeros struct{ left int64 }

func (z *zeros) Read(p []byte) (int, error) {
	if z.left == 0 {
		return 0, io.EOF
	}
	n := min(int64(len(p)), z.left)
	clear(p[:n])
	z.left -= n
	return int(n), nil
}

func TestMemoryDoesNotGrowWithAFile(t *testing.T) {
	k := newKit(t)
	const size = 256 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	put, err := k.tree.Stage(t.Context(), &zeros{size}, -1)
	must(t, err)
	_, err = k.tree.Commit(t.Context(), []core.Change{{Path: "large", Put: put}})
	must(t, err)
	f, err := k.tree.Open(t.Context(), "large")
	must(t, err)
	defer f.Close()
	tag, err := f.ETag(t.Context(), true)
	must(t, err)
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 4<<20 {
		t.Errorf("%d bytes were taken in all for a file of 256 MiB", grown)
	}
	if tag != put.ETag() || put.Size() != size {
		t.Errorf("the tag is %q, it was %q; the size %d", tag, put.ETag(), put.Size())
	}
}

func TestContentAboveTheLimitIsRefused(t *testing.T) {
	k := newKit(t)
	_, err := k.tree.Stage(t.Context(), &zeros{1 << 50}, 1<<20)
	wantCode(t, err, core.CodeTooLarge)
	put, err := k.tree.Stage(t.Context(), &zeros{1 << 20}, 1<<20)
	must(t, err)
	put.Discard()
	put.Discard()
	broken := errors.New("the connection is gone")
	_, err = k.tree.Stage(t.Context(), io.MultiReader(strings.NewReader("x"), &failing{broken}), -1)
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := k.tree.Stage(ctx, &zeros{1}, -1); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	k.wantClean()
}

type failing struct{ err error }

func (f *failing) Read([]byte) (int, error) { return 0, f.err }

// A process that was forked meanwhile has the staged file open for writing until it
// executes its program; a program that is run from the file before would be "busy".
func TestNobodyHasAFileOpenForWritingOnceItIsThere(t *testing.T) {
	k := newKit(t)
	begun := make(chan func(), 1)
	content := io.MultiReader(strings.NewReader("#!/bin/true\n"), &opening{func() { begun <- forks.Begin() }})
	put, err := k.tree.Stage(t.Context(), content, -1)
	must(t, err)
	grown := <-begun
	done := make(chan error, 1)
	go func() {
		_, err := k.tree.Commit(t.Context(), []core.Change{{Path: "program", Put: put}})
		done <- err
	}()
	select {
	case <-done:
		t.Fatal("it did not wait")
	case <-time.After(50 * time.Millisecond):
	}
	k.wantNone("program")
	grown()
	must(t, <-done)
	put = k.stage("x")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	defer forks.Begin()()
	_, err = k.tree.Commit(ctx, []core.Change{{Path: "program", Put: put}})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	k.wantClean()
}

// opening does something at its end.
type opening struct{ do func() }

func (o *opening) Read([]byte) (int, error) {
	o.do()
	return 0, io.EOF
}

func TestAFullDiskLeavesTheOldContent(t *testing.T) {
	dir := t.TempDir()
	err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=2m")
	if errors.Is(err, unix.EPERM) {
		require.Feature(t, "mounts", "this process may not mount: "+err.Error())
	}
	must(t, err)
	t.Cleanup(func() { must(t, unix.Unmount(dir, 0)) })
	k := openKit(t, dir)
	must(t, k.write("file", "old"))
	_, err = k.tree.Stage(t.Context(), &zeros{8 << 20}, -1)
	wantCode(t, err, core.CodeDiskFull)
	k.want("file", "old")
	k.wantClean()
	must(t, k.write("file", "new"))
}

func TestALargeSparseFile(t *testing.T) {
	k := newKit(t)
	const size = 4<<30 + 5
	k.inside(func() error {
		f, err := os.Create(k.path + "/sparse")
		if err != nil {
			return err
		}
		_, err = f.WriteAt([]byte("end"), size-3)
		return errors.Join(err, f.Close())
	})
	f, err := k.tree.Open(t.Context(), "sparse")
	must(t, err)
	defer f.Close()
	if f.Info().Size != size {
		t.Errorf("the size is %d", f.Info().Size)
	}
	part, err := f.Section(size-4, 4)
	must(t, err)
	if _, ok := part.(*io.LimitedReader); !ok {
		t.Errorf("the kernel cannot send a %T by itself", part)
	}
	if got, err := io.ReadAll(part); err != nil || !bytes.Equal(got, []byte("\x00end")) {
		t.Errorf("got %q, %v", got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.ETag(ctx, false); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestATagIsTheFirst24BytesOfTheHash(t *testing.T) {
	k := newKit(t)
	sum := sha256.Sum256([]byte("text"))
	want := base64.RawURLEncoding.EncodeToString(sum[:24])
	done, err := k.commit(core.Change{Path: "file"}, "text")
	must(t, err)
	if got := k.tag("file"); got != want || done.Info.ETag != want {
		t.Errorf("got %q and %q, want %q", got, done.Info.ETag, want)
	}
}
