package tools

import (
	"net/http"
	"testing"

	"envapi/core"
)

// A stream is read under the same rules as a page.
func TestOpenRefusesWhatCallRefuses(t *testing.T) {
	streamed := 0
	for _, op := range Operations() {
		if op.Forms == nil {
			continue
		}
		streamed++
		if op.Method != http.MethodGet || op.Output == nil {
			t.Errorf("%s has forms, and is no reading", op.Name)
		}
		_, err := op.Open(t.Context(), nil, core.Caller{}, []byte("no JSON"))
		if e := core.AsError(err); e.Code != core.CodeInsufficientScope || e.Facts["scope"] != string(op.Scope) {
			t.Errorf("%s: got %v, want insufficient_scope", op.Name, err)
		}
		_, err = op.Open(t.Context(), nil, core.Caller{Scopes: []core.Scope{op.Scope}}, []byte(`{"nothing":1}`))
		if e := core.AsError(err); e.Code != core.CodeInvalidArgument {
			t.Errorf("%s: got %v, want invalid_argument", op.Name, err)
		}
	}
	if streamed == 0 {
		t.Error("nothing is streamed")
	}
}
