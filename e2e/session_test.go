package e2e

import (
	"bytes"
	"context"
	"errors"
	"testing"
)

// firstSession is what an assistant does first: programs in three languages, a
// repository. Each is one exec; what it prints must be exact.
var firstSession = []struct{ name, command, stdout string }{
	{"C", `cat > hello.c <<'END'
#include <stdio.h>
int main(void) { puts("hello from C"); return 0; }
END
gcc -Wall -o hello hello.c && ./hello`, "hello from C\n"},
	{"Go", `mkdir -p hello-go && cd hello-go && cat > main.go <<'END'
package main

import "fmt"

func main() { fmt.Println("hello from Go") }
END
cat > go.mod <<'END'
module hello
END
go build -o hello . && ./hello`, "hello from Go\n"},
	{"Python", `cat > hello.py <<'END'
print("hello from", "Python")
END
python3 hello.py`, "hello from Python\n"},
	{"git", `git init -q repo && cd repo && cp ../hello.c . && git add hello.c &&
git -c user.name=A -c user.email=a@example.org commit -qm first && git log --format=%s && git status --porcelain`, "first\n"},
}

// playFirstSession plays the same session with any client.
func playFirstSession(t *testing.T, c client) {
	t.Helper()
	p := player{t, c}
	id := p.call("create_environment", object{"name": "first session"})["id"]
	for _, step := range firstSession {
		got := p.run(object{"environment_id": id, "command": step.command, "wait_ms": 45000})
		if got.Status != "exited" || got.exit() != 0 || got.Stdout.Text != step.stdout {
			t.Errorf("%s: %s %d, stdout %q, stderr %q", step.name, got.Status, got.exit(), got.Stdout.Text, got.Stderr.Text)
		}
	}
	p.readLongOutput(id)
	p.killRunaway(id)

	_, err := c.call(context.Background(), "get_environment", object{"environment_id": "env_aaaaaaaaaaaaaaaaaaaaaaaaaa"})
	var refused *problem
	if !errors.As(err, &refused) || refused.Code != "not_found" {
		t.Errorf("an unknown id gives %v, want not_found", err)
	}
	p.call("delete_environment", object{"environment_id": id})
}

// player makes calls that have to succeed.
type player struct {
	t *testing.T
	c client
}

func (p player) call(operation string, in object) object {
	p.t.Helper()
	answer, err := p.c.call(context.Background(), operation, in)
	if err != nil {
		p.t.Fatalf("%s %s: %v", operation, brief(in), err)
	}
	return answer
}

// run runs a command to its end, however often it has to wait.
func (p player) run(in object) command {
	p.t.Helper()
	got := as[command](p.t, p.call("exec", in))
	for range 5 {
		if got.Status != "running" {
			break
		}
		got = as[command](p.t, p.call("get_command", object{"command_id": got.ID, "wait_ms": 45000}))
	}
	return got
}

// readLongOutput reads what did not fit inline, by offset.
func (p player) readLongOutput(environment any) {
	p.t.Helper()
	want := numbers(100_000)
	got := p.run(object{"environment_id": environment, "command": "seq 1 100000"})
	if !got.Stdout.Truncated || got.Stdout.Total != int64(len(want)) {
		p.t.Errorf("stdout: truncated %v, %d bytes, want %d", got.Stdout.Truncated, got.Stdout.Total, len(want))
	}
	var all []byte
	for range 100 {
		next := as[page](p.t, p.call("read_output", object{
			"command_id": got.ID, "stream": "stdout", "offset": len(all), "limit_bytes": 100_000,
		}))
		all = append(all, next.bytes(p.t)...)
		if next.EOF {
			break
		}
	}
	if !bytes.Equal(all, want) {
		p.t.Errorf("read_output gave %d bytes that differ from the %d written", len(all), len(want))
	}
}

// killRunaway starts what never ends, finds it again and kills it.
func (p player) killRunaway(environment any) {
	p.t.Helper()
	started := as[command](p.t, p.call("exec", object{
		"environment_id": environment, "command": "while :; do :; done & while :; do :; done", "wait_ms": 0,
	}))
	list := as[struct{ Items []command }](p.t, p.call("list_commands", object{"environment_id": environment, "status": "running"}))
	if len(list.Items) != 1 || list.Items[0].ID != started.ID {
		p.t.Fatalf("what runs is %+v, want %s", list.Items, started.ID)
	}
	killed := as[command](p.t, p.call("signal_command", object{"command_id": started.ID, "signal": "KILL"}))
	if killed.Status != "killed" || killed.Reason != "signal" {
		p.t.Errorf("the runaway is %+v", killed)
	}
	usage := as[struct {
		Usage struct{ Processes struct{ Used *int } }
	}](p.t, p.call("get_environment", object{"environment_id": environment}))
	if n := usage.Usage.Processes.Used; n == nil || *n != 0 {
		p.t.Errorf("processes in use after the kill: %v", n)
	}
}
