package tools_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"envapi/core"
	"envapi/internal/mcpserver"
	"envapi/internal/outputlog"
	"envapi/internal/rest"
	"envapi/internal/store"
	"envapi/internal/workspace"
	"envapi/sandbox"
	"envapi/tools"
)

// stage is a sandbox whose programs are played: "wait" runs until it is
// signaled, "starve" runs out of memory, anything else is written to stdout and
// ends.
type stage struct{}

func (stage) Tier() sandbox.Tier                                      { return sandbox.TierNamespace }
func (stage) NeedsUID() bool                                          { return false }
func (stage) WorkspacePath(string) string                             { return "/workspace" }
func (stage) Close() error                                            { return nil }
func (stage) Open(context.Context, sandbox.Spec) (sandbox.Box, error) { return newBox(), nil }
func (stage) Report() sandbox.Report {
	return sandbox.Report{
		Tier: sandbox.TierNamespace, Tiers: []sandbox.TierReport{{Tier: sandbox.TierNamespace, Available: true}},
		Controls: []sandbox.Control{{Name: "stage", Detail: "nothing is contained in a test"}},
	}
}

type box struct {
	done  chan struct{}
	close func()
}

func newBox() box {
	done := make(chan struct{})
	return box{done, sync.OnceFunc(func() { close(done) })}
}

func (b box) Done() <-chan struct{}                        { return b.done }
func (b box) Usage(context.Context) (sandbox.Usage, error) { return sandbox.Usage{Processes: 1}, nil }
func (b box) Temporary() string                            { return "" }

// OpenShell opens a shell that runs what Start runs, and a terminal that takes
// everything.
func (b box) OpenShell(ctx context.Context, spec sandbox.ShellSpec) (sandbox.Shell, error) {
	p, err := b.Start(ctx, sandbox.Command{Script: "wait"})
	_, _ = io.WriteString(spec.Output, "the terminal")
	return shell{p, b}, err
}

type shell struct {
	sandbox.Process
	box box
}

func (sh shell) Terminal() sandbox.Terminal      { return terminal{} }
func (sh shell) Leave(ctx context.Context) error { return sh.Kill(ctx) }
func (sh shell) Run(ctx context.Context, c sandbox.ShellCommand) (sandbox.Process, error) {
	p, err := sh.box.Start(ctx, sandbox.Command{Script: c.Script, Stdout: c.Stdout})
	if err != nil {
		return nil, err
	}
	go func() { // nothing outlives bash
		select {
		case <-sh.Done():
			_ = p.Kill(ctx)
		case <-p.Done():
		}
	}()
	return inShell{p}, nil
}

// inShell is a command of a shell.
type inShell struct{ sandbox.Process }

func (inShell) Terminal() sandbox.Terminal { return terminal{} }

type terminal struct{}

func (terminal) Write(_ context.Context, p []byte) (int, error) { return len(p), nil }
func (terminal) End(context.Context) error                      { return nil }
func (terminal) Resize(sandbox.Size) error                      { return nil }
func (terminal) Reading(context.Context) (reading, known bool)  { return false, true }
func (b box) Close() error                                      { b.close(); return nil }

func (b box) Start(_ context.Context, c sandbox.Command) (sandbox.Process, error) {
	p := &process{done: make(chan struct{}), signals: make(chan string, 1)}
	go func() {
		defer close(p.done)
		if c.Script == "starve" {
			p.result = sandbox.Result{ExitCode: 137, OutOfMemory: true}
			return
		}
		if c.Script != "wait" {
			_, _ = io.WriteString(c.Stdout, c.Script)
			return
		}
		select {
		case p.result.Signal = <-p.signals:
		case <-b.done:
			p.result.Lost = true
		}
	}()
	return p, nil
}

type process struct {
	done    chan struct{}
	signals chan string
	result  sandbox.Result
}

func (p *process) Done() <-chan struct{}      { return p.done }
func (p *process) Quiet() <-chan struct{}     { return p.done }
func (p *process) Input() sandbox.Input       { return terminal{} }
func (p *process) Terminal() sandbox.Terminal { return nil }
func (p *process) Result() sandbox.Result     { return p.result }
func (p *process) Kill(context.Context) error { return p.Signal(nil, "KILL") } //nolint:staticcheck // the context is not used
func (p *process) Signal(_ context.Context, name string) error {
	select {
	case p.signals <- name:
	case <-p.done:
	}
	<-p.done
	return nil
}

