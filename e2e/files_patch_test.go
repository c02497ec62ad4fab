package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// patched is a case of a patch to the file f.
func patched(before, after, patch string) func(*testing.T, folder) {
	return func(t *testing.T, f folder) {
		t.Helper()
		f.holds(t, "f", before)
		f.do(t, "apply_patch", object{"cwd": "", "patch": patch})
		f.has(t, "f", after)
	}
}

// orRejected is one that may also be refused, in words, with nothing changed.
func orRejected(before, after, patch string) func(*testing.T, folder) {
	return func(t *testing.T, f folder) {
		t.Helper()
		f.holds(t, "f", before)
		answer, err := f.door.call(t.Context(), "apply_patch", f.in(object{"cwd": "", "patch": patch}))
		if err == nil {
			f.has(t, "f", after)
			return
		}
		if p := isProblem(t, "patch_rejected", "the patch", answer, err); p.File == "" || p.Hunk == nil || p.Detail == "" {
			t.Errorf("the refusal names file %q and hunk %v: %s", p.File, p.Hunk, p.Detail)
		}
		f.has(t, "f", before)
	}
}

// refusedPatch changes nothing.
func refusedPatch(codes, before, patch string) func(*testing.T, folder) {
	return func(t *testing.T, f folder) {
		t.Helper()
		f.holds(t, "f", before)
		f.run(t, "mkdir -p sub; ln -sfn /etc .git; find . | sort > ../before-$(basename $PWD)")
		p := f.fails(t, codes, "apply_patch", object{"cwd": "", "patch": patch})
		if p.Code == "patch_rejected" && p.File == "" && strings.Contains(patch, "f\n") {
			t.Errorf("the refusal names no file: %s", p.Detail)
		}
		f.has(t, "f", before)
		f.run(t, "find . | sort | cmp - ../before-$(basename $PWD); rm ../before-$(basename $PWD)")
	}
}

const header = "--- a/f\n+++ b/f\n"

// begin makes a patch of the other form.
func begin(lines ...string) string {
	return "*** Begin Patch\n" + strings.Join(lines, "\n") + "\n*** End Patch\n"
}

const python = "import os\n\nclass A:\n    def f(self):\n        return 1\n\n    def g(self):\n        return 1\n"

