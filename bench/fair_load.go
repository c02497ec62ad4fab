package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// loadEnvironments is how many environments the loud account has, and
	// loadCommands how many commands run in each.
	loadEnvironments, loadCommands = 4, 8
	// loadSearches is how many searches it makes at one time, loadUploads how many
	// uploads of loadBytes, and loadWaits how many calls wait.
	loadSearches, loadUploads, loadWaits = 32, 2, 200
	loadBytes                            = 8 << 20
	// floods is how many requests it makes in a second besides, of which most are
	// more than it may.
	floods = 300
	// patienceOfRefused is how long a search or an upload waits that was refused.
	patienceOfRefused = 100 * time.Millisecond
)

// What the loud account runs.
const (
	spinLoop = "while :; do :; done"
	forkLoop = "while :; do /bin/true & /bin/true; wait; done"
)

// load is an account that does what it can.
type load struct {
	s       *service
	made    []string // its environments
	running []string // its commands
	calls   sync.WaitGroup
	refused atomic.Int64 // of its requests
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
	within, stop := context.WithCancel(ctx)
	err := begin(l, within)
	if err == nil {
		err = do()
	}
	stop()
	l.calls.Wait()
	return errors.Join(err, l.quiet(ctx))
}

// spinning is a busy loop for each core, each in an environment of its own.
func (l *load) spinning(ctx context.Context) error {
	for i := range min(runtime.NumCPU(), len(l.made)) {
		if _, err := l.start(ctx, l.made[i], spinLoop); err != nil {
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
			if _, err := l.start(ctx, id, loop); err != nil {
				return err
			}
		}
	}
	f := files{l.s, l.made[0]}
	for range loadSearches {
		l.again(ctx, patienceOfRefused, func() error {
			search := map[string]any{"pattern": "t[a-z]+ that .*7$", "limit": 10}
			return l.s.call(ctx, http.MethodPost, "/v1/environments/"+f.id+"/files/search", search, nil)
		})
	}
	for i := range loadUploads {
		l.again(ctx, patienceOfRefused, func() error { return f.put(ctx, fmt.Sprintf("upload%d", i), loadBytes) })
	}
	for i := range loadWaits {
		id := l.running[i%len(l.running)]
		l.again(ctx, patienceOfRefused, func() error {
			return l.s.call(ctx, http.MethodGet, "/v1/commands/"+id+"?wait_ms=45000", nil, nil)
		})
	}
	const at = 4
	for range at {
		l.again(ctx, at*time.Second/floods, func() error { return l.s.call(ctx, http.MethodGet, "/v1/status", nil, nil) })
	}
	return nil
}

// again calls again and again until ctx ends, with a time between two calls.
func (l *load) again(ctx context.Context, between time.Duration, call func() error) {
	l.calls.Go(func() {
		for ctx.Err() == nil {
			if err := call(); err != nil && ctx.Err() == nil {
				l.refused.Add(1)
			}
			_ = pause(ctx, between) // the loop sees that ctx has ended
		}
	})
}

// start starts a command that runs until quiet.
func (l *load) start(ctx context.Context, environment, command string) (id string, err error) {
	var c struct{ ID string }
	err = l.insist(ctx, http.MethodPost, "/v1/exec", map[string]any{"environment_id": environment, "command": command, "wait_ms": 0}, &c)
	if err == nil {
		l.running = append(l.running, c.ID)
	}
	return c.ID, err
}

// quiet ends all commands.
func (l *load) quiet(ctx context.Context) error {
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
