package patch_test

import (
	"strings"
	"testing"

	"envapi/core/patch"
)

const (
	fileHead = "--- a/f\n+++ b/f\n"
	begin    = "*** Begin Patch\n"
	end      = "*** End Patch\n"
)

// numbered is a file of so many lines that are all different.
func numbered(n int, ending string) string {
	var s strings.Builder
	for i := range n {
		s.WriteString("line " + string(rune('a'+i%26)) + strings.Repeat("'", i/26) + ending)
	}
	return s.String()
}

func crlf(text string) string { return strings.ReplaceAll(text, "\n", "\r\n") }

// TestAPatchMakes has a case for each way in which patches say what is meant.
func TestAPatchMakes(t *testing.T) {
	for _, c := range []struct {
		name, patch   string
		before, after files
		note          string // what a note of the first section says
	}{
		{
			"a change in the middle", fileHead + "@@ -2,3 +2,3 @@ a heading\n line b\n-line c\n+LINE C\n line d\n",
			files{"f": numbered(5, "\n")},
			files{"f": "line a\nline b\nLINE C\nline d\nline e\n"},
			"",
		},
		{
			"times after the names", "--- f\t2026-01-02 03:04:05.000000000 +0100\n+++ f\t2026-01-02 03:04:06.000000000 +0100\n@@ -1 +1 @@\n-a\n+b\n",
			files{"f": "a\n"},
			files{"f": "b\n"},
			"",
		},
		{
			"times that only spaces part from the names", "--- f g 2026-01-02 03:04:05.000000000 +0100\n+++ f g 2026-01-02 03:04:06 +0100\n@@ -1 +1 @@\n-a\n+b\n",
			files{"f g": "a\n"},
			files{"f g": "b\n"},
			"",
		},
		{
			"names in quotes", "--- \"a/\\303\\274 \\\"x\\\"\"\n+++ \"b/\\303\\274 \\\"x\\\"\"\n@@ -1 +1 @@\n-a\n+b\n",
			files{"ü \"x\"": "a\n"},
			files{"ü \"x\"": "b\n"},
			"",
		},
		{
			"a backup's name before", "--- f.orig\n+++ f\n@@ -1 +1 @@\n-a\n+b\n",
			files{"f": "a\n"},
			files{"f": "b\n"},
			"",
		},
		{
			"prose before, between and after", "Here is the patch:\n\n" + fileHead + "@@ -1 +1 @@\n-a\n+b\nAnd now the other:\n--- a/g\n+++ b/g\n@@ -1 +1 @@\n-a\n+b\nThat is all.\n",
			files{"f": "a\n", "g": "a\n"},
			files{"f": "b\n", "g": "b\n"},
			"",
		},
		{
			"a mail of git format-patch", "From 1 Mon Sep 17 00:00:00 2001\nSubject: x\n---\n f | 2 +-\n 1 file changed\n\ndiff --git a/f b/f\nindex 1..2 100644\n" + fileHead + "@@ -1 +1 @@\n-a\n+b\n-- \n2.39.5\n\n",
			files{"f": "a\n"},
			files{"f": "b\n"},
			"",
		},
		{
			"such a mail with wrong counts", fileHead + "@@ -1,7 +1,9 @@\n-a\n+b\n-- \n2.39.5\n\n",
			files{"f": "a\n"},
			files{"f": "b\n"},
			"hunk 1 has 1 and 1 lines, and says 7 and 9",
		},
		{ // C36
			"counts that are too small", fileHead + "@@ -2,1 +2,1 @@\n line b\n-line c\n+LINE C\n line d\n",
			files{"f": numbered(5, "\n")},
			files{"f": "line a\nline b\nLINE C\nline d\nline e\n"},
			"hunk 1 has 3 and 3 lines, and says 1 and 1",
		},
		{ // C36
			"counts that are too large, with a hunk and a file behind", fileHead + "@@ -1,9 +1,9 @@\n-line a\n+LINE A\n line b\n@@ -5,1 +5,9 @@\n line e\n+new\n--- a/g\n+++ b/g\n@@ -1 +1 @@\n-a\n+b\n",
			files{"f": numbered(5, "\n"), "g": "a\n"},
			files{"f": "LINE A\nline b\nline c\nline d\nline e\nnew\n", "g": "b\n"},
			"hunk 1 has 2 and 2",
		},
		{
			"counts that are too small before an empty line", fileHead + "@@ -1,1 +1,1 @@\n-a\n+b\n\n-c\n+d\n",
			files{"f": "a\n\nc\n"},
			files{"f": "b\n\nd\n"},
			"hunk 1 has 3 and 3",
		},
		{
			"no numbers", fileHead + "@@ ... @@\n line b\n-line c\n+LINE C\n",
			files{"f": numbered(5, "\n")},
			files{"f": "line a\nline b\nLINE C\nline d\nline e\n"},
			"",
		},
		{
			"lines that begin as headers do", fileHead + "@@ -1,3 +1,3 @@\n--- x\n+++ y\n z\n z\n",
			files{"f": "-- x\nz\nz\n"},
			files{"f": "++ y\nz\nz\n"},
			"",
		},
		{
			"an empty line that lost its space", fileHead + "@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n",
			files{"f": "a\n\nb\n"},
			files{"f": "a\n\nc\n"},
			"",
		},
		{
			"a hunk that stands elsewhere", fileHead + "@@ -1,2 +1,2 @@\n line c\n-line d\n+LINE D\n",
			files{"f": numbered(5, "\n")},
			files{"f": "line a\nline b\nline c\nLINE D\nline e\n"},
			"hunk 1 stood at line 3, and says 1",
		},
		{
			"the stated one of several places", fileHead + "@@ -3,2 +3,2 @@\n a\n-b\n+c\n",
			files{"f": "a\nb\na\nb\na\nb\n"},
			files{"f": "a\nb\na\nc\na\nb\n"},
			"",
		},
		{
			"lines without any around them, at their line", fileHead + "@@ -2,0 +3,1 @@\n+new\n",
			files{"f": "a\nb\nc\n"},
			files{"f": "a\nb\nnew\nc\n"},
			"",
		},
		{ // C38: paths below another directory come as they are
			"more parts to strip", "--- x/y/f\n+++ x/y/f\n@@ -1 +1 @@\n-a\n+b\n",
			files{"x/y/f": "a\n"},
			files{"x/y/f": "b\n"},
			"",
		},
		{ // C39
			"a missing mark that the last line has no end", fileHead + "@@ -1,2 +1,2 @@\n a\n-b\n+c\n",
			files{"f": "a\nb"},
			files{"f": "a\nc"},
			"does not say that the file's last line has no line end",
		},
		{ // C39
			"the same, with a line added behind", fileHead + "@@ -1,2 +1,3 @@\n a\n b\n+c\n",
			files{"f": "a\nb"},
			files{"f": "a\nb\nc"},
			"does not say",
		},
		{ // C39
			"the mark before", fileHead + "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n",
			files{"f": "a"},
			files{"f": "a\n"},
			"",
		},
		{ // C39
			"the mark behind", fileHead + "@@ -1 +1 @@\n-a\n+a\n\\ No newline at end of file\n",
			files{"f": "a\n"},
			files{"f": "a"},
			"",
		},
		{ // C40
			"LF for a file with CRLF", fileHead + "@@ -1,3 +1,4 @@\n line a\n-line b\n+LINE B\n+new\n line c\n",
			files{"f": numbered(3, "\r\n")},
			files{"f": "line a\r\nLINE B\r\nnew\r\nline c\r\n"},
			"CRLF was kept",
		},
		{ // C40
			"CRLF for a file with LF", crlf(fileHead + "@@ -1,3 +1,3 @@\n line a\n-line b\n+LINE B\n line c\n"),
			files{"f": numbered(3, "\n")},
			files{"f": "line a\nLINE B\nline c\n"},
			"LF was kept",
		},
		{
			"CRLF for a file with CRLF", crlf(fileHead + "@@ -1,3 +1,3 @@\n line a\n-line b\n+LINE B\n line c\n"),
			files{"f": numbered(3, "\r\n")},
			files{"f": "line a\r\nLINE B\r\nline c\r\n"},
			"",
		},
		{
			"other line ends", fileHead + "@@ -1,2 +1,2 @@\n-a\r\n-b\r\n+a\n+b\n",
			files{"f": "a\r\nb\r\n"},
			files{"f": "a\nb\n"},
			"",
		},
		{
			"bytes that are not UTF-8", fileHead + "@@ -1,2 +1,2 @@\n \xE7\xE3o\n-a\n+b\n",
			files{"f": "\xE7\xE3o\na\n"},
			files{"f": "\xE7\xE3o\nb\n"},
			"",
		},
		{ // C48
			"a new file", "diff --git a/n b/n\nnew file mode 100755\n--- /dev/null\n+++ b/n\n@@ -0,0 +1,2 @@\n+a\n+b\n",
			files{},
			files{"n": "a\nb\n"},
			"",
		},
		{"an empty new file", "diff --git a/n b/n\nnew file mode 100644\nindex 0000000..e69de29\n", files{}, files{"n": ""}, ""},
		{"a new file of diff -N", "--- n\t1970-01-01 01:00:00.000000000 +0100\n+++ n\t2026-01-02 03:04:06 +0100\n@@ -0,0 +1 @@\n+a\n", files{}, files{"n": "a\n"}, ""},
		{"a new file that only its lines show", "--- n\n+++ n\n@@ -0,0 +1 @@\n+a\n", files{}, files{"n": "a\n"}, ""},
		{"lines for an empty file", "--- n\n+++ n\n@@ -0,0 +1 @@\n+a\n", files{"n": ""}, files{"n": "a\n"}, ""},
		{"a deleted file", "--- a/f\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n", files{"f": "a\nb\n"}, files{}, ""},
		{"an empty deleted file", "diff --git a/f b/f\ndeleted file mode 100644\nindex e69de29..0000000\n", files{"f": ""}, files{}, ""},
		{"a renamed file", "diff --git a/f b/g h\nsimilarity index 100%\nrename from f\nrename to g h\n", files{"f": "a\n"}, files{"g h": "a\n"}, ""},
		{
			"a renamed and changed file", "diff --git a/f b/g\nsimilarity index 50%\nrename from f\nrename to g\n--- a/f\n+++ b/g\n@@ -1 +1 @@\n-a\n+b\n",
			files{"f": "a\n"},
			files{"g": "b\n"},
			"",
		},
		{"files that change names", "diff --git a/f b/g\nrename from f\nrename to g\ndiff --git a/g b/f\nrename from g\nrename to f\n", files{"f": "1\n", "g": "2\n"}, files{"f": "2\n", "g": "1\n"}, ""},
		{"a copied file", "diff --git a/f b/g\ncopy from f\ncopy to g\n--- a/f\n+++ b/g\n@@ -1 +1 @@\n-a\n+b\n", files{"f": "a\n"}, files{"f": "a\n", "g": "b\n"}, ""},
		{"the same file twice", fileHead + "@@ -1 +1 @@\n-a\n+b\n" + fileHead + "@@ -1 +1 @@\n-b\n+c\n", files{"f": "a\n"}, files{"f": "c\n"}, ""},
		{"a patch whose last line has no end", fileHead + "@@ -1 +1 @@\n-a\n+b", files{"f": "a\n"}, files{"f": "b\n"}, ""},

		{"added", begin + "*** Add File: n\n+a\n+\n+b\n" + end, files{}, files{"n": "a\n\nb\n"}, ""},
		{"added and empty", begin + "*** Add File: n\n" + end, files{}, files{"n": ""}, ""},
		{"deleted", begin + "*** Delete File: f\n" + end, files{"f": "a\n"}, files{}, ""},
		{"updated", begin + "*** Update File: f\n@@\n line b\n-line c\n+LINE C\n line d\n" + end, files{"f": numbered(5, "\n")}, files{"f": "line a\nline b\nLINE C\nline d\nline e\n"}, ""},
		{"updated without @@, and moved", begin + "*** Update File: f\n*** Move to: g\n-line c\n+LINE C\n" + end, files{"f": numbered(3, "\n")}, files{"g": "line a\nline b\nLINE C\n"}, ""},
		{"only moved", begin + "*** Update File: f\n*** Move to: g\n" + end, files{"f": "a\n"}, files{"g": "a\n"}, ""},
		{ // C41
			"a line behind an anchor", begin + "*** Update File: f\n@@ def f\n+    new\n" + end,
			files{"f": "def e():\n    pass\ndef f():\n    pass\n"},
			files{"f": "def e():\n    pass\ndef f():\n    new\n    pass\n"},
			"",
		},
		{
			"lines that stand twice, behind an anchor", begin + "*** Update File: f\n@@ def f\n-    pass\n+    return\n" + end,
			files{"f": "def e():\n    pass\ndef f():\n    pass\n"},
			files{"f": "def e():\n    pass\ndef f():\n    return\n"},
			"",
		},
		{
			"anchors within another", begin + "*** Update File: f\n@@ class B\n@@ def f\n-    pass\n+    return\n" + end,
			files{"f": "class A\ndef f():\n    pass\nclass B\ndef f():\n    pass\n"},
			files{"f": "class A\ndef f():\n    pass\nclass B\ndef f():\n    return\n"},
			"",
		},
		{
			"an anchor that stands twice, with one that the lines come after", begin + "*** Update File: f\n@@ def f\n-    two\n+    TWO\n" + end,
			files{"f": "def f():\n    one\ndef f():\n    two\n"},
			files{"f": "def f():\n    one\ndef f():\n    TWO\n"},
			"",
		},
		{
			"lines at the end of the file", begin + "*** Update File: f\n@@\n a\n+b\n*** End of File\n" + end,
			files{"f": "a\nx\na\n"},
			files{"f": "a\nx\na\nb\n"},
			"",
		},
		{
			"lines at the end of a file without an end", begin + "*** Update File: f\n@@\n+b\n*** End of File\n" + end,
			files{"f": "a"},
			files{"f": "a\nb"},
			"does not say",
		},
		{
			"two hunks and files, with prose around", "Sure:\n```\n" + begin + "*** Update File: f\n@@\n-line a\n+LINE A\n@@\n-line e\n+LINE E\n\n*** Add File: n\n+x\n" + end + "```\n",
			files{"f": numbered(5, "\n")},
			files{"f": "LINE A\nline b\nline c\nline d\nLINE E\n", "n": "x\n"},
			"",
		},
		{
			"CRLF, for a file with LF", crlf(begin + "*** Update File: f\n@@\n-line b\n+LINE B\n" + end),
			files{"f": numbered(3, "\n")},
			files{"f": "line a\nLINE B\nline c\n"},
			"LF was kept",
		},
		{
			"LF, for a file with CRLF", begin + "*** Update File: f\n@@ line a\n-line b\n+LINE B\n" + end,
			files{"f": numbered(3, "\r\n")},
			files{"f": "line a\r\nLINE B\r\nline c\r\n"},
			"CRLF was kept",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := patch.Parse(c.patch, nil)
			if err != nil {
				t.Fatal(err)
			}
			got, result, err := c.before.patched(p)
			if err != nil {
				t.Fatal(err)
			}
			c.after.mustBe(t, got, "patched")
			if notes := strings.Join(result.Sections[0].Notes, "; "); !strings.Contains(notes, c.note) || c.note == "" && notes != "" {
				t.Errorf("the notes are %q, want %q", notes, c.note)
			}
			if result.Already {
				t.Error("it is said to be applied already")
			}
			// C49: the same patch twice.
			if c.name == "files that change names" {
				return // they do so again
			}
			again, result, err := got.patched(p)
			if err != nil {
				t.Fatalf("applied again: %v", err)
			}
			c.after.mustBe(t, again, "applied again")
			if !result.Already || len(result.Writes) > 0 {
				t.Errorf("applied again, it is not known as applied: %+v", result)
			}
		})
	}
}

