package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// session is one run of the scenario through one door.
type session struct {
	ctx    context.Context
	out    io.Writer
	door   door
	driven map[string]bool

	environment, command, shell string // the ids made on the way
}

// step drives one operation. A new operation gets its step here.
type step struct {
	operation string
	do        func(*session) (saw string, err error)
}

// steps is the scenario, in order: later steps use what earlier ones made.
var steps = slices.Concat([]step{
	{"get_status", (*session).status},
	{"create_environment", (*session).create},
	{"get_environment", (*session).get},
	{"list_environments", (*session).list},
	{"update_environment", (*session).update},
	{"exec", (*session).exec},
	{"get_command", (*session).getCommand},
	{"read_output", (*session).readOutput},
	{"signal_command", (*session).signal},
	{"list_commands", (*session).listCommands},
}, shellSteps, processSteps, fileSteps, archiveSteps, []step{
	{"reset_environment", (*session).reset},
	{"delete_environment", (*session).delete},
})

// scenario takes the steps in order. Whatever happens, the environment that it
// made is gone afterwards.
func (s *session) scenario() error {
	defer func() {
		if s.environment != "" {
			_, _ = s.door.call(s.ctx, "delete_environment", object{"environment_id": s.environment})
		}
	}()
	for _, step := range steps {
		saw, err := step.do(s)
		if err != nil {
			return fmt.Errorf("%s: %w", step.operation, err)
		}
		fmt.Fprintf(s.out, "ok   %s %s: %s\n", s.door.name(), step.operation, saw)
	}
	return nil
}

// call notes that the operation was driven.
func (s *session) call(operation string, input object) (object, error) {
	s.driven[operation] = true
	return s.door.call(s.ctx, operation, input)
}

func (s *session) status() (string, error) {
	a, err := s.call("get_status", object{})
	if err != nil {
		return "", err
	}
	if text(a, "account") == "" {
		return "", errors.New("it names no account")
	}
	return fmt.Sprintf("account %s, profile %s, tier %s", text(a, "account"), text(a, "profile"), text(a, "sandbox", "tier")), nil
}

func (s *session) create() (string, error) {
	input := object{"name": "smoke", "idempotency_key": "smoke-" + nonce()}
	a, err := s.call("create_environment", input)
	if err != nil {
		return "", err
	}
	s.environment = text(a, "id")
	again, err := s.call("create_environment", input)
	if err != nil {
		return "", fmt.Errorf("the same key again: %w", err)
	}
	return s.environment + ", once for two calls with one key", want("id", text(again, "id"), s.environment)
}

func (s *session) get() (string, error) {
	a, err := s.call("get_environment", s.here(nil))
	if err != nil {
		return "", err
	}
	if err := want("state", text(a, "state"), "active"); err != nil {
		return "", err
	}
	_, err = s.call("get_environment", object{"environment_id": "env_aaaaaaaaaaaaaaaaaaaaaaaaaa"})
	return "active, at " + text(a, "workspace_path"), wantRefusal(err, "not_found")
}

func (s *session) list() (string, error) {
	a, err := s.call("list_environments", object{"name": "smoke"})
	if err != nil {
		return "", err
	}
	return "it is among those of its name", wantItem(a, s.environment)
}

func (s *session) update() (string, error) {
	a, err := s.call("update_environment", s.here(object{"name": "smoke-renamed"}))
	if err != nil {
		return "", err
	}
	return "renamed", want("name", text(a, "name"), "smoke-renamed")
}

func (s *session) exec() (string, error) {
	a, err := s.call("exec", s.here(object{"command": "echo out; echo err >&2; echo kept > file; exit 3"}))
	if err != nil {
		return "", err
	}
	s.command = text(a, "id")
	return s.command + " exited 3, both streams apart", errors.Join(
		want("status", text(a, "status"), "exited"),
		want("exit_code", text(a, "exit_code"), "3"),
		want("stdout", text(a, "stdout", "text"), "out\n"),
		want("stderr", text(a, "stderr", "text"), "err\n"),
	)
}

func (s *session) getCommand() (string, error) {
	a, err := s.call("get_command", object{"command_id": s.command, "wait_ms": 1000})
	if err != nil {
		return "", err
	}
	return "the same result", want("exit_code", text(a, "exit_code"), "3")
}

func (s *session) readOutput() (string, error) {
	a, err := s.call("read_output", object{"command_id": s.command, "stream": "stdout", "offset": 1})
	if err != nil {
		return "", err
	}
	return "from offset 1 to the end", errors.Join(
		want("data", text(a, "data"), "ut\n"),
		want("next_offset", text(a, "next_offset"), "4"),
		want("eof", text(a, "eof"), "true"),
	)
}

func (s *session) signal() (string, error) {
	a, err := s.call("exec", s.here(object{"command": "sleep 600 & wait", "wait_ms": 0}))
	if err != nil {
		return "", err
	}
	if err := want("status", text(a, "status"), "running"); err != nil {
		return "", err
	}
	a, err = s.call("signal_command", object{"command_id": text(a, "id"), "signal": "KILL"})
	if err != nil {
		return "", err
	}
	return "a running command killed", errors.Join(
		want("status", text(a, "status"), "killed"),
		want("reason", text(a, "reason"), "signal"),
	)
}

func (s *session) listCommands() (string, error) {
	a, err := s.call("list_commands", s.here(nil))
	if err != nil {
		return "", err
	}
	return "both commands of the environment", errors.Join(
		wantItem(a, s.command),
		want("items", fmt.Sprint(len(items(a))), "2"),
	)
}

func (s *session) reset() (string, error) {
	if _, err := s.call("reset_environment", s.here(nil)); err != nil {
		return "", err
	}
	a, err := s.call("exec", s.here(object{"argv": []string{"ls", "-A"}}))
	if err != nil {
		return "", err
	}
	return "the folder is empty", want("its files", text(a, "stdout", "text"), "")
}

func (s *session) delete() (string, error) {
	if _, err := s.call("delete_environment", s.here(nil)); err != nil {
		return "", err
	}
	_, err := s.call("delete_environment", s.here(nil))
	if err := wantRefusal(err, "not_found"); err != nil {
		return "", err
	}
	s.environment = ""
	return "gone, and not_found from then on", nil
}

// here is input for the session's environment.
func (s *session) here(input object) object {
	all := object{"environment_id": s.environment}
	for name, value := range input {
		all[name] = value
	}
	return all
}

func want(what, got, expected string) error {
	if got != expected {
		return fmt.Errorf("%s is %q, not %q", what, got, expected)
	}
	return nil
}

func wantRefusal(err error, code string) error {
	var r *refusal
	if !errors.As(err, &r) {
		return fmt.Errorf("want a refusal %s, got %v", code, err) //nolint:errorlint // err may be nil
	}
	return want("code", r.code, code)
}

func wantItem(page object, id string) error {
	for _, item := range items(page) {
		if o, ok := item.(object); ok && text(o, "id") == id {
			return nil
		}
	}
	return fmt.Errorf("%s is not in the list", strings.TrimSpace(id))
}

func items(page object) []any {
	list, _ := page["items"].([]any)
	return list
}
