package e2e

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// TestAShellOverMCP plays what an assistant does with a shell: state that lasts,
// a prompt that is answered, ctrl-c, an end that is told.
func TestAShellOverMCP(t *testing.T) {
	for _, c := range clients {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := player{t, c.connect(t, "namespace")}
			id := p.call("create_environment", object{})["id"]
			sh := p.call("open_shell", object{"environment_id": id, "name": "work"})["id"]
			inShell := func(script string) command {
				return as[command](t, p.call("run_in_shell", object{"shell_id": sh, "command": script, "wait_ms": longWait}))
			}
			inShell("mkdir -p d; cd d; export A=lasting")
			if got := inShell("echo $A ${PWD##*/}; false"); got.exit() != 1 || got.Stdout.Text != "lasting d\n" || !strings.HasSuffix(got.Cwd, "/d") {
				t.Errorf("A39: %+v", got)
			}
			asked := inShell("read x; echo got $x")
			if asked.Status != "running" || known(asked.Waiting) != "true" || !strings.Contains(asked.Next, "write_shell") {
				t.Errorf("A20: %+v", asked)
			}
			p.call("write_shell", object{"shell_id": sh, "data": "it\n"})
			if got := as[command](t, p.call("get_command", object{"command_id": asked.ID, "wait_ms": longWait})); got.Stdout.Text != "got it\n" {
				t.Errorf("A20: %+v", got)
			}
			stuck := inShell("cat")
			p.call("write_shell", object{"shell_id": sh, "keys": []string{"ctrl-c"}})
			if got := as[command](t, p.call("get_command", object{"command_id": stuck.ID, "wait_ms": longWait})); got.exit() != 130 {
				t.Errorf("A35: %+v", got)
			}
			if got := inShell("exit 3"); got.exit() != 3 || !got.ShellClosed {
				t.Errorf("A3: %+v", got)
			}
			var refused *problem
			if _, err := p.c.call(context.Background(), "run_in_shell", object{"shell_id": sh, "command": "true"}); !errors.As(err, &refused) || refused.Code != "shell_closed" || refused.Reason != "exited" {
				t.Errorf("A1: %v", err)
			}
		})
	}
}

func TestB16ACancelledCallInAShellEndsTheWaitAndNotTheCommand(t *testing.T) {
	for _, c := range clients[:2] { // the Go SDK's, which tell the server
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := player{t, c.connect(t, "namespace")}
			id := p.call("create_environment", object{})["id"]
			sh := p.call("open_shell", object{"environment_id": id})["id"]
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			ended := make(chan error, 1)
			go func() {
				script := "until [ -e go ]; do sleep .05; done; echo went on"
				_, err := p.c.call(ctx, "run_in_shell", object{"shell_id": sh, "command": script, "wait_ms": longWait})
				ended <- err
			}()
			var list []command
			if err := eventually(func() error {
				list = as[struct{ Items []command }](t, p.call("list_commands", object{"environment_id": id, "status": "running"})).Items
				if len(list) == 0 {
					return errors.New("nothing runs")
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			cancel()
			if err := <-ended; err == nil {
				t.Error("the call was not cancelled")
			}
			p.run(object{"environment_id": id, "command": "touch go"})
			got := as[command](t, p.call("get_command", object{"command_id": list[0].ID, "wait_ms": longWait}))
			if got.exit() != 0 || got.Stdout.Text != "went on\n" {
				t.Errorf("it came to %+v", got)
			}
			if got := as[command](t, p.call("run_in_shell", object{"shell_id": sh, "command": "echo next"})); got.Stdout.Text != "next\n" {
				t.Errorf("the shell's next gave %+v", got)
			}
		})
	}
}
