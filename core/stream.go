package core

import (
	"context"
	"time"
)

// Why the context of a stream has ended, as context.Cause gives it: the token
// that it was asked for with, or the service.
var (
	ErrTokenExpired = Errorf(CodeUnauthenticated, "the token has expired, and with it what was read under it: ask keyring for a new one and resume where this ended")
	ErrStopping     = unavailable("the service is stopping: resume where this ended when it is back")
)

// Stream gives the context of an answer that goes on for as long as its reader
// likes. It ends with the caller's token, with ErrTokenExpired, and when the
// service stops, with ErrStopping. The caller must call cancel in the end.
func (s *Service) Stream(ctx context.Context, c Caller) (_ context.Context, cancel context.CancelFunc) {
	if !c.Until.IsZero() {
		// The clock of the day, which may be set, is what a token's end is in.
		ctx, cancel = context.WithTimeoutCause(ctx, time.Until(c.Until), ErrTokenExpired)
	} else {
		ctx, cancel = context.WithCancel(ctx)
	}
	ctx, stop := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-s.closing:
			stop(ErrStopping)
		case <-ctx.Done():
			stop(nil)
		}
	}()
	return ctx, cancel
}
