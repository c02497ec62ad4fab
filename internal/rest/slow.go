package rest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"envapi/core"
)

// How much of a body is taken in after it was refused, and how long: what common
// clients send at once, over a slow line.
const (
	refusedBytes = 64 << 20
	refusedTime  = 5 * time.Second
)

// slowBody is a body of any size: each part of it has its own deadline. It ends with
// the service, which then takes no change any more.
type slowBody struct {
	ctx     context.Context // ends with the service
	from    io.Reader
	time    time.Duration
	control *http.ResponseController
	begun   bool
	failed  error // what reading failed with, which is the client's doing
}

func (b *slowBody) Read(p []byte) (int, error) {
	b.begun = true
	_ = b.control.SetReadDeadline(time.Now().Add(b.time))
	defer func() { _ = b.control.SetReadDeadline(time.Time{}) }()
	if b.ctx.Err() != nil { // cut may have come before the deadline
		b.failed = context.Cause(b.ctx)
		return 0, b.failed
	}
	n, err := b.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		b.failed = err
	}
	return n, err
}

// cut ends a read that is under way.
func (b *slowBody) cut() { _ = b.control.SetReadDeadline(time.Unix(1, 0)) }

// failure says in the client's words why the body was not read to its end.
func (b *slowBody) failure(err error) error {
	cause := errors.Join(b.failed, err)
	if errors.Is(context.Cause(b.ctx), core.ErrStopping) {
		return core.Errorf(core.CodeUnavailable, "the service is stopping, and nothing was changed: send it again when it is back").
			With("retry_after_ms", comeBack.Milliseconds()).Because(cause)
	}
	return core.Errorf(core.CodeInvalidArgument, "cannot read the body: it ended early, or stood still").Because(cause)
}

// discard takes in the rest of a body that was refused, within bounds: most clients
// read no answer before they have sent all, and where the connection is closed before
// that they may never be told.
func (b *slowBody) discard() {
	_ = b.control.SetReadDeadline(time.Now().Add(refusedTime))
	_, _ = io.CopyN(io.Discard, b.from, refusedBytes)
	_ = b.control.SetReadDeadline(time.Time{})
}
