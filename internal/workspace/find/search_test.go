package find_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"envapi/core"
	"envapi/internal/workspace/find"
)

func TestSearchIsInTheOrderOfPathsAndLines(t *testing.T) {
	f := newFolder(t)
	var want []string
	files := map[string]string{}
	for i := range 500 {
		name := fmt.Sprintf("d%02d%sf%03d", i%20, []string{"/", ".", "-", "/x-", "/x/"}[i/20%5], i)
		files[name] = "x\nneedle one\n\nand needle\n"
	}
	f.holds(files)
	for _, e := range f.list(core.ListQuery{Limit: 10_000}).Entries {
		if e.Type == core.TypeFile {
			want = append(want, e.Path+":2:1:needle one", e.Path+":4:5:and needle")
		}
	}
	for _, limit := range []int{1, 7, 999, 1000, 2000} {
		r := f.search(core.SearchQuery{Pattern: "needle", Limit: limit})
		if got := found(r); got != strings.Join(want[:min(limit, len(want))], "|") {
			t.Errorf("limit %d: got %.200s", limit, got)
		}
		if r.TotalMatches != 1000 || r.FilesMatched != 500 || r.FilesSearched != 500 || (r.Truncated == "limit") != (limit < 1000) {
			t.Errorf("limit %d: got %d, %d, %d, %q", limit, r.TotalMatches, r.FilesMatched, r.FilesSearched, r.Truncated)
		}
	}
	r := f.search(core.SearchQuery{Pattern: "needle", MaxBytes: 1024})
	n := len(r.Matches)
	if r.Truncated != "bytes" || n == 0 || n > 1024/10 || found(r) != strings.Join(want[:n], "|") || r.TotalMatches != 1000 {
		t.Errorf("bytes: got %d, %q", n, r.Truncated)
	}
	r = f.search(core.SearchQuery{Pattern: "needle", NamesOnly: true, Limit: 3})
	if len(r.Matches) != 3 || r.Matches[2].Path+":2:1:needle one" != want[4] || r.Matches[2].Count != 2 || r.TotalMatches != 500 || r.Truncated != "limit" {
		t.Errorf("files: got %+v", r)
	}
}

func TestSearchOfOneLine(t *testing.T) {
	f := newFolder(t)
	f.holds(map[string]string{
		"crlf": "one\r\ntwo one\r\n", "--x": "a -77 b\n", "bom": "\xef\xbb\xbfstart\n", "none": "no end", "empty": "",
		"two": "x\na\nb\na b\n", "twice": "ab ab ab\n", "long": strings.Repeat("é", 2000) + "needle" + strings.Repeat("é", 2000),
	})
	for _, c := range []struct {
		q    core.SearchQuery
		want string
	}{
		{core.SearchQuery{Pattern: "one$"}, "crlf:1:1:one|crlf:2:5:two one"},
		{core.SearchQuery{Pattern: "-77"}, "--x:1:3:a -77 b"},
		{core.SearchQuery{Pattern: "-77", Path: "--x"}, "--x:1:3:a -77 b"},
		{core.SearchQuery{Pattern: "-77", Path: "--x", Globs: []string{"y"}}, ""},
		{core.SearchQuery{Path: "--x"}, "--x:0:0:"},
		{core.SearchQuery{Pattern: "^start$"}, "bom:1:1:start"},
		{core.SearchQuery{Pattern: "end$"}, "none:1:4:no end"},
		{core.SearchQuery{Pattern: `a\nb`, Multiline: true}, "two:2:1:a\nb"},
		{core.SearchQuery{Pattern: `One`, Fold: true, Literal: true, Globs: []string{"c*"}}, "crlf:1:1:one|crlf:2:5:two one"},
		{core.SearchQuery{Globs: []string{"/n*"}}, "none:0:0:"},
	} {
		if got := found(f.search(c.q)); got != c.want {
			t.Errorf("%+v: got %q", c.q, got)
		}
	}
	if m := f.search(core.SearchQuery{Pattern: "ab"}).Matches; len(m) != 1 || m[0].Count != 3 {
		t.Errorf("got %+v", m)
	}
	m := f.search(core.SearchQuery{Pattern: "needle"}).Matches[0]
	if !m.Cut || len(m.Text) > 512 || !strings.Contains(m.Text, "éneedleé") || m.Column != 4001 || strings.ToValidUTF8(m.Text, "") != m.Text {
		t.Errorf("got %+v", m)
	}
}

