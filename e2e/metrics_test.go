package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// scrape gives the metrics at an address.
func scrape(ctx context.Context, address string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%d %s", resp.StatusCode, text)
	}
	return string(text), err
}

// shows waits until the metrics at an address have lines.
func shows(t *testing.T, address string, lines ...string) string {
	t.Helper()
	var text string
	err := eventually(func() (err error) {
		if text, err = scrape(context.Background(), address); err != nil {
			return err
		}
		for _, line := range lines {
			if !strings.Contains(text, "\n"+line+"\n") {
				return fmt.Errorf("there is no %s in\n%s", line, text)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestMetricsShowWhatTheServiceDoes(t *testing.T) {
	t.Parallel()
	address := freeAddress(t)
	s := start(t, config{env: map[string]string{
		"ENVAPI_METRICS_ADDR": address, "ENVAPI_STOP_GRACE_MS": "60000", "ENVAPI_REAPER_INTERVAL_MS": "100",
	}})
	shows(t, address, "envapi_ready 1", "envapi_draining 0", "envapi_boxes 0", `envapi_environments{state="active"} 0`)

	p, other := s.place(t), s.place(t)
	sh := as[struct{ ID string }](t, s.must(t, "open_shell", p.in(nil)))
	running := p.background(t, "sleep 300")
	s.must(t, "archive_environment", other.in(nil))
	text := shows(t, address,
		`envapi_environments{state="active"} 1`, `envapi_environments{state="archived"} 1`,
		"envapi_boxes 1", "envapi_shells_open 1", "envapi_commands_running 1",
		`envapi_store_errors_total{kind="full"} 0`, `envapi_reaper_failures_total{kind="environments"} 0`)
	for _, want := range []string{"envapi_disk_free_bytes ", "envapi_reaper_last_run_timestamp_seconds ", "go_goroutines ", "process_open_fds "} {
		if !strings.Contains(text, "\n"+want) {
			t.Errorf("there is no %sin\n%s", want, text)
		}
	}
	for what, secret := range map[string]string{
		"the account": "dev", "the environment": p.id, "the command": running.ID, "the shell": sh.ID,
		"the token": s.token, "the data folder": filepath.Clean(s.data),
	} {
		if strings.Contains(text, `="`+secret) || len(secret) > 8 && strings.Contains(text, secret) {
			t.Errorf("%s is in\n%s", what, text)
		}
	}

	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	shows(t, address, "envapi_draining 1", "envapi_ready 0", "envapi_commands_running 1")
	s.signal(t, running.ID, "KILL")
	if !s.wait(patience) {
		t.Fatal("it does not end")
	}
	if text, err := scrape(t.Context(), address); err == nil {
		t.Errorf("after the end there is\n%s", text)
	}
}

func TestWithoutItsSettingThereAreNoMetrics(t *testing.T) {
	t.Parallel()
	s := start(t, config{})
	if status, body, err := s.probe(t.Context(), "/metrics"); err != nil || status != http.StatusNotFound && status != http.StatusUnauthorized {
		t.Errorf("%d %s %v", status, body, err)
	}
	if strings.Contains(s.output.String(), "metrics are shown") {
		t.Error(s.output)
	}
}
