package boxinit

import "time"

const (
	// readPatience is how long one file of a process may take to be read:
	// microseconds, but for one whose memory the kernel is about to change.
	readPatience = 100 * time.Millisecond
	// maxStuck is how many of those reads may be stuck at one time. Each holds a
	// thread, and no other is begun.
	maxStuck = 4
)

// patiently reads something that may be stuck, and gives it up where it is.
func patiently[T any](s *server, read func() T) (result T, ok bool) {
	select {
	case s.slow <- struct{}{}:
	default:
		return result, false
	}
	done := make(chan T, 1)
	go func() {
		result := read()
		<-s.slow // before the next one can begin
		done <- result
	}()
	timer := time.NewTimer(readPatience)
	defer timer.Stop()
	select {
	case result = <-done:
		return result, true
	case <-timer.C:
		return result, false
	}
}
