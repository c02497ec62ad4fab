package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"envapi/core"
	"envapi/internal/config"
	"envapi/internal/datalock"
	"envapi/internal/devkeyring"
	"envapi/internal/require"
	"envapi/internal/testbin"
)

// startKeyring serves a keyring for a test and gives its address and a token.
func startKeyring(t *testing.T) (url, token string) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	l, err := devkeyring.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url = "http://" + l.Addr().String()
	key, err := devkeyring.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	k, err := devkeyring.New(url, "envapi", key)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- k.Serve(ctx, l) }()
	t.Cleanup(func() { stop(); <-done })
	return url, k.Master().Raw
}

// setup is what a service of a test is started with.
func setup(t *testing.T, keyringURL, dataDir string) Setup {
	t.Helper()
	c, err := config.Load(config.Source{Program: config.ProgramHTTP, Dir: t.TempDir(), Environ: []string{
		"ENVAPI_ADDR=127.0.0.1:0", "ENVAPI_DATA_DIR=" + dataDir, "ENVAPI_KEYRING_URL=" + keyringURL,
		"ENVAPI_UID_RANGE=" + testbin.UIDRange(), "ENVAPI_STOP_GRACE_MS=0",
	}, Root: isRoot()})
	if err != nil {
		t.Fatal(err)
	}
	return Setup{Config: c, InitPath: testbin.Init(t), Log: slog.New(slog.DiscardHandler)}
}

// start starts a service; its end is the test's business where it closes it.
func start(t *testing.T, s Setup) *HTTP {
	t.Helper()
	h, err := StartHTTP(t.Context(), s)
	if err != nil && strings.Contains(err.Error(), "cannot contain commands on this host") {
		require.Feature(t, "userns", err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Errorf("Close gave %v", err)
		}
	})
	return h
}

// client keeps no connections, so that none outlives its test.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// ask sends a request and gives the status and the body as JSON.
func ask(t *testing.T, method, url, token string, body any) (int, map[string]any) {
	t.Helper()
	var text []byte
	if body != nil {
		text, _ = json.Marshal(body) // objects of strings and numbers
	}
	req, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err = io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var answer map[string]any
	_ = json.Unmarshal(text, &answer) // stays nil where there is none
	return resp.StatusCode, answer
}

type object = map[string]any

// awaitReady waits until /ready gives a status.
func awaitReady(t *testing.T, h *HTTP, want int) object {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		status, answer := ask(t, http.MethodGet, h.URL+"/ready", "", nil)
		if status == want {
			return answer
		}
		if time.Now().After(end) {
			t.Fatalf("/ready gives %d %v and not %d", status, answer, want)
		}
	}
}

func newEnvironment(t *testing.T, h *HTTP, token string) string {
	t.Helper()
	status, env := ask(t, http.MethodPost, h.URL+"/v1/environments", token, object{})
	if status != http.StatusCreated {
		t.Fatalf("%d %v", status, env)
	}
	return env["id"].(string)
}

