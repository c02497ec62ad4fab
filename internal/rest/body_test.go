package rest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"envapi/core"
	"envapi/tools"
)

// dial opens a connection to a server of h.
func dial(t *testing.T, h http.Handler) net.Conn {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestABodyThatDoesNotArriveIsGivenUp(t *testing.T) {
	h, _ := New(testConfig()).(*handler)
	h.bodyTime = 20 * time.Millisecond
	conn := dial(t, h)
	fmt.Fprintf(conn, "POST /v1/things/a HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer good\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusBadRequest {
		t.Errorf("got %s", resp.Status)
	}
}

func TestABodyThatSaysItIsTooLargeIsRefusedBeforeItIsSent(t *testing.T) {
	conn := dial(t, New(testConfig()))
	fmt.Fprintf(conn, "POST /v1/things/a HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer good\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", tools.MaxInputBytes+1)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("got %s", resp.Status)
	}
}

func TestACallMayWaitLongerThanItsBodyMayTake(t *testing.T) {
	for name, request := range map[string]string{
		"with a body": "POST /v1/wait HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer good\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
		"without one": "GET /v1/wait HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer good\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			release := make(chan struct{})
			wait := func(_ *core.Service, ctx context.Context, _ core.Caller, in core.Nothing) (core.Nothing, error) {
				select {
				case <-release:
				case <-ctx.Done():
				}
				return in, ctx.Err()
			}
			c := testConfig()
			c.Operations = []tools.Operation{
				tools.Define(row("wait", "POST", "/v1/wait"), wait), tools.Define(row("wait", "GET", "/v1/wait"), wait),
			}
			h, _ := New(c).(*handler)
			h.bodyTime = 20 * time.Millisecond
			conn := dial(t, h)
			time.AfterFunc(10*h.bodyTime, func() { close(release) })
			fmt.Fprint(conn, request)
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				t.Errorf("got %s", resp.Status)
			}
		})
	}
}

func TestAnAnswerThatNobodyReadsIsGivenUp(t *testing.T) {
	const size = 64 << 20 // more than the sockets of a connection hold
	c := testConfig()
	answered := make(chan error, 1)
	c.MCP = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, err := w.Write(make([]byte, size))
		answered <- err
	})
	h, _ := New(c).(*handler)
	h.answerTime = 20 * time.Millisecond
	conn := dial(t, h)
	fmt.Fprint(conn, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer good\r\nContent-Length: 0\r\n\r\n")
	select {
	case err := <-answered:
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the answer is still held")
	}
}

func TestTheDeadlineOfAnAnswerIsNotThatOfTheNext(t *testing.T) {
	h, _ := New(testConfig()).(*handler)
	h.answerTime = 20 * time.Millisecond
	conn := dial(t, h)
	reader := bufio.NewReader(conn)
	for range 2 { // the second on a connection whose deadline has passed
		ask := "GET /v1/things/a HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer good\r\n\r\n"
		time.AfterFunc(3*h.answerTime, func() { fmt.Fprint(conn, ask) })
		resp, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("got %s, %v", resp.Status, err)
		}
		_ = resp.Body.Close()
	}
}
