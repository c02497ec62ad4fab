package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

var findCases = []fileCase{
	{"C31 a pattern and a name that look like options", func(t *testing.T, f folder) {
		f.holds(t, "--x", "a -77 b\n")
		for _, in := range []object{{"pattern": "-77"}, {"literal": "-77"}, {"pattern": "-77", "glob": "--x"}, {"literal": "-77", "path": "--x"}} {
			if got := f.search(t, in); got.Total != 1 || got.Matches[0].Path != f.at("--x") || got.Matches[0].Line != 1 || got.Matches[0].Column != 3 {
				t.Errorf("%v finds %+v", in, got)
			}
		}
	}},
	{"C52 the end of a CRLF line", func(t *testing.T, f folder) {
		f.holds(t, "f", "one\r\ntwo one\r\n")
		got := f.search(t, object{"pattern": "one$"})
		if got.Total != 2 || got.Matches[0].Text != "one" {
			t.Errorf("it finds %+v", got)
		}
	}},
	{"C53 what is ignored is counted", func(t *testing.T, f folder) {
		f.holds(t, ".gitignore", "build/\n*.log\n!keep.log\n")
		for _, name := range []string{"a.txt", "build/b.txt", "c.log", "keep.log", "sub/d.log", ".hidden"} {
			f.holds(t, name, "needle\n")
		}
		got := f.search(t, object{"literal": "needle"})
		if paths := f.found(got); paths != "a.txt keep.log" || got.Ignored != 3 || !strings.Contains(got.Next, "ignored") {
			t.Errorf("it finds %s, %d ignored, next %q", paths, got.Ignored, got.Next)
		}
		if paths := f.found(f.search(t, object{"literal": "needle", "ignored": true})); paths != "a.txt build/b.txt c.log keep.log sub/d.log" {
			t.Errorf("with ignored it finds %s", paths)
		}
		if paths := f.found(f.search(t, object{"literal": "needle", "hidden": true})); paths != ".hidden a.txt keep.log" {
			t.Errorf("with hidden it finds %s", paths)
		}
	}},
	{"C54 one rule for lists and searches", func(t *testing.T, f folder) {
		f.holds(t, ".gitignore", "# needle\n/out\ndocs/draft*\n")
		f.holds(t, "docs/.gitignore", "# needle\n*.tmp.md\n!draft-of-mine.md\n")
		for _, name := range []string{
			"a.md", "x.txt", "docs/b.md", "docs/draft-1.md", "docs/draft-of-mine.md", "docs/c.tmp.md", "docs/deep/er/d.md", "out/e.md", ".git/f.md", ".dot/g.md", "docs/out/h.md",
		} {
			f.holds(t, name, "needle\n")
		}
		for _, switches := range []object{{}, {"hidden": true}, {"ignored": true}, {"hidden": true, "ignored": true}} {
			for _, glob := range []string{"**/*.md", "*.md", "docs/**", "{docs,out}/*.md", "docs/*.md", "docs/**/*.md"} {
				in := and(object{"glob": glob}, switches)
				var files []string
				for _, e := range f.list(t, in).Items {
					if e.Type == "file" {
						files = append(files, strings.TrimPrefix(e.Path, f.dir+"/"))
					}
				}
				listed := strings.Join(files, " ")
				if byText, byName := f.found(f.search(t, and(in, object{"literal": "needle"}))), f.found(f.search(t, in)); byText != listed || byName != listed || listed == "" {
					t.Errorf("%v: listed are %q, found by text %q, by name %q", in, listed, byText, byName)
				}
			}
		}
		if got := f.names(f.list(t, object{"glob": "**/*.md"})); got != "a.md docs/b.md docs/deep/er/d.md docs/draft-of-mine.md docs/out/h.md" {
			t.Errorf("**/*.md is %s", got)
		}
	}},
	{"C56 a line of 42 MB", func(t *testing.T, f folder) {
		f.run(t, "{ echo first; head -c 21M /dev/zero | tr '\\0' x; printf needle; head -c 21M /dev/zero | tr '\\0' y; echo; echo last needle; } > f")
		got := f.search(t, object{"literal": "needle"})
		if got.Total != 2 || len(got.Matches) != 2 || !got.Matches[0].Cut || !strings.Contains(got.Matches[0].Text, "xneedley") || len(got.Matches[0].Text) > 4096 || got.Matches[1].Text != "last needle" {
			t.Errorf("it finds %s", brief(object{"": got}))
		}
		if got := f.search(t, object{"pattern": "x+needle"}); len(got.Matches) > 1 || len(fmt.Sprint(got)) > 100_000 {
			t.Errorf("it finds %s", brief(object{"": got}))
		}
		read := f.do(t, "read_file", object{"path": "f", "start_line": 2, "end_line": 2, "limit_bytes": 1000})
		if part := text(read, "text"); len(part) > 1000 || !strings.HasPrefix(part, "xxx") || number(t, read, "next_offset") == 0 {
			t.Errorf("it reads as %s", brief(read))
		}
		if read := f.do(t, "read_file", object{"path": "f", "start_line": 3}); text(read, "text") != "last needle\n" || number(t, read, "total_lines") != 3 {
			t.Errorf("the last line is %s", brief(read))
		}
	}},
	{"C58 a pattern over two lines", func(t *testing.T, f folder) {
		f.holds(t, "f", "x\na\nb\na b\n")
		if p := f.fails(t, "invalid_argument", "search_files", object{"path": "", "pattern": `a\nb`}); !strings.Contains(p.Detail, "multiline") {
			t.Errorf("the answer does not name the switch: %s", p.Detail)
		}
		if got := f.search(t, object{"pattern": `a\nb`, "multiline": true}); got.Total != 1 || got.Matches[0].Line != 2 {
			t.Errorf("it finds %+v", got)
		}
	}},
	{"binary and odd files", func(t *testing.T, f folder) {
		f.holds(t, "bin", "\x00needle\n")
		f.holds(t, "latin", "\xe7\xe3 needle\n")
		f.holds(t, "empty", "")
		f.holds(t, "end", "no newline needle")
		f.run(t, "ln -s latin link; mkfifo fifo; echo needle > closed; chmod 000 closed; mkdir shut; chmod 000 shut")
		got := f.search(t, object{"literal": "needle"})
		if paths := f.found(got); paths != "end latin" || got.Binary != 1 || !strings.HasSuffix(got.Matches[1].Text, "\ufffd needle") {
			t.Errorf("it finds %+v", got)
		}
		f.run(t, "chmod 700 shut")
	}},
	{"patterns that are wrong or hard", func(t *testing.T, f folder) {
		f.holds(t, "f", strings.Repeat("a", 5000)+"\n")
		f.fails(t, "invalid_argument", "search_files", object{"path": "", "pattern": "a("})
		f.fails(t, "invalid_argument", "search_files", object{"path": "", "pattern": `(?=a)`})
		f.fails(t, "invalid_argument", "search_files", object{"path": "", "pattern": "a", "literal": "a"})
		f.fails(t, "invalid_argument", "list_files", object{"path": "", "glob": "[a"})
		begin := time.Now()
		f.search(t, object{"pattern": "(a*)*b"})
		f.search(t, object{"pattern": "(a|a)*$"})
		if d := time.Since(begin); d > 10*time.Second {
			t.Errorf("they took %s", d)
		}
	}},
	{"bounds and totals", func(t *testing.T, f folder) {
		f.run(t, "for i in $(seq 30); do seq 1 100 > f$i; done")
		got := f.search(t, object{"pattern": "^1", "limit": 10})
		if len(got.Matches) != 10 || got.Total != 30*12 || got.Truncated != "limit" {
			t.Errorf("%d of %d, truncated %q", len(got.Matches), got.Total, got.Truncated)
		}
		if got := f.search(t, object{"pattern": ".", "limit": 2000, "limit_bytes": 1024}); got.Truncated != "bytes" || got.Total != 3000 {
			t.Errorf("%d of %d, truncated %q", len(got.Matches), got.Total, got.Truncated)
		}
	}},
	{"case", func(t *testing.T, f folder) {
		f.holds(t, "f", "Needle\nneedle\nNEEDLE\n")
		for _, c := range []struct {
			in    object
			total int
		}{
			{object{"literal": "needle"}, 1},
			{object{"literal": "needle", "case": "insensitive"}, 3},
			{object{"pattern": "needle", "case": "smart"}, 3},
			{object{"pattern": "Needle", "case": "smart"}, 1},
		} {
			if got := f.search(t, c.in); got.Total != c.total {
				t.Errorf("%v: %d", c.in, got.Total)
			}
		}
	}},
	{"names that are not UTF-8", func(t *testing.T, f folder) {
		f.run(t, `touch $'a\xffb'`)
		if got := f.list(t, nil).Items; len(got) != 1 || got[0].Path != f.at("a\ufffdb") || got[0].PathBase64 != encode([]byte(f.at("a\xffb"))) {
			t.Errorf("the list is %+v", got)
		}
		f.do(t, "delete_file", object{"path": "", "recursive": true})
	}},
}

