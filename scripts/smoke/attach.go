package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/coder/websocket"
)

// attacher is a door through which one can sit before a terminal.
type attacher interface {
	// attach gives the first message, and the bytes that come after it.
	attach(ctx context.Context, shell string) (hello object, output string, err error)
}

func (s *session) attach() (string, error) {
	door, ok := s.door.(attacher)
	if !ok {
		return "a route alone, no tool", nil
	}
	s.driven["attach"] = true
	hello, output, err := door.attach(s.ctx, s.shell)
	if err != nil {
		return "", err
	}
	if !strings.Contains(output, "typed") {
		return "", want("what its terminal echoed", output, "typed")
	}
	return "the terminal of a shell of kind " + text(hello, "kind"), want("cols", text(hello, "cols"), "132")
}

func (d *restDoor) attach(ctx context.Context, shell string) (object, string, error) {
	path, _ := d.contract["attach"].fill(object{"shell_id": shell, "offset": 0})
	conn, _, err := websocket.Dial(ctx, d.url+path, &websocket.DialOptions{ //nolint:bodyclose // the library says that it need not be
		HTTPHeader: http.Header{"Authorization": {"Bearer " + d.token}}, Subprotocols: []string{"envapi.v1"},
	})
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = conn.CloseNow() }()
	_, first, err := conn.Read(ctx)
	if err != nil {
		return nil, "", err
	}
	hello := object{}
	if err := json.Unmarshal(first, &hello); err != nil {
		return nil, "", fmt.Errorf("cannot read the first message: %w", err)
	}
	_, output, err := conn.Read(ctx)
	return hello, string(output), err
}
