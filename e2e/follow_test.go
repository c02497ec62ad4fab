package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// event is one of a stream of events, as the browsers' standard lays them down.
type event struct{ name, id, data string }

// follower follows the output of a command.
type follower struct {
	resp *http.Response
	in   *bufio.Reader
	text []byte // what has come
	last string // the id of the latest event
}

// follow follows a command's stream from an offset, or from after an event.
func (r rest) follow(ctx context.Context, id, query, after string) (*follower, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.base+"/v1/commands/"+id+"/output?"+query, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+r.token)
	req.Header.Set("Accept", "text/event-stream")
	if after != "" {
		req.Header.Set("Last-Event-ID", after)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	if kind := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || !strings.HasPrefix(kind, "text/event-stream") {
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		return nil, fmt.Errorf("status %d, %s: %s", resp.StatusCode, kind, body)
	}
	return &follower{resp: resp, in: bufio.NewReader(resp.Body), last: after}, nil
}

func (f *follower) close() { _ = f.resp.Body.Close() }

// next gives the next event; comments are passed over.
func (f *follower) next() (event, error) {
	var e event
	for {
		line, err := f.in.ReadString('\n')
		if err != nil {
			return e, err
		}
		line = strings.TrimRight(line, "\r\n")
		if line == "" && e.name+e.data+e.id != "" {
			return e, nil
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "event":
			e.name = value
		case "id":
			e.id = value
		case "data":
			e.data += value
		}
	}
}

// collect reads until n bytes of output have come, or with n below 0 to the end,
// whose command it gives.
func (f *follower) collect(t *testing.T, n int) *command {
	t.Helper()
	for n < 0 || len(f.text) < n {
		e, err := f.next()
		if err != nil {
			t.Fatalf("after %d bytes: %v", len(f.text), err)
		}
		switch e.name {
		case "output":
			var p page
			if err := json.Unmarshal([]byte(e.data), &p); err != nil {
				t.Fatalf("%v: %s", err, e.data)
			}
			if fmt.Sprint(p.Next) != e.id {
				t.Fatalf("the id is %q, next_offset %d", e.id, p.Next)
			}
			f.text, f.last = append(f.text, p.bytes(t)...), e.id
		case "end":
			var c command
			if err := json.Unmarshal([]byte(e.data), &c); err != nil {
				t.Fatalf("%v: %s", err, e.data)
			}
			return &c
		default:
			t.Fatalf("the event is %+v", e)
		}
	}
	return nil
}

// mustFollow follows, for tests that need it to work.
func (r rest) mustFollow(ctx context.Context, t *testing.T, id, query, after string) *follower {
	t.Helper()
	f, err := r.follow(ctx, id, query, after)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.close)
	return f
}

// ended reads on until the end event and gives its command's status, for
// goroutines.
func (f *follower) ended() (string, error) {
	for {
		e, err := f.next()
		if err != nil {
			return "", err
		}
		if e.name == "end" {
			var c command
			err := json.Unmarshal([]byte(e.data), &c)
			return c.Status, err
		}
		if e.name != "output" {
			return "", errors.New("an event " + e.name)
		}
	}
}
