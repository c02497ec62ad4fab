package rest

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"envapi/core"
	"envapi/tools"
)

// allRoutes are the routes of a handler as the mux has them: those of the
// table, and the fixed ones, which are exactly these.
var fixedPatterns = []string{"GET /healthz", "GET /ready", "GET /openapi.json", "POST /mcp"}

func TestFixedRoutesAreTheseAndNoMore(t *testing.T) {
	h := &handler{Config: testConfig()}
	var patterns []string
	for _, route := range h.fixedRoutes(nil) {
		patterns = append(patterns, route.pattern)
	}
	if !slices.Equal(patterns, fixedPatterns) {
		t.Errorf("the fixed routes are %v, want %v: an operation belongs into the table", patterns, fixedPatterns)
	}
}

func TestTheDocumentHasEveryRouteAndNoOther(t *testing.T) {
	c := testConfig()
	c.Operations = tools.Operations()
	w := ask(t, New(c), "GET", "/openapi.json", ``, map[string]string{"Authorization": ""})
	var document struct {
		Paths map[string]map[string]any `json:"paths"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &document); err != nil {
		t.Fatal(err)
	}
	var documented []string
	for path, methods := range document.Paths {
		for method := range methods {
			documented = append(documented, strings.ToUpper(method)+" "+path)
		}
	}
	served := slices.DeleteFunc(slices.Clone(fixedPatterns), func(p string) bool { return p == "POST /mcp" })
	for _, op := range tools.Operations() {
		served = append(served, op.Method+" "+op.Path)
	}
	slices.Sort(documented)
	slices.Sort(served)
	if !slices.Equal(documented, served) {
		t.Errorf("documented are %v, served %v", documented, served)
	}
}

func TestWhatIsNotThere(t *testing.T) {
	h := New(testConfig())
	for name, test := range map[string]struct {
		method, target string
		code           core.Code
		allow          string
	}{
		"another path":                 {"GET", "/nowhere", core.CodeNotFound, ""},
		"another path below /v1":       {"GET", "/v1/nowhere", core.CodeNotFound, ""},
		"the root":                     {"GET", "/", core.CodeNotFound, ""},
		"a slash at the end":           {"GET", "/v1/things/a/", core.CodeNotFound, ""},
		"an empty id":                  {"GET", "/v1/things/", core.CodeNotFound, ""},
		"two slashes":                  {"GET", "/v1//things/a", core.CodeNotFound, ""},
		"dots":                         {"GET", "/v1/things/../things/a", core.CodeNotFound, ""},
		"escaped dots":                 {"GET", "/v1/things/%2e%2e", core.CodeNotFound, ""},
		"another method":               {"PUT", "/v1/things/a", core.CodeMethodNotAllowed, "GET, HEAD, POST, DELETE"},
		"a method of one's own":        {"BREW", "/v1/things/a", core.CodeMethodNotAllowed, "GET, HEAD, POST, DELETE"},
		"OPTIONS":                      {"OPTIONS", "/v1/nothing", core.CodeMethodNotAllowed, "POST"},
		"another method on a fixed":    {"POST", "/ready", core.CodeMethodNotAllowed, "GET, HEAD"},
		"GET on /mcp":                  {"GET", "/mcp", core.CodeMethodNotAllowed, "POST"},
		"DELETE on /mcp":               {"DELETE", "/mcp", core.CodeMethodNotAllowed, "POST"},
		"a path below a fixed one":     {"GET", "/ready/x", core.CodeNotFound, ""},
		"a fixed path in another case": {"GET", "/Ready", core.CodeNotFound, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := ask(t, h, test.method, test.target, ``, nil)
			refused(t, w, test.code)
			if got := w.Header().Get("Allow"); got != test.allow {
				t.Errorf("Allow is %q, want %q", got, test.allow)
			}
		})
	}
}

func TestNothingIsSaidWithoutAToken(t *testing.T) {
	h := New(testConfig())
	for _, target := range []string{"/v1", "/v1/", "/v1/things/a", "/v1/nowhere", "/v1//x", "/v1/../v1/things/a", "/x/../v1/things/a", "/mcp", "/mcp/", "/mcp/x"} {
		for _, method := range []string{"GET", "POST", "PUT", "OPTIONS"} {
			w := ask(t, h, method, target, ``, map[string]string{"Authorization": ""})
			refused(t, w, core.CodeUnauthenticated)
			if got := w.Header().Get("WWW-Authenticate"); got != `Bearer realm="envapi"` {
				t.Errorf("%s %s: the challenge is %q", method, target, got)
			}
		}
	}
}

func TestAuthorizationHeaders(t *testing.T) {
	h := New(testConfig())
	for name, test := range map[string]struct {
		values    []string
		code      core.Code // "" succeeds
		challenge string
	}{
		"a good token":             {[]string{"Bearer good"}, "", ""},
		"the scheme in lower case": {[]string{"bearer good"}, "", ""},
		"a bad token":              {[]string{"Bearer bad"}, core.CodeUnauthenticated, "invalid_token"},
		"two headers":              {[]string{"Bearer good", "Bearer good"}, core.CodeUnauthenticated, "invalid_token"},
		"another scheme":           {[]string{"Basic good"}, core.CodeUnauthenticated, "invalid_token"},
		"no scheme":                {[]string{"good"}, core.CodeUnauthenticated, "invalid_token"},
		"no token":                 {[]string{"Bearer "}, core.CodeUnauthenticated, "invalid_token"},
		"two tokens":               {[]string{"Bearer good good"}, core.CodeUnauthenticated, "invalid_token"},
		"two tokens with a comma":  {[]string{"Bearer good, Bearer good"}, core.CodeUnauthenticated, "invalid_token"},
		"space before the token":   {[]string{"Bearer  good"}, core.CodeUnauthenticated, "invalid_token"},
		"a tab":                    {[]string{"Bearer\tgood"}, core.CodeUnauthenticated, "invalid_token"},
		"quotes":                   {[]string{`Bearer "good"`}, core.CodeUnauthenticated, "invalid_token"},
		"keys out of reach":        {[]string{"Bearer unknowable"}, core.CodeUnavailable, ""},
		"a scope too few":          {[]string{"Bearer reader"}, core.CodeInsufficientScope, `error="insufficient_scope", scope="exec"`},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), "GET", "/v1/whoami", nil)
			r.Header["Authorization"] = test.values
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if test.code == "" {
				if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"Account":"alice"`) {
					t.Errorf("got %d %s", w.Code, w.Body)
				}
				return
			}
			refused(t, w, test.code)
			if got := w.Header().Get("WWW-Authenticate"); !strings.Contains(got, test.challenge) || (got == "") != (test.challenge == "") {
				t.Errorf("the challenge is %q, want one with %q", got, test.challenge)
			}
		})
	}
}

