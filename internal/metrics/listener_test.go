package metrics

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"envapi/core"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client keeps no connections, so that none outlives its test.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// listen gives a listener of a test on a free port of a loopback address.
func listen(t *testing.T, c Config) *Listener {
	t.Helper()
	c.Addr, c.Version, c.Log = "127.0.0.1:0", "v1.2.3", slog.New(slog.DiscardHandler)
	if c.Source.Census == nil {
		c.Source = asleep()
	}
	l, err := Listen(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// asleep is a source of a service that does nothing.
func asleep() Source {
	return Source{
		Standing:    func(context.Context) Standing { return Standing{} },
		Census:      func() core.Census { return core.Census{} },
		States:      func(context.Context) (map[core.EnvironmentState]int, error) { return nil, nil },
		Space:       func() (core.DiskSpace, error) { return core.DiskSpace{}, nil },
		Reaped:      func() core.Reaped { return core.Reaped{} },
		StoreErrors: func() map[string]int64 { return nil },
	}
}

// ask gives the status and the text of an answer.
func ask(t *testing.T, method, url, host string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = host
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

func TestTheProcessAndTheBuildAreShown(t *testing.T) {
	l := listen(t, Config{})
	status, text := ask(t, http.MethodGet, "http://"+l.Addr+"/metrics", "")
	if status != http.StatusOK {
		t.Fatalf("%d %s", status, text)
	}
	for _, want := range []string{`envapi_build_info{version="v1.2.3"} 1`, "go_goroutines ", "process_open_fds ", "process_resident_memory_bytes "} {
		if !strings.Contains(text, "\n"+want) {
			t.Errorf("there is no %s in\n%s", want, text)
		}
	}
}

func TestThereIsNothingElse(t *testing.T) {
	l := listen(t, Config{})
	for _, c := range []struct {
		method, path, host string
		want               int
	}{
		{http.MethodGet, "/", "", http.StatusNotFound},
		{http.MethodGet, "/metrics/", "", http.StatusNotFound},
		{http.MethodGet, "//metrics", "", http.StatusNotFound},
		{http.MethodGet, "/v1/environments", "", http.StatusNotFound},
		{http.MethodGet, "/debug/pprof/", "", http.StatusNotFound},
		{http.MethodPost, "/metrics", "", http.StatusMethodNotAllowed},
		{http.MethodDelete, "/metrics", "", http.StatusMethodNotAllowed},
		{http.MethodHead, "/metrics", "", http.StatusOK},
		{http.MethodGet, "/metrics", "localhost:1", http.StatusOK},
		{http.MethodGet, "/metrics", "[::1]", http.StatusOK},
		{http.MethodGet, "/metrics", "rebound.test", http.StatusForbidden},
		{http.MethodGet, "/metrics", "127.0.0.1.rebound.test", http.StatusForbidden},
	} {
		if status, text := ask(t, c.method, "http://"+l.Addr+c.path, c.host); status != c.want {
			t.Errorf("%s %s of %s: %d %s", c.method, c.path, c.host, status, text)
		}
	}
}

func TestElsewhereAnyNameIsAnswered(t *testing.T) {
	r := httptest.NewRequestWithContext(
		context.WithValue(t.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1)}),
		http.MethodGet, "http://envapi.internal/metrics", nil)
	w := httptest.NewRecorder()
	handler(Config{Source: asleep(), Log: slog.New(slog.DiscardHandler)}).ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestAnAddressThatIsTakenIsToldByItsSetting(t *testing.T) {
	l := listen(t, Config{})
	_, err := Listen(t.Context(), Config{Addr: l.Addr, Log: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "ENVAPI_METRICS_ADDR="+l.Addr) {
		t.Errorf("%v", err)
	}
}

// TestWhoHadItsAnswerHoldsNoPlace: others who keep their connections must not keep a
// scraper out.
func TestWhoHadItsAnswerHoldsNoPlace(t *testing.T) {
	l := listen(t, Config{})
	for range maxConnections {
		held, err := new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr)
		if err != nil {
			t.Fatal(err)
		}
		defer held.Close()
		if _, err := io.WriteString(held, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if err := held.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, held); err != nil {
			t.Fatalf("the connection is kept: %v", err)
		}
	}
	if status, text := ask(t, http.MethodGet, "http://"+l.Addr+"/metrics", ""); status != http.StatusOK {
		t.Errorf("%d %s", status, text)
	}
}

func TestItEndsWhileSomebodyHoldsAConnection(t *testing.T) {
	l := listen(t, Config{})
	held, err := new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if status, err := client.Get("http://" + l.Addr + "/metrics"); err == nil {
		status.Body.Close()
		t.Error("it still answers")
	}
}
