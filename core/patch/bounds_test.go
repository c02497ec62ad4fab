package patch_test

import (
	"bytes"
	"compress/zlib"
	"encoding/ascii85"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"envapi/core/patch"
)

func TestPathsComeAsThePatchHasThem(t *testing.T) {
	two := 2
	zero := 0
	for _, c := range []struct {
		name, before, after string
		strip               *int
		want                string
	}{
		{"of git", "a/x/f", "b/x/f", nil, "x/f"},
		{"without prefixes", "x/f", "x/f", nil, "x/f"},
		{"without prefixes, below a", "a/f", "a/f", nil, "a/f"},
		{"of git, reversed", "b/f", "a/f", nil, "f"},
		{"of git's index and work tree", "i/x/f", "w/x/f", nil, "x/f"},
		{"of git's commit and index", "c/f", "i/f", nil, "f"},
		{"with a prefix that is to stay", "a/x/f", "b/x/f", &zero, "b/x/f"},
		{"with more to strip", "a/x/y/f", "b/x/y/f", &two, "y/f"},
		{"upward", "a/../../x", "b/../../x", nil, "../../x"},
		{"absolute", "/etc/passwd", "/etc/passwd", nil, "/etc/passwd"},
		{"absolute behind a prefix", "a//etc/passwd", "b//etc/passwd", nil, "/etc/passwd"},
		{"with bytes that are not UTF-8", "a/\xE7", "b/\xE7", nil, "\xE7"},
		{"in quotes", `"a/\347\303"`, `"b/\347\303"`, nil, "\xE7\xC3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := patch.Parse("--- "+c.before+"\n+++ "+c.after+"\n@@ -1 +1 @@\n-a\n+b\n", c.strip)
			if err != nil {
				t.Fatal(err)
			}
			if got := p.Files[0].New; got != c.want {
				t.Errorf("it is %q, want %q", got, c.want)
			}
		})
	}
	for text, want := range map[string]string{
		"diff --git i/f w/f\nnew file mode 100644\n--- /dev/null\n+++ w/f\n@@ -0,0 +1 @@\n+b\n": "f",
		"--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+b\n":                                           "f",
		"--- /dev/null\n+++ w/f\n@@ -0,0 +1 @@\n+b\n":                                           "w/f",
	} {
		if p, err := patch.Parse(text, nil); err != nil || p.Files[0].New != want {
			t.Errorf("%s: it creates %+v (%v), want %s", text, p, err, want)
		}
	}
	_, err := patch.Parse("--- f\n+++ f\n@@ -1 +1 @@\n-a\n+b\n", &two)
	if r := rejected(t, err); !strings.Contains(r.Reason, "no 2 parts") {
		t.Errorf("with too much to strip: %v", err)
	}
}

// TestModesAreHonoured is C48.
func TestModesAreHonoured(t *testing.T) {
	for _, c := range []struct {
		name, patch string
		before      files
		mode        string
		from        string
	}{
		{"a new program", "diff --git a/f b/f\nnew file mode 100755\n--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+a\n", nil, "755", ""},
		{"a new file", "diff --git a/f b/f\nnew file mode 100644\n--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+a\n", nil, "644", ""},
		{"a mode alone", "diff --git a/f b/f\nold mode 100644\nnew mode 100755\n", files{"f": "a\n"}, "755", ""},
		{"a mode and lines", "diff --git a/f b/f\nold mode 100755\nnew mode 100644\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n", files{"f": "a\n"}, "644", ""},
		{"lines of a program", "diff --git a/f b/f\nindex 1..2 100755\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n", files{"f": "a\n"}, "", ""},
		{"a renamed file", "diff --git a/g b/f\nrename from g\nrename to f\n", files{"g": "a\n"}, "", "g"},
		{"a renamed file and a mode", "diff --git a/g b/f\nold mode 100644\nnew mode 100755\nrename from g\nrename to f\n", files{"g": "a\n"}, "755", "g"},
		{"moved", begin + "*** Update File: g\n*** Move to: f\n@@\n-a\n+b\n" + end, files{"g": "a\n"}, "", "g"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := patch.Parse(c.patch, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, result, err := c.before.patched(p)
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(result.Writes, func(w patch.Write) bool { return w.Path == "f" })
			mode := ""
			if i >= 0 && result.Writes[i].Mode != nil {
				mode = fmt.Sprintf("%o", *result.Writes[i].Mode)
			}
			if i < 0 || mode != c.mode || result.Writes[i].ModeFrom != c.from {
				t.Errorf("the writes are %+v with mode %q, want %q from %q", result.Writes, mode, c.mode, c.from)
			}
		})
	}
}

