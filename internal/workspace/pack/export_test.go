package pack_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/internal/require"
)

// sample makes a tree with something of everything.
func (k *kit) sample(top string) {
	k.t.Helper()
	k.put(top+"/a.txt", "text\r\n")
	k.put(top+"/empty", "")
	k.put(top+"/sub/deep/er/f", strings.Repeat("x", 200_000))
	k.put(top+"/new\nline\x1b[31m", "D16")
	k.put(top+"/latin\xe9", "no UTF-8")
	k.put(top+"/"+strings.Repeat("long", 60)+"/"+strings.Repeat("name", 60), "long")
	k.put(top+"/closed/f", "closed")
	k.do(func() error {
		at := func(name string) string { return k.path(top + "/" + name) }
		err := errors.Join(
			os.Mkdir(at("nothing"), 0o700),
			os.Symlink("a.txt", at("link")), os.Symlink("/etc/passwd", at("absolute")), os.Symlink("../../..", at("up")), os.Symlink("loop", at("loop")),
			os.Link(at("a.txt"), at("sub/other-name")),
			os.Chmod(at("a.txt"), 0o755), os.Chmod(at("empty"), 0o400),
			os.Chtimes(at("a.txt"), time.Time{}, time.Unix(1_234_567_890, 123_456_789)),
			os.Chmod(at("closed"), 0o555),
		)
		for name, value := range map[string]string{"user.a": "v\x00\xff", "user.b=%3D": "b"} {
			if e := unix.Setxattr(at("sub"), name, []byte(value), 0); e != nil && !errors.Is(e, unix.EOPNOTSUPP) {
				err = errors.Join(err, e)
			}
			if e := unix.Setxattr(at("sub/deep/er/f"), name, []byte(value), 0); e != nil && !errors.Is(e, unix.EOPNOTSUPP) {
				err = errors.Join(err, e)
			}
		}
		return err
	})
}

func TestWhatIsPackedComesOutAsItWas(t *testing.T) {
	for _, c := range []core.Compression{core.CompressNone, core.CompressGzip, core.CompressZstd} {
		t.Run(string(c), func(t *testing.T) {
			k := newKit(t)
			k.sample("from")
			archive := k.export("from", c)
			if again := k.export("/workspace/from", c); !bytes.Equal(archive, again) {
				t.Error("a second archive has other bytes")
			}
			result, err := k.unpack("to", archive, generous)
			must(t, err)
			if want, got := k.tree("from"), k.tree("to"); !maps.Equal(want, got) {
				t.Errorf("got %q; want %q", got, want)
			}
			want := core.ImportResult{Files: 8, Directories: 7, Links: 4, Bytes: 6*2 + 200_000 + 3 + 8 + 4 + 6}
			if result.Skipped != nil || result.Files != want.Files || result.Directories != want.Directories || result.Links != want.Links || result.Bytes != want.Bytes {
				t.Errorf("got %+v; want %+v", result, want)
			}
			if os.Geteuid() == 0 {
				k.mustBeHis("to")
			}
		})
	}
}

// mustBeHis says that all below a directory is the environment's user's.
func (k *kit) mustBeHis(dir string) {
	k.t.Helper()
	must(k.t, filepath.WalkDir(k.path(dir), func(path string, _ os.DirEntry, err error) error {
		var st unix.Stat_t
		if err := errors.Join(err, unix.Lstat(path, &st)); err != nil {
			return err
		}
		if int(st.Uid) != k.uid || int(st.Gid) != k.uid {
			k.t.Errorf("%s is of %d:%d", path, st.Uid, st.Gid)
		}
		return nil
	}))
}

// names gives the names in a tar, which must be whole.
func names(t *testing.T, archive []byte) (all []string, comment string) {
	t.Helper()
	r := tar.NewReader(bytes.NewReader(archive))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all, comment
		}
		must(t, err)
		if h.Typeflag == tar.TypeXGlobalHeader {
			comment = h.PAXRecords["comment"]
			continue
		}
		all = append(all, h.Name)
	}
}

