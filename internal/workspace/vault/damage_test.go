package vault_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"

	"envapi/internal/workspace/vault"
)

// small makes a folder with some of everything.
func small(t testing.TB) string {
	t.Helper()
	uid, _ := users()
	dir := folder(t, filepath.Join(home(t), "folder"), uid)
	as(t, uid, func() error {
		in := func(name string) string { return filepath.Join(dir, name) }
		return errors.Join(
			os.MkdirAll(in("d/e"), 0o700), os.WriteFile(in("d/file"), []byte(strings.Repeat("content", 100)), 0o644),
			os.Link(in("d/file"), in("d/name")), os.Symlink("d", in("link")), unix.Mkfifo(in("fifo"), 0o600),
			os.WriteFile(in("hole"), nil, 0o600), os.Truncate(in("hole"), 1<<20),
			unix.Setxattr(in("d"), "user.x", []byte("y"), 0),
		)
	})
	return dir
}

func TestAnArchiveThatIsCutIsNoticed(t *testing.T) {
	uid, _ := users()
	archive := pack(t, small(t))
	for n := range archive {
		if n > 64 && n < len(archive)-64 && n%7 != 0 {
			continue
		}
		if _, err := unpack(t.Context(), t, bytes.NewReader(archive[:n]), uid); !errors.Is(err, vault.ErrDamaged) {
			t.Errorf("the first %d of %d bytes: %v", n, len(archive), err)
		}
	}
	longer := append(bytes.Clone(archive), "more"...)
	if _, err := unpack(t.Context(), t, bytes.NewReader(longer), uid); !errors.Is(err, vault.ErrDamaged) {
		t.Errorf("with more after it: %v", err)
	}
	if _, err := unpack(t.Context(), t, bytes.NewReader(append(bytes.Clone(archive), archive...)), uid); !errors.Is(err, vault.ErrDamaged) {
		t.Errorf("twice: %v", err)
	}
}

// TestAnArchiveWithAnotherBitIsNoticed: all but bits that say nothing.
func TestAnArchiveWithAnotherBitIsNoticed(t *testing.T) {
	uid, _ := users()
	dir := small(t)
	archive, before, noticed := pack(t, dir), describe(t, dir, uid), 0
	for n := range archive {
		bad := bytes.Clone(archive)
		bad[n] ^= 1 << rand.IntN(8)
		to, err := unpack(t.Context(), t, bytes.NewReader(bad), uid)
		switch {
		case errors.Is(err, vault.ErrDamaged):
			noticed++
		case err != nil:
			t.Errorf("byte %d is another: %v", n, err)
		default:
			wantSame(t, describe(t, to, uid), before)
		}
	}
	if noticed < len(archive)*9/10 {
		t.Errorf("of %d bytes %d were noticed", len(archive), noticed)
	}
}

// piece is an entry of an archive that is made by hand.
type piece struct {
	tar.Header
	content string
}

func global(key, value string) piece {
	return piece{Header: tar.Header{Typeflag: tar.TypeXGlobalHeader, Name: "envapi", PAXRecords: map[string]string{key: value}}}
}

func entry(kind byte, name string, depth int, records ...string) piece {
	p := piece{Header: tar.Header{Typeflag: kind, Name: name, Mode: 0o755, PAXRecords: map[string]string{vault.RecordDepth: fmt.Sprint(depth)}}}
	for i := 0; i < len(records); i += 2 {
		p.PAXRecords[records[i]] = records[i+1]
	}
	if kind == tar.TypeSymlink || kind == tar.TypeLink {
		p.Linkname = "to"
	}
	return p
}

func top() piece { return entry(tar.TypeDir, "./", 0) }

// with gives an entry content.
func with(p piece, content string) piece {
	p.content, p.Size = content, int64(len(content))
	return p
}

// whole puts the begin and the end around entries.
func whole(entries ...piece) []piece {
	all := append([]piece{global(vault.RecordVersion, "1")}, entries...)
	return append(all, global(vault.RecordEntries, fmt.Sprint(len(entries))))
}

func tarOf(t testing.TB, entries []piece) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := e.Header
		h.Format = tar.FormatPAX
		must(t, w.WriteHeader(&h))
		_, err := w.Write([]byte(e.content))
		must(t, err)
	}
	must(t, w.Close())
	return b.Bytes()
}

func compressed(t testing.TB, b []byte) io.Reader {
	t.Helper()
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	must(t, err)
	defer z.Close()
	return bytes.NewReader(z.EncodeAll(b, nil))
}

