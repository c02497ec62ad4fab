package rest

import (
	"net/http"

	"envapi/core"
	"envapi/tools"
)

// operation gives what serves an operation's route.
func (h *handler) operation(op tools.Operation) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		caller, _ := core.CallerFrom(r.Context())
		// Call checks it too; this is before the body is read.
		if err := caller.Require(op.Scope); err != nil {
			return err
		}
		input, err := readInput(w, r, op)
		if err != nil {
			return err
		}
		switch acceptedForm(r.Header, op.Forms) {
		case tools.EventStream:
			return h.sendEvents(w, r, reading{op, caller, input})
		case tools.RawBytes:
			return h.sendRaw(w, r, reading{op, caller, input})
		}
		output, err := op.Call(r.Context(), h.Service, caller, input)
		if err != nil {
			return err
		}
		return succeed(w, op.Success, output)
	}
}

// succeed writes the answer of an operation that succeeded.
func succeed(w http.ResponseWriter, s tools.Success, output any) error {
	switch s.Kind {
	case tools.NoContent:
		w.WriteHeader(http.StatusNoContent)
		return nil
	case tools.Created:
		w.Header().Set("Location", s.Location(output))
		return writeJSON(w, http.StatusCreated, output)
	case tools.DoneOrMade:
		if s.Made(output) {
			return writeJSON(w, http.StatusCreated, output)
		}
	case tools.DoneOrGoesOn:
		if s.GoesOn(output) {
			return writeJSON(w, http.StatusAccepted, output)
		}
	}
	return writeJSON(w, http.StatusOK, output)
}
