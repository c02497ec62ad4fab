package rest

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"envapi/core"
	"envapi/internal/outputlog"
	"envapi/internal/store"
	"envapi/internal/workspace"
	"envapi/sandbox"
	"envapi/tools"
)

// stage is a sandbox whose commands are played by the test: "say TEXT" writes TEXT
// and ends, and of every other script started gives the process.
type stage struct {
	sandbox.Host
	started   chan *process
	terminals chan *terminal
}

func (*stage) Tier() sandbox.Tier          { return sandbox.TierNamespace }
func (*stage) NeedsUID() bool              { return false }
func (*stage) WorkspacePath(string) string { return "/workspace" }
func (*stage) Report() sandbox.Report      { return sandbox.Report{Tier: sandbox.TierNamespace} }

func (s *stage) Open(context.Context, sandbox.Spec) (sandbox.Box, error) {
	done := make(chan struct{})
	return &box{stage: s, done: done, close: sync.OnceFunc(func() { close(done) })}, nil
}

type box struct {
	sandbox.Box
	stage *stage
	done  chan struct{}
	close func()
}

func (b *box) Done() <-chan struct{}                        { return b.done }
func (b *box) Usage(context.Context) (sandbox.Usage, error) { return sandbox.Usage{Processes: 1}, nil }
func (b *box) Temporary() string                            { return "" }
func (b *box) Close() error                                 { b.close(); return nil }

func (b *box) Start(_ context.Context, c sandbox.Command) (sandbox.Process, error) {
	p := &process{command: c, done: make(chan struct{})}
	p.end = sync.OnceFunc(func() { close(p.done) })
	go func() {
		select {
		case <-b.done:
			p.result.Lost = true
			p.end()
		case <-p.done:
		}
	}()
	if text, ok := strings.CutPrefix(c.Script, "say "); ok {
		p.print(text)
		p.end()
	} else {
		b.stage.started <- p
	}
	return p, nil
}

type process struct {
	sandbox.Process
	command sandbox.Command
	done    chan struct{}
	end     func()
	result  sandbox.Result
}

func (p *process) Done() <-chan struct{}      { return p.done }
func (p *process) Quiet() <-chan struct{}     { return p.done }
func (p *process) Input() sandbox.Input       { return nil }
func (p *process) Terminal() sandbox.Terminal { return nil }
func (p *process) Result() sandbox.Result     { return p.result }
func (p *process) Kill(context.Context) error { p.end(); return nil }
func (p *process) print(text string)          { _, _ = io.WriteString(p.command.Stdout, text) }

// world is the door to a service over everything real but the sandbox.
type world struct {
	t       *testing.T
	service *core.Service
	stage   *stage
	server  *httptest.Server
	env     string
}

// newWorld makes a world whose logs are bounded. Change may alter the handler.
func newWorld(t *testing.T, logBytes int64, change ...func(*handler)) *world {
	t.Helper()
	w := &world{t: t, stage: &stage{started: make(chan *process, 100), terminals: make(chan *terminal, 10)}}
	dir := t.TempDir()
	db, err := store.Open(t.Context(), filepath.Join(dir, "envapi.db"))
	must(t, err)
	logs, err := outputlog.Open(filepath.Join(dir, "logs"), logBytes)
	must(t, err)
	folders, err := workspace.Open(dir)
	must(t, err)
	w.service, err = core.New(t.Context(), core.Config{
		Store: db, Workspaces: folders, Logs: logs, Sandbox: w.stage, Log: slog.New(slog.DiscardHandler),
		Limits: core.Limits{
			EnvironmentsPerAccount: 2, EnvironmentsPerProfile: 2, ArchivedEnvironments: 100, TerminalsPerAccount: 100, Shells: 1, RunningCommands: 100, Processes: 100,
			MemoryBytes: 1 << 30, DiskBytes: 1 << 30, Files: 1000,
			DefaultTimeout: time.Minute, MaxTimeout: time.Hour,
		},
	})
	must(t, err)
	c := testConfig()
	c.Operations, c.Service = tools.Operations(), w.service
	h := New(c).(*handler)
	for _, change := range change {
		change(h)
	}
	w.server = httptest.NewServer(h)
	t.Cleanup(func() {
		w.server.CloseClientConnections()
		w.server.Close()
		for _, part := range []io.Closer{w.service, folders, logs, db} {
			must(t, part.Close())
		}
	})
	env, err := w.service.CreateEnvironment(t.Context(), alice, core.CreateEnvironmentInput{})
	must(t, err)
	w.env = env.ID
	return w
}

// alice is whom the token "good" names.
var alice = core.Caller{Owner: core.Owner{Account: "alice", Profile: "default"}, Scopes: core.AllScopes}

// exec starts a script and does not wait.
func (w *world) exec(script string) core.Command {
	w.t.Helper()
	none := int64(0)
	c, err := w.service.Exec(context.Background(), alice, core.ExecInput{EnvironmentID: w.env, Command: &script, WaitMS: &none})
	must(w.t, err)
	return c
}

// start starts a command that the test plays.
func (w *world) start() (string, *process) {
	w.t.Helper()
	c := w.exec("play")
	return c.ID, <-w.stage.started
}

// said gives a command that has written text and ended.
func (w *world) said(text string) string {
	w.t.Helper()
	id, p := w.start()
	p.print(text)
	p.end()
	w.await(id)
	return id
}

// await waits for the end of a command.
func (w *world) await(id string) {
	w.t.Helper()
	wait := int64(30_000)
	c, err := w.service.GetCommand(context.Background(), alice, core.GetCommandInput{CommandID: id, WaitMS: &wait})
	must(w.t, err)
	if c.Status == core.CommandRunning {
		w.t.Fatal("the command does not end")
	}
}

// get asks for a command's output. Headers are given as name, value, name, value.
func (w *world) get(id, query string, headers ...string) *http.Response {
	w.t.Helper()
	return w.send("GET", id, query, headers...)
}

func (w *world) send(method, id, query string, headers ...string) *http.Response {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.server.URL+"/v1/commands/"+id+"/output"+query, nil)
	must(w.t, err)
	r.Header.Set("Authorization", "Bearer good")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := w.server.Client().Do(r)
	must(w.t, err)
	w.t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// pattern gives n bytes of text that differ from place to place.
func pattern(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		b.WriteString(strconv.Itoa(i))
		b.WriteByte('\n')
	}
	return b.String()[:n]
}

func (*box) Processes(context.Context) ([]sandbox.ProcessInfo, error) { return nil, nil }
func (*box) SignalProcess(context.Context, sandbox.ProcessRef, string, bool) (int, error) {
	return 0, sandbox.ErrNoProcess
}

func (*box) WaitProcess(context.Context, sandbox.ProcessRef) (sandbox.ProcessEnd, error) {
	return sandbox.ProcessEnd{}, sandbox.ErrNoProcess
}