func TestAServiceStartsServesEndsAndStartsAgainWithWhatItHad(t *testing.T) {
	url, token := startKeyring(t)
	s := setup(t, url, filepath.Join(t.TempDir(), "data"))
	h := start(t, s)
	if answer := awaitReady(t, h, http.StatusOK); answer["status"] != "ready" {
		t.Errorf("/ready says %v", answer)
	}
	id := newEnvironment(t, h, token)
	_, command := ask(t, http.MethodPost, h.URL+"/v1/exec", token, object{"environment_id": id, "command": "echo hello >f; cat f"})
	if out, _ := command["stdout"].(object); out["text"] != "hello\n" {
		t.Errorf("exec gave %v", command)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if c, err := net.Dial("tcp", strings.TrimPrefix(h.URL, "http://")); err == nil {
		_ = c.Close()
		t.Error("it still listens")
	}
	h = start(t, s)
	awaitReady(t, h, http.StatusOK)
	_, command = ask(t, http.MethodPost, h.URL+"/v1/exec", token, object{"environment_id": id, "command": "cat f"})
	if out, _ := command["stdout"].(object); out["text"] != "hello\n" {
		t.Errorf("after the restart exec gave %v", command)
	}
}

func TestWithoutATokenNothingIsDone(t *testing.T) {
	url, _ := startKeyring(t)
	h := start(t, setup(t, url, filepath.Join(t.TempDir(), "data")))
	awaitReady(t, h, http.StatusOK)
	for _, token := range []string{"", "x", "a.b.c"} {
		if status, answer := ask(t, http.MethodPost, h.URL+"/v1/environments", token, object{}); status != http.StatusUnauthorized {
			t.Errorf("%q: %d %v", token, status, answer)
		}
	}
}

func TestE8WithKeyringDownAtTheStartItIsNotReadyAndAnswers503(t *testing.T) {
	_, token := startKeyring(t)
	h := start(t, setup(t, "http://127.0.0.1:1", filepath.Join(t.TempDir(), "data"))) // nobody listens on port 1
	if answer := awaitReady(t, h, http.StatusServiceUnavailable); answer["status"] != "starting" {
		t.Errorf("/ready says %v", answer)
	}
	if status, answer := ask(t, http.MethodGet, h.URL+"/v1/environments", token, nil); status != http.StatusServiceUnavailable || answer["code"] != string(core.CodeUnavailable) {
		t.Errorf("%d %v", status, answer)
	}
	if status, _ := ask(t, http.MethodGet, h.URL+"/healthz", "", nil); status != http.StatusOK {
		t.Errorf("/healthz gives %d", status)
	}
}

func TestCloseAnswersACallThatWaits(t *testing.T) {
	url, token := startKeyring(t)
	h := start(t, setup(t, url, filepath.Join(t.TempDir(), "data")))
	awaitReady(t, h, http.StatusOK)
	id := newEnvironment(t, h, token)
	type answered struct {
		status int
		body   object
	}
	waiting := make(chan answered, 1)
	go func() {
		status, body := ask(t, http.MethodPost, h.URL+"/v1/exec", token, object{"environment_id": id, "command": "sleep 60", "wait_ms": 45000})
		waiting <- answered{status, body}
	}()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		_, page := ask(t, http.MethodGet, h.URL+"/v1/commands?status=running", token, nil)
		if items, _ := page["items"].([]any); len(items) == 1 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the command does not run")
		}
	}
	begin := time.Now()
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if d := time.Since(begin); d > drainBound {
		t.Errorf("Close took %v", d)
	}
	if got := <-waiting; got.status >= http.StatusInternalServerError || got.body["id"] == nil {
		t.Errorf("the waiting call got %d %v", got.status, got.body)
	}
}

func TestWhileItDrainsItAnswersThatItIsNotReady(t *testing.T) {
	url, token := startKeyring(t)
	h := start(t, setup(t, url, filepath.Join(t.TempDir(), "data")))
	awaitReady(t, h, http.StatusOK)
	h.endWork = func() error {
		h.endWork = h.service.Close
		err := h.service.Close()
		if answer := awaitReady(t, h, http.StatusServiceUnavailable); answer["status"] != "draining" {
			t.Errorf("/ready says %v", answer)
		}
		if status, answer := ask(t, http.MethodPost, h.URL+"/v1/environments", token, object{}); answer["code"] != string(core.CodeUnavailable) {
			t.Errorf("new work gives %d %v", status, answer)
		}
		return err
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}

func TestAStartThatFailsGivesEverythingFree(t *testing.T) {
	url, _ := startKeyring(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	s := setup(t, url, filepath.Join(t.TempDir(), "data"))
	bad := s
	bad.Addr = taken.Addr().String()
	if _, err := StartHTTP(t.Context(), bad); err == nil || !strings.Contains(err.Error(), "ENVAPI_ADDR") {
		t.Fatalf("on a taken port: %v", err)
	}
	start(t, s) // the same data folder is free
}

func TestAnEnvironmentKeepsItsHostUIDFromOtherServicesWhenTheRangeHasChanged(t *testing.T) {
	if !isRoot() {
		t.Skip("only root gives host uids; root's pass runs this")
	}
	url, token := startKeyring(t)
	s := setup(t, url, filepath.Join(t.TempDir(), "data"))
	before := s.UIDRange
	h := start(t, s)
	awaitReady(t, h, http.StatusOK)
	newEnvironment(t, h, token)
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	s.UIDRange.First, s.UIDRange.Last = before.Last+1, before.Last+2
	h = start(t, s)
	other := setup(t, url, filepath.Join(t.TempDir(), "data"))
	other.UIDRange = before
	var held *datalock.UIDsHeldError
	if _, err := StartHTTP(t.Context(), other); !errors.As(err, &held) {
		t.Errorf("with the environment's uid another service gave %v", err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	start(t, other)
}
