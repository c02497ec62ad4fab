package e2e

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
)

// edits makes exact replacements: old, new, old, new …
func edits(pairs ...string) object {
	var list []object
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, object{"old": pairs[i], "new": pairs[i+1]})
	}
	return object{"path": "f", "edits": list}
}

// edited is a case of one edit: the content before and after.
func edited(before, after string, pairs ...string) func(*testing.T, folder) {
	return func(t *testing.T, f folder) {
		t.Helper()
		f.holds(t, "f", before)
		got := f.do(t, "edit_file", edits(pairs...))
		f.has(t, "f", after)
		if tag := f.tag(t, "f"); text(got, "etag") != tag || tag == "" {
			t.Errorf("the edit says etag %v, stat says %s", got["etag"], tag)
		}
	}
}

// unedited is a case of an edit that is refused and leaves the file alone; the
// answer has all of the facts in it.
func unedited(code, content string, edit object, facts ...string) func(*testing.T, folder) {
	return func(t *testing.T, f folder) {
		t.Helper()
		f.holds(t, "f", content)
		p := f.fails(t, code, "edit_file", edit)
		told := fmt.Sprint(p.Detail, " ", p.Matches)
		for _, fact := range facts {
			if !strings.Contains(told, fact) {
				t.Errorf("%q is not in %q", fact, told)
			}
		}
		f.has(t, "f", content)
	}
}