// TestAPatchIsRejected: what does not fit, or is not clear, changes nothing and
// says where and why.
func TestAPatchIsRejected(t *testing.T) {
	f := func(text string) files { return files{"f": text} }
	for _, c := range []struct {
		name, patch string
		before      files
		file        string
		hunk        int
		reason      string
	}{
		{"it is none", "hello\n", nil, "", 0, "no file in it"},
		{"it is empty", "", nil, "", 0, "no file in it"},
		{"a hunk of no file", "@@ -1 +1 @@\n-a\n+b\n", nil, "", 0, "before any file is named"},
		{"no hunks", fileHead, f("a\n"), "f", 0, "no hunks"},
		{"no changes", fileHead + "@@ -1 +1 @@\n a\n", f("a\n"), "f", 1, "changes nothing"},
		{"the diff of a merge", "diff --cc f\nindex 1,2..3\n--- a/f\n+++ b/f\n@@@ -1,1 -1,1 +1,2 @@@\n", f("a\n"), "", 0, "merge"},
		{"a number that is none", fileHead + "@@ -99999999999 +1 @@\n-a\n+b\n", f("a\n"), "f", 1, "no number of a line"},
		{"no such file", fileHead + "@@ -1 +1 @@\n-a\n+b\n", nil, "f", 0, "no such file"},
		{"other lines", fileHead + "@@ -2 +2 @@\n-x\n+y\n", f("a\nb\n"), "f", 1, `line 2 there is "b", and the hunk has "x"`},
		{"C36: a line without a mark, and changes behind it", fileHead + "@@ -1,9 +1,9 @@\n-a\n+b\nc\n+d\n", f("a\nc\n"), "f", 1, `"c" is no line of a hunk`},
		{"C36: a wrong count and several places", fileHead + "@@ -9,5 +9,5 @@\n-a\n+b\n", f("a\na\n"), "f", 1, "several places, at lines 1, 2"},
		{"several places", fileHead + "@@ -2,2 +2,2 @@\n a\n-b\n+c\n", f("a\nb\na\nb\n"), "f", 1, "several places, at lines 1, 3"},
		{"lines that are not there, and none around them", fileHead + "@@ -1 +0,0 @@\n-x\n", f("a\n"), "f", 1, "not in the file"},
		{"the end of a line", fileHead + "@@ -2 +2 @@\n-ab\n+x\n", f("cab\nd\n"), "f", 1, "not in the file"},
		{"hunks that overlap", fileHead + "@@ -1,2 +1,2 @@\n a\n-b\n+c\n@@ -2,2 +2,2 @@\n b\n-d\n+e\n", f("a\nb\nd\n"), "f", 2, "in the order of the file and do not overlap"},
		{"C39: a mark within the file", fileHead + "@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n", f("a\nc\n"), "f", 1, "the file goes on behind it"},
		{"C39: a mark that the file does not bear out", fileHead + "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n", f("a\n"), "f", 1, "not in the file"},
		{"C40: LF for a file with both", fileHead + "@@ -1,2 +1,2 @@\n a\n-b\n+c\n", f("a\r\nb\r\nc\n"), "f", 1, "only the line end differs"},
		{"C42: other indentation", fileHead + "@@ -1,2 +1,2 @@\n     a\n-b\n+c\n", f("\ta\nb\n"), "f", 1, "only white space differs"},
		{"C44: the second file is bad", "--- a/g\n+++ b/g\n@@ -1 +1 @@\n-a\n+b\n" + fileHead + "@@ -1 +1 @@\n-x\n+y\n", files{"f": "a\n", "g": "a\n"}, "f", 1, "not in the file"},
		{"C46: a new file that is there", "diff --git a/f b/f\nnew file mode 100644\n--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+b\n", f("a\n"), "f", 0, "there already"},
		{"a new file of diff that is there", "--- f\n+++ f\n@@ -0,0 +1 @@\n+b\n", f("a\n"), "f", 0, "holds something"},
		{"a new file with old lines", "--- /dev/null\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n", nil, "f", 1, "lines of an old one"},
		{"a deleted file that keeps lines", "--- a/f\n+++ /dev/null\n@@ -1,2 +1 @@\n a\n-b\n", f("a\nb\n"), "f", 1, "keeps lines"},
		{"a deleted file that holds more", "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n", f("a\nb\n"), "f", 0, "holds more"},
		{"a link", "diff --git a/f b/f\nnew file mode 120000\n--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+b\n", nil, "f", 0, "links"},
		{"a submodule", "diff --git a/f b/f\nnew file mode 160000\n", nil, "f", 0, "submodules"},
		{"a renamed file onto another", "diff --git a/f b/g\nrename from f\nrename to g\n", files{"f": "a", "g": "b"}, "g", 0, "there already"},
		{"a renamed file that is not there", "diff --git a/f b/g\nrename from f\nrename to g\n", nil, "f", 0, "no such file"},
		{"binary data that is not there", "diff --git a/f b/f\nindex 1..2 100644\nBinary files a/f and b/f differ\n", f("\x00"), "f", 0, "git diff --binary"},
		{"damaged binary data", "diff --git a/f b/f\nindex 1..2 100644\nGIT binary patch\nliteral 5\nz000\n\n", f("\x00"), "f", 0, "damaged"},

		{"an added file that is there", begin + "*** Add File: f\n+b\n" + end, f("a\n"), "f", 0, "there already"},
		{"no end", begin + "*** Add File: f\n+b\n", nil, "", 0, "does not end with *** End Patch"},
		{"an unknown line", begin + "*** Rename File: f\n" + end, nil, "", 0, "is none of"},
		{"a line without a mark", begin + "*** Update File: f\n@@\nfoo\n+b\n" + end, f("foo\n"), "f", 1, "neither a space"},
		{"no place", begin + "*** Update File: f\n@@\n+b\n" + end, f("a\n"), "f", 1, "no lines that say where"},
		{"an anchor that is not there", begin + "*** Update File: f\n@@ def g\n+b\n" + end, f("a\n"), "f", 1, `@@ line "def g"`},
		{"an anchor that is there twice", begin + "*** Update File: f\n@@ def g\n+b\n" + end, f("def g\ndef g\n"), "f", 1, "at lines 1 and 2"},
		{"lines behind two anchors", begin + "*** Update File: f\n@@ def g\n-b\n" + end, f("def g\nb\ndef g\nb\n"), "f", 1, "several lines like its @@ line"},
		{"lines that are not the file's last", begin + "*** Update File: f\n@@\n a\n+b\n*** End of File\n" + end, f("a\nc\n"), "f", 1, "not in the file"},
		{"nothing to update", begin + "*** Update File: f\n" + end, f("a\n"), "f", 0, "nothing is to be changed"},
		{"C42: an update with other indentation", begin + "*** Update File: f\n@@\n-  a\n+  b\n" + end, f("\ta\n"), "f", 1, "only white space differs"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := patch.Parse(c.patch, nil)
			if err == nil {
				_, _, err = c.before.patched(p)
			}
			r := rejected(t, err)
			if r.File != c.file || r.Hunk != c.hunk || !strings.Contains(r.Reason, c.reason) {
				t.Errorf("it is rejected for file %q, hunk %d: %s; want %q, %d: %s", r.File, r.Hunk, r.Reason, c.file, c.hunk, c.reason)
			}
		})
	}
}
