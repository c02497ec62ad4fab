package core

import "time"

// Retention says how long what nobody uses is kept.
type Retention struct {
	Shell       Bounded       // an open shell
	Environment Bounded       // an active environment, until it is archived
	Box         time.Duration // what contains commands, while nothing of it lives
	Ended       time.Duration // commands that have ended, with their output, and closed shells
	Keys        time.Duration // idempotency keys; not longer than Ended
	Every       time.Duration // how often is looked
}

// Bounded is a time that callers may choose within bounds.
type Bounded struct{ Default, Least, Most time.Duration }

// within gives the time that is asked for as far as the bounds let it, and the default
// where none is.
func (b Bounded) within(asked *time.Duration) time.Duration {
	if asked == nil {
		return b.Default
	}
	return min(max(*asked, b.Least), b.Most)
}
