package rest

import (
	"encoding/json"
	"net/http"
	"strconv"

	"envapi/core"
	"envapi/internal/problem"
)

// fail answers with the problem document of an error. What is not a core.Error
// is `internal`; its cause goes into the log and nowhere else.
func (h *handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	e := core.AsError(err)
	id := core.RequestIDFrom(r.Context())
	switch {
	case r.Context().Err() != nil:
		h.Log.DebugContext(r.Context(), "the client went away", "request_id", id)
	case core.OutOfFiles(err):
		h.Log.ErrorContext(r.Context(), "too many open files", "request_id", id, "cause", err.Error())
	case e.Code == core.CodeInternal:
		h.Log.ErrorContext(r.Context(), "internal error", "request_id", id, "cause", err.Error())
	}
	if value := challenge(e, r); value != "" {
		w.Header().Set("WWW-Authenticate", value)
	}
	if ms, ok := retryAfter(e); ok {
		w.Header().Set("Retry-After", strconv.FormatInt((ms+999)/1000, 10))
	}
	body, err := json.Marshal(problem.Document(e, id))
	if err != nil { // a fact that is no JSON: a mistake in the program
		h.Log.ErrorContext(r.Context(), "cannot write a problem document", "request_id", id, "cause", err.Error())
		body = []byte(`{}`)
	}
	writeRaw(w, problem.Status(e.Code), problem.MediaType, body)
}

// retryAfter gives the milliseconds after which to try again.
func retryAfter(e *core.Error) (int64, bool) {
	switch ms := e.Facts["retry_after_ms"].(type) {
	case int64:
		return ms, true
	case int:
		return int64(ms), true
	}
	return 0, false
}

func writeRaw(w http.ResponseWriter, status int, mediaType string, body []byte) {
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) //nolint:gosec // JSON, with nosniff; the client may be gone, and there is nobody to tell
}
