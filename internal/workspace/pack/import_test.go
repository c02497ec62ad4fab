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
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/internal/require"
)

// untouched says that nothing was shown, inside or outside, and nothing left behind.
func (k *kit) untouched(before map[string]string) {
	k.t.Helper()
	if after := k.tree(""); !maps.Equal(before, after) {
		k.t.Errorf("the folder holds %q; want %q", after, before)
	}
	for _, dir := range []string{"staging/" + testID, "trash"} {
		left, err := os.ReadDir(filepath.Join(k.home, dir))
		if err != nil && !errors.Is(err, os.ErrNotExist) || len(left) > 0 {
			k.t.Errorf("%s holds %v, %v", dir, left, err)
		}
	}
	all, err := os.ReadDir(k.home)
	must(k.t, err)
	for _, e := range all {
		if !slices.Contains([]string{"staging", "trash", "workspaces"}, e.Name()) {
			k.t.Errorf("%s was made outside", e.Name())
		}
	}
}

func TestC62AHostileArchiveIsRefusedWhole(t *testing.T) {
	good := file("good", "good")
	for _, c := range []struct {
		name    string
		entries []entry
		says    string
	}{
		{"dots", []entry{good, file("../evil", "x")}, "../evil"},
		{"dots within", []entry{good, file("a/../../evil", "x")}, "a/../../evil"},
		{"dots that stay inside", []entry{good, file("a/../evil", "x")}, "a/../evil"},
		{"dots alone", []entry{directory("..")}, ".."},
		{"an absolute name", []entry{good, file("/evil", "x")}, "/evil"},
		{"a file through a link", []entry{good, symlink("l", "../../.."), file("l/evil", "x")}, "\"l\""},
		{"a file through an absolute link", []entry{good, symlink("l", "/tmp"), file("l/evil", "x")}, "\"l\""},
		{"a directory through a link", []entry{symlink("l", ".."), directory("l/evil")}, "l/evil"},
		{"a link as a directory", []entry{symlink("l", ".."), directory("l")}, "\"l\""},
		{"a link through a link", []entry{symlink("a", ".."), symlink("a/b", "/"), file("a/b/evil", "x")}, "\"a\""},
		{"deep through a link", []entry{symlink("a", ".."), file("a/b/c/evil", "x")}, "a/b/c"},
		{"a file below a file", []entry{good, file("good/evil", "x")}, "good"},
		{"a directory that becomes a link", []entry{directory("d"), symlink("d", ".."), file("d/evil", "x")}, "\"d\""},
		{"a hard link out", []entry{good, hardLink("evil", "../../canary")}, "../../canary"},
		{"an absolute hard link", []entry{hardLink("evil", "/etc/passwd")}, "/etc/passwd"},
		{"a hard link through a link", []entry{symlink("l", "/etc"), hardLink("evil", "l/passwd")}, "l/passwd"},
		{"a hard link to a link", []entry{symlink("l", "/etc/passwd"), hardLink("evil", "l")}, "\"l\""},
		{"a hard link to a directory", []entry{directory("d"), hardLink("evil", "d")}, "\"d\""},
		{"a hard link to what comes later", []entry{hardLink("evil", "good"), good}, "good"},
		{"a hard link to itself", []entry{good, hardLink("good", "good")}, "good"},
		{"a character device", []entry{good, special(tar.TypeChar, "null")}, "null"},
		{"a block device", []entry{good, special(tar.TypeBlock, "disk")}, "disk"},
		{"a part of a volume", []entry{good, special('M', "part")}, "part"},
		{"a file without a name", []entry{symlink("./.", "x")}, "./."},
		{"a long name", []entry{good, file(strings.Repeat("n", 256), "x")}, "256 bytes"},
		{"a long path", []entry{good, file(strings.Repeat("n/", 2048)+"f", "x")}, "4097 bytes"},
		{"a long link", []entry{good, symlink("l", strings.Repeat("t", 4096))}, "\"l\""},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := newKit(t)
			k.put("there/f", "before")
			must(t, os.Chtimes(k.path("there/f"), time0, time0))
			before := k.tree("")
			for _, path := range []string{"", "there", "new/er"} {
				result, err := k.unpack(path, raw(t, c.entries...), generous)
				e := wantCode(t, err, core.CodeInvalidArgument)
				if e.Facts["field"] != "archive" || !strings.Contains(e.Detail, c.says) {
					t.Errorf("it says %v of %q", e.Facts, e.Detail)
				}
				if result.Files != 0 {
					t.Errorf("got %+v", result)
				}
				k.untouched(before)
			}
		})
	}
}

