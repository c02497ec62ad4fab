package e2e

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"envapi/internal/require"
)

// swapper exchanges directories and files with links that lead out, as fast as it
// can, and makes again what is deleted.
const swapper = `
import ctypes, os, shutil, sys
libc = ctypes.CDLL(None, use_errno=True)
outside = sys.argv[1]
def swap(a, b):
    libc.renameat2(-100, a.encode(), -100, b.encode(), 2)
def make():
    os.makedirs("real", exist_ok=True)
    for name in ("secret", "f"):
        if not os.path.lexists("real/" + name):
            open("real/" + name, "w").write("inside\n")
    if not os.path.lexists("d"): os.mkdir("d"); open("d/secret", "w").write("inside\n"); open("d/f", "w").write("inside\n")
    if not os.path.lexists("out"): os.symlink(outside, "out")
    if not os.path.lexists("leaf"): open("leaf", "w").write("inside\n")
    if not os.path.lexists("out-leaf"): os.symlink(outside + "/secret", "out-leaf")
    if not os.path.lexists("up"): os.symlink("../../../../../../../.." + outside, "up")
print("swapping", flush=True)
i = 0
while True:
    i += 1
    try:
        if i % 50 == 1: make()
        swap("d", "out"); swap("leaf", "out-leaf"); swap("d", "out"); swap("leaf", "out-leaf")
        swap("d", "up"); swap("d", "up")
        if os.path.islink("d") and i % 50 == 2: os.unlink("d")
    except OSError: pass
`

// canaries are files of the host that everybody may change, so that nothing but
// the resolution of paths keeps the service from them.
type canaries struct {
	dir    string
	before string
}

const secret = "outside: nobody reads this"

func plant(t *testing.T) canaries {
	t.Helper()
	c := canaries{dir: filepath.Join(passable(t), "outside")}
	for _, name := range []string{"secret", "f", "canary", "sub/canary"} {
		path := filepath.Join(c.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(secret), 0o666); err != nil {
			t.Fatal(err)
		}
		for path, mode := range map[string]fs.FileMode{path: 0o666, filepath.Dir(path): 0o777} {
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
		}
	}
	c.before = c.look(t)
	return c
}

// look is all that can be seen of them: names, modes, times, contents.
func (c canaries) look(t *testing.T) string {
	t.Helper()
	var seen []string
	err := filepath.WalkDir(c.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content, _ := os.ReadFile(path) // a directory has none
		seen = append(seen, fmt.Sprintf("%s %s %s %q", path, info.Mode(), info.ModTime(), content))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	sort.Strings(seen)
	return strings.Join(seen, "\n")
}

// racers are the calls of the race; wrong says what may never be in an answer.
var racers = []struct {
	operation string
	in        object
}{
	{"read_file", object{"path": "d/secret"}},
	{"read_file", object{"path": "leaf"}},
	{"stat_file", object{"path": "d/secret", "etag": true}},
	{"list_files", object{"path": "d"}},
	{"list_files", object{"path": "", "recursive": true, "hidden": true}},
	{"search_files", object{"path": "", "literal": "nobody", "hidden": true}},
	{"search_files", object{"path": "d", "pattern": "o.tside"}},
	{"write_file", object{"path": "d/f", "content": "inside, written\n"}},
	{"write_file", object{"path": "d/new/deep", "content": "inside\n"}},
	{"write_file", object{"path": "leaf", "content": "inside, written\n"}},
	{"write_file", object{"path": "leaf", "content": "inside, appended\n", "append": true}},
	{"edit_file", object{"path": "leaf", "edits": []object{{"old": "inside", "new": "inside"}}}},
	{"apply_patch", object{"cwd": "", "patch": begin("*** Add File: d/patched", "+inside")}},
	{"make_directory", object{"path": "d/made"}},
	{"copy_file", object{"source": "d/secret", "destination": "copied", "overwrite": true}},
	{"copy_file", object{"source": "leaf", "destination": "d/copied", "overwrite": true}},
	{"move_file", object{"source": "d/f", "destination": "moved", "overwrite": true}},
	{"delete_file", object{"path": "d/secret"}},
	{"delete_file", object{"path": "d/new", "recursive": true}},
	{"delete_file", object{"path": "d", "recursive": true}},
}

func TestD10ARaceFromInsideNeverLeadsOut(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		c := plant(t)
		f := s.place(t).folder(t, s.rest)
		doors := s.doors(t)
		f.exec(t, object{"argv": []string{"python3", "-c", swapper, c.dir}, "cwd": f.dir, "wait_ms": 0})
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(require.Rounds(t, 3))*time.Second)
		defer cancel()
		var mu sync.Mutex
		done, codes := map[string]int{}, map[string]int{}
		note := func(what string, answer any, err error) {
			mu.Lock()
			defer mu.Unlock()
			var p *problem
			switch {
			case ctx.Err() != nil:
			case strings.Contains(fmt.Sprint(answer, err), secret) || strings.Contains(fmt.Sprint(answer), "canary"):
				t.Errorf("%s shows what is outside: %.500v %v", what, answer, err)
			case errors.As(err, &p) && p.Code != "internal":
				codes[p.Code]++
			case err != nil:
				t.Errorf("%s: %v", what, err)
			default:
				done[what]++
			}
		}
		var wg sync.WaitGroup
		for at, door := range []client{doors["REST"], doors["MCP"], doors["REST"], doors["MCP"]} {
			wg.Go(func() {
				for i := at * len(racers) / 4; ctx.Err() == nil; i++ {
					r := racers[i%len(racers)]
					answer, err := door.call(ctx, r.operation, f.in(r.in))
					note(r.operation, answer, err)
				}
			})
		}
		wg.Go(func() {
			for ctx.Err() == nil {
				resp, body, err := f.raw(ctx, "GET", "/content", "leaf", nil, nil)
				if err == nil && resp.StatusCode < 300 {
					note("download", string(body), nil)
				}
				_, err = f.upload(ctx, "d/up/load", strings.NewReader("inside\n"), nil)
				note("upload", nil, err)
				_, body, err = f.raw(ctx, "GET", "/archive", "d", nil, nil)
				if err == nil { // else it broke off, as it must where a directory changes under it
					note("export", plain(body), nil)
				}
			}
		})
		wg.Wait()
		t.Logf("done %v, refused %v", done, codes)
		if codes["path_outside_workspace"] == 0 || done["read_file"] == 0 || done["write_file"] == 0 || done["delete_file"] == 0 {
			t.Errorf("the race was none: done %v, refused %v", done, codes)
		}
		f.must(t, "reset_environment", f.place.in(nil))
		if after := c.look(t); after != c.before {
			t.Errorf("outside there was\n%s\nand is\n%s", c.before, after)
		}
	})
}
