package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// openShell opens a command shell.
func (s *service) openShell(ctx context.Context, environment string) (string, error) {
	var made struct{ ID string }
	err := s.call(ctx, http.MethodPost, "/v1/shells", map[string]any{"environment_id": environment}, &made)
	return made.ID, err
}

// runInShell runs true in a shell.
func (s *service) runInShell(ctx context.Context, shell string) error {
	var c outcome
	if err := s.call(ctx, http.MethodPost, "/v1/shells/"+shell+"/run", map[string]any{"command": "true"}, &c); err != nil {
		return err
	}
	return c.check()
}

// outcome is what a Command says of its end.
type outcome struct {
	Status   string
	ExitCode *int `json:"exit_code"`
}

func (c outcome) check() error {
	if c.Status != "exited" || c.ExitCode == nil || *c.ExitCode != 0 {
		return errors.New("true did not exit with 0")
	}
	return nil
}

// inShell gives what runs true in a shell of an environment's.
func (s *service) inShell(ctx context.Context, environment string) (func(context.Context) (time.Duration, error), error) {
	shell, err := s.openShell(ctx, environment)
	if err != nil {
		return nil, fmt.Errorf("cannot open a shell to measure: %w", err)
	}
	return func(ctx context.Context) (time.Duration, error) {
		return timed(func() error { return s.runInShell(ctx, shell) })
	}, nil
}
