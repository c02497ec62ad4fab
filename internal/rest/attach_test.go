package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"envapi/core"
	"envapi/sandbox"
)

// terminal is one whose other side the test plays.
type terminal struct {
	spec sandbox.ShellSpec
	done chan struct{}
	end  func()

	mu     sync.Mutex
	typed  bytes.Buffer
	size   sandbox.Size
	takes  int  // how many bytes of each write are taken, where not 0
	frozen bool // nothing is taken
}

func (b *box) OpenShell(_ context.Context, spec sandbox.ShellSpec) (sandbox.Shell, error) {
	t := &terminal{spec: spec, done: make(chan struct{}), size: spec.Size}
	t.end = sync.OnceFunc(func() { close(t.done) })
	go func() {
		select {
		case <-b.done:
			t.end()
		case <-t.done:
		}
	}()
	b.stage.terminals <- t
	return t, nil
}

func (t *terminal) Done() <-chan struct{}                { return t.done }
func (t *terminal) Quiet() <-chan struct{}               { return t.done }
func (t *terminal) Input() sandbox.Input                 { return t }
func (t *terminal) Terminal() sandbox.Terminal           { return t }
func (t *terminal) Result() sandbox.Result               { return sandbox.Result{ExitCode: 3} }
func (t *terminal) Kill(context.Context) error           { t.end(); return nil }
func (t *terminal) Leave(context.Context) error          { t.end(); return nil }
func (t *terminal) Signal(context.Context, string) error { return nil }
func (t *terminal) End(context.Context) error            { return nil }
func (t *terminal) Reading(context.Context) (bool, bool) { return false, false }
func (t *terminal) Run(context.Context, sandbox.ShellCommand) (sandbox.Process, error) {
	return nil, sandbox.ErrShellClosed
}

func (t *terminal) Resize(s sandbox.Size) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.size = s
	return nil
}

func (t *terminal) Write(ctx context.Context, p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.frozen {
		t.mu.Unlock()
		<-ctx.Done()
		t.mu.Lock()
		return 0, ctx.Err()
	}
	if t.takes > 0 && t.takes < len(p) {
		t.typed.Write(p[:t.takes])
		return t.takes, sandbox.ErrInputClosed
	}
	return t.typed.Write(p)
}

func (t *terminal) print(text string) { _, _ = io.WriteString(t.spec.Output, text) }

// wantTyped waits until text was typed.
func (t *terminal) wantTyped(tt *testing.T, text string) {
	tt.Helper()
	eventually(tt, func() bool {
		t.mu.Lock()
		defer t.mu.Unlock()
		return t.typed.String() == text
	})
}

func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not come to that")
		}
	}
}

// openTerminal opens a shell of kind terminal.
func (w *world) openTerminal() (string, *terminal) {
	w.t.Helper()
	sh, err := w.service.OpenShell(context.Background(), alice, core.OpenShellInput{EnvironmentID: w.env, Kind: "terminal"})
	must(w.t, err)
	return sh.ID, <-w.stage.terminals
}

// seat is one before a terminal.
type seat struct {
	t     *testing.T
	conn  *websocket.Conn
	hello map[string]any
	bytes strings.Builder
	pings *atomic.Int64 // that came
}

// dialShell opens a WebSocket, with the token "good" unless the header says otherwise.
func (w *world) dialShell(id, query string, header http.Header, protocols ...string) (*seat, *http.Response, error) {
	if header == nil {
		header = http.Header{"Authorization": {"Bearer good"}}
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), 20*time.Second)
	defer cancel()
	s := &seat{t: w.t, pings: new(atomic.Int64)}
	conn, resp, err := websocket.Dial(ctx, w.server.URL+"/v1/shells/"+id+"/attach"+query, &websocket.DialOptions{
		HTTPHeader: header, Subprotocols: protocols,
		OnPingReceived: func(context.Context, []byte) bool { s.pings.Add(1); return true },
	})
	if conn != nil {
		conn.SetReadLimit(1 << 20)
		w.t.Cleanup(func() { _ = conn.CloseNow() })
	}
	s.conn = conn
	return s, resp, err
}

// sit sits down before a terminal.
func (w *world) sit(id, query string, header http.Header, protocols ...string) *seat {
	w.t.Helper()
	s, _, err := w.dialShell(id, query, header, protocols...)
	must(w.t, err)
	s.hello = s.message("hello")
	return s
}

