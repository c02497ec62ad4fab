package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
)

// loadEnvironments is how many environments the loud account has, and loadCommands how
// many commands run in each.
const loadEnvironments, loadCommands = 4, 8

// What the loud account runs.
const (
	spinLoop = "while :; do :; done"
	forkLoop = "while :; do /bin/true & /bin/true; wait; done"
)

// load is an account that does what it can.
type load struct {
	s       *service
	made    []string     // its environments
	running []string     // its commands
	refused int          // of its requests
	callers func() error // ends those, where there are any
}

// newLoad prepares an account with so many files to search.
func newLoad(ctx context.Context, s *service, among int) (*load, error) {
	l := &load{s: s}
	for range loadEnvironments {
		id, err := s.create(ctx)
		if err != nil {
			return nil, err
		}
		l.made = append(l.made, id)
	}
	fill := fmt.Sprintf("for i in $(seq %d); do echo some text that is searched, line $i > f$i; done", among)
	return l, s.run(ctx, map[string]any{"environment_id": l.made[0], "command": fill, "wait_ms": 40_000})
}

// during does something while the account does its worst, and returns when nothing
// of that is left.
func (l *load) during(ctx context.Context, begin func(*load, context.Context) error, do func() error) error {
	if begin == nil {
		return do()
	}
	err := begin(l, ctx)
	if err == nil {
		err = do()
	}
	return errors.Join(err, l.quiet(ctx))
}

// spinning is a busy loop for each core, each in an environment of its own.
func (l *load) spinning(ctx context.Context) error {
	for i := range min(runtime.NumCPU(), len(l.made)) {
		if err := l.start(ctx, l.made[i], spinLoop); err != nil {
			return err
		}
	}
	return nil
}

// everything is all that an account may do at one time.
func (l *load) everything(ctx context.Context) error {
	for _, id := range l.made {
		for i := range loadCommands {
			loop := []string{spinLoop, forkLoop}[i%2]
			if err := l.start(ctx, id, loop); err != nil {
				return err
			}
		}
	}
	return l.call(ctx)
}

// start starts a command that runs until quiet.
func (l *load) start(ctx context.Context, environment, command string) error {
	var c struct{ ID string }
	err := l.insist(ctx, http.MethodPost, "/v1/exec", map[string]any{"environment_id": environment, "command": command, "wait_ms": 0}, &c)
	if err == nil {
		l.running = append(l.running, c.ID)
	}
	return err
}

// quiet ends all commands and calls.
func (l *load) quiet(ctx context.Context) error {
	if l.callers != nil {
		if err := l.callers(); err != nil {
			return err
		}
		l.callers = nil
	}
	for _, id := range l.running {
		if err := l.insist(ctx, http.MethodPost, "/v1/commands/"+id+"/signal", map[string]any{"signal": "KILL"}, nil); err != nil {
			return err
		}
	}
	l.running = nil
	return nil
}

// insist makes a call that may be refused for having made too many.
func (l *load) insist(ctx context.Context, method, path string, body, out any) error {
	for {
		err := l.s.call(ctx, method, path, body, out)
		if err == nil || !strings.Contains(err.Error(), " 429 ") {
			return err
		}
		if err := pause(ctx, patienceOfRefused); err != nil {
			return err
		}
	}
}