func TestDirectoriesOfAnySizeAreInOrderAndWhole(t *testing.T) {
	k := newKit(t)
	deep := strings.Repeat("d/", 80)
	k.put("big/"+deep+"end", "")
	var want []string
	k.do(func() error {
		for n := range 9000 { // more than are held
			if err := os.Link(k.path("big/"+deep+"end"), k.path(fmt.Sprintf("big/f%05d", n))); err != nil {
				return err
			}
			want = append(want, fmt.Sprintf("f%05d", n))
		}
		for n := range 300 {
			if err := os.WriteFile(k.path(fmt.Sprintf("big/%sf%05d", deep, n)), nil, 0o600); err != nil {
				return err
			}
			want = append(want, fmt.Sprintf("%sf%05d", deep, n))
		}
		return nil
	})
	for n := range 80 {
		want = append(want, strings.Repeat("d/", n+1))
	}
	want = append(want, deep+"end")
	slices.Sort(want)
	got, _ := names(t, k.export("big", core.CompressNone))
	if !slices.Equal(got, want) {
		t.Errorf("got %d names, want %d, in this order", len(got), len(want))
	}
}

func TestC20FIFOsSocketsAndDevicesAreSkippedAndListed(t *testing.T) {
	k := newKit(t)
	k.put("d/f", "x")
	k.do(func() error {
		return errors.Join(unix.Mkfifo(k.path("d/p\n"), 0o600), unix.Mknod(k.path("d/s"), unix.S_IFSOCK|0o600, 0))
	})
	want := []string{"d/p\n", "d/s"}
	if os.Geteuid() == 0 && unix.Mknod(k.path("d/a-device"), unix.S_IFCHR|0o666, 0x103) == nil {
		want = append([]string{"d/a-device"}, want...)
	}
	var b bytes.Buffer
	// What opened one would wait for its other end, and the test never end.
	skipped, err := k.Export(t.Context(), "d", &b, core.CompressNone)
	must(t, err)
	if !slices.Equal(skipped, want) {
		t.Errorf("skipped %q; want %q", skipped, want)
	}
	all, comment := names(t, b.Bytes())
	if !slices.Equal(all, []string{"f"}) || !strings.Contains(comment, `"d/p\n"`) || !strings.Contains(comment, `"d/s"`) {
		t.Errorf("it has %q, and says %q", all, comment)
	}
}

func TestTheListOfWhatIsSkippedIsBounded(t *testing.T) {
	k := newKit(t)
	k.do(func() error {
		for n := range 1005 {
			if err := unix.Mkfifo(k.path(fmt.Sprintf("%04d", n)), 0o600); err != nil {
				return err
			}
		}
		return nil
	})
	skipped, err := k.Export(t.Context(), "", io.Discard, core.CompressNone)
	must(t, err)
	if len(skipped) != 1001 || skipped[1000] != "... and 5 more" {
		t.Errorf("got %d, at last %q", len(skipped), skipped[len(skipped)-1])
	}
}

// meddler does something when the first bytes come.
type meddler struct {
	io.Writer
	meddle func()
}

func (m *meddler) Write(b []byte) (int, error) {
	if m.meddle != nil {
		m.meddle()
		m.meddle = nil
	}
	return m.Writer.Write(b)
}

func TestAFileThatChangesWhileItIsReadNeverMakesABadArchive(t *testing.T) {
	for _, c := range []struct {
		name string
		size int64
		ok   bool
	}{{"grows", 32 << 20, true}, {"shrinks", 10, false}} {
		t.Run(c.name, func(t *testing.T) {
			k := newKit(t)
			k.put("d/f", strings.Repeat("y", 8<<20))
			var b bytes.Buffer
			to := &meddler{&b, func() { must(t, os.Truncate(k.path("d/f"), c.size)) }}
			_, err := k.Export(t.Context(), "d", to, core.CompressNone)
			r := tar.NewReader(&b)
			h, _ := r.Next()
			n, readErr := io.Copy(io.Discard, r)
			if c.ok {
				must(t, errors.Join(err, readErr))
				if n != 8<<20 || h.Size != n {
					t.Errorf("it has %d bytes", n)
				}
				return
			}
			wantCode(t, err, core.CodeUnavailable)
			if readErr == nil {
				t.Error("what was written looks whole")
			}
		})
	}
}

