package e2e

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	_ "modernc.org/sqlite" // to make the records of a newer envapi

	"envapi/internal/testbin"
)

// newestSchema is the one that the programs under test write.
func newestSchema(t *testing.T) int {
	t.Helper()
	all, err := filepath.Glob("../internal/store/migrations/*.sql")
	if err != nil || len(all) == 0 {
		t.Fatalf("cannot count the migrations: %v", err)
	}
	return len(all)
}

// filler is who filled the kept folders that this user can have.
func filler() string {
	if os.Getuid() == 0 {
		return "root"
	}
	return "user"
}

// TestADataFolderOfEachSchemaIsServed fails when a migration was added without a
// folder of the schema before it.
func TestADataFolderOfEachSchemaIsServed(t *testing.T) {
	t.Parallel()
	for schema := 1; schema <= newestSchema(t); schema++ {
		archive := fmt.Sprintf("testdata/data-schema-%d-%s.tar.gz", schema, filler())
		if schema == newestSchema(t) && !isThere(archive) {
			break // it may still change
		}
		// One after the other: as root they have uids in common.
		t.Run(fmt.Sprint(schema), func(t *testing.T) {
			data := filepath.Join(passable(t), "data")
			a := unpackKept(t, archive, data)
			before := ownersOf(t, data)
			s := start(t, config{data: data})
			upgraded := fmt.Sprintf("from=%d to=%d", schema, newestSchema(t))
			if said := strings.Contains(s.output.String(), upgraded); said != (schema < newestSchema(t)) {
				t.Errorf("it says %q: %v, in\n%s", upgraded, said, s.output)
			}
			if after := ownersOf(t, data); !reflect.DeepEqual(before, after) {
				t.Errorf("the folders had the owners %v and now have %v", before, after)
			}
			s.finds(t, a)
			again := s.stopAndStart(t)
			if strings.Contains(again.output.String(), "upgraded") {
				t.Errorf("it upgraded twice:\n%s", again.output)
			}
			again.finds(t, &aged{Keys: a.Keys, Lost: a.Lost, Closed: a.Closed})
		})
	}
}

// unpackKept lays a kept data folder out and gives what must be found in it.
func unpackKept(t *testing.T, archive, data string) *aged {
	t.Helper()
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	unpack := exec.Command("tar", "--extract", "--gzip", "--preserve-permissions", "--numeric-owner", "--directory", data, "--file", archive)
	if out, err := unpack.CombinedOutput(); err != nil {
		t.Fatalf("a migration needs a kept folder of the schema before it, see testdata/README.md: %v\n%s", err, out)
	}
	answers := filepath.Join(data, "answers.json")
	decoder := json.NewDecoder(strings.NewReader(readFile(t, answers)))
	decoder.UseNumber()
	a := &aged{}
	if err := decoder.Decode(a); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(answers); err != nil {
		t.Fatal(err)
	}
	return a
}

// ownersOf gives the owners of the environments' folders, by name.
func ownersOf(t *testing.T, data string) map[string]int {
	t.Helper()
	owners := map[string]int{}
	folders, err := os.ReadDir(filepath.Join(data, "workspaces"))
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		info, err := folder.Info()
		if err != nil {
			t.Fatal(err)
		}
		owners[folder.Name()] = int(info.Sys().(*syscall.Stat_t).Uid)
	}
	return owners
}

func (s *service) stopAndStart(t *testing.T) *service {
	t.Helper()
	s.stop(t)
	return s.restart(t)
}

// finds makes sure that everything is there as it was answered, and of use.
func (s *service) finds(t *testing.T, a *aged) {
	t.Helper()
	for _, q := range a.Asks {
		if wrong := misses(q.Want, s.must(t, q.Operation, q.In)); wrong != "" {
			t.Errorf("%s %s: %s", q.Operation, brief(q.In), wrong)
		}
	}
	for _, id := range a.Lost {
		if c := s.get(t, id, 0); c.Status != "lost" || c.Reason != "service_stopped" || c.Stdout.Text != "began\n" {
			t.Errorf("what ran when it was killed is %s", c.brief())
		}
	}
	for _, id := range a.Closed {
		if sh := as[shellRecord](t, s.must(t, "get_shell", object{"shell_id": id})); sh.State != "closed" || sh.CloseReason != "service_restarted" {
			t.Errorf("a shell of before is %+v", sh)
		}
	}
	for key, id := range a.Keys {
		in := object{"idempotency_key": key, "name": key}
		switch key {
		case "work":
			in = object{"idempotency_key": key, "name": "work", "labels": object{"team": "red"}, "limits": object{"shells": 4}}
		case "gone":
			in = object{"idempotency_key": key}
		}
		answer, err := s.call(t.Context(), "create_environment", in)
		if key == "gone" {
			isProblem(t, "not_found", "create_environment", answer, err)
		} else if err != nil || answer["id"] != id {
			t.Errorf("the key %s gives %v, %v and gave %s", key, brief(answer), err, id)
		}
	}
	for _, id := range append(a.Active, a.Archived...) {
		s.worksOn(t, place{s.rest, id})
	}
}

