package mcpserver

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"envapi/core"
	"envapi/tools"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must come.
const patience = 30 * time.Second

type input struct {
	Name        string `json:"name,omitempty" doc:"A name."`
	OutputBytes *int64 `json:"output_bytes,omitempty" doc:"A size." min:"0" default:"16384"`
}

type output struct {
	Account     string `json:"account" doc:"Who asked."`
	Name        string `json:"name" doc:"What was asked."`
	OutputBytes int64  `json:"output_bytes" doc:"The size."`
}

// bench is a server with operations for tests, and what they have seen.
type bench struct {
	*Server
	waiting, ended atomic.Int64 // calls of wait
	release        chan struct{}
	log            *syncBuffer
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{release: make(chan struct{}), log: &syncBuffer{}}
	row := func(name string) tools.Operation {
		return tools.Operation{Name: name, Title: name, Description: "Does " + name + ".", Scope: core.ScopeExec, Hints: tools.Hints{Destructive: true}}
	}
	echo := row("echo")
	echo.ToolDefaults = map[string]any{"output_bytes": 8192}
	secret := errors.New("the inside")
	b.Server = New(Config{
		Version: "test", Log: slog.New(slog.NewTextHandler(b.log, nil)),
		Operations: []tools.Operation{
			tools.Define(echo, func(_ *core.Service, _ context.Context, c core.Caller, in input) (output, error) {
				return output{c.Account, in.Name, *in.OutputBytes}, nil
			}),
			tools.Define(row("wait"), b.wait),
			tools.Define(row("refuse"), func(*core.Service, context.Context, core.Caller, core.Nothing) (output, error) {
				return output{}, core.Errorf(core.CodeQuotaExceeded, "there are too many").With("limit", "shells").With("used", 3).Because(secret)
			}),
			tools.Define(row("break"), func(*core.Service, context.Context, core.Caller, core.Nothing) (output, error) {
				return output{}, secret
			}),
			tools.Define(row("panic"), func(*core.Service, context.Context, core.Caller, core.Nothing) (output, error) { panic("the inside") }),
		},
	})
	return b
}

// wait answers when its caller goes away or the test releases it.
func (b *bench) wait(_ *core.Service, ctx context.Context, c core.Caller, in input) (output, error) {
	b.waiting.Add(1)
	defer b.ended.Add(1)
	select {
	case <-ctx.Done():
		return output{}, ctx.Err()
	case <-b.release:
		return output{Account: c.Account, Name: in.Name}, nil
	}
}

var alice = core.Caller{Owner: core.Owner{Account: "alice", Profile: "default"}, Scopes: core.AllScopes}

// serve serves the bench over HTTP, to the account that the header names.
func (b *bench) serve(t *testing.T) *httptest.Server {
	t.Helper()
	h := b.Handler()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller := alice
		if account := r.Header.Get("X-Account"); account != "" {
			caller.Account = account
		}
		ctx := core.WithRequestID(core.WithCaller(r.Context(), caller), "req_test")
		h.ServeHTTP(w, r.WithContext(ctx))
	}))
	t.Cleanup(server.Close)
	return server
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it never came about that %s", what)
		}
	}
}

// syncBuffer is a buffer that many may write to.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
