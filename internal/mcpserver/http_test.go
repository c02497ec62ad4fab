package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"envapi/tools"
)

// post sends one message and gives the status and the answer.
func post(ctx context.Context, client *http.Client, url, body string, header map[string]string) (int, string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for name, value := range header {
		r.Header.Set(name, value)
	}
	resp, err := client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(answer), err
}

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`

// messages are a call and its cancellation, in both eras.
var messages = map[string]struct {
	call, cancel             string
	callHeader, cancelHeader map[string]string
}{
	"legacy": {
		`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"wait","arguments":{"name":"x"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`,
		nil, nil,
	},
	"modern": {
		`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{` + modernMeta + `,"name":"wait","arguments":{"name":"x"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{` + modernMeta + `,"requestId":%d}}`,
		map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "wait"},
		map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "notifications/cancelled"},
	},
}

func TestNoClientCancelsACallOfAnother(t *testing.T) {
	// Each is a cancellation to one of the readers of a message.
	disguises := []func(string) string{
		func(s string) string { return s },
		func(s string) string { return strings.Replace(s, `"method"`, `"id":null,"method"`, 1) },
		func(s string) string { return strings.Replace(s, `"method"`, `"id":99,"ID":null,"method"`, 1) },
		func(s string) string { return strings.Replace(s, `"method"`, `"id":99,"Id":null,"Method"`, 1) },
		func(s string) string {
			return strings.Replace(s, `"method"`, `"id":99,"method":"ping","iD":null,"METHOD"`, 1)
		},
		func(s string) string { return "[" + s + "]" },
	}
	for era, m := range messages {
		t.Run(era, func(t *testing.T) {
			b := newBench(t)
			server := b.serve(t)
			answered := make(chan string, 1)
			go func() {
				_, answer, err := post(t.Context(), server.Client(), server.URL, fmt.Sprintf(m.call, 7), m.callHeader)
				answered <- fmt.Sprint(answer, err)
			}()
			eventually(t, "the call waits", func() bool { return b.waiting.Load() == 1 })
			for _, disguise := range disguises {
				for _, session := range []string{"", "a"} {
					header := map[string]string{"X-Account": "mallory", "Mcp-Session-Id": session}
					for name, value := range m.cancelHeader {
						header[name] = value
					}
					if _, _, err := post(t.Context(), server.Client(), server.URL, disguise(fmt.Sprintf(m.cancel, 7)), header); err != nil {
						t.Fatal(err)
					}
				}
			}
			// A call of mallory's by the same id does not meet it either.
			ctx, cancel := context.WithCancel(t.Context())
			gone := make(chan struct{})
			go func() {
				defer close(gone)
				_, _, _ = post(ctx, server.Client(), server.URL, fmt.Sprintf(m.call, 7), m.callHeader)
			}()
			eventually(t, "the second call waits", func() bool { return b.waiting.Load() == 2 })
			cancel()
			<-gone
			eventually(t, "the second call ends", func() bool { return b.ended.Load() == 1 })
			close(b.release)
			if answer := <-answered; !strings.Contains(answer, `"account":"alice"`) {
				t.Errorf("the call was answered with %s", answer)
			}
		})
	}
}

func TestAClientThatGoesAwayEndsItsWait(t *testing.T) {
	b := newBench(t)
	server := b.serve(t)
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _, _ = post(ctx, server.Client(), server.URL, fmt.Sprintf(messages["legacy"].call, 1), nil)
	}()
	eventually(t, "the call waits", func() bool { return b.waiting.Load() == 1 })
	cancel()
	<-gone
	eventually(t, "the call ends", func() bool { return b.ended.Load() == 1 })
	if strings.Contains(b.log.String(), "level=ERROR") {
		t.Errorf("a client that goes away is no error: %s", b.log)
	}
}

func TestB7WaitsHoldUpNoOtherCallOverHTTP(t *testing.T) {
	b := newBench(t)
	server := b.serve(t)
	var waits sync.WaitGroup
	for i := range 100 {
		waits.Go(func() {
			if status, answer, err := post(t.Context(), server.Client(), server.URL, fmt.Sprintf(messages["legacy"].call, i), nil); err != nil || status != 200 {
				t.Errorf("got %d %s, %v", status, answer, err)
			}
		})
	}
	eventually(t, "all calls wait", func() bool { return b.waiting.Load() == 100 })
	if _, answer, err := post(t.Context(), server.Client(), server.URL, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, nil); err != nil || !strings.Contains(answer, `"tools"`) {
		t.Errorf("got %s, %v", answer, err)
	}
	close(b.release)
	waits.Wait()
}

func TestHTTPMessages(t *testing.T) {
	server := newBench(t).serve(t)
	large := strings.Repeat("x", tools.MaxInputBytes)
	for name, test := range map[string]struct {
		body   string
		header map[string]string
		status int
		says   string
	}{
		"ping":                               {`{"jsonrpc":"2.0","id":"a","method":"ping"}`, nil, 200, `{"jsonrpc":"2.0","id":"a","result":{}}`},
		"an unknown method":                  {`{"jsonrpc":"2.0","id":1,"method":"shout"}`, nil, 200, `"code":-32601`},
		"a notification":                     {`{"jsonrpc":"2.0","method":"notifications/initialized"}`, nil, 202, ``},
		"a response":                         {`{"jsonrpc":"2.0","id":1,"result":{}}`, nil, 202, ``},
		"no JSON":                            {`{`, nil, 400, `"code":-32700`},
		"nothing":                            {``, nil, 400, `"code":-32700`},
		"a batch":                            {`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, nil, 400, `"code":-32600`},
		"another version of JSON-RPC":        {`{"jsonrpc":"1.0","id":1,"method":"ping"}`, nil, 400, `"id":1`},
		"no version of JSON-RPC":             {`{"id":1,"method":"ping"}`, nil, 400, `"code":-32600`},
		"an id that is an object":            {`{"jsonrpc":"2.0","id":{},"method":"ping"}`, nil, 400, `"id":null`},
		"an id that is null":                 {`{"jsonrpc":"2.0","id":null,"method":"ping"}`, nil, 400, `"id":null`},
		"a notification whose id is null":    {`{"jsonrpc":"2.0","id":null,"method":"notifications/initialized"}`, nil, 202, ``},
		"an id that float64 would round":     {`{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`, nil, 400, `"id":9007199254740993`},
		"the largest id":                     {`{"jsonrpc":"2.0","id":9007199254740991,"method":"ping"}`, nil, 200, `"id":9007199254740991`},
		"an id that is no float64":           {`{"jsonrpc":"2.0","id":1e400,"method":"ping"}`, nil, 400, `"id":1e400`},
		"an id that is half a character":     {`{"jsonrpc":"2.0","id":"\ud800","method":"ping"}`, nil, 400, `"code":-32600`},
		"an id given twice":                  {`{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`, nil, 400, `given twice`},
		"a method given twice":               {`{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}`, nil, 400, `given twice`},
		"arguments given twice":              {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{},"arguments":{"name":"b"}}}`, nil, 400, `given twice`},
		"a request without a method":         {`{"jsonrpc":"2.0","id":1}`, nil, 400, `"id":1`},
		"a method in capitals":               {`{"jsonrpc":"2.0","id":1,"METHOD":"ping"}`, nil, 400, `no method`},
		"nothing but the version":            {`{"jsonrpc":"2.0"}`, nil, 400, `no method`},
		"an error as response":               {`{"jsonrpc":"2.0","id":null,"error":{}}`, nil, 202, ``},
		"a body that is packed":              {`{"jsonrpc":"2.0","id":1,"method":"ping"}`, map[string]string{"Content-Encoding": "gzip"}, 415, `Content-Encoding`},
		"a method that is a number":          {`{"jsonrpc":"2.0","id":1,"method":1}`, nil, 400, `"code":-32600`},
		"a call without params":              {`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, nil, 400, `"code":-32602`},
		"a call without a name":              {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}`, nil, 400, `"code":-32602`},
		"a call with a list":                 {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}`, nil, 400, `"code":-32602`},
		"arguments that are a list":          {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":[]}}`, nil, 200, `invalid_argument`},
		"arguments given twice inside":       {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"name":"a","name":"b"}}}`, nil, 200, `given twice`},
		"arguments that are null":            {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":null}}`, nil, 200, `"output_bytes":8192`},
		"a tool that does not exist":         {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"shout"}}`, nil, 200, `"code":-32602`},
		"another media type":                 {`{"jsonrpc":"2.0","id":1,"method":"ping"}`, map[string]string{"Content-Type": "text/plain"}, 415, `"code":-32600`},
		"a body that is too large":           {`{"jsonrpc":"2.0","id":1,"method":"ping","params":"` + large + `"}`, nil, 413, `"code":-32600`},
		"an envelope that is too large":      {`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + large[:maxEnvelopeBytes] + `"}}`, nil, 400, `"code":-32600`},
		"large arguments":                    {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"name":"` + large[:1<<20] + `"}}}`, nil, 200, `"account":"alice"`},
		"a version that does not exist":      {`{"jsonrpc":"2.0","id":1,"method":"ping"}`, map[string]string{"Mcp-Protocol-Version": "1999-01-01"}, 400, `"code":-32600,"message":"cannot speak the version`},
		"a version that is to come":          {`{"jsonrpc":"2.0","id":1,"method":"ping"}`, map[string]string{"Mcp-Protocol-Version": "2999-01-01"}, 400, `"jsonrpc":"2.0"`},
		"a version of no form":               {`{"jsonrpc":"2.0","id":1,"method":"ping"}`, map[string]string{"Mcp-Protocol-Version": "latest"}, 400, `"jsonrpc":"2.0"`},
		"a cursor that is a number":          {`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":5}}`, nil, 400, `params.cursor cannot be of type number`},
		"a cursor that is not from here":     {`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"!"}}`, nil, 400, `cannot take the cursor`},
		"params that are a list":             {`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}`, nil, 400, `params cannot be of type array`},
		"a greeting of another type":         {`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":5}}`, nil, 400, `params.protocolVersion cannot be of type number`},
		"a ping with a list":                 {`{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}`, nil, 400, `"jsonrpc":"2.0"`},
		"progress of another type":           {`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":5}}`, nil, 400, `"jsonrpc":"2.0"`},
		"a session that nobody has made":     {`{"jsonrpc":"2.0","id":1,"method":"ping"}`, map[string]string{"Mcp-Session-Id": "x"}, 200, `"result":{}`},
		"a subscription, which there is not": {`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"x"}}`, nil, 200, `"code":-32601`},
	} {
		t.Run(name, func(t *testing.T) {
			status, answer, err := post(t.Context(), server.Client(), server.URL, test.body, test.header)
			if err != nil || status != test.status || !strings.Contains(answer, test.says) {
				t.Errorf("got %d %.300s, %v, want %d with %s", status, answer, err, test.status, test.says)
			}
			if strings.Contains(answer, "Go ") || strings.Contains(answer, "unmarshal") {
				t.Errorf("it tells of the inside: %.300s", answer)
			}
		})
	}
}

