package rest

import (
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

func TestAnAccountHasSoManyRequestsAtOneTime(t *testing.T) {
	w := newWorld(t, 1<<20, func(h *handler) { h.atOnce = 2 })
	id, _ := w.openTerminal()
	one, two := w.sit(id, "", nil), w.sit(id, "", nil)
	_, resp, err := w.dialShell(id, "", nil)
	if err == nil || resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") != "1" {
		t.Fatalf("got %v, %v", resp, err)
	}
	resp, err = w.server.Client().Get(w.server.URL + "/ready")
	must(t, err)
	must(t, resp.Body.Close())
	if resp.StatusCode != http.StatusOK {
		t.Errorf("what is nobody's: %s", resp.Status)
	}
	must(t, one.conn.Close(websocket.StatusNormalClosure, ""))
	eventually(t, func() bool {
		third, _, err := w.dialShell(id, "", nil)
		return err == nil && third.conn.CloseNow() == nil
	})
	must(t, two.conn.CloseNow())
}

func TestOneAccountDoesNotCrowdOutAnother(t *testing.T) {
	var c crowd
	leave, err := c.enter("alice", 1)
	must(t, err)
	if _, err := c.enter("alice", 1); err == nil || !strings.Contains(err.Error(), "rate_limited") {
		t.Errorf("got %v", err)
	}
	other, err := c.enter("bob", 1)
	must(t, err)
	leave()
	other()
	if len(c.some) != 0 {
		t.Errorf("left are %v", c.some)
	}
}
