package rest

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"envapi/core"
)

func TestHostAndOrigin(t *testing.T) {
	for name, test := range map[string]struct {
		allowed  []string
		public   string
		loopback bool
		host     string
		origin   string
		ok       bool
	}{
		"localhost on a loopback address":     {nil, "", true, "localhost:8008", "", true},
		"an address on a loopback address":    {nil, "", true, "127.0.0.1:8008", "", true},
		"IPv6 on a loopback address":          {nil, "", true, "[::1]:8008", "", true},
		"IPv6 without a port":                 {nil, "", true, "[::1]", "", true},
		"a rebound name":                      {nil, "", true, "evil.example:8008", "", false},
		"a name that begins like localhost":   {nil, "", true, "localhost.evil.example", "", false},
		"a name that begins like an address":  {nil, "", true, "127.0.0.1.evil.example", "", false},
		"another address on a loopback one":   {nil, "", true, "10.0.0.1", "", false},
		"no host on a loopback address":       {nil, "", true, "", "", false},
		"any name where none is set":          {nil, "", false, "somewhere.example", "", true},
		"the public name":                     {nil, "https://api.example", false, "api.example", "", true},
		"the public name in capitals":         {nil, "https://api.example", false, "API.Example", "", true},
		"the public name through a proxy":     {nil, "https://api.example", true, "api.example", "", true},
		"another name than the public one":    {nil, "https://api.example", false, "evil.example", "", false},
		"an allowed name":                     {[]string{"a.example"}, "", false, "a.example", "", true},
		"an allowed name with a port":         {[]string{"a.example"}, "", false, "a.example:80", "", true},
		"an allowed name and port":            {[]string{"a.example:80"}, "", false, "a.example:80", "", true},
		"an allowed name and another port":    {[]string{"a.example:80"}, "", false, "a.example:81", "", false},
		"a name below an allowed one":         {[]string{"a.example"}, "", false, "x.a.example", "", false},
		"a probe by address":                  {[]string{"a.example"}, "", false, "10.0.0.1:8008", "", true},
		"localhost beside an allowed name":    {[]string{"a.example"}, "", true, "localhost", "", true},
		"localhost from elsewhere":            {[]string{"a.example"}, "", false, "localhost", "", false},
		"the origin itself":                   {nil, "", true, "localhost:8008", "http://localhost:8008", true},
		"a loopback origin":                   {nil, "", true, "localhost:8008", "http://127.0.0.1:3000", true},
		"a loopback origin from elsewhere":    {nil, "https://api.example", false, "api.example", "http://localhost:6274", true},
		"the public origin":                   {nil, "https://api.example", false, "api.example", "https://api.example", true},
		"another origin":                      {nil, "", true, "localhost:8008", "http://evil.example", false},
		"another origin at the public name":   {nil, "https://api.example", false, "api.example", "https://evil.example", false},
		"an opaque origin":                    {nil, "", true, "localhost:8008", "null", false},
		"an origin without a host":            {nil, "", true, "localhost:8008", "file://", false},
		"an origin that begins like loopback": {nil, "", true, "localhost:8008", "http://localhost.evil.example", false},
	} {
		t.Run(name, func(t *testing.T) {
			c := testConfig()
			c.AllowedHosts, c.PublicURL = test.allowed, test.public
			h := New(c)
			for _, target := range []string{"/v1/whoami", "/ready", "/openapi.json", "/nowhere"} {
				w := askAs(t, h, target, test.host, test.origin, test.loopback)
				if !test.ok {
					refused(t, w, core.CodeOriginRefused)
				} else if w.Code == http.StatusForbidden {
					t.Errorf("%s: got %s", target, w.Body)
				}
			}
			if w := askAs(t, h, "/healthz", test.host, test.origin, test.loopback); w.Code != http.StatusOK {
				t.Errorf("/healthz answers %d", w.Code)
			}
		})
	}
}

func askAs(t *testing.T, h http.Handler, target, host, origin string, onLoopback bool) *httptest.ResponseRecorder {
	t.Helper()
	ctx := t.Context()
	if onLoopback {
		ctx = atLoopback(t)
	}
	r := httptest.NewRequestWithContext(ctx, "GET", target, nil)
	r.Host = host
	r.Header.Set("Authorization", "Bearer good")
	if origin != "" {
		r.Header.Set("Origin", origin)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestTwoOriginsAreRefused(t *testing.T) {
	r := httptest.NewRequestWithContext(atLoopback(t), "GET", "/ready", nil)
	r.Host = "localhost"
	r.Header["Origin"] = []string{"http://localhost", "http://evil.example"}
	w := httptest.NewRecorder()
	New(testConfig()).ServeHTTP(w, r)
	refused(t, w, core.CodeOriginRefused)
}