// worksOn uses an environment of before for everything.
func (s *service) worksOn(t *testing.T, p place) {
	t.Helper()
	if got := p.sh(t, `cat ' spaces/link' && echo new > src/new && cat src/new`); got != "print(1)\nnew\n" {
		t.Errorf("its files hold %q", got)
	}
	p.must(t, "write_file", p.in(object{"path": "src/app.py", "content": "print(2)\n"}))
	sh := text(p.must(t, "open_shell", p.in(nil)), "id")
	c := as[command](t, p.must(t, "run_in_shell", object{"shell_id": sh, "command": "cat src/app.py", "wait_ms": 45000}))
	if c.Stdout.Text != "print(2)\n" {
		t.Errorf("a shell reads %s", c.brief())
	}
	p.must(t, "archive_environment", p.in(nil))
	if got := p.sh(t, "cat src/app.py"); got != "print(2)\n" {
		t.Errorf("out of its archive comes %q", got)
	}
	fork := place{p.rest, text(p.must(t, "fork_environment", p.in(nil)), "id")}
	fork.must(t, "reset_environment", fork.in(nil))
	fork.must(t, "delete_environment", fork.in(nil))
}

// misses says what of want is not in got: of objects what want has, of all else all.
func misses(want, got any) string {
	if members, ok := want.(object); ok {
		have, _ := got.(object)
		for name, value := range members {
			if wrong := misses(value, have[name]); wrong != "" {
				return name + " " + wrong
			}
		}
		return ""
	}
	w, _ := json.Marshal(want) //nolint:errchkjson // what was JSON
	g, _ := json.Marshal(got)  //nolint:errchkjson // likewise
	if bytes.Equal(w, g) {
		return ""
	}
	return fmt.Sprintf("is %s and was %s", g, w)
}

// TestANewerSchemaIsRefusedAndLeftAsItIs also with a write-ahead log, which opening
// would put into the file.
func TestANewerSchemaIsRefusedAndLeftAsItIs(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"envapi-http", "envapi-mcp"} {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			s := start(t, config{})
			p := s.place(t)
			p.sh(t, "echo kept > file")
			s.kill()
			fromTheFuture(t, filepath.Join(s.data, "envapi.db"))
			before := snapshot(t, s.data)
			cmd := exec.CommandContext(t.Context(), testbin.Path(t, program))
			cmd.Dir = t.TempDir()
			cmd.Env = settings(s.config, map[string]string{"ENVAPI_ADDR": freeAddress(t)})
			if program == "envapi-http" {
				cmd.Args = append(cmd.Args, "--dev")
			}
			out, err := cmd.CombinedOutput()
			if err == nil {
				t.Fatalf("it started:\n%s", out)
			}
			for _, word := range []string{
				"envapi.db", "version 999", fmt.Sprintf("up to %d", newestSchema(t)), "use the newer envapi that wrote it, or a backup from before",
			} {
				if !strings.Contains(string(out), word) {
					t.Errorf("it does not say %q:\n%s", word, out)
				}
			}
			if after := snapshot(t, s.data); !reflect.DeepEqual(before, after) {
				t.Errorf("it changed the folder: it was\n%v\nand is\n%v", before, after)
			}
		})
	}
}

// fromTheFuture has the records say that a newer envapi wrote them, and leaves that in
// the write-ahead log as a kill does.
func fromTheFuture(t *testing.T, path string) {
	t.Helper()
	pool, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(WAL)")
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if _, err := pool.ExecContext(t.Context(), `INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, 1)`); err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(path + "-wal")
	if err != nil || len(log) == 0 {
		t.Fatalf("there is no write-ahead log: %v", err)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := pool.Close(); err != nil { // puts the log into the file
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{path: file, path + "-wal": log} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// snapshot is what is in a data folder, by name, save the lock, which says who came
// last, and the index of the write-ahead log, which SQLite makes to read it.
func snapshot(t *testing.T, data string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(data, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path, data)
		if name == "/envapi.lock" || name == "/envapi.db-shm" || name == "" {
			return nil
		}
		all[name] = fmt.Sprint(info.Mode(), info.Size())
		if info.Mode().IsRegular() {
			all[name] += tagOf([]byte(readFile(t, path)))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
