package core

import "context"

// outcome is how something ended that one call does and others wait for. Make
// it with newOutcome.
type outcome struct {
	known chan struct{} // closed by settle
	err   error         // valid once known is closed
}

func newOutcome() outcome { return outcome{known: make(chan struct{})} }

// settle tells those who wait. It is called once.
func (o *outcome) settle(err error) {
	o.err = err
	close(o.known)
}

// wait gives the error that the thing ended with, or ctx's where that is first.
func (o *outcome) wait(ctx context.Context) error {
	select {
	case <-o.known:
		return o.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// isClosed says whether a channel that is only ever closed is.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