// TestNamesAreQuotedInErrors is D16.
func TestNamesAreQuotedInErrors(t *testing.T) {
	const name = `"a/x\033[2J\ny"`
	for _, text := range []string{
		"--- " + name + "\n+++ " + name + "\n@@ -1 +1 @@\n-a\n+b\n",
		"diff --git a/f b/f\nrename from \"x\\033[2J\\ny\"\nrename to b\n",
		begin + "*** Update File: x\x1b[2J\n@@ \x1b[2J\n-\x1b[2J\n+b\n" + end,
	} {
		p, err := patch.Parse(text, nil)
		if err == nil {
			_, _, err = files{"b": "c\n", "x\x1b[2J": "c\n", "x\x1b[2J\ny": "c\n"}.patched(p)
		}
		if said := rejected(t, err).Error(); strings.ContainsAny(said, "\x1b\n") {
			t.Errorf("it says %q", said)
		}
	}
}

func TestWhatCannotBeReadStopsAPatch(t *testing.T) {
	p, err := patch.Parse(fileHead+"@@ -1 +1 @@\n-a\n+b\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	if _, err := p.Apply(func(string) ([]byte, bool, error) { return nil, false, broken }, limit); !errors.Is(err, broken) {
		t.Errorf("the error is %v", err)
	}
}