var editCases = []fileCase{
	{"C1 what stands twice", unedited("edit_ambiguous", "a = 1\ndebug = True\nb = 2\ndebug = True\n", edits("debug = True", "debug = False"), "2", "4")},
	{"C1 the second of two edits is ambiguous", unedited("edit_ambiguous", "once\nx\nx\n", edits("once", "done", "x", "y"))},
	{"C1 no match names the nearest line", unedited("edit_no_match", "one\ndef handler(request):\n\treturn 1\n", edits("def handler(requests):", "x"), "2", "def handler(request):")},
	{"C1 replace_all", func(t *testing.T, f folder) {
		f.holds(t, "f", "x y x\nx")
		got := f.do(t, "edit_file", object{"path": "f", "edits": []object{{"old": "x", "new": "xx", "replace_all": true}}})
		f.has(t, "f", "xx y xx\nxx")
		if number(t, got, "replacements") != 3 {
			t.Errorf("it says %v", got["replacements"])
		}
	}},
	{"C3 CRLF beside LF", edited("a\r\nb\nc\r\n", "a\r\nB\nc\r\n", "b", "B")},
	{"C3 an LF needle over a CRLF file", edited("a\r\nb\r\nc\r\n", "x\r\ny\r\nc\r\n", "a\nb", "x\ny")},
	{"C3 a CRLF needle", edited("a\r\nb\r\nc\r\n", "x\r\nc\r\n", "a\r\nb", "x")},
	{"C3 a lone CR", edited("a\rb\rc", "a\rB\rc", "b", "B")},
	{"C4 one BOM", edited("\ufefffirst\nsecond\n", "\ufefffirst\n2\n", "second", "2")},
	{"C4 one BOM where the first line is edited", edited("\ufefffirst\nsecond\n", "\ufeff1st\nsecond\n", "first", "1st")},
	{"C5 tabs", edited("all:\n\tcc  -o x\n\t\t# y\n", "all:\n\tcc  -o z\n\t\t# y\n", "-o x", "-o z")},
	{"C6 no newline at the end", edited("a\nb", "a\nc", "b", "c")},
	{"C6 two newlines at the end", edited("a\n\n", "b\n\n", "a", "b")},
	{"C6 all that is there", edited("a", "", "a", "")},
	{"C8 bytes of Latin-1", edited("\xe7\xe3\x6f = 1\nend", "\xe7\xe3\x6f = 2\nend", "= 1", "= 2")},
	{"C8 NUL bytes", edited("a\x00b\x00c", "a\x00B\x00c", "b", "B")},
	{"C9 UTF-16", func(t *testing.T, f folder) {
		content := "\xff\xfeh\x00i\x00\n\x00"
		f.holds(t, "f", content)
		got := f.do(t, "read_file", object{"path": "f"})
		data, err := base64.StdEncoding.DecodeString(text(got, "text"))
		if err != nil || string(data) != content || text(got, "encoding") != "base64" || text(got, "charset") != "utf-16le" {
			t.Errorf("read_file gives %v", brief(got))
		}
		if raw := f.mustDownload(t, "f"); string(raw) != content {
			t.Errorf("the download is %q", raw)
		}
		f.fails(t, "edit_no_match|unsupported_encoding", "edit_file", edits("hi", "ho"))
		f.has(t, "f", content)
	}},
	{"C10 a newline as two characters", edited("a\n", `x\ny`+"\n", "a", `x\ny`)},
	{"C10 two characters to find", edited(`print("a\n")`, `print("b\n")`, `"a\n"`, `"b\n"`)},
	{"C11 entities and groups", edited("a\n", "&lt;$1 $& \\1 \\g<0> %s &amp;\n", "a", "&lt;$1 $& \\1 \\g<0> %s &amp;")},
	{"C11 groups to find", edited("&lt;$1.*\n", "a\n", "&lt;$1.*", "a")},
	{"C10 C11 written as they are", func(t *testing.T, f folder) {
		content := "\ufeff\\n &lt; $1 \"q\" 'q' ` \u2028 é e\u0301\r\nx\r\x00\ttab  \n\n"
		f.write(t, "f", content)
		f.has(t, "f", content)
		raw := "\xff\xfe\x00\xe7"
		f.do(t, "write_file", object{"path": "g", "content": encode([]byte(raw)), "encoding": "base64"})
		f.has(t, "g", raw)
	}},
	{"C12 mode, owner and xattr stay", func(t *testing.T, f folder) {
		f.holds(t, "f", "old\n")
		f.py(t, "import os; os.chmod('f', 0o755); os.setxattr('f', 'user.note', b'kept')")
		facts := "import os; s = os.stat('f'); print(oct(s.st_mode), s.st_uid, s.st_gid, os.getxattr('f', 'user.note'))"
		before := f.py(t, facts)
		f.do(t, "edit_file", edits("old", "new"))
		f.has(t, "f", "new\n")
		if after := f.py(t, facts); after != before {
			t.Errorf("after the edit it is %s, before %s", after, before)
		}
		f.write(t, "f", "written\n")
		f.mustUpload(t, "f", []byte("uploaded\n"))
		f.has(t, "f", "uploaded\n")
		if after := f.py(t, facts); after != before {
			t.Errorf("after writes it is %s, before %s", after, before)
		}
	}},
	{"C13 through a link inside", func(t *testing.T, f folder) {
		f.holds(t, "deep/target", "old\n")
		f.run(t, "ln -s deep/target l; ln -s ../l deep/back")
		f.do(t, "edit_file", object{"path": "l", "edits": []object{{"old": "old", "new": "edited"}}})
		f.has(t, "deep/target", "edited\n")
		f.write(t, "deep/back", "written\n")
		f.has(t, "deep/target", "written\n")
		f.mustUpload(t, "l", []byte("uploaded\n"))
		f.has(t, "deep/target", "uploaded\n")
		if got := f.run(t, "readlink l deep/back; ls -A deep | tr '\\n' ' '"); got != "deep/target\n../l\nback target " {
			t.Errorf("the links are %q", got)
		}
	}},
	{"C13 a link to what is not there yet", func(t *testing.T, f folder) {
		f.run(t, "ln -s later l")
		if _, err := f.door.call(t.Context(), "write_file", f.in(object{"path": "l", "content": "x"})); err == nil {
			f.has(t, "later", "x")
		}
		if got := f.run(t, "readlink l"); got != "later" {
			t.Errorf("the link is %q", got)
		}
	}},
	{"C23 a touch changes no tag", func(t *testing.T, f folder) {
		tag := f.write(t, "f", "a\n")
		f.run(t, "touch f; touch -d 2001-01-01 f")
		f.do(t, "edit_file", and(edits("a", "b"), object{"if_match": tag}))
		f.has(t, "f", "b\n")
		f.run(t, "chmod 600 f; printf 'a\\n' > f")
		if now := f.tag(t, "f"); now != tag {
			t.Errorf("the same content has the tags %s and %s", tag, now)
		}
	}},
	{"a condition that does not hold", func(t *testing.T, f folder) {
		old := f.write(t, "f", "a\n")
		f.run(t, "echo inside > f")
		for operation, in := range map[string]object{
			"write_file": {"path": "f", "content": "x"}, "edit_file": edits("inside", "x"), "delete_file": {"path": "f"},
			"copy_file": {"source": "g", "destination": "f", "overwrite": true}, "move_file": {"source": "g", "destination": "f", "overwrite": true},
		} {
			f.holds(t, "g", "other")
			p := f.fails(t, "etag_mismatch", operation, and(in, object{"if_match": old}))
			if now := f.tag(t, "f"); p.ETag == nil || *p.ETag != now || now == old {
				t.Errorf("%s: the answer has etag %v, the file %s", operation, p.ETag, now)
			}
		}
		f.has(t, "f", "inside\n")
		if p := f.fails(t, "etag_mismatch", "write_file", object{"path": "none", "content": "x", "if_match": old}); p.ETag != nil {
			t.Errorf("where there is no file the etag is %v", *p.ETag)
		}
		if p := f.fails(t, "etag_mismatch|already_exists", "write_file", object{"path": "f", "content": "x", "if_none_match": "*"}); p.Code != "etag_mismatch" {
			t.Errorf("if_none_match is answered %s", p.Code)
		}
		f.has(t, "f", "inside\n")
	}},
	{"append", func(t *testing.T, f folder) {
		for _, part := range []string{"one\n", "two", "\n"} {
			f.do(t, "write_file", object{"path": "new/f", "content": part, "append": true})
		}
		f.has(t, "new/f", "one\ntwo\n")
	}},
	{"a dry run changes nothing", func(t *testing.T, f folder) {
		f.holds(t, "f", "a\nb\n")
		got := f.do(t, "edit_file", and(edits("b", "c"), object{"dry_run": true}))
		if diff := text(got, "diff"); !strings.Contains(diff, "-b\n") || !strings.Contains(diff, "+c\n") {
			t.Errorf("the diff is %q", diff)
		}
		f.has(t, "f", "a\nb\n")
	}},
	{"an empty or binary needle", func(t *testing.T, f folder) {
		f.holds(t, "f", "a\n")
		f.fails(t, "invalid_argument", "edit_file", edits("", "x"))
		f.fails(t, "invalid_argument", "edit_file", object{"path": "f", "edits": []object{}})
		f.has(t, "f", "a\n")
	}},
	{"all edits or none", unedited("edit_no_match", "a\nb\n", edits("a", "A", "nowhere", "x"))},
	{"edits one after the other", edited("a\n", "c\n", "a", "b", "b", "c")},
}

func TestCasesOfEdits(t *testing.T) { playFiles(t, editCases) }