func TestWhatIsNeverPackedIsRefused(t *testing.T) {
	uid, _ := users()
	file := func(name string, depth int, records ...string) piece {
		return entry(tar.TypeReg, name, depth, records...)
	}
	outside := filepath.Join(home(t), "outside")
	for name, entries := range map[string][]piece{
		"nothing":                     {},
		"no begin":                    {top()},
		"another version":             {global(vault.RecordVersion, "2"), top(), global(vault.RecordEntries, "1")},
		"no end":                      {global(vault.RecordVersion, "1"), top()},
		"no entries":                  whole(),
		"fewer than it says":          {global(vault.RecordVersion, "1"), top(), global(vault.RecordEntries, "2")},
		"something after its end":     append(whole(top()), file("f", 1)),
		"no folder":                   whole(file("f", 1)),
		"two folders":                 whole(top(), top()),
		"a folder with a name":        whole(entry(tar.TypeDir, "d/", 0)),
		"a way up":                    whole(top(), file("../f", 1)),
		"a way up alone":              whole(top(), entry(tar.TypeDir, "..", 1)),
		"a way up below":              whole(top(), entry(tar.TypeDir, "d/", 1), entry(tar.TypeDir, "d/../", 2)),
		"a path from the root":        whole(top(), file("/f", 1)),
		"the host's path":             whole(top(), file(outside, strings.Count(outside, "/"))),
		"a name with a slash":         whole(top(), file("d/f", 1)),
		"another directory's":         whole(top(), entry(tar.TypeDir, "d/", 1), file("e/f", 2)),
		"below a link":                whole(top(), entry(tar.TypeSymlink, "d", 1), file("d/f", 2)),
		"below a file":                whole(top(), file("d", 1), file("d/f", 2)),
		"too deep":                    whole(top(), file("f", 2)),
		"no depth":                    whole(top(), file("f", 1, vault.RecordDepth, "x")),
		"a negative depth":            whole(top(), file("f", -1)),
		"a name twice":                whole(top(), file("f", 1), file("f", 1)),
		"a file over a link":          whole(top(), entry(tar.TypeSymlink, "f", 1), file("f", 1)),
		"a directory twice":           whole(top(), entry(tar.TypeDir, "d/", 1), entry(tar.TypeDir, "d/", 1)),
		"a name that is too long":     whole(top(), file(strings.Repeat("n", 256), 1)),
		"a device":                    whole(top(), entry(tar.TypeChar, "null", 1)),
		"a link to nothing before it": whole(top(), entry(tar.TypeLink, "f", 1, vault.RecordLink, "1")),
		"a link without a number":     whole(top(), entry(tar.TypeLink, "f", 1)),
		"a link by a path":            whole(top(), file("a", 1, vault.RecordLink, "1"), entry(tar.TypeLink, "f", 1, vault.RecordLink, "../1")),
		"a number twice":              whole(top(), file("a", 1, vault.RecordLink, "1"), file("b", 1, vault.RecordLink, "1")),
		"a foreign attribute":         whole(top(), file("a", 1, "SCHILY.xattr.security.capability", "x")),
		"a map that is not in order":  whole(top(), with(file("a", 1, vault.RecordSize, "100", vault.RecordMap, "50 1 0 1"), "xx")),
		"a map beyond the end":        whole(top(), with(file("a", 1, vault.RecordSize, "100", vault.RecordMap, "99 2"), "xx")),
		"a map of more":               whole(top(), with(file("a", 1, vault.RecordSize, "100", vault.RecordMap, "0 3"), "xx")),
		"a map of less":               whole(top(), with(file("a", 1, vault.RecordSize, "100", vault.RecordMap, "0 1"), "xx")),
		"a map with huge numbers":     whole(top(), with(file("a", 1, vault.RecordSize, "9223372036854775807", vault.RecordMap, "9223372036854775806 9223372036854775807"), "xx")),
		"a length of no number":       whole(top(), file("a", 1, vault.RecordSize, "-1")),
		"more of no file":             whole(top(), file("a", 1, vault.RecordMore, "1", vault.RecordSize, "1")),
		"more of another file":        whole(top(), file("a", 1), file("b", 1, vault.RecordMore, "1", vault.RecordSize, "0")),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := unpack(t.Context(), t, compressed(t, tarOf(t, entries)), uid); !errors.Is(err, vault.ErrDamaged) {
				t.Errorf("got %v", err)
			}
		})
	}
	if _, err := os.Lstat(outside); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it was made outside: %v", err)
	}
	good := whole(top(), entry(tar.TypeDir, "d/", 1), with(file("d/f", 2), "x"), with(file("g", 1, vault.RecordSize, "3", vault.RecordMap, "1 1"), "x"))
	if _, err := unpack(t.Context(), t, compressed(t, tarOf(t, good)), uid); err != nil {
		t.Errorf("a good one: %v", err)
	}
}

