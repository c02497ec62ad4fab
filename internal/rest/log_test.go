package rest

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// onEnd is a log that closes a channel when a request has ended.
func onEnd(ended chan struct{}) *slog.Logger {
	return slog.New(endHandler{slog.DiscardHandler, sync.OnceFunc(func() { close(ended) })})
}

type endHandler struct {
	slog.Handler
	end func()
}

func (endHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h endHandler) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "request" {
		h.end()
	}
	return nil
}

// TestProbesThatFindAllWellAreNotLogged: they come for ever, and all else is said.
func TestProbesThatFindAllWellAreNotLogged(t *testing.T) {
	for name, test := range map[string]struct {
		target, status string
		lines          int
	}{
		"alive":         {"/healthz", StatusReady, 0},
		"ready":         {"/ready", StatusReady, 0},
		"not ready":     {"/ready", "failing", 1},
		"anything else": {"/openapi.json", StatusReady, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var text strings.Builder
			c := testConfig()
			c.Log = slog.New(slog.NewTextHandler(&text, nil)) // at info
			c.Ready = func(context.Context) Readiness { return Readiness{Status: test.status} }
			ask(t, New(c), http.MethodGet, test.target, "", nil)
			if got := strings.Count(text.String(), "msg=request"); got != test.lines {
				t.Errorf("%d lines, want %d: %s", got, test.lines, text.String())
			}
		})
	}
}

// wait waits for a channel to be closed, 30 s at most.
func wait(t *testing.T, c <-chan struct{}, otherwise string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(30 * time.Second):
		t.Fatal(otherwise)
	}
}
