package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"envapi/core"
	"envapi/internal/problem"
	"envapi/tools"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// thing is the input and the output of the operations that the tests serve.
type thing struct {
	ThingID        string            `json:"thing_id" doc:"Which one." maxlen:"64"`
	Name           string            `json:"name,omitempty" doc:"A name."`
	Count          *int64            `json:"count,omitempty" doc:"A count." min:"0" max:"100"`
	Force          bool              `json:"force,omitempty" doc:"A switch."`
	Labels         map[string]string `json:"labels,omitempty" doc:"Labels."`
	IdempotencyKey string            `json:"idempotency_key,omitempty" doc:"A key." minlen:"1" maxlen:"8"`
}

// shape is thing without what a GET cannot say.
type shape struct {
	ThingID string `json:"thing_id" doc:"Which one." maxlen:"64"`
	Name    string `json:"name,omitempty" doc:"A name."`
	Count   *int64 `json:"count,omitempty" doc:"A count." min:"0" max:"100"`
	Force   bool   `json:"force,omitempty" doc:"A switch."`
}

func echo[T any](_ *core.Service, _ context.Context, _ core.Caller, in T) (T, error) { return in, nil }

func failing(err error) func(*core.Service, context.Context, core.Caller, core.Nothing) (core.Nothing, error) {
	return func(*core.Service, context.Context, core.Caller, core.Nothing) (core.Nothing, error) {
		return core.Nothing{}, err
	}
}

func row(name, method, path string) tools.Operation {
	return tools.Operation{Name: name, Noun: "things", Method: method, Path: path, Scope: core.ScopeExec}
}

var testOperations = []tools.Operation{
	tools.Define(row("change", "POST", "/v1/things/{thing_id}"), echo[thing]),
	tools.Define(row("look", "GET", "/v1/things/{thing_id}"), echo[shape]),
	tools.Define(row("drop", "DELETE", "/v1/things/{thing_id}"), echo[shape]),
	tools.Define(row("nothing", "POST", "/v1/nothing"), echo[core.Nothing]),
	tools.Define(row("whoami", "GET", "/v1/whoami"), func(_ *core.Service, _ context.Context, c core.Caller, _ core.Nothing) (core.Owner, error) {
		return c.Owner, nil
	}),
	tools.Define(row("panics", "POST", "/v1/panics"), func(*core.Service, context.Context, core.Caller, core.Nothing) (core.Nothing, error) {
		panic("the inside")
	}),
	tools.Define(row("breaks", "POST", "/v1/breaks"), failing(errors.New("the inside"))),
	tools.Define(row("hides", "POST", "/v1/hides"), failing(
		core.Errorf(core.CodeNotFound, "there is none").Because(errors.New("the inside")))),
	tools.Define(row("waits", "POST", "/v1/waits"), failing(
		core.Errorf(core.CodeEnvironmentBusy, "busy").With("state", "resetting").With("retry_after_ms", 1001))),
}

// tokens is a Verifier with fixed tokens.
type tokens struct{}

func (tokens) Verify(_ context.Context, raw string) (core.Caller, error) {
	owner := core.Owner{Account: "alice", Profile: "default"}
	switch raw {
	case "good":
		return core.Caller{Owner: owner, Scopes: core.AllScopes}, nil
	case "reader":
		return core.Caller{Owner: owner, Scopes: []core.Scope{core.ScopeEnvironmentsRead}}, nil
	case "unknowable":
		return core.Caller{}, core.Errorf(core.CodeUnavailable, "no keys yet").With("retry_after_ms", int64(5000))
	}
	return core.Caller{}, core.Errorf(core.CodeUnauthenticated, "the token does not verify")
}

func testConfig() Config {
	return Config{
		Operations: testOperations, Verifier: tokens{}, Version: "test",
		Ready: func(context.Context) Readiness { return Readiness{Status: StatusReady} },
		MCP: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			caller, ok := core.CallerFrom(r.Context())
			_ = writeJSON(w, http.StatusOK, map[string]any{"caller": caller.Account, "ok": ok})
		}),
	}
}

