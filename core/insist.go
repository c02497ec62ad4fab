package core

import (
	"context"
	"errors"
	"time"
)

// The pauses between tries to write what must not be lost.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 5 * time.Second
	// stoppingTries is how often it is tried when the service stops: with the
	// pauses about 3 s, since what stopped it may not wait much longer.
	stoppingTries = 6
)

// insist does something that must not fail until it succeeds; what is no longer
// there needs it no more. Only when the service stops it gives up: what a
// command's record then lacks is found by the next start.
func (s *Service) insist(what, id string, do func(context.Context) error) {
	pause := firstPause
	for left := stoppingTries; left > 0; {
		err := do(context.Background())
		if err == nil || errors.Is(err, ErrNoRecord) {
			return
		}
		s.Log.Error("cannot "+what+", trying again", "id", id, "error", err)
		select {
		case <-time.After(pause):
		case <-s.closing:
			time.Sleep(min(pause, time.Second))
		}
		if isClosed(s.closing) {
			left--
		}
		pause = min(2*pause, lastPause)
	}
	s.Log.Error("gave up to "+what+": the service stops", "id", id)
}
