package core

import "context"

type contextKey int

const (
	callerKey contextKey = iota
	requestIDKey
)

// WithCaller gives a context that carries who asks.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey, c)
}

// CallerFrom gives the caller that WithCaller put into ctx, and whether there
// is one. Without one nothing may be done: the zero Caller holds no scope.
func CallerFrom(ctx context.Context) (Caller, bool) {
	c, ok := ctx.Value(callerKey).(Caller)
	return c, ok
}

// WithRequestID gives a context that carries the id by which the log and the
// caller's answer name a request.
func WithRequestID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestIDKey, id)
}

// RequestIDFrom gives the request id in ctx, or "".
func RequestIDFrom(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey).(string)
	return id
}
