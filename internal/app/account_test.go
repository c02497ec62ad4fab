package app

import (
	"context"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"envapi/core"
	"envapi/internal/devsettings"
)

// startSettings serves a stand-in for settings-api until the test ends.
func startSettings(t *testing.T) (url string, s *devsettings.Server) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	l, err := devsettings.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s = devsettings.New("")
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	t.Cleanup(func() { stop(); <-done })
	return "http://" + l.Addr().String(), s
}

// TestAnAccountsRequestsArePacedOverBothDoorsTogether: one bucket, of which each
// door takes.
func TestAnAccountsRequestsArePacedOverBothDoorsTogether(t *testing.T) {
	url, token := startKeyring(t)
	s := setup(t, url, filepath.Join(t.TempDir(), "data"))
	s.MaxRequestsPerSecond = 1
	h := start(t, s)
	awaitReady(t, h, http.StatusOK)
	begin, answered := time.Now(), 0
	for i := range 60 {
		var status int
		var answer object
		if i%2 == 0 {
			status, answer = ask(t, http.MethodGet, h.URL+"/v1/status", token, nil)
		} else {
			status, answer = ask(t, http.MethodPost, h.URL+"/mcp", token, object{"jsonrpc": "2.0", "id": i, "method": "ping"})
		}
		switch {
		case status == http.StatusOK:
			answered++
		case status != http.StatusTooManyRequests:
			t.Fatalf("%d %v", status, answer)
		}
	}
	if most := 20 + int(time.Since(begin).Seconds()) + 1; answered < 20 || answered > most {
		t.Errorf("%d were answered, of 20 to %d", answered, most)
	}
	if status, _ := ask(t, http.MethodGet, h.URL+"/ready", "", nil); status != http.StatusOK {
		t.Errorf("/ready: %d", status)
	}
}

func TestTheLimitsOfAnAccountAreShown(t *testing.T) {
	url, token := startKeyring(t)
	h := start(t, setup(t, url, filepath.Join(t.TempDir(), "data")))
	awaitReady(t, h, http.StatusOK)
	status, answer := ask(t, http.MethodGet, h.URL+"/v1/status", token, nil)
	if status != http.StatusOK {
		t.Fatalf("%d %v", status, answer)
	}
	limits, usage := answer["limits"].(object), answer["usage"].(object)
	if limits["requests_per_second"] != 100. || usage["terminals_per_account"].(object)["allowed"] != 768. {
		t.Errorf("got %v and %v", limits, usage)
	}
}

// TestWhatAPersonAskedForEndsAnIdleShell: from settings-api to the end of a shell,
// with everything between.
func TestWhatAPersonAskedForEndsAnIdleShell(t *testing.T) {
	url, token := startKeyring(t)
	settingsURL, settings := startSettings(t)
	settings.Set("dev", `{"shell_idle_ms": 1}`)
	s := setup(t, url, filepath.Join(t.TempDir(), "data"))
	s.SettingsURL, s.ReaperInterval = settingsURL, 100*time.Millisecond
	s.MinShellIdle = 200 * time.Millisecond // the deployment's bound, to which it is brought
	h := start(t, s)
	awaitReady(t, h, http.StatusOK)
	env := newEnvironment(t, h, token)
	status, sh := ask(t, http.MethodPost, h.URL+"/v1/shells", token, object{"environment_id": env})
	if status != http.StatusCreated {
		t.Fatalf("%d %v", status, sh)
	}
	for end := time.Now().Add(60 * time.Second); sh["state"] != string(core.ShellClosed); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it was never closed: %v", sh)
		}
		_, sh = ask(t, http.MethodGet, h.URL+"/v1/shells/"+sh["id"].(string), token, nil)
	}
	if sh["close_reason"] != core.CloseIdle {
		t.Errorf("got %v", sh)
	}
}