var patchCases = []fileCase{
	{"a plain one", patched("a\nb\nc\n", "a\nB\nc\n", header+"@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n")},
	{"prose around, names without prefixes, times after names", patched("a\nb\n", "a\nc\n", "I changed b:\n\n--- f\t2026-01-01 00:00:00\n+++ f\t2026-01-02 00:00:00\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n")},
	{"at another line, once", patched("0\n0\na\nb\nc\n", "0\n0\na\nB\nc\n", header+"@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n")},
	{"at another line, twice", refusedPatch("patch_rejected", "0\na\nb\n0\na\nb\n0\n", header+"@@ -1,2 +1,2 @@\n a\n-b\n+B\n")},
	{"C36 counts too large", orRejected("a\nb\nc\n", "a\nB\nc\n", header+"@@ -1,9 +1,9 @@\n a\n-b\n+B\n c\n")},
	{"C36 counts too small", orRejected("a\nb\nc\n", "a\nB\nc\n", header+"@@ -1,1 +1,1 @@\n a\n-b\n+B\n c\n")},
	{"C36 no counts", orRejected("a\nb\nc\n", "a\nB\nc\n", header+"@@ @@\n a\n-b\n+B\n c\n")},
	{"C39 without the marker of a missing newline", orRejected("a\nb", "a\nc", header+"@@ -1,2 +1,2 @@\n a\n-b\n+c\n")},
	{"C39 with the marker", patched("a\nb", "a\nc", header+"@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n")},
	{"C39 the newline is what is patched", patched("a\nb", "a\nb\n", header+"@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n")},
	{"C40 LF over CRLF", orRejected("a\r\nb\r\nc\r\n", "a\r\nB\r\nnew\r\nc\r\n", header+"@@ -1,3 +1,4 @@\n a\n-b\n+B\n+new\n c\n")},
	{"C40 CRLF over CRLF", patched("a\r\nb\r\n", "a\r\nB\r\n", header+"@@ -1,2 +1,2 @@\n a\r\n-b\r\n+B\r\n")},
	{"C40 the other form over CRLF", orRejected("a\r\nb\r\nc\r\n", "a\r\nB\r\nc\r\n", begin("*** Update File: f", "@@", " a", "-b", "+B"))},
	{"C41 a line at an anchor", patched(python, strings.Replace(python, "def g(self):\n", "def g(self):\n        # added\n", 1), begin("*** Update File: f", "@@     def g(self):", "+        # added", "         return 1"))},
	{"C41 an anchor and an added line alone", func(t *testing.T, f folder) {
		orRejected("x\ndef f\ny\n", "x\ndef f\nadded\ny\n", begin("*** Update File: f", "@@ def f", "+added"))(t, f)
	}},
	{"C42 context of another indentation", orRejected("if x:\n\ty = 1\n\tz = 2\n", "if x:\n\ty = 1\n\tz = 3\n", header+"@@ -1,3 +1,3 @@\n if x:\n     y = 1\n-    z = 2\n+\tz = 3\n")},
	{"C44 the second file is bad", refusedPatch("patch_rejected", "a\n", header+"@@ -1 +1 @@\n-a\n+b\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+new\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-nowhere\n+c\n")},
	{"C44 the second file is not there", refusedPatch("patch_rejected|not_found", "a\n", header+"@@ -1 +1 @@\n-a\n+b\n--- a/none\n+++ b/none\n@@ -1 +1 @@\n-a\n+b\n")},
	{"C44 the second section of the other form", refusedPatch("patch_rejected", "a\n", begin("*** Add File: sub/new", "+x", "*** Update File: f", "@@", "-nowhere", "+b"))},
	{"C46 Add File on an existing one", refusedPatch("patch_rejected|already_exists", "a\n", begin("*** Add File: f", "+b"))},
	{"C46 a new file that exists", refusedPatch("patch_rejected|already_exists", "a\n", "diff --git a/f b/f\nnew file mode 100644\n--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+b\n")},
	{"C47 dots", refusedPatch("path_outside_workspace", "a\n", "--- /dev/null\n+++ b/../../x\n@@ -0,0 +1 @@\n+b\n")},
	{"C47 dots in the other form", refusedPatch("path_outside_workspace", "a\n", begin("*** Add File: ../../x", "+b"))},
	{"C47 an absolute path", refusedPatch("path_outside_workspace", "a\n", begin("*** Add File: /etc/envapi-was-here", "+b"))},
	{"C47 an absolute path in a diff", refusedPatch("path_outside_workspace", "a\n", "--- /dev/null\n+++ /etc/envapi-was-here\n@@ -0,0 +1 @@\n+b\n")},
	{"C47 hooks through a link", refusedPatch("path_outside_workspace", "a\n", "--- /dev/null\n+++ b/.git/hooks/pre-commit\n@@ -0,0 +1 @@\n+b\n")},
	{"C47 a move out", refusedPatch("path_outside_workspace", "a\n", begin("*** Update File: f", "*** Move to: ../../x", "@@", "-a", "+b"))},
	{"C47 a rename out", refusedPatch("path_outside_workspace", "a\n", "diff --git a/f b/../../x\nsimilarity index 100%\nrename from f\nrename to ../../x\n")},
	{"C48 a new executable", func(t *testing.T, f folder) {
		f.do(t, "apply_patch", object{"cwd": "", "patch": "diff --git a/run b/run\nnew file mode 100755\nindex 0000000..1111111\n--- /dev/null\n+++ b/run\n@@ -0,0 +1,2 @@\n+#!/bin/sh\n+echo ran\n"})
		if got := f.run(t, "./run; stat -c %a run"); got != "ran\n755" {
			t.Errorf("it gives %q", got)
		}
	}},
	{"C48 the mode of what is patched stays", func(t *testing.T, f folder) {
		f.holds(t, "f", "a\n")
		f.run(t, "chmod 755 f")
		f.do(t, "apply_patch", object{"cwd": "", "patch": header + "@@ -1 +1 @@\n-a\n+b\n"})
		f.has(t, "f", "b\n")
		if got := f.run(t, "stat -c %a f"); got != "755" {
			t.Errorf("the mode is %s", got)
		}
		f.do(t, "apply_patch", object{"cwd": "", "patch": "diff --git a/f b/f\nold mode 100755\nnew mode 100644\n"})
		if got := f.run(t, "stat -c %a f"); got != "644" {
			t.Errorf("after a patch of the mode it is %s", got)
		}
	}},
	{"C49 the same patch twice", func(t *testing.T, f folder) {
		patch := header + "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+new\n--- a/old\n+++ /dev/null\n@@ -1 +0,0 @@\n-old\n"
		f.holds(t, "f", "a\nb\nc\n")
		f.holds(t, "old", "old\n")
		f.do(t, "apply_patch", object{"cwd": "", "patch": patch})
		before := f.run(t, "stat -c '%n %i %Y %Z' *")
		if got := f.do(t, "apply_patch", object{"cwd": "", "patch": patch}); got["already_applied"] != true {
			t.Errorf("the second time gives %v", brief(got))
		}
		if after := f.run(t, "stat -c '%n %i %Y %Z' *"); after != before {
			t.Errorf("it was %s, and is %s", before, after)
		}
		f.has(t, "f", "a\nB\nc\n")
	}},
	{"C38 below a directory", func(t *testing.T, f folder) {
		for i, patch := range []string{
			header + "@@ -1 +1 @@\n-a\n+b\n", "--- f\n+++ f\n@@ -1 +1 @@\n-a\n+b\n", begin("*** Update File: f", "@@", "-a", "+b"),
		} {
			f.holds(t, "sub/deep/f", "a\n")
			f.holds(t, "f", "a\n")
			got := f.do(t, "apply_patch", object{"cwd": "sub/deep", "patch": patch})
			f.has(t, "sub/deep/f", "b\n")
			f.has(t, "f", "a\n")
			if want := f.at("sub/deep/f"); !strings.Contains(fmt.Sprint(got["files"]), want) {
				t.Errorf("%d: the answer names %v, want %s", i, got["files"], want)
			}
		}
		f.fails(t, "not_found|patch_rejected", "apply_patch", object{"cwd": "sub", "patch": header + "@@ -1 +1 @@\n-a\n+b\n"})
		f.fails(t, "not_found|patch_rejected", "apply_patch", object{"cwd": "none", "patch": header + "@@ -1 +1 @@\n-a\n+b\n"})
	}},
	{"renames, copies, deletions of git's", func(t *testing.T, f folder) {
		f.holds(t, "one", "1\n2\n3\n")
		f.holds(t, "two", "2\n")
		f.run(t, "chmod 700 one")
		f.do(t, "apply_patch", object{"cwd": "", "patch": "diff --git a/one b/in/moved\nsimilarity index 66%\nrename from one\nrename to in/moved\n--- a/one\n+++ b/in/moved\n@@ -1,3 +1,3 @@\n 1\n-2\n+two\n 3\n" +
			"diff --git a/two b/two\ndeleted file mode 100644\n--- a/two\n+++ /dev/null\n@@ -1 +0,0 @@\n-2\n"})
		f.has(t, "in/moved", "1\ntwo\n3\n")
		if got := f.run(t, "ls; stat -c %a in/moved"); got != "in\n700" {
			t.Errorf("there is %q", got)
		}
	}},
	{"through a link inside", func(t *testing.T, f folder) {
		f.holds(t, "real", "a\n")
		f.run(t, "ln -s real f")
		f.do(t, "apply_patch", object{"cwd": "", "patch": header + "@@ -1 +1 @@\n-a\n+b\n"})
		f.has(t, "real", "b\n")
		if got := f.run(t, "readlink f"); got != "real" {
			t.Errorf("the link is %q", got)
		}
	}},
	{"conditions by path", func(t *testing.T, f folder) {
		f.holds(t, "f", "a\n")
		patch := object{"cwd": "", "patch": header + "@@ -1 +1 @@\n-a\n+b\n"}
		f.fails(t, "etag_mismatch", "apply_patch", and(patch, object{"if_match": object{"f": strings.Repeat("A", 32)}}))
		f.has(t, "f", "a\n")
		f.do(t, "apply_patch", and(patch, object{"if_match": object{"f": f.tag(t, "f")}}))
		f.has(t, "f", "b\n")
	}},
	{"a dry run", func(t *testing.T, f folder) {
		f.holds(t, "f", "a\n")
		f.do(t, "apply_patch", object{"cwd": "", "dry_run": true, "patch": header + "@@ -1 +1 @@\n-a\n+b\n"})
		f.has(t, "f", "a\n")
	}},
	{"no patch at all", refusedPatch("patch_rejected|invalid_argument", "a\n", "change a to b\n")},
}

func TestCasesOfPatches(t *testing.T) { playFiles(t, patchCases) }