func TestWhatCannotBePackedFailsBeforeTheFirstByte(t *testing.T) {
	k := newKit(t)
	k.put("f", "x")
	k.do(func() error { return os.Symlink("/etc", k.path("out")) })
	for path, code := range map[string]core.Code{
		"f": core.CodeNotADirectory, "nothing": core.CodeNotFound, "out": core.CodePathOutside,
		"../..": core.CodePathOutside, "/etc": core.CodePathOutside, "a\x00b": core.CodeInvalidArgument,
	} {
		var b bytes.Buffer
		_, err := k.Export(t.Context(), path, &b, core.CompressGzip)
		wantCode(t, err, code)
		if b.Len() > 0 {
			t.Errorf("%q: %d bytes were written", path, b.Len())
		}
	}
	_, err := k.Export(t.Context(), "", io.Discard, "lzma")
	wantCode(t, err, core.CodeInvalidArgument)
}

// What the environment's user may not read is not left out in silence.
func TestAFileThatMayNotBeReadEndsTheExport(t *testing.T) {
	k := newKit(t)
	k.put("f", "x")
	if k.uid == 0 && os.Geteuid() == 0 {
		require.Feature(t, "user", "root reads everything")
	}
	k.do(func() error { return os.Chmod(k.path("f"), 0) })
	var b bytes.Buffer
	_, err := k.Export(t.Context(), "", &b, core.CompressNone)
	wantCode(t, err, core.CodePermissionDenied)
}

func TestAnExportEndsWithItsContext(t *testing.T) {
	k := newKit(t)
	k.put("f", strings.Repeat("z", 4<<20))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := k.Export(ctx, "", &meddler{io.Discard, cancel}, core.CompressNone)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestMemoryDoesNotGrowWithAFile(t *testing.T) {
	k := newKit(t)
	k.put("big", "")
	must(t, os.Truncate(k.path("big"), 192<<20)) // all of it a hole, and three times what may be made
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var b bytes.Buffer
	_, err := k.Export(t.Context(), "", &b, core.CompressZstd)
	must(t, err)
	_, err = k.Import(t.Context(), "to", &b, core.ImportOptions{MaxBytes: 64 << 20, MaxFiles: 10})
	wantCode(t, err, core.CodeTooLarge)
	runtime.ReadMemStats(&after)
	if made := after.TotalAlloc - before.TotalAlloc; made > 64<<20 {
		t.Errorf("%d MiB of memory were made", made>>20)
	}
}

// A program inside swaps a directory and a link that leads out, all the time.
func TestD10ASwapNeverLeadsAnExportOut(t *testing.T) {
	k := newKit(t)
	must(t, os.MkdirAll(filepath.Join(k.home, "outside/sub"), 0o755))
	must(t, os.WriteFile(filepath.Join(k.home, "outside/sub/f"), []byte("SECRET"), 0o644))
	k.put("d/sub/f", "inside")
	k.do(func() error { return os.Symlink(filepath.Join(k.home, "outside"), k.path("l")) })
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-done:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, k.path("d"), unix.AT_FDCWD, k.path("l"), unix.RENAME_EXCHANGE)
			}
		}
	}()
	defer func() {
		close(done)
		<-stopped
	}()
	until, whole := time.Now().Add(2*time.Second), 0
	for time.Now().Before(until) {
		for _, path := range []string{"", "d", "d/sub"} {
			var b bytes.Buffer
			if _, err := k.Export(t.Context(), path, &b, core.CompressNone); err == nil {
				whole++
			}
			if bytes.Contains(b.Bytes(), []byte("SECRET")) {
				t.Fatal("the secret is in it")
			}
		}
	}
	if whole == 0 {
		t.Error("no export was ever whole")
	}
}

// A directory is found again as the parent of the one that is left; it must be itself.
func TestADirectoryThatIsMovedWhileItIsReadEndsTheExport(t *testing.T) {
	k := newKit(t)
	k.put("big/"+strings.Repeat("d/", 60)+"aaa", strings.Repeat("x", 1<<20))
	k.put("big/"+strings.Repeat("d/", 80)+"end", "")
	to := &meddler{io.Discard, func() {
		must(t, os.Rename(k.path("big/"+strings.Repeat("d/", 40)), k.path("elsewhere")))
	}}
	_, err := k.Export(t.Context(), "big", to, core.CompressNone)
	wantCode(t, err, core.CodeUnavailable)
}
