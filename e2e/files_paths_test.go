package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// everything is each operation on one path, none of which does harm where the path
// is refused.
func everything(path string) map[string]object {
	return map[string]object{
		"list_files":     {"path": path},
		"stat_file":      {"path": path},
		"read_file":      {"path": path},
		"write_file":     {"path": path, "content": "x"},
		"edit_file":      {"path": path, "edits": []object{{"old": "root", "new": "x"}}},
		"search_files":   {"path": path, "literal": "root"},
		"make_directory": {"path": path, "parents": true},
		"delete_file":    {"path": path, "recursive": true},
	}
}

// both adds the operations on two paths.
func both(path string) []struct {
	operation string
	in        object
} {
	type call = struct {
		operation string
		in        object
	}
	calls := []call{
		{"copy_file", object{"source": path, "destination": "copied"}},
		{"copy_file", object{"source": "mine", "destination": path, "overwrite": true}},
		{"move_file", object{"source": path, "destination": "moved"}},
		{"move_file", object{"source": "mine", "destination": path, "overwrite": true}},
		{"apply_patch", object{"cwd": "", "patch": fmt.Sprintf("*** Begin Patch\n*** Add File: %s\n+x\n*** End Patch\n", path)}},
	}
	for operation, in := range everything(path) {
		calls = append(calls, call{operation, in})
	}
	return calls
}

// outsidePaths lead out by what stands in them.
var outsidePaths = []string{
	"../../x", "../../../../../../../../etc/passwd", "a/../../../x", "a/../../../etc/passwd", "./../..", "a/b/../../../../x",
	"/etc/passwd", "/", "//etc/passwd", "/proc/self/root/etc/passwd", "/workspace-evil/x", "/workspace/../etc/passwd", "/workspace/../workspace-evil",
}

// linksOut lead out by a link; ln makes them.
var linksOut = map[string]string{
	"to /etc/passwd":         "/etc/passwd",
	"to the root":            "/",
	"to /proc/self/root":     "/proc/self/root",
	"to /proc/self/cwd":      "/proc/self/cwd",
	"upwards":                "../../../../../../../../etc/passwd",
	"up and to a neighbour":  "../../../workspace-evil",
	"to a file that may not": "/etc/new-file-of-envapi",
}

