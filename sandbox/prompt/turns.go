package prompt

import (
	"context"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Turns are of those who are looked at together: there is one look at a time, and
// all of them take at most a twentieth of a core, whatever the programs do and on
// however many terminals.
type Turns struct {
	free chan struct{} // holds a token while nobody looks
	next time.Time     // no look before; for who has the token
}

// NewTurns makes turns that nobody has taken.
func NewTurns() *Turns {
	t := &Turns{free: make(chan struct{}, 1)}
	t.free <- struct{}{}
	return t
}

// look looks when it is a terminal's turn.
func (t *Turns) look(ctx context.Context, at *Terminal) (Sample, bool) {
	select {
	case <-t.free:
	case <-ctx.Done():
		return Sample{}, false
	}
	defer func() { t.free <- struct{}{} }()
	if !pause(ctx, time.Until(t.next)) {
		return Sample{}, false
	}
	// What a look takes is what its thread has of a processor, for which it does
	// not wait: else nobody would be seen on a busy host.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begin := used()
	s := at.Look()
	t.next = time.Now().Add(idle * (used() - begin))
	return s, true
}

// used is how much of a processor this thread has had.
func used() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
