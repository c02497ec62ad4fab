package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"envapi/core"
	"envapi/internal/problem"
	"envapi/tools"
)

// The names of the events. The contract knows all but the last, which says why a
// stream ends before there is an end.
const (
	eventOutput  = "output"
	eventExpired = "expired"
	eventEnd     = "end"
	eventProblem = "problem"
)

const (
	// pingTime is after how much silence a comment is sent: less than what proxies
	// let pass, and the way to notice a client that is gone without a word.
	pingTime = 15 * time.Second
	// comeBack is after which time a client is asked to come back when the service
	// stops.
	comeBack = 2 * time.Second
)

// sendEvents answers with what a command writes, as server-sent events, until it
// has ended. Nothing is kept for a client but the page that is being sent to it:
// one that reads slowly reads the log later, one that does not read is dropped
// after answerTime, and either can come back.
func (h *handler) sendEvents(w http.ResponseWriter, r *http.Request, in reading) error {
	last, given, err := lastEventID(r.Header)
	if err != nil {
		return err
	}
	ctx, stream, done, err := h.open(w, r, in)
	if err != nil {
		return err
	}
	defer done()
	if given {
		stream.Resume(last)
	}
	w.Header().Set("Content-Type", tools.EventStream)
	w.Header().Set("X-Accel-Buffering", "no") // a proxy that knows this passes events on at once
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	e := events{w: w, control: http.NewResponseController(w), request: core.RequestIDFrom(r.Context())}
	err = e.follow(ctx, stream, h.pingTime)
	if err != nil && ctx.Err() == nil && !errors.Is(err, errClient) && core.AsError(err).Code == core.CodeInternal {
		h.Log.ErrorContext(ctx, "internal error", "request_id", e.request, "cause", err.Error())
	}
	return nil
}

// lastEventID gives the offset at which a client goes on, if it says one.
func lastEventID(header http.Header) (offset int64, given bool, err error) {
	text := header.Get("Last-Event-ID")
	if text == "" {
		return 0, false, nil
	}
	offset, err = strconv.ParseInt(text, 10, 64)
	if err != nil || offset < 0 {
		return 0, false, invalid("Last-Event-ID", "cannot go on after the event %.32q: the id of an event is an offset, 0 or more", text)
	}
	return offset, true, nil
}

// errClient says that the client took no more.
var errClient = errors.New("the client is gone")

// events writes server-sent events.
type events struct {
	w       http.ResponseWriter
	control *http.ResponseController
	request string // its id
}

// follow sends what there is and what comes, until the end of it or of the
// context.
func (e *events) follow(ctx context.Context, stream *core.OutputStream, silence time.Duration) error {
	err := e.comment("envapi") // so that a proxy passes the headers on
	for err == nil {
		var eof bool
		if eof, err = e.page(ctx, stream, silence); eof && err == nil {
			return e.outcome(ctx, stream)
		}
	}
	if errors.Is(err, errClient) {
		return err
	}
	return errors.Join(err, e.problem(err))
}

// page sends the next page, or a comment where none comes for so long, and says
// whether it was the last.
func (e *events) page(ctx context.Context, stream *core.OutputStream, silence time.Duration) (eof bool, err error) {
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	waiting, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	page, err := stream.Next(waiting)
	if next, expired := expiredUpTo(err); expired {
		stream.Resume(next)
		return false, e.event(eventExpired, &next, map[string]any{"next_offset": next})
	}
	switch {
	case err != nil:
		return false, err
	case page.NextOffset > page.Offset:
		return page.EOF, e.event(eventOutput, &page.NextOffset, page)
	case page.EOF:
		return true, nil
	case waiting.Err() == nil: // the service stops
		<-ctx.Done()
	}
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	return false, e.comment("ping")
}

// expiredUpTo says whether err is about bytes that were dropped, and where those
// end.
func expiredUpTo(err error) (next int64, expired bool) {
	var e *core.Error
	if !errors.As(err, &e) || e.Code != core.CodeOutputExpired {
		return 0, false
	}
	next, expired = e.Facts["next_offset"].(int64)
	return next, expired
}

// outcome sends the last event.
func (e *events) outcome(ctx context.Context, stream *core.OutputStream) error {
	outcome, err := stream.Outcome(ctx)
	if err != nil {
		return errors.Join(err, e.problem(err))
	}
	return e.event(eventEnd, nil, outcome)
}

// problem sends why the stream ends here.
func (e *events) problem(cause error) error {
	failure := core.AsError(cause)
	if failure.Code == core.CodeUnavailable {
		if err := e.write(fmt.Sprintf("retry: %d\n\n", comeBack.Milliseconds())); err != nil {
			return err
		}
	}
	return e.event(eventProblem, nil, problem.Document(failure, e.request))
}

// event sends one event. The data is JSON in one line.
func (e *events) event(name string, id *int64, data any) error {
	body, err := tools.Encode(data)
	if err != nil {
		return err
	}
	var text strings.Builder
	if id != nil {
		fmt.Fprintf(&text, "id: %d\n", *id)
	}
	fmt.Fprintf(&text, "event: %s\ndata: %s\n\n", name, body)
	return e.write(text.String())
}

func (e *events) comment(text string) error { return e.write(": " + text + "\n\n") }

// write sends a whole event at once.
func (e *events) write(text string) error {
	_, err := e.w.Write([]byte(text))
	if err == nil {
		err = e.control.Flush()
	}
	if err != nil {
		return errors.Join(errClient, err)
	}
	return nil
}
