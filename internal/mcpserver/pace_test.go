package mcpserver

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"envapi/core"
)

func TestACallThatComesTooSoonIsRefusedAsItsResult(t *testing.T) {
	b := newBench(t)
	var asked []string
	b.Pace = func(account string) error {
		asked = append(asked, account)
		return core.Errorf(core.CodeRateLimited, "too soon").With("retry_after_ms", int64(1200))
	}
	server := b.serve(t)
	const call = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"wait","arguments":{"name":"x"}}}`
	status, text, err := post(t.Context(), server.Client(), server.URL, call, map[string]string{"X-Account": "bob"})
	if err != nil || status != http.StatusOK {
		t.Fatalf("got %d %s, %v", status, text, err)
	}
	var answer struct {
		ID     int
		Result struct {
			IsError           bool
			StructuredContent struct {
				Code  string `json:"code"`
				After int64  `json:"retry_after_ms"`
			}
		}
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		t.Fatal(err)
	}
	if r := answer.Result; answer.ID != 7 || !r.IsError || r.StructuredContent.Code != "rate_limited" || r.StructuredContent.After != 1200 {
		t.Errorf("got %s", text)
	}
	if b.waiting.Load() != 0 {
		t.Error("it was done all the same")
	}
	for _, message := range []string{
		`{"jsonrpc":"2.0","id":8,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":8,"method":"ping"}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
	} {
		status, text, err := post(t.Context(), server.Client(), server.URL, message, nil)
		if err != nil || status != http.StatusTooManyRequests || !strings.Contains(text, "rate_limited: too soon") {
			t.Errorf("%s: %d %s, %v", message, status, text, err)
		}
	}
	if got := strings.Join(asked, " "); got != "bob alice alice alice" {
		t.Errorf("counted to %s", got)
	}
}

func TestOverStdioNothingIsPaced(t *testing.T) {
	b := newBench(t)
	b.Pace = func(string) error { return core.Errorf(core.CodeRateLimited, "too soon") }
	var out syncBuffer
	in := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"name":"x"}}}` + "\n")
	if err := b.ServeStdio(context.Background(), in, &out, alice); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); strings.Contains(text, "rate_limited") || !strings.Contains(text, `"name":"x"`) {
		t.Errorf("got %s", text)
	}
}