// ask sends one request, with the token "good" unless header says otherwise.
// An empty value removes a header.
func ask(t *testing.T, h http.Handler, method, target, body string, header map[string]string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer good")
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for name, value := range header {
		if r.Header.Set(name, value); value == "" {
			r.Header.Del(name)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// refused checks that an answer is the problem document of a code, and gives
// it.
func refused(t *testing.T, w *httptest.ResponseRecorder, code core.Code) map[string]any {
	t.Helper()
	var document map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &document); err != nil {
		t.Fatalf("the answer %d %q is no document: %v", w.Code, w.Body, err)
	}
	if document["code"] != string(code) || w.Code != problem.Status(code) || document["status"] != float64(w.Code) {
		t.Fatalf("got %d %s, want %s", w.Code, w.Body, code)
	}
	if got := w.Header().Get("Content-Type"); got != problem.MediaType {
		t.Errorf("the media type is %q", got)
	}
	if id := w.Header().Get("X-Request-Id"); id == "" || document["instance"] != id {
		t.Errorf("the instance %v is not the request's id %q", document["instance"], id)
	}
	if document["detail"] == "" || document["title"] == "" || document["type"] == "" {
		t.Errorf("a member is missing: %s", w.Body)
	}
	return document
}

func TestFieldsReachTheOperation(t *testing.T) {
	h := New(testConfig())
	for name, test := range map[string]struct {
		method, target, body string
		header               map[string]string
		want                 string
	}{
		"path and body":         {"POST", "/v1/things/a", `{"name":"n","count":3,"labels":{"k":"v"}}`, nil, `{"thing_id":"a","name":"n","count":3,"labels":{"k":"v"}}`},
		"path alone":            {"POST", "/v1/things/a", ``, nil, `{"thing_id":"a"}`},
		"an empty object":       {"POST", "/v1/things/a", " { \n } ", nil, `{"thing_id":"a"}`},
		"a key in the header":   {"POST", "/v1/things/a", `{"name":"n"}`, map[string]string{"Idempotency-Key": "k"}, `{"thing_id":"a","name":"n","idempotency_key":"k"}`},
		"a charset":             {"POST", "/v1/things/a", `{"name":"é"}`, map[string]string{"Content-Type": "application/json; charset=UTF-8"}, `{"thing_id":"a","name":"é"}`},
		"query":                 {"GET", "/v1/things/a?name=1&count=3&force=true", ``, nil, `{"thing_id":"a","name":"1","count":3,"force":true}`},
		"query of DELETE":       {"DELETE", "/v1/things/a?name=x%20y%26", ``, nil, `{"thing_id":"a","name":"x y&"}`},
		"escapes in the path":   {"GET", "/v1/things/a%20%22b%2Fc%22", ``, nil, `{"thing_id":"a \"b/c\""}`},
		"no field at all":       {"POST", "/v1/nothing", ``, nil, `{}`},
		"a key that has no use": {"POST", "/v1/nothing", ``, map[string]string{"Idempotency-Key": "k"}, `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			w := ask(t, h, test.method, test.target, test.body, test.header)
			if w.Code != http.StatusOK || w.Body.String() != test.want {
				t.Errorf("got %d %s, want %s", w.Code, w.Body, test.want)
			}
		})
	}
}

func TestInputsAreRefused(t *testing.T) {
	h := New(testConfig())
	type headers = map[string]string
	for name, test := range map[string]struct {
		method, target, body string
		header               headers
		code                 core.Code
		field                string
	}{
		"a field in path and body":      {"POST", "/v1/things/a", `{"thing_id":"b"}`, nil, core.CodeInvalidArgument, "thing_id"},
		"a field in path and query":     {"GET", "/v1/things/a?thing_id=b", ``, nil, core.CodeInvalidArgument, "thing_id"},
		"a field in header and body":    {"POST", "/v1/things/a", `{"idempotency_key":"k"}`, headers{"Idempotency-Key": "k"}, core.CodeInvalidArgument, "idempotency_key"},
		"an empty key":                  {"POST", "/v1/things/a", `{"idempotency_key":""}`, nil, core.CodeInvalidArgument, "idempotency_key"},
		"a header beyond its bound":     {"POST", "/v1/things/a", ``, headers{"Idempotency-Key": "123456789"}, core.CodeInvalidArgument, "idempotency_key"},
		"an unknown field":              {"POST", "/v1/things/a", `{"nme":"x"}`, nil, core.CodeInvalidArgument, "nme"},
		"an unknown parameter":          {"GET", "/v1/things/a?cuont=1", ``, nil, core.CodeInvalidArgument, "cuont"},
		"a parameter given twice":       {"GET", "/v1/things/a?count=1&count=1", ``, nil, core.CodeInvalidArgument, "count"},
		"a parameter that is no number": {"GET", "/v1/things/a?count=many", ``, nil, core.CodeInvalidArgument, "count"},
		"an empty number":               {"GET", "/v1/things/a?count=", ``, nil, core.CodeInvalidArgument, "count"},
		"a fraction":                    {"GET", "/v1/things/a?count=1.5", ``, nil, core.CodeInvalidArgument, "count"},
		"a switch that is neither":      {"GET", "/v1/things/a?force=1", ``, nil, core.CodeInvalidArgument, "force"},
		"a broken escape":               {"GET", "/v1/things/a?name=%zz", ``, nil, core.CodeInvalidArgument, ""},
		"a semicolon":                   {"GET", "/v1/things/a?name=a;count=1", ``, nil, core.CodeInvalidArgument, ""},
		"a query that is not UTF-8":     {"GET", "/v1/things/a?name=%ff", ``, nil, core.CodeInvalidArgument, "name"},
		"a path that is not UTF-8":      {"GET", "/v1/things/%ff", ``, nil, core.CodeInvalidArgument, "thing_id"},
		"a query with POST":             {"POST", "/v1/things/a?name=x", ``, nil, core.CodeInvalidArgument, "name"},
		"a body with GET":               {"GET", "/v1/things/a", `{"name":"x"}`, nil, core.CodeInvalidArgument, ""},
		"a list":                        {"POST", "/v1/things/a", `[]`, nil, core.CodeInvalidArgument, ""},
		"no JSON":                       {"POST", "/v1/things/a", `{"name"`, nil, core.CodeInvalidArgument, ""},
		"an object after the object":    {"POST", "/v1/things/a", `{}{}`, nil, core.CodeInvalidArgument, ""},
		"a brace too many":              {"POST", "/v1/things/a", `{}}`, nil, core.CodeInvalidArgument, ""},
		"a comma alone":                 {"POST", "/v1/things/a", `{,}`, nil, core.CodeInvalidArgument, ""},
		"a form":                        {"POST", "/v1/things/a", `name=x`, headers{"Content-Type": "application/x-www-form-urlencoded"}, core.CodeUnsupportedEncoding, ""},
		"no media type":                 {"POST", "/v1/things/a", `{}`, headers{"Content-Type": ""}, core.CodeUnsupportedEncoding, ""},
		"another charset":               {"POST", "/v1/things/a", `{}`, headers{"Content-Type": "application/json; charset=latin1"}, core.CodeUnsupportedEncoding, ""},
		"a compressed body":             {"POST", "/v1/things/a", `{}`, headers{"Content-Encoding": "gzip"}, core.CodeUnsupportedEncoding, ""},
		"a body that is too large":      {"POST", "/v1/things/a", `{"name":"` + strings.Repeat("x", tools.MaxInputBytes) + `"}`, nil, core.CodeTooLarge, ""},
	} {
		t.Run(name, func(t *testing.T) {
			document := refused(t, ask(t, h, test.method, test.target, test.body, test.header), test.code)
			if field, _ := document["field"].(string); field != test.field {
				t.Errorf("the field is %q, want %q: %s", field, test.field, document["detail"])
			}
		})
	}
}

// A client that wanted to be safe and had no key must not believe that it is.
func TestAnEmptyKeyInTheHeaderIsRefused(t *testing.T) {
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/things/a", nil)
	r.Header.Set("Authorization", "Bearer good")
	r.Header.Set("Idempotency-Key", "")
	w := httptest.NewRecorder()
	New(testConfig()).ServeHTTP(w, r)
	if document := refused(t, w, core.CodeInvalidArgument); document["field"] != "idempotency_key" {
		t.Errorf("got %v", document)
	}
}

func TestARepeatedHeaderIsRefused(t *testing.T) {
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/things/a", nil)
	r.Header["Authorization"] = []string{"Bearer good"}
	r.Header["Idempotency-Key"] = []string{"a", "b"}
	w := httptest.NewRecorder()
	New(testConfig()).ServeHTTP(w, r)
	refused(t, w, core.CodeInvalidArgument)
}

func TestHEADAnswersLikeGETWithoutABody(t *testing.T) {
	server := httptest.NewServer(New(testConfig()))
	defer server.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodHead, server.URL+"/v1/things/a", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer good")
	resp, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.ContentLength != int64(len(`{"thing_id":"a"}`)) {
		t.Errorf("got %d with %d bytes", resp.StatusCode, resp.ContentLength)
	}
}

func TestFailuresShowNothingOfTheInside(t *testing.T) {
	var log bytes.Buffer
	c := testConfig()
	c.Log = slog.New(slog.NewTextHandler(&log, nil))
	h := New(c)
	for path, code := range map[string]core.Code{
		"/v1/panics": core.CodeInternal, "/v1/breaks": core.CodeInternal, "/v1/hides": core.CodeNotFound,
	} {
		log.Reset()
		w := ask(t, h, "POST", path, ``, nil)
		refused(t, w, code)
		if strings.Contains(w.Body.String(), "the inside") {
			t.Errorf("%s shows the inside: %s", path, w.Body)
		}
		id := w.Header().Get("X-Request-Id")
		if code == core.CodeInternal && (!strings.Contains(log.String(), "the inside") || !strings.Contains(log.String(), id)) {
			t.Errorf("%s: the log does not have the cause under %s: %s", path, id, &log)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	w := ask(t, New(testConfig()), "POST", "/v1/waits", ``, nil)
	document := refused(t, w, core.CodeEnvironmentBusy)
	if w.Header().Get("Retry-After") != "2" || document["retry_after_ms"] != 1001.0 || document["state"] != "resetting" {
		t.Errorf("got %v and %s", w.Header(), w.Body)
	}
}

func TestTheLogHasNoContents(t *testing.T) {
	var log bytes.Buffer
	c := testConfig()
	c.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	h := New(c)
	ask(t, h, "POST", "/v1/things/a", `{"name":"sesame"}`, nil)
	ask(t, h, "GET", "/v1/things/sesame?name=sesame", ``, nil)
	ask(t, h, "GET", "/v1/sesame", ``, nil)
	ask(t, h, "POST", "/v1/things/a?token=sesame", ``, map[string]string{"Authorization": "Bearer sesame"})
	for _, secret := range []string{"sesame", "good"} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("the log has %q: %s", secret, &log)
		}
	}
	for _, part := range []string{"account=alice", "operation=change", "status=200", "request_id=req_", "duration_ms="} {
		if !strings.Contains(log.String(), part) {
			t.Errorf("the log does not have %q: %s", part, &log)
		}
	}
}

func TestEveryCodeHasAStatus(t *testing.T) {
	for _, info := range core.Codes {
		if status := problem.Status(info.Code); (status == http.StatusInternalServerError) != (info.Code == core.CodeInternal) {
			t.Errorf("%s has the status %d", info.Code, status)
		}
	}
}

// atLoopback is where a connection came in, as the server notes it.
func atLoopback(t *testing.T) context.Context {
	t.Helper()
	return context.WithValue(t.Context(), http.LocalAddrContextKey, net.Addr(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8008}))
}