func TestDamageIsRefusedWhole(t *testing.T) {
	k := newKit(t)
	whole := tarOf(t, directory("d"), file("d/f", strings.Repeat("x", 3000)), symlink("l", "d"))
	packed := map[string][]byte{"none": whole, "gzip": gzipOf(t, whole), "zstd": zstdOf(t, whole)}
	for name, archive := range packed {
		step := max(1, len(archive)/40)
		for n := 0; n < len(archive); n += step {
			if _, err := k.unpack("to", archive[:n], generous); err == nil {
				t.Errorf("%s: %d bytes of %d are taken for whole", name, n, len(archive))
			}
		}
		if _, err := k.unpack("to", archive[:len(archive)-1], generous); err == nil {
			t.Errorf("%s: all but a byte is taken for whole", name)
		}
		_, err := k.unpack("to", append(slices.Clone(archive), "garbage"...), generous)
		wantCode(t, err, core.CodeInvalidArgument)
		k.untouched(map[string]string{})
	}
	for name, archive := range map[string][]byte{
		"text": []byte(strings.Repeat("this is no archive\n", 100)), "zeros after two mebibytes": append(slices.Clone(whole), make([]byte, 2<<20)...),
		"a second tar": append(slices.Clone(whole), whole...), "a bad sum": damaged(whole, 150), "packed garbage": gzipOf(t, []byte(strings.Repeat("g", 2000))),
		"a flipped bit": damaged(packed["gzip"], len(packed["gzip"])-6), "nothing": nil,
	} {
		_, err := k.unpack("to", archive, generous)
		if e := wantCode(t, err, core.CodeInvalidArgument); e.Facts["field"] != "archive" {
			t.Errorf("%s: got %v", name, err)
		}
		k.untouched(map[string]string{})
	}
	must(t, second(k.unpack("to", append(slices.Clone(whole), make([]byte, 9*1024)...), generous))) // as tar(1) pads
}

func second(_ core.ImportResult, err error) error { return err }

func damaged(b []byte, at int) []byte {
	b = slices.Clone(b)
	b[at] ^= 0x10
	return b
}

func gzipOf(t testing.TB, b []byte) []byte {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write(b)
	must(t, errors.Join(err, w.Close()))
	return packed.Bytes()
}

func zstdOf(t testing.TB, b []byte, o ...zstd.EOption) []byte {
	var packed bytes.Buffer
	w, err := zstd.NewWriter(&packed, append(o, zstd.WithEncoderConcurrency(1))...)
	must(t, err)
	_, err = w.Write(b)
	must(t, errors.Join(err, w.Close()))
	return packed.Bytes()
}

func TestC62BombsStopAtTheBound(t *testing.T) {
	zeros := strings.Repeat("\x00", 1<<20)
	claim := file("huge", "")
	claim.Size = 1 << 50
	sparse := "GNU.sparse."
	for name, archive := range map[string]func(w io.Writer) error{
		"a gigabyte of zeros in a megabyte": func(w io.Writer) error {
			z := gzip.NewWriter(w)
			tw := tar.NewWriter(z)
			_ = tw.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "zeros", Size: 1 << 30})
			return write(tw, []byte(zeros), 1<<10)
		},
		"many files": func(w io.Writer) error {
			z := gzip.NewWriter(w)
			tw := tar.NewWriter(z)
			for n := range 1000 {
				_ = tw.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: fmt.Sprint(n), Size: 1 << 20})
				if err := write(tw, []byte(zeros), 1); err != nil {
					return err
				}
			}
			return nil
		},
		"many entries": func(w io.Writer) error {
			return write(w, tarOf(t, directory("d"))[:512], 1<<20)
		},
		"many directories in one name": func(w io.Writer) error {
			return write(w, tarOf(t, file(strings.Repeat("d/", 200)+"f", "")), 1)
		},
		"a claim": func(w io.Writer) error {
			return write(w, raw(t, claim), 1)
		},
		"a sparse claim": func(w io.Writer) error {
			e := file("sparse", "0\n")
			e.PAXRecords = map[string]string{sparse + "major": "1", sparse + "minor": "0", sparse + "name": "s", sparse + "realsize": "1000000000000"}
			return write(w, sparseTar(t, e), 1)
		},
		"long names without an entry": func(w io.Writer) error {
			z, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
			if err != nil {
				return err
			}
			block := tarOf(t, entry{Header: tar.Header{Typeflag: tar.TypeReg, Name: strings.Repeat("n", 200) + "/" + strings.Repeat("n", 900), Format: tar.FormatGNU}})
			return write(z, block[:512+1536], 1<<20)
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			r, w := io.Pipe()
			done := make(chan struct{})
			go func() {
				defer close(done)
				_ = archive(w)
				_ = w.Close()
			}()
			_, err := k.Import(t.Context(), "to", r, core.ImportOptions{MaxBytes: 8 << 20, MaxFiles: 100})
			_ = r.CloseWithError(io.ErrClosedPipe)
			<-done
			wantCode(t, err, core.CodeTooLarge)
			k.untouched(map[string]string{})
		})
	}
}