func TestContext(t *testing.T) {
	f := newFolder(t)
	f.holds(map[string]string{"f": "1\n2\r\nneedle\n4\n5\nneedle"})
	m := f.search(core.SearchQuery{Pattern: "needle", Context: 3}).Matches
	got := fmt.Sprintf("%q %q %q %q", m[0].Before, m[0].After, m[1].Before, m[1].After)
	if got != `["1" "2"] ["4" "5" "needle"] ["needle" "4" "5"] []` {
		t.Errorf("got %s", got)
	}
}

func TestSkippedFilesAreCounted(t *testing.T) {
	f := newFolder(t)
	f.holds(map[string]string{
		"bin": "needle\x00", "wide": "\xff\xfen\x00e\x00", "ok": "needle" + strings.Repeat("x", 8192) + "\x00", ".h": "needle",
		".gitignore": "ign\n*.o\n", "ign/a": "needle", "b.o": "needle", "latin": "\xe7 needle\n",
	})
	if err := os.Truncate(filepath.Join(f.dir, "ok"), 300<<20); err != nil {
		t.Fatal(err)
	}
	r := f.search(core.SearchQuery{Pattern: "needle"})
	if r.SkippedBinary != 2 || r.SkippedLarge != 1 || r.SkippedHidden != 2 || r.SkippedIgnored != 2 || found(r) != "latin:1:3:\xe7 needle" {
		t.Errorf("got %+v", r)
	}
	if r := f.search(core.SearchQuery{Pattern: "needle", Globs: []string{"*.md"}}); r.SkippedHidden != 0 || r.SkippedIgnored != 1 {
		t.Errorf("what the glob leaves out is counted: %+v", r)
	}
}

