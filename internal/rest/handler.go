package rest

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"envapi/core"
	"envapi/internal/openapi"
	"envapi/tools"
)

// Config is what the handler serves.
type Config struct {
	Operations []tools.Operation
	Service    *core.Service
	Verifier   Verifier     // never nil
	MCP        http.Handler // serves POST /mcp for callers that were verified; nil leaves it out
	// Pace says whether an account may ask once more now, or fails with `rate_limited`;
	// nil is that it may. POST /mcp is left to the one who serves it.
	Pace func(account string) error
	// Ready says whether the service can do its work; never nil.
	Ready func(context.Context) Readiness
	// AllowedHosts are the names, with or without a port, that the Host header
	// may have beside PublicURL's. With neither, any name is answered, save on
	// a loopback address, where it must be a loopback name.
	AllowedHosts []string
	PublicURL    string
	Log          *slog.Logger // nil discards
	Version      string
}

// Verifier says who a bearer token names. It fails with `unauthenticated`
// where the token is not good, and with `unavailable` where that cannot be
// known now.
type Verifier interface {
	Verify(ctx context.Context, raw string) (core.Caller, error)
}

type handler struct {
	Config
	mux   *http.ServeMux
	hosts []string // normalized
	// bodyTime, answerTime and pingTime are the constants; tests shorten them.
	bodyTime, answerTime, pingTime time.Duration
	atOnce                         int // maxAtOnce, likewise
	crowd                          crowd
}

// New makes the handler. It panics where a part is missing, which is a mistake
// in the program.
func New(c Config) http.Handler {
	if c.Verifier == nil || c.Ready == nil {
		panic("rest: a Verifier and Ready are needed")
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	document, err := openapi.Document(c.Operations, c.Version)
	if err != nil {
		panic(fmt.Sprintf("rest: cannot describe the operations: %v", err))
	}
	h := &handler{
		Config: c, mux: http.NewServeMux(), hosts: knownHosts(c.AllowedHosts, c.PublicURL),
		bodyTime: bodyTime, answerTime: answerTime, pingTime: pingTime, atOnce: maxAtOnce,
	}
	for _, route := range h.fixedRoutes(document) {
		h.mux.Handle(route.pattern, route)
	}
	for _, op := range c.Operations {
		serve := h.operation(op)
		if op.Success.Kind == tools.Attached {
			serve = h.attach(op)
		}
		if op.Success.IsTransfer() || op.RawBody {
			serve = h.transfer(op)
		}
		h.mux.Handle(op.Method+" "+op.Path, endpoint{op.Name, op.Method + " " + op.Path, serve, h})
	}
	return h
}

// ServeHTTP answers one request and writes one line about it into the log.
// The line holds neither contents nor the query, since that is where secrets
// would be.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	id := "req_" + rand.Text()
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Time{}) // that of the connection's last request
	a := &answer{ResponseWriter: w, control: control, time: h.answerTime}
	r = r.WithContext(core.WithRequestID(r.Context(), id)) // a copy: by the body of its own the server tells who waits for 100 Continue
	r.Body = timedBody{r.Body, control, start.Add(h.bodyTime)}
	w.Header().Set("X-Request-Id", id)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	defer func() { // also where an answer is broken off by a panic
		_ = control.SetReadDeadline(time.Now().Add(discardTime))
		h.Log.Log(r.Context(), a.level(), "request", "request_id", id, "account", a.account, "operation", a.operation,
			"method", r.Method, "status", a.status, "client_gone", r.Context().Err() != nil,
			"duration_ms", time.Since(start).Milliseconds())
	}()
	defer func() { h.recovered(a, r, recover()) }()
	if err := h.route(a, r); err != nil {
		h.fail(a, r, err)
	}
}

// recovered answers for a handler that panicked.
func (h *handler) recovered(a *answer, r *http.Request, cause any) {
	if cause == nil {
		return
	}
	if err, ok := cause.(error); ok && err == http.ErrAbortHandler { //nolint:errorlint // the server compares it the same way
		panic(cause)
	}
	h.Log.ErrorContext(r.Context(), "panic", "request_id", core.RequestIDFrom(r.Context()), "cause", fmt.Sprint(cause), "stack", string(debug.Stack()))
	if a.status == 0 {
		h.fail(a, r, fmt.Errorf("panic: %v", cause))
	}
}

// answer notes what the log says about a request, and bounds how long the
// client may take to read.
type answer struct {
	http.ResponseWriter
	control   *http.ResponseController
	time      time.Duration   // for each write
	stream    context.Context // of an answer that goes on; nil of every other
	status    int
	account   string
	operation string
}

// level is how loudly an answer is logged. Probes that found all well come every few
// seconds for as long as the service lives, and say nothing.
func (a *answer) level() slog.Level {
	if a.status == http.StatusOK && (a.operation == opReady || a.operation == opHealthz) {
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

// WriteHeader notes the status.
func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
	a.hurry()
	a.ResponseWriter.WriteHeader(status)
}

// Write notes the status that a first write implies.
func (a *answer) Write(p []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	a.hurry()
	return a.ResponseWriter.Write(p)
}

// hurry sets the deadline of what is written next, which holds also for what
// the server sends after the handler has returned. A writer that has no
// connection has none.
func (a *answer) hurry() {
	_ = a.control.SetWriteDeadline(time.Now().Add(a.time))
	if a.stream != nil && a.stream.Err() != nil {
		a.farewell()
	}
}

// Unwrap lets an http.ResponseController reach the connection.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