func TestCasesOfFinding(t *testing.T) { playFiles(t, findCases) }

// found are the paths of matches below the folder.
func (f folder) found(l foundLines) string {
	var paths []string
	for _, m := range l.Matches {
		paths = append(paths, strings.TrimPrefix(m.Path, f.dir+"/"))
	}
	return strings.Join(slices.Compact(paths), " ")
}

func TestC27AHugeDirectoryIsPagedWithFlatMemory(t *testing.T) {
	const many = 100_000
	t.Parallel()
	s := start(t, config{})
	f := s.place(t).folder(t, s.rest)
	f.py(t, fmt.Sprintf(`import os
for i in range(%d):
    if i %% 1000: os.link(f'n{i // 1000 * 1000:06}', f'n{i:06}') # faster than a file each
    else: open(f'n{i:06}', 'w').close()`, many))
	before := resident(t, s.cmd.Process.Pid)
	var last string
	seen, cursor := 0, ""
	for page := 0; ; page++ {
		in := object{"limit": 1000}
		if page > 0 {
			in["cursor"] = cursor
		}
		l := f.list(t, in)
		for _, e := range l.Items {
			if e.Path <= last {
				t.Fatalf("%q stands after %q", e.Path, last)
			}
			last = e.Path
		}
		seen += len(l.Items)
		if cursor = l.Next; cursor == "" {
			break
		}
		if page == 50 { // before and after where the list is
			f.run(t, "rm n000000 n099999; touch a z")
		}
	}
	if seen != many { // n099999 is gone, z is there
		t.Errorf("%d entries were listed", seen)
	}
	if grown := resident(t, s.cmd.Process.Pid) - before; grown > 64<<20 {
		t.Errorf("the service has grown by %d bytes", grown)
	}
	f.fails(t, "invalid_argument", "list_files", object{"path": "", "hidden": true, "cursor": "nonsense"})
	begin := time.Now()
	if got := f.search(t, object{"glob": "n05000*"}); got.Total != 10 {
		t.Errorf("it finds %+v", got)
	}
	f.do(t, "delete_file", object{"path": "", "recursive": true})
	if d := time.Since(begin); d > patience {
		t.Errorf("a search and a delete took %s", d)
	}
}