// next gives the next message; text is nil for bytes, which are kept.
func (s *seat) next() (text map[string]any, err error) {
	ctx, cancel := context.WithTimeout(s.t.Context(), 20*time.Second)
	defer cancel()
	kind, data, err := s.conn.Read(ctx)
	if err != nil || kind == websocket.MessageBinary {
		s.bytes.Write(data)
		return nil, err
	}
	return text, json.Unmarshal(data, &text)
}

// message gives the next text message, which must be of a type.
func (s *seat) message(kind string) map[string]any {
	s.t.Helper()
	for {
		m, err := s.next()
		must(s.t, err)
		if m != nil {
			if m["type"] != kind {
				s.t.Fatalf("got the message %v, want %s", m, kind)
			}
			return m
		}
	}
}

// read reads until so many bytes have come.
func (s *seat) read(n int) string {
	s.t.Helper()
	for s.bytes.Len() < n {
		m, err := s.next()
		must(s.t, err)
		if m != nil {
			s.t.Fatalf("got the message %v", m)
		}
	}
	return s.bytes.String()
}

// wantEnd reads to the end, which must be for a reason.
func (s *seat) wantEnd(code websocket.StatusCode, reason string) {
	s.t.Helper()
	for {
		if _, err := s.next(); err != nil {
			var e websocket.CloseError
			if !errors.As(err, &e) || e.Code != code || e.Reason != reason {
				s.t.Errorf("it ended with %v, want %d %s", err, code, reason)
			}
			return
		}
	}
}

func (s *seat) write(kind websocket.MessageType, data string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 20*time.Second)
	defer cancel()
	must(s.t, s.conn.Write(ctx, kind, []byte(data)))
}

func (s *seat) typeIn(text string) { s.t.Helper(); s.write(websocket.MessageBinary, text) }
func (s *seat) say(text string)    { s.t.Helper(); s.write(websocket.MessageText, text) }

func TestSeveralSitBeforeOneTerminal(t *testing.T) {
	w := newWorld(t, 1<<20)
	id, terminal := w.openTerminal()
	terminal.print("$ ")
	one, other := w.sit(id, "", nil), w.sit(id, "", nil)
	if h := one.hello; h["offset"] != 0.0 || h["kind"] != "terminal" || h["cols"] != 80.0 || h["rows"] != 24.0 || h["input"] != true {
		t.Errorf("hello is %v", h)
	}
	one.typeIn("ls\r")
	terminal.wantTyped(t, "ls\r")
	other.typeIn("\x03")
	terminal.wantTyped(t, "ls\r\x03")
	terminal.print("ls\r\na\xff\x00b")
	for _, s := range []*seat{one, other} {
		if got := s.read(10); got != "$ ls\r\na\xff\x00b" {
			t.Errorf("got %q", got)
		}
	}
}

func TestAttachGoesOnExactly(t *testing.T) {
	w := newWorld(t, 1<<20)
	id, terminal := w.openTerminal()
	var all strings.Builder
	print := func() {
		text := strings.Repeat(fmt.Sprintf("%d,", all.Len()), 50)
		all.WriteString(text)
		terminal.print(text)
	}
	print()
	var got strings.Builder
	for range 5 {
		s := w.sit(id, fmt.Sprintf("?offset=%d", got.Len()), nil)
		print()
		s.read(1)
		_ = s.conn.CloseNow()
		got.WriteString(s.bytes.String())
		print()
	}
	s := w.sit(id, fmt.Sprintf("?offset=%d", got.Len()), nil)
	got.WriteString(s.read(all.Len() - got.Len()))
	if got.String() != all.String() {
		t.Errorf("got %q, want %q", got.String(), all.String())
	}
}

func TestAttachBeginsNearTheEnd(t *testing.T) {
	w := newWorld(t, 1<<20)
	id, terminal := w.openTerminal()
	terminal.print(strings.Repeat("x", 100_000))
	if got := w.sit(id, "", nil).hello["offset"]; got != float64(100_000-65_536) {
		t.Errorf("it begins at %v", got)
	}
	if got := w.sit(id, "?offset=0", nil).read(100_000); len(got) != 100_000 {
		t.Errorf("from the beginning there are %d", len(got))
	}
}

func TestAttachSaysWhatWasDropped(t *testing.T) {
	w := newWorld(t, 64<<10)
	id, terminal := w.openTerminal()
	for range 1000 {
		terminal.print(strings.Repeat("x", 1000))
	}
	s := w.sit(id, "?offset=0", nil)
	next := int(s.message("expired")["next_offset"].(float64))
	first := s.bytes.Len()
	if first == 0 || next <= first {
		t.Errorf("there are %d bytes, then it goes on at %d", first, next)
	}
	s.read(first + 1_000_000 - next)
}