func TestABodyThatSaysItIsTooLargeIsRefusedUnread(t *testing.T) {
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp", iotest.ErrReader(errors.New("it was read")))
	r.Header.Set("Content-Type", "application/json")
	r.ContentLength = tools.MaxInputBytes + 1
	w := httptest.NewRecorder()
	newBench(t).Handler().ServeHTTP(w, r)
	if w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

func TestOtherMethodsOfHTTPAreRefused(t *testing.T) {
	server := newBench(t).serve(t)
	for _, method := range []string{http.MethodGet, http.MethodDelete, http.MethodPut} {
		r, err := http.NewRequestWithContext(t.Context(), method, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusMethodNotAllowed || resp.Header.Get("Allow") != "POST" {
			t.Errorf("%s: got %d, Allow %q", method, resp.StatusCode, resp.Header.Get("Allow"))
		}
	}
}

func TestTheLogOfACall(t *testing.T) {
	b := newBench(t)
	server := b.serve(t)
	for _, name := range []string{"echo", "refuse", "break", "panic"} {
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + name + `","arguments":{}}}`
		if _, _, err := post(t.Context(), server.Client(), server.URL, body, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := post(t.Context(), server.Client(), server.URL, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"name":"sesame"}}}`, nil); err != nil {
		t.Fatal(err)
	}
	log := b.log.String()
	for _, part := range []string{"operation=echo outcome=ok", "operation=refuse outcome=quota_exceeded", "outcome=internal", "account=alice", "request_id=req_test", "the inside"} {
		if !strings.Contains(log, part) {
			t.Errorf("the log does not have %q: %s", part, log)
		}
	}
	if strings.Contains(log, "sesame") {
		t.Errorf("the log has contents: %s", log)
	}
}

// FuzzReadMessage: whatever bytes come, the reader does not panic, and what
// mcp-go is given is a request that it reads as the one that was read here.
func FuzzReadMessage(f *testing.F) {
	for _, m := range messages {
		f.Add([]byte(m.call))
		f.Add([]byte(m.cancel))
	}
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"ID":null,"method":"ping","Method":"notifications/cancelled"}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"x","Arguments":{"a":1}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := readMessage(raw)
		if err != nil {
			if text := m.refusal(err); !json.Valid(text) {
				t.Fatalf("%q: the refusal is no JSON: %q", raw, text)
			}
			return
		}
		if !m.isRequest() {
			return
		}
		body, err := m.canonical()
		if err != nil {
			t.Fatalf("%q: %v", raw, err)
		}
		var seen struct { // without regard to case, as mcp-go reads
			ID     any    `json:"id"`
			Method string `json:"method"`
			Params struct {
				Arguments any `json:"arguments"`
			} `json:"params"`
		}
		_ = json.Unmarshal(body, &seen) // params may be of another type
		if seen.ID == nil || seen.Method != m.method || m.method == "tools/call" && seen.Params.Arguments != nil {
			t.Fatalf("%q is read as %q", raw, body)
		}
		if !bytes.HasPrefix(body, []byte(`{"jsonrpc":"2.0","id":`)) {
			t.Fatalf("%q is handed on as %q", raw, body)
		}
	})
}
