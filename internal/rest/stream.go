package rest

import (
	"context"
	"net/http"
	"time"

	"envapi/core"
	"envapi/tools"
)

// farewellTime is how long a client gets to read what is written once its stream
// must end. Who reads gets it at once; who does not may not hold up the end.
const farewellTime = time.Second

// reading is a request for output in one of the forms of a stream.
type reading struct {
	op     tools.Operation
	caller core.Caller
	input  []byte
}

// open opens what a request reads, and the context that it may be read under. The
// caller must call done.
func (h *handler) open(w http.ResponseWriter, r *http.Request, in reading) (_ context.Context, _ *core.OutputStream, done func(), err error) {
	stream, err := in.op.Open(r.Context(), h.Service, in.caller, in.input)
	if err != nil {
		return nil, nil, nil, err
	}
	ctx, cancel := h.Service.Stream(r.Context(), in.caller)
	release := func() {}
	if a, ok := w.(*answer); ok {
		release = a.endWith(ctx)
	}
	return ctx, stream, func() { release(); cancel(); stream.Close() }, nil
}

// endWith bounds what is written by the context of a stream too: when that ends,
// a write that a client holds up is given up. The caller must call release.
func (a *answer) endWith(ctx context.Context) (release func()) {
	a.stream = ctx
	stop := context.AfterFunc(ctx, a.farewell)
	return func() { stop() }
}

func (a *answer) farewell() { _ = a.control.SetWriteDeadline(time.Now().Add(farewellTime)) }