func TestAttachResizes(t *testing.T) {
	w := newWorld(t, 1<<20)
	id, terminal := w.openTerminal()
	s := w.sit(id, "", nil)
	s.say(`{"type": "resize", "cols": 0, "rows": 24}`)
	if m := s.message("refused"); m["code"] != "invalid_argument" || m["detail"] == "" {
		t.Errorf("got %v", m)
	}
	s.say(`{"type": "resize", "cols": 132, "rows": 43}`)
	eventually(t, func() bool {
		terminal.mu.Lock()
		defer terminal.mu.Unlock()
		return terminal.size == sandbox.Size{Cols: 132, Rows: 43}
	})
	if h := w.sit(id, "", nil).hello; h["cols"] != 132.0 || h["rows"] != 43.0 {
		t.Errorf("hello is %v", h)
	}
}

func TestAttachRefusesMessagesThatItDoesNotKnow(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON": "resize", "another type": `{"type": "signal"}`, "an unknown field": `{"type": "resize", "cols": 1, "rows": 1, "x": 1}`,
		"no size": `{"type": "resize", "cols": 1}`, "two": `{"type": "resize", "cols": 1, "rows": 1} {}`, "a list": "[]", "nothing": "",
		"a fraction": `{"type": "resize", "cols": 1.5, "rows": 1}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1<<20)
			id, _ := w.openTerminal()
			s := w.sit(id, "", nil)
			s.say(text)
			m := s.message("problem")
			if p, _ := m["problem"].(map[string]any); p["code"] != "invalid_argument" {
				t.Errorf("got %v", m)
			}
			s.wantEnd(websocket.StatusPolicyViolation, "unknown_message")
		})
	}
}

func FuzzControl(f *testing.F) {
	for _, seed := range []string{`{"type": "resize", "cols": 80, "rows": 24}`, `{"type": "resize"}`, "[]", `{"type": 1}`, "\xff", `{"type":"resize","cols":1e99,"rows":-1}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		size, err := readControl(text)
		if err == nil && !json.Valid(text) {
			t.Errorf("%q is taken for %+v", text, size)
		}
		if err != nil && (size != core.TerminalSize{} || len(err.Error()) > 300) {
			t.Errorf("%q: got %+v, %v", text, size, err)
		}
	})
}

func TestAttachTakesALargePaste(t *testing.T) {
	w := newWorld(t, 1<<20)
	id, terminal := w.openTerminal()
	s := w.sit(id, "", nil)
	paste := strings.Repeat("0123456789abcde\n", 1<<16)
	s.typeIn(paste)
	terminal.wantTyped(t, paste)
	s.typeIn(paste + "x")
	s.wantEnd(websocket.StatusMessageTooBig, "read limited at 1048577 bytes")
}

func TestAttachSaysWhatWasNotTyped(t *testing.T) {
	w := newWorld(t, 1<<20)
	id, terminal := w.openTerminal()
	terminal.takes = 3
	s := w.sit(id, "", nil)
	s.typeIn("abcdef")
	if m := s.message("dropped"); m["bytes"] != 3.0 {
		t.Errorf("got %v", m)
	}
}

func TestToLookIsNotToType(t *testing.T) {
	w := newWorld(t, 1<<20, verifiedBy(func(c *core.Caller) { c.Scopes = []core.Scope{core.ScopeEnvironmentsRead} }))
	id, terminal := w.openTerminal()
	terminal.print("$ ")
	s := w.sit(id, "", nil)
	if s.hello["input"] != false || s.read(2) != "$ " {
		t.Errorf("hello is %v", s.hello)
	}
	for _, do := range []func(){
		func() { s.typeIn("x") },
		func() { s.say(`{"type": "resize", "cols": 10, "rows": 10}`) },
	} {
		do()
		if m := s.message("refused"); m["code"] != "insufficient_scope" {
			t.Errorf("got %v", m)
		}
	}
	if terminal.typed.Len() > 0 || terminal.size.Cols != 80 {
		t.Errorf("%q was typed, the size is %+v", terminal.typed.String(), terminal.size)
	}
}

// verifier lets a test alter the caller that a token names.
type verifier struct {
	tokens
	change func(*core.Caller)
}

func (v verifier) Verify(ctx context.Context, raw string) (core.Caller, error) {
	c, err := v.tokens.Verify(ctx, raw)
	v.change(&c)
	return c, err
}

func verifiedBy(change func(*core.Caller)) func(*handler) {
	return func(h *handler) { h.Verifier = verifier{change: change} }
}

