package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// workspaceOnHost is the folder of an environment as the host has it.
func (s *service) workspaceOnHost(t *testing.T, p place) string {
	t.Helper()
	dir := filepath.Join(s.data, "workspaces", p.id)
	if _, err := os.Lstat(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestD3SystemFoldersAsLinksInTheWorkspace(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		c := plant(t)
		p := s.place(t)
		p.sh(t, fmt.Sprintf("for n in dev proc tmp etc run usr; do ln -s %s $n; done; ln -s %[1]s/canary null", c.dir))
		s.kill()
		s = s.restart(t) // the box is made anew over these
		p.rest = s.rest
		if got := p.sh(t, "echo on > /dev/null; cd /tmp && pwd; readlink ~/dev"); got != "/tmp\n"+c.dir+"\n" && s.tier == "namespace" {
			t.Errorf("inside there is %q", got)
		}
		for name, door := range s.doors(t) {
			f := folder{p, door, "."}
			for _, link := range []string{"dev", "proc", "tmp", "etc"} {
				f.fails(t, "path_outside_workspace", "read_file", object{"path": link + "/canary"})
				f.fails(t, "path_outside_workspace", "write_file", object{"path": link + "/canary", "content": "x"})
				f.fails(t, "path_outside_workspace", "list_files", object{"path": link})
				f.fails(t, "path_outside_workspace", "delete_file", object{"path": link + "/sub", "recursive": true})
			}
			f.fails(t, "path_outside_workspace", "write_file", object{"path": "null", "content": "x"})
			if got := f.search(t, object{"literal": "outside"}); got.Total != 0 {
				t.Errorf("%s: the search finds %+v", name, got)
			}
			f.do(t, "delete_file", object{"path": "tmp", "recursive": true})
			p.sh(t, "ln -s "+c.dir+" tmp")
		}
		p.must(t, "reset_environment", p.in(nil))
		if after := c.look(t); after != c.before {
			t.Errorf("outside there was\n%s\nand is\n%s", c.before, after)
		}
	})
}

// A link to another's file can only come from somebody else than the environment:
// here from the host.
func TestD11AHardLinkToAnothersFile(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("as a user all environments' files are that user's")
	}
	onEachTier(t, func(t *testing.T, s *service) {
		f := s.place(t).folder(t, s.rest)
		other := filepath.Join(filepath.Dir(s.data), "of-root")
		if err := os.WriteFile(other, []byte(secret), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Link(other, filepath.Join(s.workspaceOnHost(t, f.place), f.dir, "hard")); err != nil {
			t.Fatal(err)
		}
		f.fails(t, "permission_denied", "read_file", object{"path": "hard"})
		f.fails(t, "permission_denied", "edit_file", object{"path": "hard", "edits": []object{{"old": "outside", "new": "x"}}})
		_, _, err := f.download(t.Context(), "hard", nil)
		isProblem(t, "permission_denied", "a download", nil, err)
		f.fails(t, "permission_denied", "copy_file", object{"source": "hard", "destination": "copied"})
		if got := f.search(t, object{"literal": "outside"}); got.Total != 0 {
			t.Errorf("the search finds %+v", got)
		}
		// To replace or remove the name is the right of who has the directory.
		_, _ = f.door.call(t.Context(), "write_file", f.in(object{"path": "hard", "content": "mine"}))
		_, _ = f.door.call(t.Context(), "write_file", f.in(object{"path": "hard", "content": "mine", "append": true}))
		_, _ = f.door.call(t.Context(), "delete_file", f.in(object{"path": "hard"}))
		if got := readFile(t, other); got != secret {
			t.Errorf("it holds %q", got)
		}
		if info, err := os.Stat(other); err != nil || info.Mode() != 0o600 {
			t.Errorf("it is %v %v", info, err)
		}
	})
}

