// Package core is what envapi does: environments, the commands in them and
// their output, under limits. It knows neither HTTP nor MCP nor Linux calls;
// what it needs from the world it names in ports.go.
//
// It does not decide who a caller is or which scopes an operation needs: the
// doors do, before they call. It does not contain commands: package sandbox
// does. What it does hold is that a caller reaches only what is its owner's,
// and that no limit is passed.
package core

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"envapi/sandbox"
)

// Config is what a Service is made of. The parts stay their maker's, who closes
// them after the Service: the sandbox first, then the workspaces, the logs and
// the store, since each may still speak to the ones after it.
type Config struct {
	Store      Store
	Workspaces Workspaces
	Logs       OutputLogs
	Sandbox    sandbox.Host
	Limits     Limits
	Retention  Retention
	Lifetimes  Lifetimes // what callers asked for; nil: nobody did
	UIDs       UIDRange  // where host uids come from, if the sandbox needs them
	// Now is the clock of everything that is compared with what was recorded; nil is
	// time.Now.
	Now func() time.Time
	// Steady is how long it runs, by a clock that nobody can set; nil is that of Now.
	Steady func() time.Duration
	Log    *slog.Logger
}

// Service performs the operations. Its methods may be called from many
// goroutines. A caller's cancelled context ends its waiting; what it asked for
// is done to the end once it has begun.
type Service struct {
	Config

	work     *work          // what is under way
	closing  chan struct{}  // closed by Close: waiting calls answer
	watchers sync.WaitGroup // one for each live command and each live shell

	started time.Time // by Now
	respite respite

	disk      *diskWatch
	activity  activity
	reaper    *reaper // nil where there is none
	drawing   turns   // of screens, by account
	keyed     turns   // of what is made under an idempotency key, by owner, operation and key
	watches   tally   // of files, by account
	terminals tally   // open ones, likewise
	imports   tally   // of archives, likewise
	exports   tally
	forks     tally
	passages  lines      // of environments that are archived and restored, by account
	defaults  sync.Mutex // held while a default environment is looked for and made

	mu     sync.Mutex
	places map[string]*place // environments in use, by id
	runs   map[string]*run   // commands that run or whose children still write, by id
	shells map[string]*shell // shells that are open or whose children still write, by id
}

// New makes a Service and finishes what a crash of the one before it left
// undone. It fails where the store does, and for a Config that lacks a part or
// a limit: none of them has a safe zero value.
func New(ctx context.Context, c Config) (*Service, error) {
	if c.Store == nil || c.Workspaces == nil || c.Logs == nil || c.Sandbox == nil || c.Log == nil {
		return nil, errors.New("cannot make a service: a part of it is missing")
	}
	if err := errors.Join(c.Limits.check(), c.Retention.check()); err != nil {
		return nil, fmt.Errorf("cannot make a service: %w", err)
	}
	s := &Service{
		Config:  c,
		work:    newWork(),
		closing: make(chan struct{}),
		places:  map[string]*place{},
		runs:    map[string]*run{},
		shells:  map[string]*shell{},
	}
	if s.Now == nil {
		s.Now = time.Now
	}
	s.started = s.Now()
	s.disk = s.watchDisk()
	if err := s.reconcile(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.reaper = s.startReaper()
	return s, nil
}

// Close answers the calls that wait, refuses new work, ends every command,
// recorded as lost with the reason service_stopped, every shell and every box. What is
// to have time for its own end has it in Drain, before. Closing again does nothing.
func (s *Service) Close() error {
	s.mu.Lock()
	if isClosed(s.closing) {
		s.mu.Unlock()
		return nil
	}
	close(s.closing)
	s.mu.Unlock()

	s.work.close()
	reaped := s.reaper.wait()
	<-s.work.over // no start is under way any more, none will come
	s.condemnAll(doom{CommandLost, ReasonServiceStopped, adviceStopped}, CloseServiceRestarted)
	ended := errors.Join(s.closeBoxes(), s.waitWatchers(), s.disk.wait())
	_, err := s.recordActivity(context.Background())
	return errors.Join(reaped, ended, err)
}

// waitWatchers waits until the end of every command is recorded. Where a box
// does not end although it was closed, it gives up.
func (s *Service) waitWatchers() error {
	done := make(chan struct{})
	go func() {
		s.watchers.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-time.After(vacateBound):
		return errors.New("cannot wait any longer for commands whose boxes do not end")
	}
}

// closeBoxes ends every box and with them all commands.
func (s *Service) closeBoxes() error {
	s.mu.Lock()
	places := make([]*place, 0, len(s.places))
	for _, p := range s.places {
		places = append(places, p)
	}
	s.mu.Unlock()

	errs := make([]error, len(places))
	var closed sync.WaitGroup
	for i, p := range places {
		closed.Go(func() { errs[i] = p.close() })
	}
	closed.Wait()
	return errors.Join(errs...)
}

// now is the time as records have it.
func (s *Service) now() time.Time { return At(s.Now()).Time }

// unavailable says that something cannot be done now and when to try again.
func unavailable(format string, args ...any) *Error {
	return Errorf(CodeUnavailable, format, args...).With("retry_after_ms", retryAfter.Milliseconds())
}