func TestAttachIsRefused(t *testing.T) {
	var log lines
	w := newWorld(t, 1<<20, func(h *handler) { h.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	id, _ := w.openTerminal()
	good := http.Header{"Authorization": {"Bearer good"}}
	from := func(origin string) http.Header {
		h := good.Clone()
		h.Set("Origin", origin)
		return h
	}
	for name, c := range map[string]struct {
		id        string
		query     string
		header    http.Header
		protocols []string
		want      int
	}{
		"another's shell":               {id: "sh_unknown", want: 404},
		"another origin":                {id: id, header: from("https://evil.example"), want: 403},
		"an origin of no host":          {id: id, header: from("null"), want: 403},
		"no token":                      {id: id, header: http.Header{}, want: 401},
		"no token, but the subprotocol": {id: id, header: http.Header{}, protocols: []string{"envapi.v1"}, want: 401},
		"a bad token":                   {id: id, header: http.Header{}, protocols: []string{"envapi.v1", "envapi.bearer.SECRET"}, want: 401},
		"two tokens":                    {id: id, header: http.Header{}, protocols: []string{"envapi.v1", "envapi.bearer.good", "envapi.bearer.good"}, want: 401},
		"a token twice":                 {id: id, header: good, protocols: []string{"envapi.v1", "envapi.bearer.good"}, want: 401},
		"a token in the query":          {id: id, query: "?access_token=SECRET", want: 400},
		"another subprotocol":           {id: id, header: good, protocols: []string{"chat"}, want: 400},
		"a token and no subprotocol":    {id: id, header: http.Header{}, protocols: []string{"envapi.bearer.good"}, want: 400},
		"an unknown field":              {id: id, query: "?from=1", want: 400},
		"a negative offset":             {id: id, query: "?offset=-1", want: 400},
	} {
		t.Run(name, func(t *testing.T) {
			_, resp, err := w.dialShell(c.id, c.query, c.header, c.protocols...)
			if err == nil || resp == nil || resp.StatusCode != c.want {
				t.Errorf("got %v, %v; want %d", resp, err, c.want)
			}
		})
	}
	w.server.Close() // after which nothing is logged any more
	if log.count("request") == 0 || log.count("SECRET") > 0 || log.count("good") > 0 {
		t.Errorf("a token is in the log:\n%s", log.text.String())
	}
}

// TestToTypeIsNotToLook: a token for everything else shows no terminal.
func TestToTypeIsNotToLook(t *testing.T) {
	w := newWorld(t, 1<<20, verifiedBy(func(c *core.Caller) {
		c.Scopes = slices.DeleteFunc(slices.Clone(core.AllScopes), func(s core.Scope) bool { return s == core.ScopeEnvironmentsRead })
	}))
	id, _ := w.openTerminal()
	_, resp, err := w.dialShell(id, "", nil)
	if err == nil || resp == nil || resp.StatusCode != http.StatusForbidden || !strings.Contains(resp.Header.Get("WWW-Authenticate"), `scope="environments:read"`) {
		t.Errorf("got %v, %v", resp, err)
	}
}

func TestAttachForAWebPage(t *testing.T) {
	w := newWorld(t, 1<<20)
	id, terminal := w.openTerminal()
	s := w.sit(id, "", http.Header{"Origin": {w.server.URL}}, "envapi.v1", "envapi.bearer.good")
	if got := s.conn.Subprotocol(); got != "envapi.v1" {
		t.Errorf("the subprotocol is %q", got)
	}
	s.typeIn("x")
	terminal.wantTyped(t, "x")
}

func TestAttachIsNoRequestOfTheUsualKind(t *testing.T) {
	w := newWorld(t, 1<<20)
	id, _ := w.openTerminal()
	for _, method := range []string{"GET", "HEAD"} {
		r, err := http.NewRequestWithContext(t.Context(), method, w.server.URL+"/v1/shells/"+id+"/attach", nil)
		must(t, err)
		r.Header.Set("Authorization", "Bearer good")
		resp, err := w.server.Client().Do(r)
		must(t, err)
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s gives %s", method, resp.Status)
		}
	}
}

func TestTheShellIsClosedUnderItsViewers(t *testing.T) {
	w := newWorld(t, 1<<20)
	id, terminal := w.openTerminal()
	s := w.sit(id, "", nil)
	terminal.print("logout\r\n")
	terminal.end()
	if m := s.message("closed"); m["reason"] != "exited" || m["exit_code"] != 3.0 || s.bytes.String() != "logout\r\n" {
		t.Errorf("got %v after %q", m, s.bytes.String())
	}
	s.wantEnd(websocket.StatusNormalClosure, "exited")

	late := w.sit(id, "?offset=3", nil) // what is left to be read
	if m := late.message("closed"); m["reason"] != "exited" || late.bytes.String() != "out\r\n" {
		t.Errorf("got %v after %q", m, late.bytes.String())
	}
	late.wantEnd(websocket.StatusNormalClosure, "exited")
}

func TestAttachEndsWithTheToken(t *testing.T) {
	w := newWorld(t, 1<<20, verifiedBy(func(c *core.Caller) { c.Until = time.Now().Add(500 * time.Millisecond) }))
	id, _ := w.openTerminal()
	s := w.sit(id, "", nil)
	if p, _ := s.message("problem")["problem"].(map[string]any); p["code"] != "unauthenticated" {
		t.Errorf("got %v", p)
	}
	s.wantEnd(3000, "token_expired")
}

func TestAttachEndsWithTheService(t *testing.T) {
	w := newWorld(t, 1<<20)
	id, terminal := w.openTerminal()
	s, frozen := w.sit(id, "", nil), w.sit(id, "", nil)
	flood := strings.Repeat("x", 1<<20)
	done := make(chan struct{})
	go func() { // it reads, but not any more
		defer close(done)
		for range 16 {
			terminal.print(flood)
		}
		_ = w.service.Close()
	}()
	for {
		m, err := s.next()
		if websocket.CloseStatus(err) == websocket.StatusServiceRestart {
			break
		}
		must(t, err)
		if m != nil && m["type"] != "problem" && m["type"] != "expired" {
			t.Errorf("got %v", m)
		}
	}
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Error("one who does not read holds up the end of the service")
	}
	_ = frozen.conn.CloseNow()
}

