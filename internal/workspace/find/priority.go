package find

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// behind is how far a thread that searches stands behind the service's others, as
// nice(1) counts: it gets a third of what one of those gets, whoever these work for,
// and what wakes up need not wait until it was interrupted. Further behind it would get
// nothing beside a busy box.
const behind = 5

// standBack gives the goroutine a thread of such a priority, which ends with it: an
// ordinary user cannot give a thread its old one back.
func standBack() {
	runtime.LockOSThread() // never unlocked
	thread := unix.Gettid()
	raw, err := unix.Getpriority(unix.PRIO_PROCESS, thread)
	if err == nil {
		now := 20 - raw                                             // what the kernel tells is never negative
		_ = unix.Setpriority(unix.PRIO_PROCESS, thread, now+behind) // it only helps
	}
}
