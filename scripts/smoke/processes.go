package main

import (
	"fmt"
	"strconv"
)

// processSteps drive what is about processes.
var processSteps = []step{
	{"list_processes", (*session).listProcesses},
	{"signal_process", (*session).signalProcess},
	{"wait_process", (*session).waitProcess},
}

// left starts a process in the background, whose command has ended, and gives how it is
// listed.
func (s *session) left(seconds int) (process object, command string, err error) {
	a, err := s.call("exec", s.here(object{"command": fmt.Sprintf("nohup sleep %d >/dev/null 2>&1 &", seconds)}))
	if err != nil {
		return nil, "", err
	}
	for range 100 { // it is a bash at first
		list, err := s.call("list_processes", s.here(nil))
		if err != nil {
			return nil, "", err
		}
		items, _ := list["items"].([]any)
		for _, item := range items {
			if p, ok := item.(object); ok && text(p, "command") == "sleep "+strconv.Itoa(seconds) {
				return p, text(a, "id"), nil
			}
		}
	}
	return nil, "", fmt.Errorf("sleep %d is not listed", seconds)
}

func (s *session) listProcesses() (string, error) {
	p, command, err := s.left(1001)
	if err != nil {
		return "", err
	}
	return "what an ended command left is told to be its", want("command_id", text(p, "command_id"), command)
}

func (s *session) signalProcess() (string, error) {
	p, _, err := s.left(1002)
	if err != nil {
		return "", err
	}
	other := s.here(object{"pid": p["pid"], "signal": "KILL", "started_at": "2001-02-03T04:05:06.789Z"})
	if _, err := s.call("signal_process", other); wantRefusal(err, "process_replaced") != nil {
		return "", fmt.Errorf("another start: %w", wantRefusal(err, "process_replaced"))
	}
	other["started_at"] = p["started_at"]
	a, err := s.call("signal_process", other)
	if err != nil {
		return "", err
	}
	return "killed, and no other for it", want("ended", text(a, "ended"), "true")
}

func (s *session) waitProcess() (string, error) {
	p, _, err := s.left(1003)
	if err != nil {
		return "", err
	}
	a, err := s.call("wait_process", s.here(object{"pid": p["pid"], "wait_ms": 10}))
	if err != nil {
		return "", err
	}
	_, err = s.call("wait_process", s.here(object{"pid": 1}))
	if err := wantRefusal(err, "not_found"); err != nil {
		return "", err
	}
	return "one lives, and the sandbox's own is not there", want("ended", text(a, "ended"), "false")
}