func TestWhoDoesNotReadCostsNobodyAnything(t *testing.T) {
	var log lines
	w := newWorld(t, 1<<27, func(h *handler) { // nothing is dropped from the output
		h.answerTime = 2 * time.Second // which one who reads does not need, however busy the machine is
		h.Log = slog.New(slog.NewTextHandler(&log, nil))
	})
	id, terminal := w.openTerminal()
	frozen, reader := w.sit(id, "", nil), w.sit(id, "", nil)
	piece := strings.Repeat("x", 64<<10)
	const pieces = 512 // 32 MiB: more than the buffers of a connection
	go func() {
		for range pieces {
			terminal.print(piece)
		}
		terminal.print("end")
	}()
	for !strings.HasSuffix(reader.bytes.String(), "end") {
		if m, err := reader.next(); err != nil || m != nil {
			t.Fatalf("got %v, %v", m, err)
		}
	}
	// The frozen one is dropped: what he then reads ends before the end.
	eventually(t, func() bool { return log.count("operation=attach") > 0 })
	eventually(t, func() bool {
		_, err := frozen.next()
		return err != nil
	})
	if strings.HasSuffix(frozen.bytes.String(), "end") {
		t.Error("everything was kept for one who did not read")
	}
}

func TestWhoIsGoneWithoutAWordIsMissed(t *testing.T) {
	var log lines
	w := newWorld(t, 1<<20, func(h *handler) {
		h.pingTime = 50 * time.Millisecond
		h.Log = slog.New(slog.NewTextHandler(&log, nil))
	})
	id, terminal := w.openTerminal()
	s := w.sit(id, "", nil) // and reads nothing any more: a ping is answered by one who reads
	r := w.sit(id, "", nil)
	kept := make(chan error, 1)
	go func() {
		_, err := r.next()
		kept <- err
	}()
	eventually(t, func() bool { return log.count("operation=attach") > 0 })
	pinged := r.pings.Load()
	eventually(t, func() bool { return r.pings.Load() > pinged+3 })
	terminal.print("x")
	if err := <-kept; err != nil {
		t.Errorf("one who answers pings is dropped: %v", err)
	}
	if m, err := s.next(); err == nil {
		t.Errorf("one who answers none is kept: %v, %q", m, s.bytes.String())
	}
}

func TestOneWhoTypesWhatNobodyReadsIsNotMissed(t *testing.T) {
	w := newWorld(t, 1<<20, func(h *handler) { h.pingTime = 20 * time.Millisecond })
	id, terminal := w.openTerminal()
	terminal.frozen = true
	s := w.sit(id, "", nil)
	s.typeIn("x")
	got := make(chan error, 1)
	go func() {
		_, err := s.next()
		got <- err
	}()
	eventually(t, func() bool { return s.pings.Load() > 5 }) // whose answers are not read
	terminal.print("still here")
	if err := <-got; err != nil {
		t.Errorf("the connection is gone: %v", err)
	}
}

// lines is a log.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// count says how often text stands in it.
func (l *lines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}
