package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

func TestReadySaysWhatContainsAndWhetherTokensVerify(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		status, body, err := s.probe(t.Context(), "/ready")
		if err != nil || status != http.StatusOK {
			t.Fatalf("%d %v", status, err)
		}
		var ready struct {
			Sandbox struct {
				Tier  string
				Tiers []struct {
					Tier      string
					Available bool
					Reason    string
				}
				Controls []struct {
					Name     string
					Enforced bool
				}
			}
			Keyring struct{ Ready bool }
		}
		if err := json.Unmarshal([]byte(body), &ready); err != nil {
			t.Fatal(err)
		}
		if ready.Sandbox.Tier != s.tier || !ready.Keyring.Ready || len(ready.Sandbox.Controls) == 0 {
			t.Errorf("it says %s", body)
		}
		for _, tier := range ready.Sandbox.Tiers {
			if !tier.Available && tier.Reason == "" {
				t.Errorf("%s is not available, and no reason is given", tier.Tier)
			}
		}
		for _, secret := range []string{s.token, s.data} {
			if strings.Contains(body, secret) {
				t.Errorf("it tells %q", secret)
			}
		}
	})
}

func TestWithoutAKeyringItRefusesToStart(t *testing.T) {
	t.Parallel()
	s := launch(t, config{keyring: true})
	if !s.wait(patience) {
		t.Fatal("it runs")
	}
	for _, name := range []string{"ENVAPI_KEYRING_URL", "--dev"} {
		if s.status == nil || !strings.Contains(s.output.String(), name) {
			t.Errorf("it ended with %v and does not name %s:\n%s", s.status, name, s.output)
		}
	}
}

func TestWhileKeyringIsAwayNothingIsServedAndNothingIsRefusedForGood(t *testing.T) {
	t.Parallel()
	s := launch(t, config{keyring: true, env: map[string]string{"ENVAPI_KEYRING_URL": "http://" + freeAddress(t)}})
	err := eventually(func() error {
		_, _, err := s.probe(t.Context(), "/healthz")
		return err
	})
	if err != nil {
		s.missing(t, err)
	}
	if status, body, err := s.probe(t.Context(), "/ready"); err != nil || status != http.StatusServiceUnavailable {
		t.Errorf("/ready gives %d %v: %s", status, err, body)
	}
	k := startKeyring(t)
	r := rest{s.url, k.token}
	if p := r.refuse(t, "unavailable", "list_environments", object{}); p.Status != http.StatusServiceUnavailable {
		t.Errorf("a token gives %v", p)
	}
}
