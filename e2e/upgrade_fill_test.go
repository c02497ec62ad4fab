package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// This is what makes the kept data folders of earlier schemas; e2e/testdata/README.md
// says how. It is itself tested, so that it is in order when the next one is made.

// aged is a data folder as the envapi that filled it answered: what a later one must
// answer too.
type aged struct {
	Asks     []ask             `json:"asks"`     // in this order: the last ones restore what is archived
	Lost     []string          `json:"lost"`     // commands that ran when it was killed
	Closed   []string          `json:"closed"`   // shells that were open then
	Keys     map[string]string `json:"keys"`     // of create_environment, and what it gave
	Archived []string          `json:"archived"` // environments
	Active   []string          `json:"active"`
}

// ask is a call and what its answer must hold, among other things.
type ask struct {
	Operation string `json:"operation"`
	In        object `json:"in"`
	Want      object `json:"want"`
}

// kinds makes files of all kinds with times of whole seconds, and tells prints what
// can be told of them on any file system.
const (
	kinds = `umask 022; mkdir -p src/deep ' spaces'; printf 'print(1)\n' > src/app.py; printf '\000\377' > src/deep/bytes
printf 'ä\r\n' > ' spaces/größe'; ln -s ../src/app.py ' spaces/link'; ln src/app.py src/hard; mkfifo fifo; : > .hidden
chmod 0751 src; chmod 0600 src/deep/bytes; chmod 0755 src/app.py; truncate -s 1M sparse; seq 200 > numbers
find . -mindepth 1 -exec touch -h -d '2001-02-03 04:05:06' {} +`
	tells = `find . -mindepth 1 ! -type d -printf '%p %y %m %n %s %l %T@\n' | LC_ALL=C sort
find . -mindepth 1 -type d -printf '%p %m %T@\n' | LC_ALL=C sort; find . -type f | LC_ALL=C sort | tr '\n' '\0' | xargs -0 sha256sum`
)

// fill fills a data folder through a service and kills that.
func (s *service) fill(t *testing.T) *aged {
	t.Helper()
	a := &aged{Keys: map[string]string{}}
	gone := s.keyed(t, a, "gone", object{})
	gone.must(t, "delete_environment", gone.in(nil))

	work := s.keyed(t, a, "work", object{"name": "work", "labels": object{"team": "red"}, "limits": object{"shells": 4}})
	a.Active = append(a.Active, work.id)
	a.commands(t, work)
	a.shells(t, work)
	work.sh(t, kinds)
	a.files(t, work)
	a.archive(t, s)

	for range 2 {
		c := work.background(t, "echo began; sleep 3600")
		work.output(t, c.ID, object{"wait_ms": 10000})
		a.Lost = append(a.Lost, c.ID)
	}
	a.Closed = append(a.Closed, as[shellRecord](t, work.must(t, "open_shell", work.in(object{"name": "open"}))).ID)
	s.kill()
	return a
}

// keyed makes an environment under a key.
func (s *service) keyed(t *testing.T, a *aged, key string, in object) place {
	t.Helper()
	made := s.must(t, "create_environment", and(in, object{"idempotency_key": key}))
	p := place{s.rest, text(made, "id")}
	a.Keys[key] = p.id
	return p
}

// note has a call answered as it is now.
func (a *aged) note(t *testing.T, p place, operation string, in object, members ...string) {
	t.Helper()
	answer, want := p.must(t, operation, in), object{}
	for _, name := range members {
		want[name] = answer[name]
	}
	a.Asks = append(a.Asks, ask{operation, in, want})
}

// commands runs some with every end there is.
func (a *aged) commands(t *testing.T, p place) {
	t.Helper()
	for _, in := range []object{
		{"command": "echo out; echo err >&2; exit 7", "idempotency_key": "run"},
		{"command": "kill -TERM $$; sleep 60"},
		{"command": "echo slow; sleep 60", "timeout_ms": 500},
		{"command": "echo a; echo b >&2", "merge_stderr": true},
		{"command": "seq 5000 | sed s,.*,the-same-line,"},
		{"command": `printf '\377\000'`},
		{"argv": []string{"nosuchprogram"}},
	} {
		a.ended(t, p, p.exec(t, in).ID)
	}
	c := p.background(t, "echo until; sleep 3600")
	p.output(t, c.ID, object{"wait_ms": 10000})
	p.signal(t, c.ID, "KILL")
	a.ended(t, p, c.ID)
	a.note(t, p, "exec", p.in(object{"command": "echo out; echo err >&2; exit 7", "idempotency_key": "run"}), "id", "exit_code", "stdout", "stderr")
}

