package core

import (
	"context"
	"sync"
	"time"
)

// mostAsked is the most of the grace that is left when commands are asked to end: what
// saves its work at SIGTERM does so in that time.
const mostAsked = 2 * time.Second

// What is said of commands that the end of the service met.
const (
	adviceAsked      = "The service stopped, and asked it to end (SIGTERM) before it had done so by itself: look at what it has done, and run it again where that is needed."
	adviceNeverBegan = "It waited in line when the service stopped, and was never begun: run it again."
)

// Draining is what a service that drains still waits for.
type Draining struct {
	Commands int       // those that run
	Calls    int       // those that start or change something, uploads among them
	Until    time.Time // when it waits no longer; zero where it does not wait
}

// Drain has the service begin nothing new, and returns when what was begun has come to
// its end, at the latest after a grace; who waits for that is answered. Commands in line
// in a shell are not begun, but recorded as lost with the reason service_stopped, at
// once. Those that still run when a quarter of the grace is left, or two seconds, are
// sent SIGTERM and recorded likewise, however they end then. Reads, and what belongs to
// commands that run, go on: looking, waiting, signals, input. The reaper stops.
//
// Close must follow, and ends what is left; it also ends a Drain that is under way. A
// second Drain returns at once.
func (s *Service) Drain(grace time.Duration) {
	begun := time.Now()
	if !s.work.drain(begun.Add(grace)) {
		return
	}
	left := s.work.left()
	s.Log.Info("the service stops: nothing new is begun, and what was begun has time to end",
		"commands", left.Commands, "calls", left.Calls, "grace", grace)
	if !s.awaitDrained(grace-min(grace/4, mostAsked)) && grace > 0 {
		s.askCommands(min(grace/4, mostAsked))
	}
	left = s.work.left()
	s.Log.Info("the service waits no longer, and ends what is left",
		"commands", left.Commands, "calls", left.Calls, "waited", time.Since(begun).Round(time.Millisecond))
}

// Draining says what the service waits for, if it drains or is closed.
func (s *Service) Draining() (Draining, bool) {
	return s.work.left(), isClosed(s.work.draining)
}

// awaitDrained says whether there is nothing to wait for any more, at most so long.
func (s *Service) awaitDrained(most time.Duration) bool {
	late := time.NewTimer(most)
	defer late.Stop()
	select {
	case <-s.work.drained:
		return true
	case <-s.closing:
		return true
	case <-late.C:
		return isClosed(s.work.drained)
	}
}

// askCommands sends SIGTERM to what runs, and waits for so long.
func (s *Service) askCommands(most time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	var asked sync.WaitGroup
	for _, r := range s.allRuns() {
		if !isClosed(r.begun) || isClosed(r.process.Done()) {
			continue
		}
		r.ask(doom{CommandLost, ReasonServiceStopped, adviceAsked})
		asked.Go(func() {
			if err := r.process.Signal(ctx, signalDefault); err != nil && !isClosed(r.process.Done()) {
				s.Log.Warn("cannot ask a command to end", "id", r.record.ID, "error", err)
			}
		})
	}
	s.awaitDrained(most)
	cancel()
	asked.Wait()
}

// allRuns gives the commands that are in memory.
func (s *Service) allRuns() []*run {
	s.mu.Lock()
	defer s.mu.Unlock()
	runs := make([]*run, 0, len(s.runs))
	for _, r := range s.runs {
		runs = append(runs, r)
	}
	return runs
}

// begin lets work begin that Drain and Close must not overtake; the caller must call
// s.done when it is done.
func (s *Service) begin() error { return s.admitted(aCall) }

func (s *Service) done() { s.work.leave(aCall) }

// look is begin for what may go on while the service drains; the caller must call
// s.looked when it is done.
func (s *Service) look() error { return s.admitted(aLook) }

func (s *Service) looked() { s.work.leave(aLook) }

func (s *Service) admitted(k kind) error {
	if s.work.enter(k) {
		return nil
	}
	return stopping()
}

func stopping() *Error { return unavailable("the service is stopping: try again when it is back") }
