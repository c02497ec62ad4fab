package rest

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"envapi/core"
	"envapi/internal/problem"
	"envapi/tools"
)

// maxMessage is the largest message that a client may send: what may be typed at
// one time.
const maxMessage = core.MaxInputBytes

// statusUnauthorized is the registered close code for a token that is no longer
// good.
const statusUnauthorized websocket.StatusCode = 3000

// viewer is one who sits before a terminal. What he has not read yet is in the log
// and nowhere else; one who reads nothing holds a message of the service's, and is
// dropped after a while.
type viewer struct {
	conn       *websocket.Conn
	attachment *core.Attachment
	log        *slog.Logger
	// answerTime is how long he may take to accept a message, pingTime after how
	// much silence it is asked whether he is there, and how long he may take to say
	// so.
	answerTime, pingTime time.Duration
	// typing is set while a program does not read what he typed: nothing he says is
	// read meanwhile, not even that he is there.
	typing atomic.Bool
}

// ending is why a connection is closed.
type ending struct {
	code   websocket.StatusCode
	reason string // at most 123 bytes
	say    message
}

func (e *ending) Error() string { return e.reason }

func (h *handler) newViewer(conn *websocket.Conn, a *core.Attachment) *viewer {
	conn.SetReadLimit(maxMessage)
	return &viewer{conn: conn, attachment: a, log: h.Log, answerTime: h.answerTime, pingTime: h.pingTime}
}

// serve does everything until the shell is closed, the context has ended, or the
// client is gone.
func (v *viewer) serve(ctx context.Context) {
	ctx, end := context.WithCancelCause(ctx)
	// Where the context of a read ends, the library breaks off the connection: so
	// this one ends when that is what is wanted.
	reading, stopReading := context.WithCancel(context.WithoutCancel(ctx))
	defer stopReading()
	var done sync.WaitGroup
	done.Go(func() { end(v.output(ctx)) })
	done.Go(func() { end(v.pings(ctx)) })
	var reader sync.WaitGroup
	reader.Go(func() { end(v.input(ctx, reading)) })
	done.Wait()
	v.finish(context.Cause(ctx), stopReading)
	reader.Wait()
}

// finish says why the connection is closed, and closes it.
func (v *viewer) finish(cause error, stopReading func()) {
	overdue := time.AfterFunc(farewellTime, stopReading)
	defer overdue.Stop()
	e := endingFor(cause)
	if e == nil { // the client is gone
		stopReading()
		_ = v.conn.CloseNow()
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), farewellTime)
	defer cancel()
	if e.say != nil && v.say(ctx, e.say) != nil {
		stopReading()
		_ = v.conn.CloseNow()
		return
	}
	_ = v.conn.Close(e.code, e.reason)
}

// endingFor gives the ending for a cause, or nil where there is nobody to tell.
func endingFor(cause error) *ending {
	var e *ending
	var failure *core.Error
	switch {
	case errors.As(cause, &e):
		return e
	case errors.Is(cause, core.ErrTokenExpired):
		return &ending{statusUnauthorized, "token_expired", problemOf(core.ErrTokenExpired)}
	case errors.Is(cause, core.ErrStopping):
		return &ending{websocket.StatusServiceRestart, "service_stopping", problemOf(core.ErrStopping)}
	case errors.As(cause, &failure):
		return &ending{websocket.StatusInternalError, string(failure.Code), problemOf(failure)}
	}
	return nil
}

func problemOf(e *core.Error) message {
	return message{"type": messageProblem, "problem": problem.Document(e, "")}
}

