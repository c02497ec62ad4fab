package rest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"envapi/core"
	"envapi/tools"
)

// sendFeed answers with changes of files as server-sent events, until the client goes,
// the token expires, the service stops or what is watched is gone. Nothing is kept for
// a client but what the watch bounds: one that reads slowly is told of an overflow.
func (h *handler) sendFeed(w http.ResponseWriter, r *http.Request, in reading) error {
	ctx, cancel := h.Service.Stream(r.Context(), in.caller)
	defer cancel()
	watch, err := in.op.Feed(ctx, h.Service, in.caller, in.input)
	if err != nil {
		return err
	}
	defer func() { _ = watch.Close() }()
	if a, ok := w.(*answer); ok {
		defer a.endWith(ctx)()
	}
	w.Header().Set("Content-Type", tools.EventStream)
	w.Header().Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	e := events{w: w, control: http.NewResponseController(w), request: core.RequestIDFrom(r.Context())}
	err = e.changes(ctx, watch, h.pingTime)
	if err != nil && ctx.Err() == nil && !errors.Is(err, errClient) && core.AsError(err).Code == core.CodeInternal {
		h.Log.ErrorContext(ctx, "internal error", "request_id", e.request, "cause", err.Error())
	}
	return nil
}

// changes sends what comes.
func (e *events) changes(ctx context.Context, watch core.FileWatch, silence time.Duration) error {
	err := e.comment("envapi") // so that a proxy passes the headers on
	for err == nil {
		var gone bool
		if gone, err = e.batch(ctx, watch, silence); gone {
			return err
		}
	}
	if errors.Is(err, errClient) {
		return err
	}
	return errors.Join(err, e.problem(err))
}

// batch sends the next changes, or a comment where none come for so long, and says
// whether they were the last.
func (e *events) batch(ctx context.Context, watch core.FileWatch, silence time.Duration) (gone bool, err error) {
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	waiting, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	changes, err := watch.Next(waiting)
	for _, change := range changes {
		if err := e.event(string(change.Type), nil, change); err != nil {
			return false, err
		}
		if change.Type == core.FileGone {
			return true, nil
		}
	}
	switch {
	case errors.Is(err, io.EOF): // it is gone
		return true, nil
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case waiting.Err() != nil && len(changes) == 0:
		return false, e.comment("ping")
	}
	return false, err
}