// newService makes a service over everything real but the sandbox.
func newService(t *testing.T) *core.Service {
	t.Helper()
	dir := t.TempDir()
	db, err := store.Open(t.Context(), filepath.Join(dir, "envapi.db"))
	must(t, err)
	logs, err := outputlog.Open(filepath.Join(dir, "logs"), 1<<20)
	must(t, err)
	folders, err := workspace.Open(dir)
	must(t, err)
	s, err := core.New(t.Context(), core.Config{
		Store: db, Workspaces: folders, Logs: logs, Sandbox: stage{}, Log: slog.New(slog.DiscardHandler),
		Limits: core.Limits{
			EnvironmentsPerAccount: 2, EnvironmentsPerProfile: 2, ArchivedEnvironments: 100, TerminalsPerAccount: 100, Shells: 1, RunningCommands: 2, Processes: 100,
			MemoryBytes: 1 << 30, DiskBytes: 1 << 30, Files: 1000,
			DefaultTimeout: time.Minute, MaxTimeout: time.Hour,
		},
	})
	must(t, err)
	t.Cleanup(func() {
		for _, part := range []io.Closer{s, folders, logs, db} {
			must(t, part.Close())
		}
	})
	return s
}

// doors gives both doors to a service of its own, for one caller.
func doors(t *testing.T) http.Handler {
	t.Helper()
	s, ops := newService(t), tools.Operations()
	return rest.New(rest.Config{
		Operations: ops, Service: s, Verifier: anybody{},
		MCP:   mcpserver.New(mcpserver.Config{Operations: ops, Service: s}).Handler(),
		Ready: func(context.Context) rest.Readiness { return rest.Readiness{} },
	})
}

// anybody is a Verifier that takes every token for the same caller's.
type anybody struct{}

func (anybody) Verify(context.Context, string) (core.Caller, error) {
	return core.Caller{Owner: core.Owner{Account: "alice", Profile: "default"}, Scopes: core.AllScopes}, nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// In every box two processes live: 7 stays, 9 ends when it is waited for.
var lives = []sandbox.ProcessInfo{
	{
		PID: 7, PPID: 2, StartedAt: started, State: sandbox.ProcessSleeping, Command: "serve \x1b <&>", CPU: time.Second, CPUPercent: 12.34,
		MemoryBytes: 1 << 20, Threads: 3, Of: "cmd_a", Listens: []sandbox.Listener{{Protocol: "tcp6", Address: "::1", Port: 80}},
	},
	{PID: 9, PPID: 7, StartedAt: started, State: sandbox.ProcessZombie, Command: "[x]", Threads: 1, Of: "sh_a"},
}

// started is no whole number of milliseconds, as a moment of the system is.
var started = time.Date(2026, 1, 2, 3, 4, 5, 670_100_200, time.UTC)

func (box) Processes(context.Context) ([]sandbox.ProcessInfo, error) { return lives, nil }

func (box) SignalProcess(_ context.Context, ref sandbox.ProcessRef, _ string, tree bool) (int, error) {
	if tree {
		return 2, find(ref)
	}
	return 1, find(ref)
}

func (box) WaitProcess(ctx context.Context, ref sandbox.ProcessRef) (sandbox.ProcessEnd, error) {
	if err := find(ref); err != nil || ref.PID == 9 {
		return sandbox.ProcessEnd{Known: true, ExitCode: 3}, err
	}
	<-ctx.Done()
	return sandbox.ProcessEnd{}, ctx.Err()
}

func find(ref sandbox.ProcessRef) error {
	switch {
	case ref.PID != 7 && ref.PID != 9:
		return sandbox.ErrNoProcess
	case !ref.StartedAt.IsZero() && ref.StartedAt.Sub(started).Abs() > 5*time.Millisecond:
		return sandbox.ErrProcessReplaced
	}
	return nil
}