// ended notes a command that has ended, and its output.
func (a *aged) ended(t *testing.T, p place, id string) {
	t.Helper()
	a.note(t, p, "get_command", object{"command_id": id}, "environment_id", "shell_id", "command", "status", "exit_code",
		"signal", "reason", "started_at", "ended_at", "duration_ms", "usage", "stdout", "stderr", "cwd")
	for _, stream := range []string{"stdout", "stderr", "all"} {
		a.note(t, p, "read_output", object{"command_id": id, "stream": stream, "limit_bytes": 1 << 20},
			"data", "encoding", "total_bytes", "dropped_bytes", "eof")
	}
}

// shells runs commands in one and closes it.
func (a *aged) shells(t *testing.T, p place) {
	t.Helper()
	sh := text(p.must(t, "open_shell", p.in(object{"name": "main"})), "id")
	c := as[command](t, p.must(t, "run_in_shell", object{"shell_id": sh, "command": "cd /tmp; echo in a shell; echo err >&2; (exit 5)"}))
	a.ended(t, p, c.ID)
	p.must(t, "close_shell", object{"shell_id": sh})
	a.note(t, p, "get_shell", object{"shell_id": sh}, "id", "name", "kind", "state", "close_reason", "cwd", "opened_at", "closed_at")
}

// files notes what is in a folder.
func (a *aged) files(t *testing.T, p place) {
	t.Helper()
	a.note(t, p, "get_environment", p.in(nil), "id", "name", "labels", "limits", "state", "network", "created_at")
	a.note(t, p, "read_file", p.in(object{"path": "src/app.py"}), "text", "etag", "size_bytes", "line_ending")
	a.note(t, p, "read_file", p.in(object{"path": " spaces/größe"}), "text", "etag", "size_bytes", "line_ending")
	a.Asks = append(a.Asks, ask{"exec", p.in(object{"command": tells}), object{
		"status": "exited", "stdout": object{"text": p.exec(t, object{"command": tells}).Stdout.Text},
	}})
}

// archive archives an environment, where this envapi can.
func (a *aged) archive(t *testing.T, s *service) {
	t.Helper()
	p := s.keyed(t, a, "archived", object{"name": "archived"})
	p.sh(t, kinds)
	was := p.exec(t, object{"command": tells}).Stdout.Text
	if _, err := p.call(t.Context(), "archive_environment", p.in(nil)); err != nil {
		a.Active = append(a.Active, p.id)
	} else {
		a.Archived = append(a.Archived, p.id)
		a.note(t, p, "get_environment", p.in(nil), "id", "name", "state", "created_at", "archived_at", "archive_bytes")
	}
	a.Asks = append(a.Asks, ask{"exec", p.in(object{"command": tells}), object{"status": "exited", "stdout": object{"text": was}}})
}

// TestTheDataFolderOfThisSchemaCanBeKept makes a folder with the programs under test,
// and finds everything again. With ENVAPI_KEEP_FOLDER it is packed there.
func TestTheDataFolderOfThisSchemaCanBeKept(t *testing.T) {
	t.Parallel()
	keep := os.Getenv("ENVAPI_KEEP_FOLDER")
	c := config{}
	if keep != "" && os.Getuid() == 0 {
		c.env = map[string]string{"ENVAPI_UID_RANGE": os.Getenv("ENVAPI_KEEP_UIDS")}
	}
	s := start(t, c)
	a := s.fill(t)
	if keep != "" {
		s.keep(t, a, keep)
		return
	}
	s.restart(t).finds(t, a)
}

// keep packs the data folder with what must be found in it. What a start makes anew
// is left out, and the secrets.
func (s *service) keep(t *testing.T, a *aged, archive string) {
	t.Helper()
	if os.Getenv("ENVAPI_KEEP_STOPPED") != "" { // with the write-ahead log in the file
		s.restart(t).stop(t)
	}
	data, err := json.MarshalIndent(a, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.data, "answers.json"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	pack := exec.Command("tar", "--format=posix", "--sparse", "--sort=name", "--numeric-owner", "--gzip",
		"--pax-option=delete=atime,delete=ctime", "--exclude=./dev-*", "--exclude=./envapi.db-reserve", "--exclude=./envapi.db-shm",
		"--directory", s.data, "--create", "--file", archive, ".")
	if out, err := pack.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	fmt.Println("kept", archive)
}
