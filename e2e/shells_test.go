package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
)

// shellRecord is a Shell as callers see it.
type shellRecord struct {
	ID          string
	Kind        string
	State       string
	CloseReason string `json:"close_reason"`
	ExitCode    *int   `json:"exit_code"`
	Signal      string
	Cwd         string
	Running     string `json:"running_command_id"`
	Waiting     *bool  `json:"waiting_for_input"`
	Written     int64  `json:"written_bytes"`
}

// shell is a shell of a place.
type shell struct {
	place
	id string
}

// open opens a shell, which is closed at the end of the test.
func (p place) open(t *testing.T, in object) shell {
	t.Helper()
	s := shell{p, as[shellRecord](t, p.must(t, "open_shell", p.in(in))).ID}
	t.Cleanup(func() { _, _ = s.call(context.Background(), "close_shell", s.ref(nil)) })
	return s
}

// ref is input for the shell.
func (s shell) ref(more object) object {
	all := object{"shell_id": s.id}
	maps.Copy(all, more)
	return all
}

func (s shell) record(t *testing.T) shellRecord {
	t.Helper()
	return as[shellRecord](t, s.must(t, "get_shell", s.ref(nil)))
}

// run runs a command, which must be taken, and waits for its end unless in says
// otherwise.
func (s shell) run(t *testing.T, script string, in object) command {
	t.Helper()
	all := s.ref(object{"command": script, "wait_ms": longWait})
	maps.Copy(all, in)
	return as[command](t, s.must(t, "run_in_shell", all))
}

// tryRun is run for goroutines, which may not end the test.
func (s shell) tryRun(script string, in object) (command, error) {
	all := s.ref(object{"command": script, "wait_ms": longWait})
	maps.Copy(all, in)
	answer, err := s.call(context.Background(), "run_in_shell", all)
	if err != nil {
		return command{}, err
	}
	var c command
	data, err := json.Marshal(answer)
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	return c, err
}

// types writes to the terminal.
func (s shell) types(t *testing.T, in object) {
	t.Helper()
	s.must(t, "write_shell", s.ref(in))
}

func contains(data []byte, text string) bool { return strings.Contains(string(data), text) }

// screenShows waits until the shell's screen has the text.
func (s shell) screenShows(t *testing.T, text string) {
	t.Helper()
	err := eventually(func() error {
		got := as[struct{ Screen struct{ Text string } }](t, s.must(t, "read_shell", s.ref(object{"screen": true})))
		if !strings.Contains(got.Screen.Text, text) {
			return fmt.Errorf("the screen is %q, want %q on it", got.Screen.Text, text)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
