package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// wireAttacks are made of what no client of HTTP would send, or leave unread.
var wireAttacks = []play{
	{"half uploads", attackHalfUploads},
	{"frozen readers", attackFrozenReaders},
	{"bad input", attackBadInput},
	{"no HTTP", attackNoHTTP},
	{"bad messages", attackBadMessages},
	{"burst", attackBurst},
}

// frozen is how long a connection is left as it is.
const frozen = 300 * time.Millisecond

// wire opens connections, sends each what is given, leaves them so for a moment and
// closes them.
func (c *client) wire(ctx context.Context, what string, send ...string) {
	var open []net.Conn
	for _, bytes := range send {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", strings.TrimPrefix(c.url, "http://"))
		if err != nil {
			c.tally.endured(what, err)
			continue
		}
		open = append(open, conn)
		_ = conn.SetDeadline(time.Now().Add(frozen))
		_, err = conn.Write([]byte(bytes))
		c.tally.endured(what, err)
	}
	select {
	case <-ctx.Done():
	case <-time.After(frozen):
	}
	for _, conn := range open {
		_ = conn.Close()
	}
}

// head is the beginning of a request for the client's environment.
func (c *client) head(operation string, input object, lines ...string) string {
	r := c.contract[operation]
	path, left := r.address(input)
	lines = slices.Concat([]string{r.method + " " + path + query(left) + " HTTP/1.1", "Host: " + strings.TrimPrefix(c.url, "http://"), "Authorization: Bearer " + c.token}, lines)
	return strings.Join(lines, "\r\n") + "\r\n\r\n"
}

// attackHalfUploads begins uploads and imports that never come to their end.
func attackHalfUploads(ctx context.Context, c *client) error {
	long := "Content-Length: 8388608"
	part := strings.Repeat("half", 64<<10)
	c.wire(ctx, "half upload",
		c.head("upload", c.here(object{"path": "half"}), long),
		c.head("upload", c.here(object{"path": "half"}), long)+part,
		c.head("upload", c.here(object{"path": "other"}), "Transfer-Encoding: chunked")+"10000\r\n"+part[:1000],
		c.head("import_files", c.here(object{"path": "tar"}), long)+part,
		c.head("exec", object{}, "Content-Type: application/json", long)+`{"environment_id":"`,
	)
	return nil
}

// attackFrozenReaders asks for streams and large answers, and reads none of it.
func attackFrozenReaders(ctx context.Context, c *client) error {
	a, err := c.call(ctx, "exec", c.here(object{"command": "head -c 8M /dev/zero >zeros; yes", "wait_ms": 200}))
	if err != nil {
		return nil //nolint:nilerr // a refusal is noted where it came
	}
	this := object{"command_id": text(a, "id")}
	c.wire(ctx, "frozen reader",
		c.head("read_output", this, "Accept: text/event-stream"),
		c.head("read_output", this, "Accept: application/octet-stream"),
		c.head("watch_files", c.here(nil)),
		c.head("download", c.here(object{"path": "zeros"})),
		c.head("export_files", c.here(object{"compression": "none"})),
		strings.Repeat(c.head("list_files", c.here(object{"recursive": true})), 50),
	)
	return nil
}

// badInputs are what each operation is given instead of its input.
var badInputs = []string{
	"", "null", "[]", "{", `"x"`, "\x00\xff", `{"environment_id": 5}`, `{"environment_id": "env_aaaaaaaaaaaaaaaaaaaaaaaaaa", "unknown": 1}`,
	`{"limit": -1, "wait_ms": -1, "timeout_ms": 1e300}`, `{"command": "\u0000", "path": "\u0000"}`, `{"a": 1, "a": 2}`,
	strings.Repeat(`{"a":`, 10_000) + "1" + strings.Repeat("}", 10_000),
	`{"command": "` + strings.Repeat("x", 2<<20) + `"}`,
}

// attackBadInput calls every operation with what it cannot take.
func attackBadInput(ctx context.Context, c *client) error {
	var wrong []error
	for name, r := range c.contract {
		bad := badInputs[c.rand.IntN(len(badInputs))]
		path, _ := r.address(object{"environment_id": c.home, "command_id": "cmd_x", "shell_id": "%00", "pid": -1})
		path += "?limit=x&nothing=1&offset=-5"
		header := http.Header{"Content-Type": {"application/json"}, "If-Match": {`W/"x", ""`}, "Range": {"bytes=9-1,-"}, "Last-Event-Id": {"-1"}}
		resp, err := c.send(ctx, r.method, path, strings.NewReader(bad), header)
		if err == nil {
			wrong = append(wrong, fmt.Errorf("%s took %.60q", name, bad))
			_ = resp.Body.Close()
		}
		c.tally.endured(name, err)
	}
	return errors.Join(wrong...)
}

// attackNoHTTP sends what is no request, or none that ends.
func attackNoHTTP(ctx context.Context, c *client) error {
	host := "Host: " + strings.TrimPrefix(c.url, "http://")
	c.wire(ctx, "no request",
		"", "\x16\x03\x01\x02\x00\x01\x00\x01", "GET /v1/status", "GET / HTTP/1.1\r\n"+host+"\r\nX: ",
		"POST /v1/exec HTTP/1.1\r\n"+host+"\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /v1/status HTTP/1.1\r\n",
		"GET /"+strings.Repeat("a", 2<<20), "GET / HTTP/1.1\r\n"+strings.Repeat("X: y\r\n", 100_000),
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", strings.Repeat("\n", 10_000),
	)
	return nil
}

// attackBadMessages sends /mcp what is no message, and begins conversations that nobody
// goes on with.
func attackBadMessages(ctx context.Context, c *client) error {
	for _, message := range slices.Concat(badInputs, []string{
		`{"jsonrpc":"2.0","id":1,"method":"nothing"}`, `{"jsonrpc":"1.0","id":{},"method":5}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nothing","arguments":[]}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"exec","arguments":{"command":5}}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		`[` + strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"ping"},`, 500) + `{"jsonrpc":"2.0","id":2,"method":"ping"}]`,
	}) {
		header := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
		resp, err := c.send(ctx, http.MethodPost, "/mcp", strings.NewReader(message), header)
		if err == nil { // an error of JSON-RPC comes as an answer
			_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
			_ = resp.Body.Close()
		}
		c.tally.endured("message", err)
	}
	for range 5 {
		other := c.door
		other.session = ""
		c.tally.endured("greeting", other.greet(ctx))
	}
	c.wire(ctx, "listening to /mcp", "GET /mcp HTTP/1.1\r\nHost: "+strings.TrimPrefix(c.url, "http://")+"\r\nAuthorization: Bearer "+c.token+"\r\nAccept: text/event-stream\r\n\r\n")
	return nil
}

// attackBurst asks more often than an account may.
func attackBurst(ctx context.Context, c *client) error {
	var asking sync.WaitGroup
	for range 8 {
		asking.Go(func() {
			for range 300 {
				resp, err := c.send(ctx, http.MethodGet, "/v1/status", bytes.NewReader(nil), nil)
				if err == nil {
					_ = resp.Body.Close()
				}
				c.tally.endured("burst", err)
			}
		})
	}
	asking.Wait()
	return nil
}