// TestALineOfAnyLengthIsBounded is C56.
func TestALineOfAnyLengthIsBounded(t *testing.T) {
	f := newFolder(t)
	f.holds(map[string]string{"f": "first\n" + strings.Repeat("x", 21<<20) + "needle" + strings.Repeat("y", 21<<20) + "needle\r\nlast needle\n"})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, q := range []core.SearchQuery{{Pattern: "needle"}, {Pattern: "n[e]{2}dle"}, {Pattern: "needle", Literal: true, Context: 2}} {
		r := f.search(q)
		if len(r.Matches) != 2 || r.TotalMatches != 2 {
			t.Fatalf("got %d matches, %d in all", len(r.Matches), r.TotalMatches)
		}
		if m := r.Matches[0]; !m.Cut || m.Line != 2 || m.Column != 21<<20+1 || !strings.Contains(m.Text, "xneedley") || len(m.Text) > 512 {
			t.Errorf("got %+v", m)
		}
		if m := r.Matches[1]; m.Line != 3 || m.Text != "last needle" || m.Column != 6 {
			t.Errorf("got %+v", m)
		}
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 20<<20 {
		t.Errorf("it took %d MiB", used>>20)
	}
}

// TestWindowsAreNotSeen: what is found in a file of many windows, with what is around
// it, is what a plain look at the whole says.
func TestWindowsAreNotSeen(t *testing.T) {
	f := newFolder(t)
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 6 {
		var text strings.Builder
		for text.Len() < 4*find.WindowBytes {
			if n := r.IntN(1 << (4 + r.IntN(12))); r.IntN(5) == 0 {
				text.WriteString(strings.Repeat("x", n) + "needle" + strings.Repeat("y", n))
			} else {
				text.WriteString(strings.Repeat("z", n))
			}
			text.WriteString("\n")
		}
		f.holds(map[string]string{"f": text.String()})
		got := f.search(core.SearchQuery{Pattern: "needle", Context: 3, Limit: 100_000, MaxBytes: 1 << 30}).Matches
		lines, k := strings.Split(text.String(), "\n"), 0
		for i, line := range lines {
			at := strings.Index(line, "needle")
			if at < 0 {
				continue
			}
			if k == len(got) {
				t.Fatalf("round %d: line %d is not found", round, i+1)
			}
			m := got[k]
			want := lines[max(0, i-3):i]
			if m.Line != i+1 || m.Column != at+1 || !strings.Contains(line, m.Text) || len(m.Before) != len(want) || len(m.After) != len(lines[i+1:min(i+4, len(lines)-1)]) {
				t.Fatalf("round %d, match %d: got line %d:%d, %d before, %d after; want %d:%d", round, k, m.Line, m.Column, len(m.Before), len(m.After), i+1, at+1)
			}
			for j := range want {
				if !strings.HasPrefix(want[j], m.Before[j]) || len(m.Before[j]) < min(500, len(want[j])) {
					t.Fatalf("round %d, match %d: a line before is %q", round, k, m.Before[j])
				}
			}
			k++
		}
		if k != len(got) {
			t.Fatalf("round %d: %d are found, %d are there", round, len(got), k)
		}
	}
}

// TestASearchWhoseTimeIsUpSaysSo, and one that nobody waits for fails.
func TestASearchWhoseTimeIsUpSaysSo(t *testing.T) {
	f := newFolder(t)
	files := map[string]string{}
	for i := range 200 {
		files[fmt.Sprintf("f%d", i)] = strings.Repeat("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n", 10_000)
	}
	f.holds(files)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	r, err := f.finder.Search(ctx, core.SearchQuery{Pattern: "(a|b|ab)*c", Limit: 10, MaxBytes: 1024})
	if err != nil || r.Truncated != "time" {
		t.Errorf("got %q, %v", r.Truncated, err)
	}
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := f.finder.Search(gone, core.SearchQuery{Pattern: "x", Limit: 10, MaxBytes: 1024}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestNoDescriptorIsLeft, however a search ends.
func TestNoDescriptorIsLeft(t *testing.T) {
	f := newFolder(t)
	files := map[string]string{}
	for i := range 3000 {
		files[fmt.Sprintf("d%d/f%d", i%100, i)] = "needle"
	}
	f.holds(files)
	open := func() int {
		all, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	before := open()
	for i := range 20 {
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i)*time.Millisecond)
		_, _ = f.finder.Search(ctx, core.SearchQuery{Pattern: "needle", Limit: 1, MaxBytes: 1024})
		_, _ = f.finder.List(ctx, core.ListQuery{Limit: 10_000})
		_, _ = f.finder.Search(ctx, core.SearchQuery{Path: "d1/f1", Pattern: "needle", Limit: 1, MaxBytes: 1024})
		cancel()
	}
	if after := open(); after > before {
		t.Errorf("%d descriptors were open, now %d", before, after)
	}
}

// TestAHostileTreeIsNotLeft: directories and links change places while they are looked
// through, and nothing outside is ever found.
func TestAHostileTreeIsNotLeft(t *testing.T) {
	f := newFolder(t)
	outside := t.TempDir()
	if err := os.Chmod(outside, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(outside, "f"), []byte("secret\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	f.holds(map[string]string{"d/f": "plain\n", "g": "plain\n", "p/s/t/f": "plain\n", "e/s/t/f": "other\n"})
	if err := os.Symlink("e", filepath.Join(f.dir, "q")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(f.dir, "l")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside+"/f", filepath.Join(f.dir, "k")); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-stop:
				return
			default:
			}
			for _, pair := range [][2]string{{"d", "l"}, {"g", "k"}, {"p", "q"}} {
				_ = os.Rename(filepath.Join(f.dir, pair[0]), filepath.Join(f.dir, "t"))
				_ = os.Rename(filepath.Join(f.dir, pair[1]), filepath.Join(f.dir, pair[0]))
				_ = os.Rename(filepath.Join(f.dir, "t"), filepath.Join(f.dir, pair[1]))
			}
		}
	}()
	defer func() {
		close(stop)
		<-ended
	}()
	deadline := time.Now().Add(2 * time.Second)
	for seen := 0; time.Now().Before(deadline) || seen == 0; {
		r := f.search(core.SearchQuery{Pattern: "secret|plain|other"})
		for _, m := range r.Matches {
			if m.Text != "plain" && !strings.HasPrefix(m.Path, "e/") {
				t.Fatalf("got %+v", m)
			}
			seen++
		}
		for _, e := range f.list(core.ListQuery{}).Entries {
			if e.Type == core.TypeFile && e.Size != 6 {
				t.Fatalf("got %+v", e)
			}
		}
	}
}
