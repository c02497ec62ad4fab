package rest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"envapi/core"
)

// event is one event of a stream, or a comment.
type event struct{ name, id, data, comment, retry string }

// listener reads the events of an answer.
type listener struct {
	t     *testing.T
	lines *bufio.Reader
	body  io.Closer
}

const acceptEvents = "text/event-stream"

func (w *world) listen(id, query string, headers ...string) *listener {
	w.t.Helper()
	resp := w.get(id, query, append(headers, "Accept", acceptEvents)...)
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != acceptEvents {
		w.t.Fatalf("got %s, %v", resp.Status, resp.Header)
	}
	return &listener{w.t, bufio.NewReader(resp.Body), resp.Body}
}

// next gives the next event or comment; false at the end.
func (l *listener) next() (e event, ok bool) {
	for {
		line, err := l.lines.ReadString('\n')
		if err != nil {
			return event{}, false
		}
		if line = strings.TrimSuffix(line, "\n"); line == "" {
			return e, true
		}
		name, value, _ := strings.Cut(line, ": ")
		switch name {
		case "event":
			e.name = value
		case "id":
			e.id = value
		case "data":
			e.data = value
		case "retry":
			e.retry = value
		case "":
			e.comment = value
		default:
			l.t.Errorf("the line %q is no field", line)
		}
	}
}

// event gives the next event that is no comment.
func (l *listener) event() (event, bool) {
	for {
		if e, ok := l.next(); !ok || e.name != "" || e.retry != "" {
			return e, ok
		}
	}
}

// output gives an event's page, which must be where the one before ended.
func (e event) output(t *testing.T, at int64) core.Output {
	t.Helper()
	var page core.Output
	must(t, json.Unmarshal([]byte(e.data), &page))
	if e.name != "output" || page.Offset != at || e.id != strconv.FormatInt(page.NextOffset, 10) || page.Encoding != "utf-8" {
		t.Fatalf("at %d: %+v", at, e)
	}
	return page
}

// rest reads to the end, from an offset on, and gives the text and the last event.
func (l *listener) rest(at int64) (string, event) {
	l.t.Helper()
	var text strings.Builder
	for {
		e, ok := l.event()
		if !ok {
			l.t.Fatal("it ended without an event that says so")
		}
		if e.name != "output" {
			return text.String(), e
		}
		page := e.output(l.t, at)
		text.WriteString(page.Data)
		at = page.NextOffset
	}
}

func (e event) command(t *testing.T) core.Command {
	t.Helper()
	var c core.Command
	if err := json.Unmarshal([]byte(e.data), &c); err != nil || e.name != "end" {
		t.Fatalf("got %+v, want the end", e)
	}
	return c
}

func TestEventsComeAsTheCommandWrites(t *testing.T) {
	w := newWorld(t, 1<<20)
	id, p := w.start()
	l := w.listen(id, "")
	at := int64(0)
	for _, text := range []string{"one\n", "two\n", "€\x1b[0m"} {
		p.print(text)
		e, _ := l.event()
		page := e.output(t, at)
		if page.Data != text || page.EOF {
			t.Fatalf("got %+v, want %q", page, text)
		}
		at = page.NextOffset
	}
	p.print("last")
	p.end()
	text, end := l.rest(at)
	if c := end.command(t); text != "last" || c.ID != id || c.Status != core.CommandExited || c.Stdout == nil {
		t.Errorf("got %q and %+v", text, end)
	}
	if e, ok := l.next(); ok {
		t.Errorf("after the end: %+v", e)
	}
}

func TestEventsOfWhatHasEndedAndOfNothing(t *testing.T) {
	w := newWorld(t, 1<<20)
	for _, said := range []string{"", "said"} {
		id := w.said(said)
		text, end := w.listen(id, "").rest(0)
		if text != said || end.command(t).Status != core.CommandExited {
			t.Errorf("got %q, %+v", text, end)
		}
		if text, end := w.listen(id, "?offset=99").rest(99); text != "" || end.name != "end" {
			t.Errorf("beyond the end: %q, %+v", text, end)
		}
	}
	if text, _ := w.listen(w.said("12345678"), "?tail_bytes=3").rest(5); text != "678" {
		t.Errorf("the tail is %q", text)
	}
	if text, _ := w.listen(w.said("\x1b[1mx\x1b[0m"), "?ansi=strip&stream=stdout").rest(0); text != "x" {
		t.Errorf("stripped: %q", text)
	}
}

