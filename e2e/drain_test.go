package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// stopBound is how long an end may take beside its grace.
const stopBound = 20 * time.Second

// graceful is a configuration with so long a grace, in milliseconds.
func graceful(tier string, ms int) config {
	return config{tier: tier, env: map[string]string{"ENVAPI_STOP_GRACE_MS": fmt.Sprint(ms)}}
}

// answered is what a call on another goroutine came to.
type answered struct {
	answer object
	err    error
}

// begun makes a call that is to be answered later.
func begun(c client, operation string, in object) <-chan answered {
	later := make(chan answered, 1)
	go func() {
		answer, err := c.call(context.Background(), operation, in)
		later <- answered{answer, err}
	}()
	return later
}

// commandOf waits for the answer of a call that gives a command.
func commandOf(t *testing.T, later <-chan answered) command {
	t.Helper()
	got := <-later
	if got.err != nil {
		t.Fatalf("who waited got %v", got.err)
	}
	return as[command](t, got.answer)
}

// draining is what /ready says of a service that stops.
type draining struct {
	Status   string
	Draining *struct {
		Commands, Calls int
		Until           *time.Time
	}
}

// drains tells a service to stop, and returns when it says that it waits for so many
// commands.
func (s *service) drains(t *testing.T, signal syscall.Signal, commands int) {
	t.Helper()
	if err := s.cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	err := eventually(func() error {
		status, body, err := s.probe(context.Background(), "/ready")
		var d draining
		if err == nil {
			err = json.Unmarshal([]byte(body), &d)
		}
		if err != nil || status != http.StatusServiceUnavailable || d.Status != "draining" || d.Draining == nil || d.Draining.Commands != commands || d.Draining.Until == nil {
			return fmt.Errorf("/ready gives %d %s %s", status, body, fmt.Sprint(err))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// endsWithin waits until a service that was told to stop has ended well.
func (s *service) endsWithin(t *testing.T, bound time.Duration) {
	t.Helper()
	if !s.wait(bound) {
		t.Fatalf("it did not end within %v:\n%s", bound, s.output)
	}
	if s.status != nil {
		t.Errorf("it ended with %v:\n%s", s.status, s.output)
	}
}

// asks is a command that ends when it is given a line, and says which.
var asks = object{"command": "echo asks; read line; echo got $line; exit 5", "stdin_open": true}

// mustAsk waits until all commands of a place that run have said that they ask.
func (p place) mustAsk(t *testing.T, n int) (ids []string) {
	t.Helper()
	err := eventually(func() error {
		ids = nil
		list := as[struct{ Items []command }](t, p.must(t, "list_commands", p.in(object{"status": "running"})))
		for _, c := range list.Items {
			if strings.HasPrefix(p.output(t, c.ID, nil).Data, "asks\n") {
				ids = append(ids, c.ID)
			}
		}
		if len(ids) != n {
			return fmt.Errorf("%d of %d ask", len(ids), n)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// What runs when the service is told to stop comes to its own end, who waits over any
// door is told of it, and nothing new begins.
func TestAStopLetsWhatRunsComeToItsEnd(t *testing.T) {
	for _, tier := range tiers() {
		t.Run(tier, func(t *testing.T) {
			t.Parallel()
			s := start(t, graceful(tier, 120_000))
			p := s.place(t)
			tool := connectGo(t, &mcp.StreamableClientTransport{
				Endpoint: s.url + "/mcp", HTTPClient: &http.Client{Transport: bearer{s.token}},
			})
			p.sh(t, "echo kept >file")
			sh := p.open(t, object{})
			inShell := sh.run(t, "echo asks; read line; echo got $line; exit 5", object{"wait_ms": 0})
			inLine := begun(p.rest, "run_in_shell", sh.ref(object{"command": "echo never >never", "queue": true, "wait_ms": 45000}))
			asking := p.in(object{"wait_ms": 45000})
			for name, value := range asks {
				asking[name] = value
			}
			overREST, overMCP := begun(p.rest, "exec", asking), begun(tool, "exec", asking)
			ids := p.mustAsk(t, 3)
			f := p.rest.mustFollow(t.Context(), t, ids[0], "", "")
			defer f.close()

			s.drains(t, syscall.SIGTERM, 3)
			if c := commandOf(t, inLine); c.Status != "lost" || c.Reason != "service_stopped" {
				t.Errorf("what waited in line is %s", c.brief())
			}
			p.refusesWork(t, tool)
			if text := p.must(t, "read_file", p.in(object{"path": "file"}))["text"]; text != "kept\n" {
				t.Errorf("the file holds %v", text)
			}
			p.answersAll(t, sh, inShell.ID, ids)
			for door, later := range map[string]<-chan answered{"REST": overREST, "MCP": overMCP} {
				if c := commandOf(t, later); c.Status != "exited" || c.exit() != 5 || c.Stdout.Text != "asks\ngot it\n" {
					t.Errorf("over %s who waited got %s", door, c.brief())
				}
			}
			if c := f.collect(t, -1); c.Status != "exited" || !strings.HasSuffix(string(f.text), "got it\n") {
				t.Errorf("who followed got %s and %q", c.brief(), f.text)
			}
			s.endsWithin(t, stopBound+patience)
			s.saidOfItsEnd(t, "commands=3", "commands=0")

			p.rest = s.restart(t).rest
			for _, id := range ids {
				if c := p.rest.get(t, id, 0); c.Status != "exited" || c.exit() != 5 || !strings.HasSuffix(c.Stdout.Text, "got it\n") {
					t.Errorf("after the restart it is %s", c.brief())
				}
			}
			p.sh(t, "test ! -e never")
		})
	}
}

// refusesWork tries to begin something.
func (p place) refusesWork(t *testing.T, tool client) {
	t.Helper()
	for operation, in := range map[string]object{
		"exec": {"command": "true"}, "open_shell": {}, "write_file": {"path": "file", "content": "changed"}, "archive_environment": {},
	} {
		if refused := p.refuse(t, "unavailable", operation, p.in(in)); !strings.Contains(refused.Detail, "stopping") {
			t.Errorf("%s: %v", operation, refused)
		}
		if _, err := tool.call(context.Background(), operation, p.in(in)); err == nil || !strings.Contains(err.Error(), "unavailable") {
			t.Errorf("%s over MCP: %v", operation, err)
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.base+"/v1/environments", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+p.token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" {
		t.Errorf("create gives %s, %v", resp.Status, resp.Header)
	}
}

// answersAll gives every command the line that it asks for.
func (p place) answersAll(t *testing.T, sh shell, inShell string, ids []string) {
	t.Helper()
	for _, id := range ids {
		if id == inShell {
			p.must(t, "write_shell", sh.ref(object{"data": "it\n"}))
		} else {
			p.must(t, "write_input", object{"command_id": id, "data": "it\n"})
		}
	}
}

// saidOfItsEnd looks for the lines of the log about what it waited for.
func (s *service) saidOfItsEnd(t *testing.T, before, after string) {
	t.Helper()
	begin, end, found := strings.Cut(s.output.String(), "waits no longer")
	if at := strings.LastIndex(begin, "nothing new is begun"); !found || at < 0 || !strings.Contains(begin[at:], before) || !strings.Contains(end, after) {
		t.Errorf("it said %s", s.output)
	}
}

// What is left at the end of the grace is asked, and ended, whatever it does and however
// clients hold on to their connections.
func TestAStopEndsWhatIsLeftWithinItsBound(t *testing.T) {
	for _, tier := range tiers() {
		t.Run(tier, func(t *testing.T) {
			t.Parallel()
			const grace = 4000
			s := start(t, graceful(tier, grace))
			p, m := s.place(t), mark()
			deaf := p.background(t, "trap '' TERM; echo on; sleep "+m)
			flood := p.background(t, "trap '' TERM; yes")
			tidy := p.background(t, "trap 'echo saved >saved; exit 0' TERM; echo on; while :; do sleep 0.05; done")
			for _, c := range []command{deaf, flood, tidy} {
				p.output(t, c.ID, object{"wait_ms": 45000})
			}
			mustRun(t, m, 1)
			waits := begun(p.rest, "get_command", object{"command_id": deaf.ID, "wait_ms": 45000})
			f := p.rest.mustFollow(t.Context(), t, flood.ID, "", "") // who reads nothing of it
			defer f.close()
			seat := p.terminal(t, nil).sit(t, 0)
			half(t, p, "PUT", "/v1/environments/"+p.id+"/files/content?path=half", "some of it")
			half(t, p, "POST", "/v1/exec", `{"command": `)

			_ = s.cmd.Process.Signal(syscall.SIGTERM)
			if c := commandOf(t, waits); c.Status != "lost" || c.Reason != "service_stopped" {
				t.Errorf("who waited got %s", c.brief())
			}
			s.endsWithin(t, grace*time.Millisecond+stopBound+patience)
			if strings.Contains(s.output.String(), "did not end within") {
				t.Errorf("it said %s", s.output)
			}
			for err := error(nil); err == nil; { // it was told, or cut off
				err = seat.next(t)
			}
			if n := alive(m); n != 0 {
				t.Errorf("%d processes are left", n)
			}

			p.rest = s.restart(t).rest
			for _, c := range []command{deaf, flood, tidy} {
				if c = p.rest.get(t, c.ID, 0); c.Status != "lost" || c.Reason != "service_stopped" || c.ExitCode != nil || !strings.Contains(c.Next, "SIGTERM") {
					t.Errorf("after the restart it is %s", c.brief())
				}
			}
			if got := p.sh(t, "cat saved; ls half 2>/dev/null || echo none"); got != "saved\nnone\n" {
				t.Errorf("the folder has %q", got)
			}
			if last := p.output(t, flood.ID, object{"tail_bytes": 100}); !last.EOF || last.Next != last.Total || strings.Trim(last.Data, "y\n") != "" {
				t.Errorf("its output ends with %+v", last)
			}
		})
	}
}

// half sends the head of a request and a part of its body, and keeps the connection.
func half(t *testing.T, p place, method, path, body string) {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(p.base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_, err = fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n%s",
		method, path, p.token, body)
	if err != nil {
		t.Fatal(err)
	}
}

// With nothing to wait for a stop does not wait: idle shells and what commands left in
// the background are nobody's work.
func TestAStopWithNothingThatRunsIsAtOnce(t *testing.T) {
	t.Parallel()
	s := start(t, graceful("", 3_600_000))
	p, m := s.place(t), mark()
	p.sh(t, "setsid sleep "+m+" >/dev/null 2>&1 &")
	p.open(t, object{})
	p.terminal(t, nil)
	mustRun(t, m, 1)
	s.stop(t) // which waits for no hour
	if n := alive(m); n != 0 {
		t.Errorf("%d processes are left", n)
	}
}

// A second signal ends the service at once, and nothing outlives it.
func TestASecondSignalEndsTheGrace(t *testing.T) {
	for name, signals := range map[string][2]syscall.Signal{
		"TERM": {syscall.SIGTERM, syscall.SIGTERM}, "HUP": {syscall.SIGHUP, syscall.SIGTERM}, "INT": {syscall.SIGINT, syscall.SIGINT},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, graceful("", 3_600_000))
			p, m := s.place(t), mark()
			done := p.exec(t, object{"command": "echo done"})
			c := p.background(t, "echo on; sleep "+m)
			p.output(t, c.ID, object{"wait_ms": 45000})
			mustRun(t, m, 1)
			s.drains(t, signals[0], 1)
			_ = s.cmd.Process.Signal(signals[1])
			if !s.wait(patience) {
				t.Fatal("it goes on")
			}
			if state, ok := s.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || state.Signal() != signals[1] {
				t.Errorf("it ended with %v", s.status)
			}
			mustRun(t, m, 0)
			s = s.restart(t)
			if c = s.rest.get(t, c.ID, 0); c.Status != "lost" || c.Reason != "service_stopped" || c.Stdout.Text != "on\n" {
				t.Errorf("after the restart it is %s", c.brief())
			}
			if done = s.rest.get(t, done.ID, 0); done.exit() != 0 || done.Stdout.Text != "done\n" {
				t.Errorf("what had ended is %s", done.brief())
			}
		})
	}
}