func TestAFileIsReadOnce(t *testing.T) {
	p, err := patch.Parse(fileHead+"@@ -1 +1 @@\n-a\n+b\n"+fileHead+"@@ -1 +1 @@\n-x\n+c\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	_, err = p.Apply(func(string) ([]byte, bool, error) { n++; return []byte("a\n"), true, nil }, limit)
	rejected(t, err)
	if n != 1 {
		t.Errorf("it was read %d times", n)
	}
}

// TestPartlyApplied: what is applied already in one file is left, and the rest
// is done.
func TestPartlyApplied(t *testing.T) {
	p, err := patch.Parse(fileHead+"@@ -1 +1 @@\n-a\n+b\n--- a/g\n+++ b/g\n@@ -1 +1 @@\n-a\n+b\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	got, result, err := files{"f": "b\n", "g": "a\n"}.patched(p)
	if err != nil {
		t.Fatal(err)
	}
	files{"f": "b\n", "g": "b\n"}.mustBe(t, got, "patched")
	if result.Already || !result.Sections[0].Already || result.Sections[1].Already || len(result.Writes) != 1 {
		t.Errorf("it is %+v", result)
	}
}

// TestWhatIsThereTwiceIsNotAppliedTwice: a hunk that stands elsewhere too must
// not be put there when it is applied where it says already.
func TestWhatIsThereTwiceIsNotAppliedTwice(t *testing.T) {
	p, err := patch.Parse(fileHead+"@@ -1,2 +1,3 @@\n a\n+x\n b\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	before := files{"f": "a\nb\nc\na\nb\n"}
	once, _, err := before.patched(p)
	if err != nil {
		t.Fatal(err)
	}
	twice, result, err := once.patched(p)
	if err != nil {
		t.Fatal(err)
	}
	files{"f": "a\nx\nb\nc\na\nb\n"}.mustBe(t, twice, "applied twice")
	if !result.Already {
		t.Error("it is not known as applied")
	}
}

func TestAPatchIsBounded(t *testing.T) {
	for _, c := range []struct{ name, text, reason string }{
		{"bytes", strings.Repeat("x", 16<<20+1), "16777216 are allowed"},
		{"lines", strings.Repeat("\n", 2_000_001), "more than 2000000 lines"},
		{"files", strings.Repeat(fileHead+"@@ -1 +1 @@\n-a\n+b\n", 1001), "more than 1000 files"},
		{"files of the other form", begin + strings.Repeat("*** Delete File: f\n", 1001) + end, "more than 1000 files"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := patch.Parse(c.text, nil)
			if r := rejected(t, err); !strings.Contains(r.Reason, c.reason) {
				t.Errorf("it is rejected because of %q", r.Reason)
			}
		})
	}
}

// packed is a chunk of a binary patch.
func packed(kind string, size int, data []byte) string {
	var z bytes.Buffer
	w, _ := zlib.NewWriterLevel(&z, zlib.BestCompression)
	w.Write(data)
	w.Close()
	var out strings.Builder
	fmt.Fprintf(&out, "%s %d\n", kind, size)
	const git = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
	for _, part := range slices.Collect(slices.Chunk(z.Bytes(), 52)) {
		length := byte('A' + len(part) - 1)
		if len(part) > 26 {
			length = byte('a' + len(part) - 27)
		}
		out.WriteByte(length)
		for word := range slices.Chunk(part, 4) {
			full := append(bytes.Clone(word), 0, 0, 0)[:4]
			coded := make([]byte, 5)
			if ascii85.Encode(coded, full); full[0]|full[1]|full[2]|full[3] == 0 {
				coded = []byte("!!!!!")
			}
			for _, c := range coded {
				out.WriteByte(git[c-'!'])
			}
		}
		out.WriteByte('\n')
	}
	return out.String() + "\n"
}

// TestABinaryPatchIsBounded: neither what is packed nor what a delta makes of it
// may grow without bound.
func TestABinaryPatchIsBounded(t *testing.T) {
	const head = "diff --git a/f b/f\nindex 1..2 100644\nGIT binary patch\n"
	source := bytes.Repeat([]byte("x"), 1<<20)
	silent := head + packed("literal", 5, make([]byte, 32<<20))
	// A delta that copies the whole of the source a thousand times.
	copies := []byte{0x80, 0x80, 0x40, 0x80, 0x80, 0x80, 0xF4, 0x03}
	for range 1000 {
		copies = append(copies, 0x80|0x40, 0x10)
	}
	for _, c := range []struct{ name, patch, reason string }{
		{"a bomb that says its size", head + packed("literal", 1<<30, make([]byte, 1<<20)), "are allowed"},
		{"a bomb that does not", silent, "damaged"},
		{"a delta", head + packed("delta", len(copies), copies), "it makes more than"},
		{"a delta for another file", head + packed("delta", 4, []byte{5, 1, 1, 'x'}), "does not fit"},
		{"a delta that is cut", head + packed("delta", 1, []byte{0x80}), "does not fit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := patch.Parse(c.patch, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = files{"f": string(source)}.patched(p)
			if r := rejected(t, err); !strings.Contains(r.Reason, c.reason) {
				t.Errorf("it is rejected because of %q, want %q", r.Reason, c.reason)
			}
		})
	}
	bomb, err := patch.Parse(silent, nil)
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, err = files{"f": "x"}.patched(bomb)
	rejected(t, err)
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 16<<20 {
		t.Errorf("unpacking a bomb takes %d bytes", grown)
	}
	p, err := patch.Parse(head+packed("literal", 5, []byte("hello")), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := files{"f": "x"}.patched(p)
	if err != nil || got["f"] != "hello" {
		t.Errorf("a small one makes %q, %v", got["f"], err)
	}
}

// TestEncodingsAreNotMixed: C8, C9.
func TestEncodingsAreNotMixed(t *testing.T) {
	for _, c := range []struct{ name, file, put, reason string }{
		{"UTF-16", "\xFF\xFE\na\n", "b", "UTF-16"},
		{"accents into Latin-1", "caf\xE9\na\n", "\u00e9", "not UTF-8"},
		{"ASCII into Latin-1", "caf\xE9\na\n", "b", ""},
	} {
		p, err := patch.Parse(fileHead+"@@ -2 +2 @@\n-a\n+"+c.put+"\n", nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = files{"f": c.file}.patched(p)
		if c.reason == "" && err != nil || c.reason != "" && !strings.Contains(rejected(t, err).Reason, c.reason) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestLinesThatMayBeThereByChance: a patch that shows no lines around its own says
// that it is taken as applied.
func TestLinesThatMayBeThereByChance(t *testing.T) {
	p, err := patch.Parse("--- a/f\n+++ b/f\n@@ -2,0 +3 @@\n+x\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	before := files{"f": "a\nb\nx\nc\n"}
	got, result, err := before.patched(p)
	if err != nil {
		t.Fatal(err)
	}
	before.mustBe(t, got, "patched")
	if notes := strings.Join(result.Sections[0].Notes, "; "); !result.Already || !strings.Contains(notes, "taken as applied") {
		t.Errorf("already: %v, notes %q", result.Already, notes)
	}
}

func TestAPatchMakesNoMoreThanIsAllowed(t *testing.T) {
	var text strings.Builder
	for i := range 100 {
		fmt.Fprintf(&text, "diff --git a/f b/g%d\ncopy from f\ncopy to g%d\n--- a/f\n+++ b/g%d\n@@ -1,1 +1,1 @@\n-a\n+b\n", i, i, i)
	}
	p, err := patch.Parse(text.String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = files{"f": "a\n" + strings.Repeat("x", 1<<20)}.patched(p)
	if r := rejected(t, err); !strings.Contains(r.Reason, "bytes that are allowed") {
		t.Errorf("it is rejected because of %q", r.Reason)
	}
}

// TestHostilePatchesAreNoMoreWork: neither a patch nor a file can be chosen so
// that a call takes time without bound. What is quadratic in these sizes does not
// end before the time that all tests have.
func TestHostilePatchesAreNoMoreWork(t *testing.T) {
	hunks := func(n int, hunk string) string { return fileHead + strings.Repeat(hunk, n) }
	as := strings.Repeat("a\n", 1<<20)
	distinct := func(n int) (patch, file string) {
		var p, f strings.Builder
		p.WriteString(fileHead)
		for i := range n {
			fmt.Fprintf(&p, "@@ -%d +1 @@\n-%d\n+x\n", 9_000_000, i)
			fmt.Fprintf(&f, "%d\n", i)
		}
		return p.String(), f.String() + as
	}
	offsets, many := distinct(20_000)
	for _, c := range []struct{ name, patch, file string }{
		{"half of the file at every line", fileHead + "@@ -9000000,1 +1,1 @@\n" + strings.Repeat("-a\n", 1<<18) + "+b\n", as},
		{"the same with another end", fileHead + "@@ -9000000,1 +1,1 @@\n" + strings.Repeat("-a\n", 1<<18) + "-b\n", as},
		{"hunks that stand elsewhere", offsets, many},
		{"hunks in their places", hunks(100_000, "@@ -1 +1 @@\n-a\n+b\n"), as},
		{"hunks with wrong counts", hunks(75_000, "@@ -1,9 +1,9 @@\n-a\n+b\n\n"), as},
		{"empty hunks", hunks(1_000_000, "@@ -1 +1 @@\n"), as},
		{"anchors", begin + "*** Update File: f\n" + strings.Repeat("@@ a\n", 250_000) + "+b\n" + end, as},
		{"hunks with anchors", begin + "*** Update File: f\n" + strings.Repeat("@@ a\n-a\n+b\n", 125_000) + end, as},
		{"names of spaces", "diff --git " + strings.Repeat(" ", 8<<20) + "\n", as},
		{"names of quotes", "diff --git " + strings.Repeat("\"", 8<<20) + "\n", as},
		{"heads of files", strings.Repeat("--- f\n", 1_000_000), as},
		{"modes", "diff --git a/f b/f\n" + strings.Repeat("new mode 100644\n", 1_000_000), as},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := patch.Parse(c.patch, nil)
			if err == nil {
				_, _, err = files{"f": c.file}.patched(p)
			}
			if err != nil && len(err.Error()) > 10_000 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
			if c.patch == offsets && (err == nil || !strings.Contains(err.Error(), "too much had to be looked through")) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}
