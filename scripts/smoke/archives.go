package main

import "errors"

// archiveSteps are the ways of an environment out of use and back.
var archiveSteps = []step{
	{"archive_environment", (*session).archive},
	{"restore_environment", (*session).restore},
	{"fork_environment", (*session).fork},
}

func (s *session) archive() (string, error) {
	if _, err := s.call("exec", s.here(object{"command": "echo kept > kept"})); err != nil {
		return "", err
	}
	a, err := s.call("archive_environment", s.here(nil))
	if err := errors.Join(err, want("its state", text(a, "state"), "archived")); err != nil {
		return "", err
	}
	_, err = s.door.call(s.ctx, "exec", s.here(object{"command": "true", "restore": false}))
	return "it is archived, and not restored where that is not wanted", wantRefusal(err, "environment_archived")
}

func (s *session) restore() (string, error) {
	a, err := s.call("restore_environment", s.here(nil))
	if err := errors.Join(err, want("its state", text(a, "state"), "active")); err != nil {
		return "", err
	}
	return "its files are back", s.holdsKept(s.environment)
}

func (s *session) fork() (string, error) {
	a, err := s.call("fork_environment", s.here(object{"name": "fork"}))
	if err != nil {
		return "", err
	}
	fork := text(a, "id")
	held := s.holdsKept(fork)
	_, err = s.call("delete_environment", object{"environment_id": fork})
	return "another one with the same files", errors.Join(held, err)
}

func (s *session) holdsKept(environment string) error {
	a, err := s.call("exec", object{"environment_id": environment, "command": "cat kept"})
	return errors.Join(err, want("the file", text(a, "stdout", "text"), "kept\n"))
}
