package app

import (
	"os"
	"runtime"
	"sync"
)

// perProcessor is how many of the service's threads may run at one time for each
// processor. With one, a call waits for others' searches to be interrupted, each for
// 10 ms, as Go shares its turns; with more, the kernel shares the processors among the
// threads, which lets those go first that have waited.
const perProcessor = 4

// mostShared bounds what that makes of many processors: with so many a call seldom finds
// all of them taken, and each of Go's costs memory.
const mostShared = 32

// shareProcessors lets the kernel share the processors among the service's threads.
// Who sets GOMAXPROCS knows better.
var shareProcessors = sync.OnceFunc(func() {
	if os.Getenv("GOMAXPROCS") == "" {
		own := runtime.GOMAXPROCS(0)
		runtime.GOMAXPROCS(max(own, min(perProcessor*own, mostShared)))
	}
})
