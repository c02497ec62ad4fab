package mcpserver

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"envapi/tools"
)

// talk is a client of ServeStdio that writes and reads lines.
type talk struct {
	t     *testing.T
	in    io.WriteCloser
	lines chan string
	ended func() error
}

func (b *bench) talk(t *testing.T) *talk {
	t.Helper()
	out, in, ended := b.pipes(t)
	c := &talk{t: t, in: in, lines: make(chan string, 2*maxInFlight), ended: ended}
	go func() {
		defer close(c.lines)
		scanner := bufio.NewScanner(out)
		scanner.Buffer(nil, 2*tools.MaxInputBytes)
		for scanner.Scan() {
			c.lines <- scanner.Text()
		}
	}()
	return c
}

func (c *talk) say(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, text); err != nil {
		c.t.Fatal(err)
	}
}

// hear gives the next answer, which is a JSON-RPC message on one line.
func (c *talk) hear() string {
	c.t.Helper()
	text, ok := <-c.lines
	if !ok {
		c.t.Fatal("the server has closed its output")
	}
	var message struct {
		JSONRPC string `json:"jsonrpc"`
	}
	if json.Unmarshal([]byte(text), &message) != nil || message.JSONRPC != "2.0" {
		c.t.Fatalf("this is no JSON-RPC: %s", text)
	}
	return text
}

func (c *talk) bye() {
	c.t.Helper()
	if err := c.in.Close(); err != nil {
		c.t.Fatal(err)
	}
	if err := c.ended(); err != nil {
		c.t.Errorf("the server ended with %v", err)
	}
}

func waitCall(id any) string { return fmt.Sprintf(messages["legacy"].call, id) + "\n" }

func TestB7WaitsHoldUpNoOtherCallOverStdio(t *testing.T) {
	b := newBench(t)
	c := b.talk(t)
	for i := range 200 {
		c.say(waitCall(i))
	}
	eventually(t, "all calls wait", func() bool { return b.waiting.Load() == 200 })
	c.say(`{"jsonrpc":"2.0","id":"list","method":"tools/list"}` + "\n")
	if answer := c.hear(); !strings.Contains(answer, `"id":"list"`) {
		t.Errorf("the first answer is %s", answer)
	}
	close(b.release)
	for range 200 {
		c.hear()
	}
	c.bye()
}

func TestTooManyCallsAreRefusedAtOnce(t *testing.T) {
	b := newBench(t)
	c := b.talk(t)
	for i := range maxInFlight {
		c.say(waitCall(i))
	}
	eventually(t, "all calls wait", func() bool { return b.waiting.Load() == maxInFlight })
	c.say(waitCall(maxInFlight))
	if answer := c.hear(); !strings.Contains(answer, "are running") || !strings.Contains(answer, fmt.Sprintf(`"id":%d`, maxInFlight)) {
		t.Errorf("got %s", answer)
	}
	close(b.release)
	for range maxInFlight {
		c.hear()
	}
	c.bye()
}

func TestB16ACancelEndsTheWaitAndIsNotAnswered(t *testing.T) {
	b := newBench(t)
	c := b.talk(t)
	c.say(waitCall(1) + waitCall(2))
	eventually(t, "both calls wait", func() bool { return b.waiting.Load() == 2 })
	c.say(fmt.Sprintf(messages["legacy"].cancel, 1) + "\n")
	eventually(t, "the first call ends", func() bool { return b.ended.Load() == 1 })
	close(b.release)
	if answer := c.hear(); !strings.Contains(answer, `"id":2`) {
		t.Errorf("got %s", answer)
	}
	c.bye()
	if answer, more := <-c.lines; more {
		t.Errorf("the cancelled call was answered: %s", answer)
	}
}

func TestACancelRightBehindItsCallIsNotLost(t *testing.T) {
	b := newBench(t)
	c := b.talk(t)
	for i := range 50 {
		c.say(waitCall(i) + fmt.Sprintf(messages["legacy"].cancel, i) + "\n")
	}
	c.say(`{"jsonrpc":"2.0","id":"end","method":"ping"}` + "\n")
	if answer := c.hear(); !strings.Contains(answer, `"id":"end"`) {
		t.Errorf("got %s", answer)
	}
	c.bye()
	if b.waiting.Load() != b.ended.Load() {
		t.Errorf("%d calls waited, %d ended", b.waiting.Load(), b.ended.Load())
	}
}

