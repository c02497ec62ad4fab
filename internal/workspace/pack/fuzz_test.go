package pack_test

import (
	"archive/tar"
	"os"
	"path/filepath"
	"testing"

	"envapi/core"
)

// FuzzImport: an archive of any bytes changes nothing outside, passes no bound, and
// either is unpacked or leaves nothing.
func FuzzImport(f *testing.F) {
	seed := func(entries ...entry) { f.Add(raw(f, entries...), false) }
	seed(file("a", "b"), directory("d"), file("d/f", "x"), symlink("l", "d"), hardLink("h", "a"))
	seed(symlink("l", "../../.."), file("l/evil", "x"))
	seed(file("../evil", "x"))
	seed(special(tar.TypeChar, "null"), special(tar.TypeFifo, "p"))
	seed(file("there/f", "over"))
	long := file("n", "x")
	long.PAXRecords = map[string]string{"SCHILY.xattr.user.x": "y", "comment": "c"}
	long.Format = tar.FormatPAX
	f.Add(tarOf(f, long), true)
	f.Add(gzipOf(f, tarOf(f, file("a", "b"))), true)
	f.Add(zstdOf(f, tarOf(f, file("a", "b"))), false)
	k := newKit(f)
	must(f, os.WriteFile(filepath.Join(k.home, "canary"), []byte("canary"), 0o600))
	o := core.ImportOptions{MaxBytes: 4096, MaxFiles: 16}
	f.Fuzz(func(t *testing.T, archive []byte, overwrite bool) {
		k.t = t
		k.do(func() error {
			if err := writable(k.dir); err != nil {
				return err
			}
			for _, name := range []string{"there", "to"} {
				if err := os.RemoveAll(k.path(name)); err != nil {
					return err
				}
			}
			return nil
		})
		k.put("there/f", "before")
		for _, path := range []string{"to", "there"} {
			o.Overwrite = overwrite
			before := k.count(path)
			result, err := k.unpack(path, archive, o)
			entries, size := k.count(path).less(before)
			if err != nil && (entries != 0 || path == "to" && size != 0) {
				t.Errorf("it failed, and left %d entries: %v", entries, err)
			}
			if entries > int(o.MaxFiles)+1 || size > 2*o.MaxBytes || result.Bytes > o.MaxBytes {
				t.Errorf("%d entries with %d bytes were unpacked", entries, size)
			}
		}
		if all, err := os.ReadDir(k.home); err != nil || len(all) != 4 {
			t.Fatalf("outside is %v, %v", all, err)
		}
		if content, err := os.ReadFile(filepath.Join(k.home, "canary")); err != nil || string(content) != "canary" {
			t.Fatalf("the canary is %q, %v", content, err)
		}
	})
}

// amount is what a directory holds.
type amount struct {
	entries int
	bytes   int64
}

func (a amount) less(b amount) (entries int, bytes int64) {
	return a.entries - b.entries, a.bytes - b.bytes
}

// count counts, as the service: whatever modes are there now, that may read.
func (k *kit) count(dir string) (all amount) {
	_ = filepath.WalkDir(k.path(dir), func(_ string, d os.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		all.entries++
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			all.bytes += info.Size()
		}
		return nil
	})
	return all
}
