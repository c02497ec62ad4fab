package rest

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// How much of a body is taken in after it was refused, and how long: what common
// clients send at once, over a slow line.
const (
	refusedBytes = 64 << 20
	refusedTime  = 5 * time.Second
)

// slowBody is a body of any size: each part of it has its own deadline.
type slowBody struct {
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
	n, err := b.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		b.failed = err
	}
	return n, err
}

// discard takes in the rest of a body that was refused, within bounds: most clients
// read no answer before they have sent all, and where the connection is closed before
// that they may never be told.
func (b *slowBody) discard() {
	_ = b.control.SetReadDeadline(time.Now().Add(refusedTime))
	_, _ = io.CopyN(io.Discard, b.from, refusedBytes)
	_ = b.control.SetReadDeadline(time.Time{})
}