func TestAnIdInUseIsRefused(t *testing.T) {
	b := newBench(t)
	c := b.talk(t)
	c.say(waitCall(1))
	eventually(t, "the call waits", func() bool { return b.waiting.Load() == 1 })
	c.say(waitCall(1))
	if answer := c.hear(); !strings.Contains(answer, "this id is running") {
		t.Errorf("got %s", answer)
	}
	close(b.release)
	if answer := c.hear(); !strings.Contains(answer, `"account":"alice"`) {
		t.Errorf("got %s", answer)
	}
	c.bye()
}

func TestTheEndOfTheInputEndsWaits(t *testing.T) {
	b := newBench(t)
	c := b.talk(t)
	c.say(waitCall(1))
	eventually(t, "the call waits", func() bool { return b.waiting.Load() == 1 })
	c.bye()
	if b.ended.Load() != 1 {
		t.Error("the call still waits")
	}
}

func TestAScriptCanPipeItsRequestsIn(t *testing.T) {
	b := newBench(t)
	var out strings.Builder
	in := strings.NewReader("\n  \r\n" + `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\r\n" +
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"name":"x"}}}`)
	if err := b.ServeStdio(t.Context(), in, &out, alice); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, `"account":"alice"`) {
		t.Errorf("got %s", got)
	}
}

func TestHostileLinesAreRefusedAndTheNextOneIsServed(t *testing.T) {
	c := newBench(t).talk(t)
	for name, test := range map[string]struct{ text, says string }{
		"no JSON":      {`{`, `"code":-32700`},
		"a batch":      {`[]`, `"code":-32600`},
		"a number":     {`1`, `"code":-32600`},
		"a long line":  {strings.Repeat("x", tools.MaxInputBytes+1), "longer than"},
		"NUL bytes":    {"\x00\x00", `"code":-32700`},
		"bad params":   {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":7}`, `"id":1`},
		"a deep value": {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"name":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}}}`, "invalid_argument"},
		"a long call":  {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"name":"` + strings.Repeat("x", 1<<20) + `"}}}`, `"account":"alice"`},
	} {
		c.say(test.text + "\n")
		if answer := c.hear(); !strings.Contains(answer, test.says) {
			t.Errorf("%s: got %.300s, want %s", name, answer, test.says)
		}
		c.say(`{"jsonrpc":"2.0","id":"next","method":"ping"}` + "\n")
		if answer := c.hear(); !strings.Contains(answer, `"id":"next"`) {
			t.Errorf("%s: the next line was answered with %.300s", name, answer)
		}
	}
	c.bye()
}

func TestTheEndOfTheContextEndsServing(t *testing.T) {
	b := newBench(t)
	ctx, cancel := context.WithCancel(t.Context())
	in, w := io.Pipe()
	defer w.Close()
	ended := make(chan error, 1)
	go func() { ended <- b.ServeStdio(ctx, in, io.Discard, alice) }()
	if _, err := io.WriteString(w, waitCall(1)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the call waits", func() bool { return b.waiting.Load() == 1 })
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if b.ended.Load() != 1 {
		t.Error("the call still waits")
	}
}

func TestAnOutputThatIsClosedEndsServing(t *testing.T) {
	b := newBench(t)
	in, w := io.Pipe()
	defer w.Close()
	closed, out := io.Pipe()
	_ = closed.Close()
	ended := make(chan error, 1)
	go func() { ended <- b.ServeStdio(t.Context(), in, out, alice) }()
	if _, err := io.WriteString(w, `{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n"); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("got %v", err)
	}
}

func TestAnOutputThatNobodyReadsDoesNotHoldUpTheEnd(t *testing.T) {
	for name, text := range map[string]string{"an answer": `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "a refusal": `{`} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			ctx, cancel := context.WithCancel(t.Context())
			in, w := io.Pipe()
			defer w.Close()
			unread, out := io.Pipe()
			defer unread.Close()
			reached := make(chan struct{}, 1)
			ended := make(chan error, 1)
			go func() { ended <- b.ServeStdio(ctx, in, signalling{out, reached}, alice) }()
			if _, err := io.WriteString(w, text+"\n"); err != nil {
				t.Fatal(err)
			}
			<-reached
			cancel()
			select {
			case err := <-ended:
				if !errors.Is(err, context.Canceled) {
					t.Errorf("got %v", err)
				}
			case <-time.After(patience):
				t.Error("it still serves")
			}
		})
	}
}

// signalling tells of a write before it happens.
type signalling struct {
	io.Writer
	reached chan<- struct{}
}

func (s signalling) Write(p []byte) (int, error) {
	s.reached <- struct{}{}
	return s.Writer.Write(p)
}
