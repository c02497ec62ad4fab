package main

import (
	"errors"
	"strings"
)

// shellSteps drive what is about shells, and about typing.
var shellSteps = []step{
	{"write_input", (*session).writeInput},
	{"open_shell", (*session).openShell},
	{"run_in_shell", (*session).runInShell},
	{"list_shells", (*session).listShells},
	{"write_shell", (*session).writeShell},
	{"resize_shell", (*session).resizeShell},
	{"read_shell", (*session).readShell},
	{"attach", (*session).attach},
	{"get_shell", (*session).getShell},
	{"close_shell", (*session).closeShell},
}

func (s *session) writeInput() (string, error) {
	a, err := s.call("exec", s.here(object{"command": "read -r line; echo \"$line.\"", "stdin_open": true, "wait_ms": 0}))
	if err != nil {
		return "", err
	}
	id := text(a, "id")
	if _, err := s.call("write_input", object{"command_id": id, "data": "typed\n"}); err != nil {
		return "", err
	}
	a, err = s.call("get_command", object{"command_id": id, "wait_ms": 10_000})
	if err != nil {
		return "", err
	}
	return "a line reached a running command", want("stdout", text(a, "stdout", "text"), "typed.\n")
}

func (s *session) openShell() (string, error) {
	a, err := s.call("open_shell", s.here(object{"name": "smoke"}))
	if err != nil {
		return "", err
	}
	s.shell = text(a, "id")
	return s.shell + " takes commands", want("state", text(a, "state"), "open")
}

func (s *session) runInShell() (string, error) {
	if _, err := s.call("run_in_shell", s.inShell(object{"command": "cd /tmp; A=kept; f() { echo \"$A in $PWD\"; }"})); err != nil {
		return "", err
	}
	a, err := s.call("run_in_shell", s.inShell(object{"command": "f; (exit 4)"}))
	if err != nil {
		return "", err
	}
	return "directory, variable and function lasted; exited 4", errors.Join(
		want("stdout", text(a, "stdout", "text"), "kept in /tmp\n"),
		want("exit_code", text(a, "exit_code"), "4"),
		want("cwd", text(a, "cwd"), "/tmp"),
	)
}

func (s *session) listShells() (string, error) {
	a, err := s.call("list_shells", s.here(object{"state": "open"}))
	if err != nil {
		return "", err
	}
	return "it is among the open ones", wantItem(a, s.shell)
}

func (s *session) writeShell() (string, error) {
	a, err := s.call("run_in_shell", s.inShell(object{"command": "read -r line; echo \"$line!\"", "wait_ms": 0}))
	if err != nil {
		return "", err
	}
	id := text(a, "id")
	if _, err := s.call("write_shell", s.inShell(object{"data": "typed", "keys": []string{"enter"}})); err != nil {
		return "", err
	}
	a, err = s.call("get_command", object{"command_id": id, "wait_ms": 10_000})
	if err != nil {
		return "", err
	}
	return "a line typed into what runs in it", want("stdout", text(a, "stdout", "text"), "typed!\n")
}

func (s *session) resizeShell() (string, error) {
	if _, err := s.call("resize_shell", s.inShell(object{"cols": 132, "rows": 50})); err != nil {
		return "", err
	}
	a, err := s.call("run_in_shell", s.inShell(object{"command": "stty size"}))
	if err != nil {
		return "", err
	}
	return "132 columns, 50 rows inside", want("stdout", text(a, "stdout", "text"), "50 132\n")
}

func (s *session) readShell() (string, error) {
	a, err := s.call("read_shell", s.inShell(nil))
	if err != nil {
		return "", err
	}
	if got := text(a, "data"); !strings.Contains(got, "typed") {
		return "", want("what its terminal echoed", got, "typed")
	}
	return "what its terminal echoed", nil
}

func (s *session) getShell() (string, error) {
	a, err := s.call("get_shell", s.inShell(nil))
	if err != nil {
		return "", err
	}
	return "open, in " + text(a, "cwd"), errors.Join(
		want("state", text(a, "state"), "open"),
		want("cols", text(a, "cols"), "132"),
	)
}

func (s *session) closeShell() (string, error) {
	a, err := s.call("close_shell", s.inShell(nil))
	if err != nil {
		return "", err
	}
	if err := want("close_reason", text(a, "close_reason"), "closed"); err != nil {
		return "", err
	}
	_, err = s.call("run_in_shell", s.inShell(object{"command": "true"}))
	return "closed, and shell_closed from then on", wantRefusal(err, "shell_closed")
}

// inShell is input for the session's shell.
func (s *session) inShell(input object) object {
	all := object{"shell_id": s.shell}
	for name, value := range input {
		all[name] = value
	}
	return all
}