var hostileCases = []fileCase{
	{"D11 what a file may not become", func(t *testing.T, f folder) {
		f.holds(t, "f", "x\n")
		f.run(t, "chmod 4755 f 2>/dev/null; chown 0:0 f 2>/dev/null; ln /etc/passwd p 2>/dev/null; mknod n c 1 3 2>/dev/null; true")
		f.write(t, "f", "y\n")
		if got := f.run(t, "[ -O f ] && [ ! -u f ] && [ ! -e n ] && echo fine"); got != "fine" {
			t.Errorf("there is %s", f.run(t, "ls -la"))
		}
	}},
	{"hard links inside", func(t *testing.T, f folder) {
		f.holds(t, "a", "old\n")
		f.run(t, "ln a b")
		f.write(t, "a", "new\n")
		f.has(t, "a", "new\n")
		f.has(t, "b", "old\n") // as documented: the name is replaced
	}},
	{"D15 a lease holds up nobody", func(t *testing.T, f folder) {
		f.holds(t, "f", "x\n")
		c := f.exec(t, object{"cwd": f.dir, "wait_ms": 0, "argv": []string{"python3", "-c", `
import fcntl, signal, time
signal.signal(signal.SIGIO, signal.SIG_IGN)
f = open("f", "r+")
try: fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_WRLCK); print("leased", flush=True)
except OSError: print("refused", flush=True)
time.sleep(60)`}})
		f.shows(t, c.ID, "stdout", "e")
		begin := time.Now()
		for _, operation := range []string{"read_file", "stat_file"} {
			f.do(t, operation, object{"path": "f"})
		}
		f.write(t, "f", "y\n")
		if d := time.Since(begin); d > 5*time.Second {
			t.Errorf("it took %s", d)
		}
		f.signal(t, c.ID, "KILL")
		f.has(t, "f", "y\n")
	}},
	{"D15 a FIFO in place of a file between two calls", func(t *testing.T, f folder) {
		f.write(t, "f", "x\n")
		tag := f.tag(t, "f")
		f.run(t, "rm f; mkfifo f")
		begin := time.Now()
		for operation, in := range map[string]object{
			"read_file": {"path": "f"}, "write_file": {"path": "f", "content": "y", "if_match": tag}, "edit_file": edits("x", "y"),
		} {
			f.fails(t, "not_a_regular_file", operation, in)
		}
		f.search(t, object{"literal": "x"})
		if d := time.Since(begin); d > 5*time.Second {
			t.Errorf("it took %s", d)
		}
		if got := f.run(t, "stat -c %F f"); got != "fifo" {
			t.Errorf("it is now a %s", got)
		}
	}},
	{"D15 a FIFO that comes and goes", func(t *testing.T, f folder) {
		c := f.exec(t, object{"cwd": f.dir, "wait_ms": 0, "command": "echo x > file; mkfifo fifo; while :; do ln -f file f; ln fifo g; mv g f; done"})
		for end := time.Now().Add(time.Second); time.Now().Before(end); {
			begin := time.Now()
			for operation, in := range map[string]object{"read_file": {"path": "f"}, "search_files": {"path": "", "literal": "x"}} {
				if _, err := f.door.call(t.Context(), operation, f.in(in)); err != nil {
					isProblem(t, "not_a_regular_file|not_found", operation, nil, err)
				}
			}
			if d := time.Since(begin); d > 5*time.Second {
				t.Fatalf("it took %s", d)
			}
		}
		f.signal(t, c.ID, "KILL")
	}},
	{"a directory that is deeper than a path is long", func(t *testing.T, f folder) {
		f.py(t, "import os\nfor i in range(300):\n  os.mkdir('n' * 200); os.chdir('n' * 200)\nopen('needle', 'w').write('needle')")
		begin := time.Now()
		_, _ = f.door.call(t.Context(), "list_files", f.in(object{"path": "", "recursive": true, "limit": 10})) // the answer is bounded, see below
		_, _ = f.door.call(t.Context(), "search_files", f.in(object{"path": "", "literal": "needle"}))
		_, _ = f.door.call(t.Context(), "copy_file", f.in(object{"source": "", "destination": "../copied"}))
		f.do(t, "delete_file", object{"path": "n" + strings.Repeat("n", 199), "recursive": true})
		if d := time.Since(begin); d > patience {
			t.Errorf("it took %s", d)
		}
		if got := f.run(t, "ls"); got != "" {
			t.Errorf("there is %s", got)
		}
		_, _ = f.door.call(t.Context(), "delete_file", f.in(object{"path": "../copied", "recursive": true}))
	}},
	{"a box full of processes", func(t *testing.T, f folder) {
		c := f.exec(t, object{"cwd": f.dir, "wait_ms": 0, "command": "for i in $(seq 2000); do sleep 300 & done 2>/dev/null; wait"})
		f.write(t, "f", "x\n")
		f.do(t, "edit_file", edits("x", "y"))
		if got := text(f.do(t, "read_file", object{"path": "f"}), "text"); got != "y\n" {
			t.Errorf("it reads %q", got)
		}
		f.signal(t, c.ID, "KILL")
	}},
}

func TestCasesOfHostileFiles(t *testing.T) { playFiles(t, hostileCases) }

func TestD16NamesInListsErrorsAndLogs(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		forged := "x\ntime=2026-01-01T00:00:00Z level=ERROR msg=forged \x1b[2J\r\u2028"
		for _, door := range s.doors(t) {
			f := s.place(t).folder(t, door)
			f.write(t, forged, "x")
			if got := f.list(t, nil).Items; len(got) != 1 || got[0].Path != f.at(forged) {
				t.Errorf("the list is %+v", got)
			}
			for _, operation := range []string{"list_files", "make_directory"} {
				p := f.fails(t, "not_a_directory|already_exists", operation, object{"path": forged})
				if strings.ContainsAny(p.Detail, "\n\r\x1b") {
					t.Errorf("%s says %q", operation, p.Detail)
				}
			}
			p := f.fails(t, "not_found", "read_file", object{"path": forged + "none"})
			if strings.ContainsAny(p.Detail, "\n\r\x1b") {
				t.Errorf("read_file says %q", p.Detail)
			}
			p = f.fails(t, "patch_rejected|not_found", "apply_patch", object{"cwd": "", "patch": begin("*** Update File: \x1b[2Jnone", "@@", "-a", "+b")})
			if strings.ContainsAny(p.Detail, "\n\r\x1b") {
				t.Errorf("apply_patch says %q", p.Detail)
			}
			f.upload(t.Context(), forged+"/x", strings.NewReader(""), nil)
		}
		for line := range strings.Lines(s.output.String()) {
			if strings.HasPrefix(line, "time=2026-01-01") || strings.Contains(line, "\x1b") || !strings.HasPrefix(line, "time=") && strings.Contains(line, "forged") {
				t.Errorf("the log has the line %q", line)
			}
		}
	})
}