var pathCases = []fileCase{
	{"C15 C17 paths that lead out", func(t *testing.T, f folder) {
		f.holds(t, "mine", "mine\n")
		f.run(t, "mkdir -p a/b")
		for _, path := range outsidePaths {
			for _, call := range both(path) {
				f.fails(t, "path_outside_workspace", call.operation, call.in)
			}
			if _, err := f.upload(t.Context(), path, strings.NewReader("x"), nil); isProblem(t, "path_outside_workspace", "upload of "+path, nil, err).Status != 403 {
				t.Error("the status is another")
			}
			_, _, err := f.download(t.Context(), path, nil)
			isProblem(t, "path_outside_workspace", "download of "+path, nil, err)
		}
		f.has(t, "mine", "mine\n")
	}},
	{"C15 links that lead out", func(t *testing.T, f folder) {
		for name, target := range linksOut {
			f.run(t, fmt.Sprintf("ln -sfn %s out", target))
			for _, path := range []string{"out", "out/", "out/passwd"} {
				for operation, in := range everything(path) {
					if path != "out/passwd" && (operation == "stat_file" || operation == "delete_file" || operation == "make_directory") {
						continue // of the link itself
					}
					f.fails(t, "path_outside_workspace", operation, in)
				}
				_, err := f.upload(t.Context(), path, strings.NewReader("x"), nil)
				isProblem(t, "path_outside_workspace", "upload through a link "+name, nil, err)
			}
			if got := f.run(t, "readlink out"); got != target {
				t.Errorf("the link %s is now %q", name, got)
			}
		}
	}},
	{"C17 absolute below the workspace", func(t *testing.T, f folder) {
		f.holds(t, "x", "x\n")
		workspace := f.run(t, "cd ..; pwd")
		for _, path := range []string{workspace + "/" + f.at("x"), workspace + "//" + f.at("./y/../x")} {
			if path = strings.ReplaceAll(path, "y/../", ""); text(f.do(t, "read_file", object{"path": path}), "text") != "x\n" {
				t.Errorf("%s is another file", path)
			}
		}
	}},
	{"C18 a directory link and a leaf with dots", func(t *testing.T, f folder) {
		f.run(t, "mkdir -p sub/deep; ln -s sub/deep d")
		if _, err := f.door.call(t.Context(), "write_file", f.in(object{"path": "d/../x", "content": "where?"})); err == nil {
			if got := f.run(t, "cat d/../x; ls x 2>/dev/null; true"); got != "where?" {
				t.Errorf("it was written elsewhere: %q", got)
			}
		} else {
			f.fails(t, "invalid_argument|not_found|path_outside_workspace", "write_file", object{"path": "d/../x", "content": "where?"})
		}
		f.write(t, "d/y", "y")
		f.has(t, "sub/deep/y", "y")
		f.run(t, "ln -s ../../../../etc/passwd d/z")
		f.fails(t, "path_outside_workspace", "write_file", object{"path": "d/z", "content": "x"})
	}},
	{"C19 links in a circle", func(t *testing.T, f folder) {
		f.run(t, "mkdir d; ln -s . l; ln -s x x; ln -s ../d d/up; echo needle > d/f")
		if got := f.names(f.list(t, object{"recursive": true})); got != "d d/f d/up l x" {
			t.Errorf("the list is %q", got)
		}
		if got := f.search(t, object{"literal": "needle"}); got.Total != 1 || len(got.Matches) != 1 {
			t.Errorf("the search finds %+v", got)
		}
		f.fails(t, "symlink_loop", "read_file", object{"path": "x"})
		f.fails(t, "symlink_loop", "list_files", object{"path": "x"})
		f.fails(t, "symlink_loop", "write_file", object{"path": "x/y", "content": ""})
		if got := text(f.do(t, "read_file", object{"path": strings.Repeat("l/", 20) + "d/f"}), "text"); got != "needle\n" {
			t.Errorf("through many links it is %q", got)
		}
	}},
	{"C20 what is no file is refused at once", func(t *testing.T, f folder) {
		f.run(t, "mkfifo p; mkdir d; echo in > d/f; mkfifo d/p")
		names := []string{"p"}
		if c := f.exec(t, object{"argv": []string{"python3", "-c", "import os, stat; os.mknod('s', stat.S_IFSOCK | 0o666)"}, "cwd": f.dir}); c.exit() == 0 {
			names = append(names, "s")
		}
		for _, name := range names {
			begin := time.Now()
			for _, operation := range []string{"read_file", "write_file", "edit_file"} {
				f.fails(t, "not_a_regular_file", operation, everything(name)[operation])
			}
			_, _, err := f.download(t.Context(), name, nil)
			isProblem(t, "not_a_regular_file", "download", nil, err)
			_, err = f.upload(t.Context(), name, strings.NewReader("x"), nil)
			isProblem(t, "not_a_regular_file", "upload", nil, err)
			if d := time.Since(begin); d > 5*time.Second {
				t.Errorf("five refusals of %s took %s", name, d)
			}
		}
		if got := f.search(t, object{"literal": "in"}); got.Total != 1 {
			t.Errorf("the search finds %+v", got)
		}
		if got := f.do(t, "copy_file", object{"source": "d", "destination": "e"}); len(got["skipped"].([]any)) != 1 {
			t.Errorf("the copy skips %v", got["skipped"])
		}
		f.has(t, "e/f", "in\n")
		f.do(t, "move_file", object{"source": "p", "destination": "q"})
		f.do(t, "delete_file", object{"path": "q"})
		f.do(t, "delete_file", object{"path": "d", "recursive": true})
	}},
	{"C29 the same word in another form", func(t *testing.T, f folder) {
		f.run(t, `printf nfd > $'cafe\u0301'`)
		p := f.fails(t, "not_found", "read_file", object{"path": "caf\u00e9"})
		if !strings.Contains(p.Similar+p.Detail, "cafe\u0301") {
			t.Errorf("the answer names %q: %s", p.Similar, p.Detail)
		}
		f.write(t, "caf\u00e9", "nfc")
		f.has(t, "cafe\u0301", "nfd")
		if n := len(f.list(t, nil).Items); n != 2 {
			t.Errorf("there are %d files", n)
		}
	}},
	{"C30 names", func(t *testing.T, f folder) {
		for _, name := range []string{
			"a\nb", "-rf", "--", " lead and trail ", `q'"q`, strings.Repeat("n", 255), strings.Repeat("é", 127), "100%25%", "what?", "#hash", "a&b=c+d", "~", "$HOME",
			"`id`", "a;b", "a\\b", "\x1b[31mred\x1b[0m", "tab\there", "\u202egnp", "*", "[a]", "{a,b}", "!x", "a:b", "🙂", "...", "CON", "x\u00a0y",
		} {
			f.passesThrough(t, name)
		}
		f.fails(t, "invalid_argument", "write_file", object{"path": strings.Repeat("n", 256), "content": ""})
		f.fails(t, "invalid_argument", "read_file", object{"path": "a\x00b"})
	}},
	{"C32 a recursive delete takes links, not what they lead to", func(t *testing.T, f folder) {
		f.run(t, "mkdir -p d/sub keep; echo kept > keep/f; ln -s ../keep d/in; ln -s ../../keep/f d/sub/f; ln -s /etc d/out; chmod 500 d/sub")
		f.fails(t, "not_empty", "delete_file", object{"path": "d"})
		f.do(t, "delete_file", object{"path": "d", "recursive": true})
		f.has(t, "keep/f", "kept\n")
		if got := f.run(t, "ls; ls -d /etc"); got != "keep\n/etc" {
			t.Errorf("there is %q", got)
		}
		f.run(t, "ln -s keep l")
		f.do(t, "delete_file", object{"path": "l", "recursive": true})
		f.has(t, "keep/f", "kept\n")
	}},
	{"C35 move and copy replace nothing by themselves", func(t *testing.T, f folder) {
		for _, operation := range []string{"copy_file", "move_file"} {
			f.run(t, "rm -rf *; echo a > a; echo b > b; mkdir d full; echo in > full/f")
			f.fails(t, "already_exists", operation, object{"source": "a", "destination": "b"})
			f.fails(t, "already_exists", operation, object{"source": "a", "destination": "d"})
			f.fails(t, "already_exists|is_a_directory", operation, object{"source": "a", "destination": "full", "overwrite": true})
			f.fails(t, "invalid_argument", operation, object{"source": "full", "destination": "full/inner"})
			f.fails(t, "invalid_argument", operation, object{"source": "full", "destination": "full/../full/g"})
			f.fails(t, "not_found", operation, object{"source": "a", "destination": "no/where"})
			f.fails(t, "not_found", operation, object{"source": "none", "destination": "c"})
			f.has(t, "b", "b\n")
			f.do(t, operation, object{"source": "a", "destination": "b", "overwrite": true})
			f.has(t, "b", "a\n")
			f.do(t, operation, object{"source": "full", "destination": "new/place", "parents": true})
			f.has(t, "new/place/f", "in\n")
		}
		if got := f.run(t, "ls"); got != "b\nd\nnew" {
			t.Errorf("there is %q", got)
		}
	}},
	{"C35 the workspace itself stays", func(t *testing.T, f folder) {
		for _, root := range []string{"/workspace", f.run(t, "cd ..; pwd")} {
			for _, call := range []struct {
				operation string
				in        object
			}{
				{"delete_file", object{"path": root, "recursive": true}},
				{"move_file", object{"source": root, "destination": "x"}},
				{"copy_file", object{"source": root, "destination": "x"}},
			} {
				f.fails(t, "invalid_argument", call.operation, call.in)
			}
		}
	}},
	{"what is a directory, and what is none", func(t *testing.T, f folder) {
		f.run(t, "mkdir d; echo x > f; echo closed > c; chmod 000 c")
		f.fails(t, "is_a_directory", "read_file", object{"path": "d"})
		f.fails(t, "is_a_directory", "write_file", object{"path": "d", "content": "x"})
		f.fails(t, "not_a_directory", "list_files", object{"path": "f"})
		f.fails(t, "not_a_directory", "read_file", object{"path": "f/x"})
		f.fails(t, "not_a_directory", "write_file", object{"path": "f/x", "content": "x"})
		f.fails(t, "already_exists", "make_directory", object{"path": "d"})
		f.fails(t, "already_exists|not_a_directory", "make_directory", object{"path": "f", "parents": true})
		f.do(t, "make_directory", object{"path": "d", "parents": true})
		f.fails(t, "not_found", "make_directory", object{"path": "no/where"})
		f.fails(t, "not_found", "write_file", object{"path": "no/where", "content": "", "parents": false})
		f.fails(t, "permission_denied", "read_file", object{"path": "c"})
		f.fails(t, "not_found", "delete_file", object{"path": "none"})
	}},
}