// write writes the same often, as long as somebody reads.
func write(w io.Writer, b []byte, times int) error {
	for range times {
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	return nil
}

func TestTheMemoryForUnpackingIsBounded(t *testing.T) {
	k := newKit(t)
	archive := zstdOf(t, tarOf(t, file("f", strings.Repeat("x", 3<<20))), zstd.WithWindowSize(256<<20), zstd.WithSingleSegment(false))
	_, err := k.unpack("to", archive, generous)
	wantCode(t, err, core.CodeInvalidArgument)
}

func TestWhatIsMeantIsUnpacked(t *testing.T) {
	k := newKit(t)
	setuid := file("./setuid", "x")
	setuid.Mode = 0o6755
	closed := directory("closed/")
	closed.Mode = 0o555
	sticky := directory("sticky")
	sticky.Mode = 0o1777
	attributes := file("attributes", "x")
	attributes.PAXRecords = map[string]string{"SCHILY.xattr.security.capability": "\x01", "SCHILY.xattr.trusted.x": "y", "SCHILY.xattr.system.x": "y"}
	result, err := k.unpack("up/to", tarOf(t,
		directory("./"), setuid, closed, file("closed/f", "in"), sticky, attributes,
		file("twice", "first"), file("twice", "second"), symlink("was-link", "/etc"), file("was-link", "file now"),
		file("original", "linked"), hardLink("sub/other", "./original"), special(tar.TypeFifo, "fifo"),
		symlink("out", "/etc/passwd"), symlink("up", "../../../../x"), file("a//b/./c", "clean"),
	), generous)
	must(t, err)
	if want := (core.ImportResult{Files: 8, Directories: 7, Links: 2, Bytes: 40}); result.Files != want.Files ||
		result.Directories != want.Directories || result.Links != want.Links || !slices.Equal(result.Skipped, []string{"fifo"}) {
		t.Errorf("got %+v; want %+v", result, want)
	}
	got := k.tree("up/to")
	for name, want := range map[string]string{
		"setuid": "-rwxr-xr-x", "closed": "dr-xr-xr-x", "sticky": "dtrwxrwxrwx", "out": "Lrwxrwxrwx /etc/passwd", "up": "Lrwxrwxrwx ../../../../x",
	} {
		if !strings.HasPrefix(got[name], want) {
			t.Errorf("%s is %q; want %q", name, got[name], want)
		}
	}
	for name, want := range map[string]string{"twice": "second", "was-link": "file now", "closed/f": "in", "sub/other": "linked", "a/b/c": "clean"} {
		if content, err := os.ReadFile(k.path("up/to/" + name)); string(content) != want {
			t.Errorf("%s holds %q, %v; want %q", name, content, err, want)
		}
	}
	var first, other unix.Stat_t
	must(t, errors.Join(unix.Stat(k.path("up/to/original"), &first), unix.Stat(k.path("up/to/sub/other"), &other)))
	if first.Ino != other.Ino {
		t.Error("a hard link is a file of its own")
	}
	for _, name := range []string{"security.capability", "trusted.x"} {
		if n, err := unix.Getxattr(k.path("up/to/attributes"), name, nil); err == nil {
			t.Errorf("it has %s, %d bytes", name, n)
		}
	}
	if os.Geteuid() == 0 {
		k.mustBeHis("up")
	}
}

func TestUnpackingOverADirectoryThatIsThere(t *testing.T) {
	k := newKit(t)
	for name, content := range map[string]string{"d/keep": "kept", "d/replace": "old", "d/sub/keep": "kept"} {
		k.put(name, content)
		must(t, os.Chtimes(k.path(name), time0, time0))
	}
	k.do(func() error {
		return errors.Join(os.Symlink("keep", k.path("d/link")), os.Symlink("sub", k.path("d/other")), os.Chmod(k.path("d/sub"), 0o750))
	})
	before := k.tree("")
	closed := directory("closed")
	closed.Mode = 0o500
	fresh := []entry{directory("./"), directory("sub"), closed, file("closed/f", "new"), file("sub/new", "new"), file("top", "new")}
	for name, entries := range map[string][]entry{
		"a file": {file("replace", "new")}, "a link": {file("link", "new")}, "a file, of a directory": {directory("replace")},
		"a link, of a directory": {file("other/f", "new")}, "a directory": {file("sub", "new")},
	} {
		_, err := k.unpack("d", tarOf(t, append(slices.Clone(fresh), entries...)...)[:], generous)
		if name == "a directory" {
			wantCode(t, err, core.CodeInvalidArgument) // it is a directory in the archive as well
			_, err = k.unpack("d", tarOf(t, entries...), core.ImportOptions{Overwrite: true, MaxBytes: 100, MaxFiles: 100})
		}
		if e := wantCode(t, err, core.CodeAlreadyExists); e.Facts["path"] == nil {
			t.Errorf("%s: it does not say where", name)
		}
		k.untouched(before)
	}
	over := generous
	over.Overwrite = true
	_, err := k.unpack("d", tarOf(t, append(fresh, file("replace", "new"), file("link", "new"))...), over)
	must(t, err)
	after := k.tree("d")
	for name, want := range map[string]string{"keep": "kept", "replace": "new", "sub/keep": "kept", "sub/new": "new", "closed/f": "new", "top": "new", "link": "new"} {
		if !strings.HasSuffix(after[name], " "+want) {
			t.Errorf("%s is %q; want %q", name, after[name], want)
		}
	}
	if !strings.HasPrefix(after["sub"], "drwxr-x---") || !strings.HasPrefix(after["closed"], "dr-x------") || !strings.HasPrefix(after["link"], "-rw-r--r--") {
		t.Errorf("got %q", after)
	}
	_, err = k.unpack("d", tarOf(t, file("other/f", "new")), over)
	wantCode(t, err, core.CodeAlreadyExists)
}

func TestWhereThereIsNoDirectoryToUnpackTo(t *testing.T) {
	k := newKit(t)
	k.put("f", "x")
	k.do(func() error {
		return errors.Join(os.Symlink("/etc", k.path("out")), os.Mkdir(k.path("real"), 0o700), os.Symlink("real", k.path("link")))
	})
	archive := tarOf(t, file("g", "x"))
	for path, code := range map[string]core.Code{
		"f": core.CodeNotADirectory, "f/sub": core.CodeNotADirectory, "out": core.CodePathOutside, "out/x": core.CodePathOutside, "..": core.CodePathOutside, "/etc": core.CodePathOutside,
	} {
		_, err := k.unpack(path, archive, generous)
		wantCode(t, err, code)
	}
	must(t, second(k.unpack("link", archive, generous)))
	must(t, second(k.unpack("empty", tarOf(t), generous)))
	if got := k.tree(""); got["real/g"] == "" || !strings.HasPrefix(got["empty"], "drwxr-xr-x") {
		t.Errorf("got %q", got)
	}
}

// broken fails with an error of its own, as a connection does.
type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }

func TestAnErrorOfTheSenderIsNotTheArchives(t *testing.T) {
	k := newKit(t)
	mine := errors.New("the line is dead")
	archive := gzipOf(t, tarOf(t, file("f", strings.Repeat("x", 1000))))
	_, err := k.Import(t.Context(), "to", io.MultiReader(bytes.NewReader(archive[:40]), broken{mine}), generous)
	if !errors.Is(err, mine) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := k.Import(ctx, "to", bytes.NewReader(archive), generous); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	k.untouched(map[string]string{})
}

func TestAFullDiskChangesNothing(t *testing.T) {
	home := t.TempDir()
	err := unix.Mount("tmpfs", home, "tmpfs", 0, "size=4m")
	if errors.Is(err, unix.EPERM) {
		require.Feature(t, "mounts", "this process may not mount: "+err.Error())
	}
	must(t, err)
	t.Cleanup(func() { must(t, unix.Unmount(home, 0)) })
	k := kitIn(t, home)
	k.put("d/f", "before")
	before := k.tree("")
	o := generous
	o.Overwrite = true
	_, err = k.unpack("d", tarOf(t, file("f", "after"), file("big", strings.Repeat("x", 6<<20))), o)
	wantCode(t, err, core.CodeDiskFull)
	k.untouched(before)
	must(t, second(k.unpack("d", tarOf(t, file("f", "after"), file("small", "x")), o)))
}