// FuzzUnpack: an archive of any bytes changes nothing outside and fails in no other way
// than that it is damaged, or that the kernel refuses what it asks for.
func FuzzUnpack(f *testing.F) {
	uid, _ := users()
	f.Add(tarOf(f, whole(top(), entry(tar.TypeDir, "d/", 1), with(entry(tar.TypeReg, "d/f", 2, vault.RecordLink, "1"), "x"), entry(tar.TypeLink, "l", 1, vault.RecordLink, "1"))))
	f.Add(tarOf(f, whole(top(), with(entry(tar.TypeReg, "g", 1, vault.RecordSize, "300", vault.RecordMap, "1 1 200 1"), "xy"), entry(tar.TypeFifo, "p", 1))))
	f.Add(tarOf(f, whole(top(), entry(tar.TypeSymlink, "s", 1), entry(tar.TypeReg, "s/../../x", 1))))
	f.Add(tarOf(f, whole(top(), entry(tar.TypeDir, "..", 1))))
	box := home(f)
	must(f, os.WriteFile(filepath.Join(box, "canary"), []byte("canary"), 0o600))
	outside := describe(f, box, 0)
	n := 0
	f.Fuzz(func(t *testing.T, archive []byte) {
		n++
		base := folder(t, filepath.Join(box, fmt.Sprint(n)), uid)
		d, err := os.Open(base)
		must(t, err)
		tree, err := vault.Unpack(t.Context(), compressed(t, archive), d, uid)
		if err == nil {
			must(t, tree.Close())
		}
		must(t, d.Close())
		opened(base)
		must(t, os.RemoveAll(base))
		now := describe(t, box, 0)
		now[""], outside[""] = "", "" // its time
		wantSame(t, now, outside)
	})
}

// cancelling ends a context after so many bytes.
type cancelling struct {
	left   int
	cancel func()
	io.Reader
	io.Writer
}

func (c *cancelling) spend(n int) {
	if c.left -= n; c.left <= 0 {
		c.cancel()
	}
}

func (c *cancelling) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b[:min(len(b), 100)])
	c.spend(n)
	return n, err
}

func (c *cancelling) Write(b []byte) (int, error) {
	c.spend(len(b))
	return len(b), nil
}

func TestItStopsWhereItIsNotWantedAnyMore(t *testing.T) {
	uid, to := users()
	dir := small(t)
	as(t, uid, func() error { // no compression makes this small
		noise := make([]byte, 4<<20)
		r := rand.NewChaCha8([32]byte{1})
		_, err := r.Read(noise)
		return errors.Join(err, os.WriteFile(filepath.Join(dir, "noise"), noise, 0o600))
	})
	archive := pack(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	sink := &cancelling{left: 1 << 20, cancel: cancel}
	if _, err := vault.Pack(ctx, hold(t, dir), sink); !errors.Is(err, context.Canceled) || sink.left < -1<<20 {
		t.Errorf("packing gave %v, %d bytes after that", err, -sink.left)
	}
	ctx, cancel = context.WithCancel(t.Context())
	if _, err := unpack(ctx, t, &cancelling{left: len(archive) / 2, cancel: cancel, Reader: bytes.NewReader(archive)}, uid); !errors.Is(err, context.Canceled) {
		t.Errorf("unpacking gave %v", err)
	}
	ctx, cancel = context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	if _, err := copied(ctx, t, dir, to); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("copying gave %v", err)
	}
}

func TestAFileThatIsCutShortIsNotPacked(t *testing.T) {
	uid, _ := users()
	dir := small(t)
	path := filepath.Join(dir, "z")
	as(t, uid, func() error {
		noise := make([]byte, 8<<20)
		r := rand.NewChaCha8([32]byte{2})
		_, err := r.Read(noise)
		return errors.Join(err, os.WriteFile(path, noise, 0o600))
	})
	cut := &cancelling{left: 1 << 20, cancel: func() { _ = os.Truncate(path, 10) }}
	if _, err := vault.Pack(t.Context(), hold(t, dir), cut); err == nil || !strings.Contains(err.Error(), "cut short") {
		t.Errorf("got %v", err)
	}
}