// B19: wherever it breaks off, it goes on exactly there.
func TestB19EventsGoOnAfterTheLastOneThatCame(t *testing.T) {
	w := newWorld(t, 1<<20)
	id, p := w.start()
	var want, got strings.Builder
	at := int64(0)
	for i := range 20 {
		more := pattern(1 + i*997)
		want.WriteString(more)
		p.print(more)
		l := w.listen(id, "?offset=3&limit_bytes=1500", "Last-Event-ID", strconv.FormatInt(at, 10))
		for range 1 + i%4 { // and then the client is gone
			if int64(want.Len()) == at {
				break
			}
			e, _ := l.event()
			page := e.output(t, at)
			got.WriteString(page.Data)
			at = page.NextOffset
		}
		_ = l.body.Close()
	}
	p.end()
	text, end := w.listen(id, "", "Last-Event-ID", strconv.FormatInt(at, 10)).rest(at)
	if got.WriteString(text); got.String() != want.String() || end.command(t).ID != id {
		t.Errorf("%d bytes came of %d", got.Len(), want.Len())
	}
}

// B19: a cursor whose bytes were dropped says where to go on, and goes on there.
func TestB19AnExpiredCursorSaysSoAndGoesOn(t *testing.T) {
	w := newWorld(t, 64<<10)
	whole := pattern(256 << 10)
	id := w.said(whole)
	for _, from := range []int64{0, 100 << 10} {
		l := w.listen(id, "", "Last-Event-ID", strconv.FormatInt(from, 10))
		head, gap := l.rest(from)
		var expired struct {
			NextOffset int64 `json:"next_offset"`
		}
		must(t, json.Unmarshal([]byte(gap.data), &expired))
		next := expired.NextOffset
		if gap.name != "expired" || gap.id != strconv.FormatInt(next, 10) || next <= from || head != whole[from:from+int64(len(head))] {
			t.Fatalf("from %d: %d bytes and %+v", from, len(head), gap)
		}
		if tail, end := l.rest(next); tail != whole[next:] || end.name != "end" {
			t.Fatalf("behind the gap: %d bytes, want %d; %+v", len(tail), len(whole)-int(next), end)
		}
	}
}

// B18: a follower that reads nothing costs neither the other nor the memory.
func TestB18AFrozenFollowerCostsNothing(t *testing.T) {
	w := newWorld(t, 64<<20)
	id, p := w.start()
	frozen := w.frozen(id)
	defer frozen.Close()
	l := w.listen(id, "?limit_bytes=65536")
	before := heap()
	const total = 10 << 20
	chunk := pattern(64 << 10)
	go func() {
		for range total / len(chunk) {
			p.print(chunk)
		}
		p.end()
	}()
	var got int64
	held := int64(total)
	for {
		e, ok := l.event()
		if !ok || e.name != "output" {
			e.command(t)
			break
		}
		got += int64(len(e.output(t, got).Data))
		if got > total/2 && got%(1<<20) == 0 {
			held = min(held, heap()-before)
		}
	}
	if got != total || held > 2<<20 {
		t.Errorf("%d of %d bytes came, and %d KiB of memory were held", got, total, held>>10)
	}
}

// heap gives the bytes that are held. What is made while they are counted counts
// too, so only the least of several counts says much.
func heap() int64 {
	runtime.GC()
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	return int64(live[0].Value.Uint64())
}

// frozen asks for events and never reads.
func (w *world) frozen(id string) net.Conn {
	w.t.Helper()
	conn, err := net.Dial("tcp", w.server.Listener.Addr().String())
	must(w.t, err)
	must(w.t, conn.(*net.TCPConn).SetReadBuffer(4096))
	_, err = fmt.Fprintf(conn, "GET /v1/commands/%s/output HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer good\r\nAccept: text/event-stream\r\n\r\n", id, w.server.Listener.Addr())
	must(w.t, err)
	return conn
}

// A frozen follower is dropped when it takes nothing for so long.
func TestAFrozenFollowerIsDropped(t *testing.T) {
	ended := make(chan struct{})
	w := newWorld(t, 64<<20, func(h *handler) { h.answerTime = 50 * time.Millisecond; h.Log = onEnd(ended) })
	id, p := w.start()
	defer w.frozen(id).Close()
	p.print(pattern(20 << 20)) // more than the kernel takes
	wait(t, ended, "the follower is not dropped")
}

// B20: none of many streams misses its end.
func TestB20AThousandStreamedExecsHaveAThousandEnds(t *testing.T) {
	w := newWorld(t, 1<<20)
	var ends atomic.Int64
	var all sync.WaitGroup
	for worker := range 10 {
		all.Go(func() {
			for i := range 100 {
				said := fmt.Sprintf("%d-%d", worker, i)
				c := w.exec("say " + said)
				text, end := w.listen(c.ID, "").rest(0)
				if text == said && end.command(t).ID == c.ID {
					ends.Add(1)
				}
			}
		})
	}
	all.Wait()
	if ends.Load() != 1000 {
		t.Errorf("%d ends came", ends.Load())
	}
}

