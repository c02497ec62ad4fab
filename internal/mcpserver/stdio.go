package mcpserver

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"envapi/core"
	"envapi/tools"
)

const (
	// maxInFlight bounds the requests of one client that are served at the
	// same time: far more than an assistant waits for, so that no wait holds
	// up another call.
	maxInFlight = 1024
	// drainTime is how long after the end of the input requests may still be
	// answered, so that a script can pipe its requests in. Longer waits end.
	drainTime = 2 * time.Second
	// stopTime is how long, once serving is to end, an answer may take to be
	// written: a client may read nothing and yet keep the pipe open.
	stopTime = 2 * time.Second
)

// ServeStdio serves one client: a message per line of in, an answer per line of
// out, and nothing else on out. It returns nil at the end of in, and an error
// where ctx ends or out cannot be written to. A read of in that is in progress
// then ends with the next byte or the end of in, and a write to out that nobody
// accepts with the end of out.
//
// mcp-go's own server for stdio is not used: it serves at most 100 calls at a
// time, so that waits hold up other calls, and reads lines without a bound.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer, caller core.Caller) error {
	ctx, stop := context.WithCancelCause(core.WithCaller(ctx, caller))
	defer stop(nil)
	c := &conversation{server: s, out: out, stop: stop, running: map[string]context.CancelFunc{}}
	lines := make(chan line)
	go readLines(ctx, in, lines)
	ended := make(chan error, 1)
	go func() { ended <- c.serve(ctx, lines) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(stopTime):
		return context.Cause(ctx)
	}
}

// conversation is the state of one client on stdio.
type conversation struct {
	server   *Server
	stop     context.CancelCauseFunc
	requests sync.WaitGroup

	writing sync.Mutex
	out     io.Writer

	mu      sync.Mutex
	running map[string]context.CancelFunc // by the id of the request
}

// serve serves lines until they or ctx end, and then returns when every request
// has been answered.
func (c *conversation) serve(ctx context.Context, lines <-chan line) error {
	for {
		select {
		case <-ctx.Done():
			c.requests.Wait()
			return context.Cause(ctx)
		case l, more := <-lines:
			if !more {
				return c.drain(ctx)
			}
			c.take(ctx, l)
		}
	}
}

// drain lets requests end for a while and then ends their waits.
func (c *conversation) drain(ctx context.Context) error {
	timer := time.AfterFunc(drainTime, func() { c.stop(nil) })
	defer timer.Stop()
	c.requests.Wait()
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// take serves one line. Requests are served beside each other; a cancellation
// takes effect at once.
func (c *conversation) take(ctx context.Context, l line) {
	if l.tooLong {
		c.write(message{}.refusal(&wireError{
			mcp.INVALID_REQUEST,
			fmt.Sprintf("cannot take the message: it is longer than %d bytes", tools.MaxInputBytes),
		}))
		return
	}
	m, err := readMessage(l.text)
	switch {
	case err != nil:
		c.write(m.refusal(err))
	case m.isRequest():
		c.start(ctx, m)
	case m.method == string(mcp.MethodNotificationCancelled):
		c.cancel(m)
	}
}

// start serves a request on a goroutine of its own.
func (c *conversation) start(ctx context.Context, m message) {
	ctx, cancel := context.WithCancel(ctx)
	if err := c.enter(m, cancel); err != nil {
		cancel()
		c.write(m.refusal(err))
		return
	}
	c.requests.Go(func() {
		answer := c.server.answer(ctx, m)
		if c.leave(m) {
			c.write(answer)
		}
		cancel()
	})
}

// enter notes a request as running.
func (c *conversation) enter(m message, cancel context.CancelFunc) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, taken := c.running[string(m.id)]; taken {
		return &wireError{mcp.INVALID_REQUEST, "cannot serve the request: another one with this id is running"}
	}
	if len(c.running) >= maxInFlight {
		return &wireError{mcp.INTERNAL_ERROR, fmt.Sprintf("cannot serve the request: %d are running; try again", maxInFlight)}
	}
	c.running[string(m.id)] = cancel
	return nil
}

// leave says whether a request that ended is to be answered: not where the
// client cancelled it.
func (c *conversation) leave(m message) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, answer := c.running[string(m.id)]
	delete(c.running, string(m.id))
	return answer
}

// cancel ends the wait of the request that a notification names. What the
// request has started goes on.
func (c *conversation) cancel(m message) {
	var params struct {
		RequestID json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(m.params, &params) != nil {
		return // a notification has no answer
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if cancel := c.running[string(params.RequestID)]; cancel != nil {
		delete(c.running, string(params.RequestID))
		cancel()
	}
}

// write writes one line; where that fails the conversation ends.
func (c *conversation) write(text []byte) {
	c.writing.Lock()
	defer c.writing.Unlock()
	if _, err := c.out.Write(append(text, '\n')); err != nil {
		c.stop(fmt.Errorf("cannot write to the client: %w", err))
	}
}

// answer gives the answer to a request as one line of JSON.
func (s *Server) answer(ctx context.Context, m message) (text []byte) {
	defer func() {
		if cause := recover(); cause != nil {
			s.Log.ErrorContext(ctx, "panic", "cause", fmt.Sprint(cause), "stack", string(debug.Stack()))
			text = m.refusal(&wireError{mcp.INTERNAL_ERROR, "the service failed"})
		}
	}()
	body, err := m.canonical()
	if err != nil {
		return m.refusal(err)
	}
	ctx = core.WithRequestID(withArguments(ctx, m.arguments), "req_"+rand.Text())
	text, err = json.Marshal(s.mcp.HandleMessage(ctx, body))
	if err != nil {
		return m.refusal(err)
	}
	return text
}
