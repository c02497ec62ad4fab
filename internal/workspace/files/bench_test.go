package files_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// BenchmarkWrite is a small file that is replaced, durably; its peer is the same by
// hand: a file beside it, synced, renamed, and its directory synced.
func BenchmarkWrite(b *testing.B) {
	k := newKit(b)
	k.put("file", "old", 0o644)
	content := strings.Repeat("x", 1024)
	b.Run("ours", func(b *testing.B) {
		for b.Loop() {
			must(b, k.write("file", content))
		}
	})
	b.Run("by hand", func(b *testing.B) {
		dir, err := os.Open(k.path)
		must(b, err)
		defer dir.Close()
		for b.Loop() {
			f, err := os.Create(filepath.Join(k.path, "new"))
			must(b, err)
			_, err = io.WriteString(f, content)
			must(b, err)
			must(b, f.Sync())
			must(b, f.Close())
			must(b, os.Rename(f.Name(), filepath.Join(k.path, "file")))
			must(b, dir.Sync())
		}
	})
}

// BenchmarkOpen is the way to a small file and its content.
func BenchmarkOpen(b *testing.B) {
	k := newKit(b)
	k.put("dir/file", strings.Repeat("x", 1024), 0o644)
	for b.Loop() {
		if _, err := k.read("dir/file"); err != nil {
			b.Fatal(err)
		}
	}
}
