package rest

import (
	"context"
	"log/slog"
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

// wait waits for a channel to be closed, 30 s at most.
func wait(t *testing.T, c <-chan struct{}, otherwise string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(30 * time.Second):
		t.Fatal(otherwise)
	}
}
