package mcpserver

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/mark3labs/mcp-go/mcp"

	"envapi/core"
)

// pace counts a message of the caller's, and says so where it came too soon. A call of
// a tool is then refused as its result, since that is what an assistant reads; every
// other message as tooSoon does.
func (s *Server) pace(ctx context.Context) error {
	if s.Pace == nil {
		return nil
	}
	caller, _ := core.CallerFrom(ctx)
	return s.Pace(caller.Account)
}

// tooSoon refuses a message that is no call of a tool.
func tooSoon(w http.ResponseWriter, err error) (int, error) {
	e := core.AsError(err)
	if ms, ok := e.Facts["retry_after_ms"].(int64); ok {
		w.Header().Set("Retry-After", strconv.FormatInt((ms+999)/1000, 10))
	}
	return http.StatusTooManyRequests, &wireError{mcp.INTERNAL_ERROR, fmt.Sprintf("%s: %s", e.Code, e.Detail)}
}

type hurriedKey struct{}

func withHurried(ctx context.Context, err error) context.Context {
	if err == nil {
		return ctx
	}
	return context.WithValue(ctx, hurriedKey{}, err)
}

// hurriedFrom gives why a call of a tool came too soon, or nil.
func hurriedFrom(ctx context.Context) error {
	err, _ := ctx.Value(hurriedKey{}).(error)
	return err
}
