package supervisor

import (
	"math"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"envapi/sandbox/proctree"
)

// boot is when the host began, by the clock on the wall as it was when it was first
// asked for: what is reckoned from it is the same every time, however that clock is
// set meanwhile. It is a whole number of milliseconds, which is how callers are told
// of times.
var boot = sync.OnceValue(func() time.Time {
	var since unix.Timespec
	now := time.Now().Round(0)
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &since); err != nil {
		return now.Truncate(time.Millisecond)
	}
	return now.Add(-time.Duration(since.Nano())).Truncate(time.Millisecond)
})

// startedAt gives the time of a number of ticks since the host began.
func startedAt(birth uint64) time.Time {
	return boot().Add(time.Duration(birth) * proctree.Tick) //nolint:gosec // at most two hundred years (protocol.Entity)
}

// birthOf gives the ticks of a time; for one before the host began, those of no
// process.
func birthOf(t time.Time) uint64 {
	ticks := t.Sub(boot()).Round(proctree.Tick) / proctree.Tick
	if ticks <= 0 {
		return math.MaxUint64
	}
	return uint64(ticks)
}
