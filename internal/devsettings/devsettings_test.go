package devsettings

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"envapi/core"
	"envapi/internal/settings"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// noStore forgets everything.
type noStore struct{}

func (noStore) KeepSettings(context.Context, string, string) error { return nil }
func (noStore) Settings(context.Context, string) (string, error)   { return "", nil }

// TestEnvapiUnderstandsIt: the client of the service, fed by the stand-in.
func TestEnvapiUnderstandsIt(t *testing.T) {
	s := New("tok")
	server := httptest.NewServer(s)
	defer server.Close()
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("tok\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	client, err := settings.New(settings.Config{
		URL: server.URL, TokenFile: token, Store: noStore{}, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	const odd = "../a b/%2e?#"
	shellIdle := func(account string) (time.Duration, bool) {
		got := client.Of(t.Context(), core.Owner{Account: account, Profile: "work"})
		if got.Shell == nil {
			return 0, got.Never
		}
		return *got.Shell, got.Never
	}
	s.Set(odd, `{"shell_idle_ms": 60000, "profiles": {"work": {"shell_idle_ms": 5}}}`)
	for range 2 { // the second time by its ETag
		if got, never := shellIdle(odd); got != 5*time.Millisecond || never {
			t.Errorf("got %v, %v", got, never)
		}
		now = now.Add(time.Hour)
	}
	s.Unset(odd)
	if got, never := shellIdle(odd); got != 0 || never {
		t.Errorf("unset: got %v, %v", got, never)
	}
	s.Away(true)
	if got, never := shellIdle("bob"); got != 0 || !never {
		t.Errorf("away: got %v, %v", got, never)
	}
}

func TestItsRoutes(t *testing.T) {
	server := httptest.NewServer(New(""))
	defer server.Close()
	const at = "/v1/accounts/a%2Fb/settings"
	for _, c := range []struct {
		method, path, body string
		status             int
		says               string
	}{
		{"GET", at, "", 404, "nothing is set"},
		{"PUT", at, `{"shell_idle_ms": 5}`, 204, ""},
		{"GET", at, "", 200, `{"shell_idle_ms": 5}`},
		{"GET", "/v1/accounts/a/b/settings", "", 400, "there is only"},
		{"GET", "/v1/accounts//settings", "", 400, "there is only"},
		{"GET", "/v1/accounts/a", "", 400, "there is only"},
		{"PUT", at, strings.Repeat("x", maxBodyBytes+1), 400, "cannot be read"},
		{"POST", at, "", 405, "use GET"},
		{"DELETE", at, "", 204, ""},
		{"GET", at, "", 404, "nothing is set"},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, server.URL+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := server.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != c.status || !strings.Contains(string(text), c.says) {
			t.Errorf("%s %s: %d %s", c.method, c.path, resp.StatusCode, text)
		}
	}
}

func TestListenStaysOnLoopback(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", ":0", "[::]:0"} {
		if l, err := Listen(t.Context(), addr); err == nil {
			_ = l.Close()
			t.Errorf("%s was accepted", addr)
		}
	}
}

func TestServeEndsWithItsContext(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	l, err := Listen(ctx, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- New("").Serve(ctx, l) }()
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
