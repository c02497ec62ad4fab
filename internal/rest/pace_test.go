package rest

import (
	"encoding/json"
	"net/http"
	"testing"

	"envapi/core"
)

// refusing is a Pace that counts who asks and lets so many through.
type refusing struct {
	left  int
	asked []string
}

func (r *refusing) take(account string) error {
	r.asked = append(r.asked, account)
	if r.left--; r.left < 0 {
		return core.Errorf(core.CodeRateLimited, "too soon").With("retry_after_ms", int64(1200))
	}
	return nil
}

func TestWhoAsksTooOftenIsToldWhenToComeBack(t *testing.T) {
	pace := &refusing{left: 2}
	c := testConfig()
	c.Pace = pace.take
	h := New(c)
	for range 2 {
		if w := ask(t, h, http.MethodGet, "/v1/nothing", "", nil); w.Code == http.StatusTooManyRequests {
			t.Fatalf("got %d", w.Code)
		}
	}
	for _, target := range []string{"/v1/nothing", "/v1/environments", "/v1"} {
		w := ask(t, h, http.MethodGet, target, "", nil)
		var problem struct {
			Code  string `json:"code"`
			After int64  `json:"retry_after_ms"`
		}
		must(t, json.Unmarshal(w.Body.Bytes(), &problem))
		if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "2" || problem.Code != "rate_limited" || problem.After != 1200 {
			t.Errorf("%s: %d %v %s", target, w.Code, w.Header(), w.Body)
		}
	}
	for _, account := range pace.asked {
		if account != "alice" {
			t.Errorf("counted to %q", account)
		}
	}
}

func TestWhatIsNobodysIsNotPaced(t *testing.T) {
	pace := &refusing{}
	c := testConfig()
	c.Pace = pace.take
	h := New(c)
	for target, want := range map[string]int{"/ready": 200, "/healthz": 200, "/openapi.json": 200} {
		if w := ask(t, h, http.MethodGet, target, "", nil); w.Code != want {
			t.Errorf("%s: %d", target, w.Code)
		}
	}
	for _, token := range []string{"", "Bearer bad"} {
		if w := ask(t, h, http.MethodGet, "/v1/environments", "", map[string]string{"Authorization": token}); w.Code != http.StatusUnauthorized {
			t.Errorf("%q: %d", token, w.Code)
		}
	}
	// The door of MCP counts by itself: it has other words for a refusal.
	if w := ask(t, h, http.MethodPost, "/mcp", "{}", nil); w.Code != http.StatusOK {
		t.Errorf("/mcp: %d", w.Code)
	}
	if len(pace.asked) != 0 {
		t.Errorf("counted to %q", pace.asked)
	}
	if w := ask(t, h, http.MethodGet, "/mcp", "", nil); w.Code != http.StatusTooManyRequests {
		t.Errorf("what is not its own: %d", w.Code)
	}
}