func TestTheScopeIsAskedBeforeTheBodyIsRead(t *testing.T) {
	w := ask(t, New(testConfig()), "POST", "/v1/things/a", `no JSON`, map[string]string{"Authorization": "Bearer reader"})
	refused(t, w, core.CodeInsufficientScope)
}

func TestATokenInTheQueryIsRefused(t *testing.T) {
	h := New(testConfig())
	for _, target := range []string{
		"/v1/whoami?access_token=good", "/v1/whoami?token=good", "/v1/whoami?Access_Token=good",
		"/mcp?access_token=good", "/ready?token=x", "/v1/nowhere?token=x",
	} {
		for _, authorization := range []string{"", "Bearer good"} {
			w := ask(t, h, "GET", target, ``, map[string]string{"Authorization": authorization})
			refused(t, w, core.CodeInvalidArgument)
			if strings.Contains(w.Body.String(), "good") {
				t.Errorf("%s: the answer repeats the token: %s", target, w.Body)
			}
		}
	}
}

func TestMCPHasTheCaller(t *testing.T) {
	w := ask(t, New(testConfig()), "POST", "/mcp", `{}`, nil)
	if w.Code != http.StatusOK || w.Body.String() != `{"caller":"alice","ok":true}` {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

func TestReadyAndHealthz(t *testing.T) {
	c := testConfig()
	status := StatusReady
	c.Ready = func(context.Context) Readiness { return Readiness{Status: status} }
	h := New(c)
	for s, want := range map[string]int{StatusReady: 200, StatusStarting: 503, StatusDraining: 503, StatusFailing: 503} {
		status = s
		w := ask(t, h, "GET", "/ready", ``, map[string]string{"Authorization": ""})
		var document map[string]json.RawMessage
		if err := json.Unmarshal(w.Body.Bytes(), &document); err != nil || w.Code != want {
			t.Errorf("%s: got %d %s", s, w.Code, w.Body)
		}
		for _, member := range []string{"status", "sandbox", "keyring", "store"} {
			if document[member] == nil {
				t.Errorf("%s: there is no %s: %s", s, member, w.Body)
			}
		}
		if w := ask(t, h, "GET", "/healthz", ``, map[string]string{"Authorization": ""}); w.Code != 200 {
			t.Errorf("the process lives, and /healthz says %d", w.Code)
		}
	}
}