// output sends what is written to the terminal, until the shell is closed.
func (v *viewer) output(ctx context.Context) error {
	if err := v.send(ctx, hello(v.attachment)); err != nil {
		return err
	}
	for {
		data, err := v.attachment.Read(ctx)
		if next, expired := expiredUpTo(err); expired {
			err = v.send(ctx, message{"type": messageExpired, "next_offset": next})
		} else if err == nil {
			err = v.write(ctx, websocket.MessageBinary, data)
		}
		switch {
		case ctx.Err() != nil: // before the shell's end, which comes of the service's
			return context.Cause(ctx)
		case errors.Is(err, io.EOF):
			sh := v.attachment.Shell()
			return &ending{websocket.StatusNormalClosure, sh.CloseReason, farewell(sh)}
		case err != nil && !errors.Is(err, errClient):
			v.log.ErrorContext(ctx, "internal error", "request_id", core.RequestIDFrom(ctx), "cause", err.Error())
			return core.AsError(err)
		case err != nil:
			return err
		}
	}
}

// input types what comes, until the client is gone or says what is not known.
func (v *viewer) input(ctx, reading context.Context) error {
	for {
		kind, data, err := v.conn.Read(reading)
		if err != nil { // of a message that is too large, the library has told him
			return errors.Join(errClient, err)
		}
		if ctx.Err() != nil {
			continue // the connection is being closed
		}
		if kind == websocket.MessageText {
			err = v.control(ctx, data)
		} else {
			err = v.typed(ctx, data)
		}
		if err != nil {
			return err
		}
	}
}

// typed types. What cannot be typed is answered, and the connection goes on.
func (v *viewer) typed(ctx context.Context, data []byte) error {
	v.typing.Store(true)
	n, err := v.attachment.Type(ctx, data)
	v.typing.Store(false)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return v.refuse(ctx, err)
	case n < len(data):
		return v.send(ctx, message{"type": messageDropped, "bytes": len(data) - n})
	}
	return nil
}

// control does what a text message asks for.
func (v *viewer) control(ctx context.Context, text []byte) error {
	size, err := readControl(text)
	if err != nil {
		return &ending{websocket.StatusPolicyViolation, "unknown_message", problemOf(
			core.Errorf(core.CodeInvalidArgument, "cannot read the message: %v", err))}
	}
	if err := v.attachment.Resize(ctx, size); err != nil {
		return v.refuse(ctx, err)
	}
	return nil
}

// refuse says why something was not done. That the shell is closed is said when it
// is, with everything before it.
func (v *viewer) refuse(ctx context.Context, cause error) error {
	e := core.AsError(cause)
	switch e.Code {
	case core.CodeShellClosed:
		return nil
	case core.CodeInternal:
		v.log.ErrorContext(ctx, "internal error", "request_id", core.RequestIDFrom(ctx), "cause", cause.Error())
	}
	return v.send(ctx, message{"type": messageRefused, "code": e.Code, "detail": e.Detail})
}

// pings asks in silence whether the client is there.
func (v *viewer) pings(ctx context.Context) error {
	every := time.NewTicker(v.pingTime)
	defer every.Stop()
	for {
		select {
		case <-every.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		waiting, cancel := context.WithTimeout(ctx, v.pingTime)
		err := v.conn.Ping(waiting)
		cancel()
		if err != nil && ctx.Err() == nil && !v.typing.Load() {
			return errors.Join(errClient, err)
		}
	}
}

// send sends a text message, while the context lasts.
func (v *viewer) send(ctx context.Context, m message) error {
	text, err := tools.Encode(m)
	if err != nil {
		return err
	}
	return v.write(ctx, websocket.MessageText, text)
}

// say sends a text message in the time that the context gives.
func (v *viewer) say(ctx context.Context, m message) error {
	text, err := tools.Encode(m)
	if err != nil {
		return err
	}
	return v.conn.Write(ctx, websocket.MessageText, text)
}

// write sends a message. A client that does not accept it in time is given up; and
// where the context ends, he has a little time, so that what is said last comes
// after a whole message.
func (v *viewer) write(ctx context.Context, kind websocket.MessageType, data []byte) error {
	writing, cancel := context.WithTimeout(context.WithoutCancel(ctx), v.answerTime)
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-writing.Done():
		case <-time.After(farewellTime):
			cancel()
		}
	})
	defer stop()
	if err := v.conn.Write(writing, kind, data); err != nil {
		return errors.Join(errClient, err)
	}
	return nil
}
