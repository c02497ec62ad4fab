package edit_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"envapi/core/edit"
	"envapi/internal/random"
	"envapi/internal/require"
)

func TestADiffShowsWhatChanged(t *testing.T) {
	for _, c := range []struct{ name, before, after, want string }{
		{"nothing", "a\n", "a\n", ""},
		{"a line", "a\nb\nc\n", "a\nB\nc\n", "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"},
		{"no end", "a", "a\n", "--- a/f\n+++ b/f\n@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+a\n"},
		{"from nothing", "", "a\n", "--- a/f\n+++ b/f\n@@ -0,0 +1,1 @@\n+a\n"},
		{"not text", "a\x00", "b\x00", "Binary files a/f and b/f differ\n"},
		{"not UTF-8", "\xE7a\n", "\xE7b\n", "--- a/f\n+++ b/f\n@@ -1,1 +1,1 @@\n-\uFFFDa\n+\uFFFDb\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := edit.Diff("f", []byte(c.before), []byte(c.after), 1<<16); got != c.want {
				t.Errorf("it is\n%s, want\n%s", got, c.want)
			}
		})
	}
}

func TestANameThatWouldNotStandInALineIsQuoted(t *testing.T) {
	want := "--- \"a/x\\012\\\"y\\\"\\\\\"\n+++ \"b/x\\012\\\"y\\\"\\\\\"\n@@"
	if got := edit.Diff("x\n\"y\"\\", []byte("a\n"), []byte("b\n"), 1<<16); !strings.HasPrefix(got, want) {
		t.Errorf("it is\n%s, want\n%s", got, want)
	}
}

func TestALongDiffIsCutAndSaysSo(t *testing.T) {
	after := strings.Repeat("line\n", 10_000)
	got := edit.Diff("f", nil, []byte(after), 1000)
	if len(got) > 1000 || !strings.HasSuffix(got, "bytes in all]\n") || !strings.Contains(got, "+line\n[cut: ") {
		t.Errorf("it has %d bytes and ends with %q", len(got), got[max(0, len(got)-60):])
	}
}

// TestADiffHasAHunkForEachChange, but where there are very many lines only one.
func TestADiffHasAHunkForEachChange(t *testing.T) {
	for _, c := range []struct{ lines, hunks int }{{1000, 2}, {150_000, 2}, {250_000, 1}} {
		var before strings.Builder
		for i := range c.lines {
			fmt.Fprintln(&before, i)
		}
		after := strings.NewReplacer("\n5\n", "\nfive\n", "\n900\n", "\nmany\n").Replace(before.String())
		shown := edit.Diff("f", []byte(before.String()), []byte(after), 1<<20)
		if n := strings.Count(shown, "\n@@ -"); n != c.hunks {
			t.Errorf("of %d lines it has %d hunks, want %d", c.lines, n, c.hunks)
		}
	}
}

// TestADiffOfHostileContentIsBounded: contents without lines that are there once,
// and with as many lines as can be.
func TestADiffOfHostileContentIsBounded(t *testing.T) {
	const size = 4 << 20
	random := func(seed uint32, end string) []byte {
		var b bytes.Buffer
		for x := seed; b.Len() < size; x = x*1664525 + 1013904223 {
			fmt.Fprintf(&b, "%c%s", 'a'+x>>29, end)
		}
		return b.Bytes()
	}
	for _, c := range []struct {
		name          string
		before, after []byte
	}{
		{"lines of few kinds", random(1, "\n"), random(2, "\n")},
		{"long lines of few kinds", random(1, strings.Repeat("x", 90)+"\n"), random(2, strings.Repeat("x", 90)+"\n")},
		{"empty lines, and one more", bytes.Repeat([]byte("\n"), size), bytes.Repeat([]byte("\n"), size+1)},
		{"one line", bytes.Repeat([]byte("a"), size), bytes.Repeat([]byte("b"), size)},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := edit.Diff("f", c.before, c.after, 1<<16)
			if len(got) > 1<<16 || got == "" {
				t.Errorf("it has %d bytes", len(got))
			}
		})
	}
}

// TestADiffIsOneThatPatchTakes, with the library's diff and with our own for what
// has very many lines.
func TestADiffIsOneThatPatchTakes(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		require.Feature(t, "git", "it takes diffs")
	}
	for _, diff := range []struct {
		name string
		of   func(before, after []byte) string
	}{
		{"the library's", func(before, after []byte) string { return edit.Diff("f", before, after, 1<<20) }},
		{"one hunk", func(before, after []byte) string { return edit.OneHunk("f", before, after, 1<<20) }},
	} {
		t.Run(diff.name, func(t *testing.T) {
			dir := t.TempDir()
			random.Check(t, func(t *rapid.T) {
				text := rapid.StringOfN(rapid.SampledFrom([]rune("abcd\n\n\n")), 0, 60, -1)
				before, after := []byte(text.Draw(t, "before")), []byte(text.Draw(t, "after"))
				if bytes.Equal(before, after) {
					return
				}
				if err := os.WriteFile(filepath.Join(dir, "f"), before, 0o600); err != nil {
					t.Fatal(err)
				}
				shown := diff.of(before, after)
				apply := exec.Command("git", "apply", "--unidiff-zero", "-")
				apply.Dir = dir
				apply.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
				apply.Stdin = strings.NewReader(shown)
				if out, err := apply.CombinedOutput(); err != nil {
					t.Fatalf("git apply: %v: %s\n%s", err, out, shown)
				}
				if got, err := os.ReadFile(filepath.Join(dir, "f")); err != nil || !bytes.Equal(got, after) {
					t.Fatalf("git makes %q of it (%v), want %q\n%s", got, err, after, shown)
				}
			})
		})
	}
}

func TestADiffIsText(t *testing.T) {
	random.Check(t, func(t *rapid.T) {
		before, after := rapid.SliceOf(rapid.Byte()).Draw(t, "before"), rapid.SliceOf(rapid.Byte()).Draw(t, "after")
		room := rapid.IntRange(64, 200).Draw(t, "limit")
		if got := edit.Diff("f", before, after, room); !utf8.ValidString(got) || len(got) > room {
			t.Fatalf("of %d bytes, valid: %v", len(got), utf8.ValidString(got))
		}
	})
}