func TestSilenceIsBrokenByComments(t *testing.T) {
	w := newWorld(t, 1<<20, func(h *handler) { h.pingTime = time.Millisecond })
	id, p := w.start()
	l := w.listen(id, "")
	for pings := 0; pings < 3; {
		e, ok := l.next()
		if !ok || e.name != "" {
			t.Fatalf("got %+v", e)
		}
		if e.comment == "ping" {
			pings++
		}
	}
	p.print("x")
	p.end()
	if text, end := l.rest(0); text != "x" || end.name != "end" {
		t.Errorf("got %q, %+v", text, end)
	}
}

// lasting is a Verifier whose tokens end so long after they were looked at.
type lasting time.Duration

func (l lasting) Verify(context.Context, string) (core.Caller, error) {
	c := alice
	c.Until = time.Now().Add(time.Duration(l))
	return c, nil
}

func TestEventsEndWithTheToken(t *testing.T) {
	w := newWorld(t, 1<<20, func(h *handler) { h.Verifier = lasting(500 * time.Millisecond) })
	id, p := w.start()
	p.print("x")
	text, e := w.listen(id, "").rest(0)
	if text != "x" || e.name != "problem" || !strings.Contains(e.data, `"unauthenticated"`) {
		t.Errorf("got %q, %+v", text, e)
	}
}

func TestEventsEndWithTheService(t *testing.T) {
	w := newWorld(t, 1<<20)
	id, p := w.start()
	p.print("x")
	l := w.listen(id, "")
	first, _ := l.event()
	first.output(t, 0)
	must(t, w.service.Close())
	hint, _ := l.event()
	e, _ := l.event()
	if hint.retry == "" || e.name != "problem" || !strings.Contains(e.data, `"unavailable"`) || !strings.Contains(e.data, `"retry_after_ms"`) {
		t.Errorf("got %+v and %+v", hint, e)
	}
	if e, ok := l.next(); ok {
		t.Errorf("after it: %+v", e)
	}
}

// A client that reads nothing does not hold up the end of its token or of the
// service for as long as it might take to read.
func TestAFrozenFollowerEndsWithTheService(t *testing.T) {
	ended := make(chan struct{})
	w := newWorld(t, 64<<20, func(h *handler) { h.answerTime = time.Hour; h.Log = onEnd(ended) })
	id, p := w.start()
	defer w.frozen(id).Close()
	p.print(pattern(20 << 20))
	time.Sleep(50 * time.Millisecond) // so that it is likely to be held up; it is right either way
	must(t, w.service.Close())
	wait(t, ended, "the follower holds up the end")
}

func TestEventsAreRefusedAsPagesAre(t *testing.T) {
	w := newWorld(t, 1<<20)
	id := w.said("x")
	for name, c := range map[string]struct {
		id, query, last string
		status          int
		says            string
	}{
		"no such command":       {"cmd_none", "", "", 404, `"not_found"`},
		"an unknown field":      {id, "?streem=stdout", "", 400, `"field":"streem"`},
		"an offset below 0":     {id, "?offset=-1", "", 400, `"field":"offset"`},
		"an id that is none":    {id, "", "abc", 400, `"field":"Last-Event-ID"`},
		"an id below 0":         {id, "", "-1", 400, `"field":"Last-Event-ID"`},
		"an id with more to it": {id, "", "1;2", 400, `"field":"Last-Event-ID"`},
	} {
		t.Run(name, func(t *testing.T) {
			resp := w.get(c.id, c.query, "Accept", acceptEvents, "Last-Event-ID", c.last)
			body, _ := io.ReadAll(resp.Body)
			if resp.StatusCode != c.status || !strings.Contains(string(body), c.says) {
				t.Errorf("got %d %s", resp.StatusCode, body)
			}
		})
	}
	resp := w.send("HEAD", id, "", "Accept", acceptEvents)
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != acceptEvents {
		t.Errorf("HEAD: %s, %v", resp.Status, resp.Header)
	}
}

func TestTheFormIsTheOneThatIsAccepted(t *testing.T) {
	w := newWorld(t, 1<<20)
	id := w.said("x")
	for accept, want := range map[string]string{
		"":                         "application/json",
		"*/*":                      "application/json",
		"text/html":                "application/json",
		"application/json":         "application/json",
		"text/event-stream":        "text/event-stream",
		"TEXT/Event-Stream; x=y":   "text/event-stream",
		"application/octet-stream": "application/octet-stream",
		"text/event-stream, */*":   "text/event-stream",
		"text/event-stream;q=0":    "application/json",
		"text/event-stream;q=0.5, application/json":         "application/json",
		"application/json;q=0.5, text/event-stream":         "text/event-stream",
		"application/octet-stream, text/event-stream":       "application/octet-stream",
		"application/octet-stream;q=0.1, text/event-stream": "text/event-stream",
		"text/event-stream;q=x, application/octet-stream":   "application/octet-stream",
		"/, ;;, application/octet-stream":                   "application/octet-stream",
	} {
		if got := w.get(id, "", "Accept", accept).Header.Get("Content-Type"); got != want {
			t.Errorf("%q: got %s, want %s", accept, got, want)
		}
	}
}
