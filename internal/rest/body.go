package rest

import (
	"io"
	"net/http"
	"time"
)

const (
	// bodyTime is how long a client may take to send a body: the largest one
	// at about one megabit a second.
	bodyTime = 2 * time.Minute
	// discardTime is how long the server may take, after the answer, to read
	// the rest of a body that nobody wanted.
	discardTime = time.Second
	// answerTime is how long a client may take to accept what is written at one
	// time: the largest answer at about two megabits a second. No longer does
	// one that reads nothing hold its answer in memory.
	answerTime = 2 * time.Minute
)

// timedBody is a body that must arrive before a deadline. The deadline is the
// connection's, and is set only while the body is read: where it passes later,
// the server would take a client that waits for one that went away.
type timedBody struct {
	io.ReadCloser
	control  *http.ResponseController
	deadline time.Time
}

// Read reads until the deadline. A writer that has no connection has none.
func (b timedBody) Read(p []byte) (int, error) {
	_ = b.control.SetReadDeadline(b.deadline)
	defer func() { _ = b.control.SetReadDeadline(time.Time{}) }()
	return b.ReadCloser.Read(p)
}