func TestCasesOfPaths(t *testing.T) { playFiles(t, pathCases) }

// passesThrough takes a file of a name through all operations.
func (f folder) passesThrough(t *testing.T, name string) {
	t.Helper()
	f.write(t, name, "needle 1\n")
	f.has(t, name, "needle 1\n")
	f.do(t, "edit_file", object{"path": name, "edits": []object{{"old": "1", "new": "2"}}})
	if got := f.do(t, "read_file", object{"path": name}); text(got, "text") != "needle 2\n" || text(got, "path") != f.at(name) {
		t.Errorf("%q reads as %v", name, brief(got))
	}
	if got := string(f.mustDownload(t, name)); got != "needle 2\n" {
		t.Errorf("%q is downloaded as %q", name, got)
	}
	f.mustUpload(t, name, []byte("needle 3\n"))
	if got := f.list(t, object{"hidden": true}); len(got.Items) != 1 || got.Items[0].Path != f.at(name) {
		t.Errorf("%q is listed as %+v", name, got.Items)
	}
	if got := f.search(t, object{"literal": "needle", "hidden": true}); len(got.Matches) != 1 || got.Matches[0].Path != f.at(name) {
		t.Errorf("%q is found as %+v", name, got)
	}
	f.do(t, "make_directory", object{"path": "dir"})
	f.do(t, "copy_file", object{"source": name, "destination": "dir/" + name})
	f.do(t, "move_file", object{"source": name, "destination": "moved"})
	f.has(t, "dir/"+name, "needle 3\n")
	f.do(t, "stat_file", object{"path": "dir/" + name})
	f.do(t, "delete_file", object{"path": "dir/" + name})
	f.do(t, "delete_file", object{"path": "dir"})
	f.do(t, "delete_file", object{"path": "moved"})
	if t.Failed() {
		t.Fatalf("that was %q", name)
	}
}
