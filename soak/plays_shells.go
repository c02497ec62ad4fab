package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/coder/websocket"
)

// shellPlays are about shells, and about streams.
var shellPlays = []play{
	{"shell", playShell},
	{"terminal", playTerminal},
	{"follow", playFollow},
}

// playShell runs commands in a shell that keeps what they changed, types, and closes it.
func playShell(ctx context.Context, c *client) error {
	made, err := c.call(ctx, "open_shell", c.here(object{"name": "soak"}))
	if err != nil {
		return err
	}
	this := func(input object) object {
		input["shell_id"] = text(made, "id")
		return input
	}
	nonce := c.nonce()
	if _, err := c.inShell(ctx, this(object{"command": "cd /tmp; A=" + nonce + "; f() { echo \"$A in $PWD\"; }"})); err != nil {
		return err
	}
	a, err := c.inShell(ctx, this(object{"command": "f; (exit 4)"}))
	if err := errors.Join(err, want("stdout", text(a, "stdout", "text"), nonce+" in /tmp\n"), want("exit_code", text(a, "exit_code"), "4")); err != nil {
		return err
	}
	a, err = c.call(ctx, "run_in_shell", this(object{"command": "read -r line; echo \"$line!\"", "wait_ms": 0}))
	if err != nil {
		return err
	}
	if _, err := c.call(ctx, "write_shell", this(object{"data": nonce, "keys": []string{"enter"}})); err != nil {
		return err
	}
	a, err = c.end(ctx, a)
	if err := errors.Join(err, want("stdout", text(a, "stdout", "text"), nonce+"!\n")); err != nil {
		return err
	}
	page, err := c.call(ctx, "list_shells", c.here(object{"state": "open"}))
	if err != nil || len(items(page)) == 0 {
		return errors.Join(err, errors.New("the list of open shells is empty"))
	}
	a, err = c.call(ctx, "close_shell", this(object{}))
	if err := errors.Join(err, want("close_reason", text(a, "close_reason"), "closed")); err != nil {
		return err
	}
	_, err = c.call(ctx, "run_in_shell", this(object{"command": "true"}))
	return refused(err, "shell_closed")
}

// inShell runs a command in a shell to its end.
func (c *client) inShell(ctx context.Context, input object) (object, error) {
	a, err := c.call(ctx, "run_in_shell", input)
	if err != nil {
		return nil, err
	}
	return c.end(ctx, a)
}

// playTerminal sits before a terminal, types, and sees what it shows.
func playTerminal(ctx context.Context, c *client) error {
	made, err := c.call(ctx, "open_shell", c.here(object{"kind": "terminal", "cols": 100, "rows": 30}))
	if err != nil {
		return err
	}
	shell := object{"shell_id": text(made, "id")}
	if _, err := c.call(ctx, "resize_shell", object{"shell_id": text(made, "id"), "cols": 120, "rows": 40}); err != nil {
		return err
	}
	a, err := c.call(ctx, "get_shell", shell)
	if err := errors.Join(err, want("cols", text(a, "cols"), "120")); err != nil {
		return err
	}
	if err := c.attach(ctx, text(made, "id")); err != nil {
		return err
	}
	a, err = c.call(ctx, "read_shell", object{"shell_id": text(made, "id"), "screen": true})
	if err := errors.Join(err, want("width of the screen", text(a, "screen", "cols"), "120")); err != nil {
		return err
	}
	_, err = c.call(ctx, "close_shell", shell)
	return err
}

// attach types a sum before the terminal of a shell and waits for what it comes to.
func (c *client) attach(ctx context.Context, shell string) error {
	return c.noted(ctx, kind{"rest", "attach"}, func(ctx context.Context) error {
		conn, err := c.sit(ctx, shell)
		if err != nil {
			return fmt.Errorf("attach: %w", err)
		}
		defer func() { _ = conn.CloseNow() }()
		a, b := 1000+c.rand.IntN(9000), 1_000_000+c.rand.IntN(9_000_000)
		if err := conn.Write(ctx, websocket.MessageBinary, fmt.Appendf(nil, "echo $((%d + %d))\n", a, b)); err != nil {
			return err
		}
		var seen strings.Builder
		for !strings.Contains(seen.String(), fmt.Sprint(a+b)) {
			kind, data, err := conn.Read(ctx)
			if err != nil {
				return fmt.Errorf("attach: the sum did not come: %w: %.300q", err, seen.String())
			}
			if kind == websocket.MessageBinary {
				seen.Write(data)
			}
		}
		return conn.Close(websocket.StatusNormalClosure, "")
	})
}

// sit opens a shell's terminal.
func (c *client) sit(ctx context.Context, shell string) (*websocket.Conn, error) {
	path, _ := c.contract["attach"].address(object{"shell_id": shell})
	conn, _, err := websocket.Dial(ctx, c.url+path, &websocket.DialOptions{ //nolint:bodyclose // the library says that it need not be
		HTTPClient: c.http, HTTPHeader: http.Header{"Authorization": {"Bearer " + c.token}}, Subprotocols: []string{"envapi.v1"},
	})
	return conn, err
}

// playFollow follows a command's output as it comes, to the event of its end.
func playFollow(ctx context.Context, c *client) error {
	nonce := c.nonce()
	a, err := c.call(ctx, "exec", c.here(object{"command": "for i in 1 2 3; do echo " + nonce + "; sleep 0.05; done", "wait_ms": 0}))
	if err != nil {
		return err
	}
	return c.noted(ctx, kind{"rest", "follow a stream"}, func(ctx context.Context) error {
		path, _ := c.contract["read_output"].address(object{"command_id": text(a, "id")})
		resp, err := c.send(ctx, http.MethodGet, path, nil, http.Header{"Accept": {"text/event-stream"}})
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		var got strings.Builder
		event := ""
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, maxAnswer)
		for event != "end" && lines.Scan() {
			if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
				event = name
			}
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && event == "output" {
				part := object{}
				if err := json.Unmarshal([]byte(data), &part); err != nil {
					return err
				}
				got.WriteString(text(part, "data"))
			}
		}
		return errors.Join(lines.Err(), want("last event", event, "end"), want("what was streamed", got.String(), strings.Repeat(nonce+"\n", 3)))
	})
}
