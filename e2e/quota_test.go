package e2e

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
)

func TestQuotasHoldForManyAtOnce(t *testing.T) {
	t.Parallel()
	s := start(t, config{env: map[string]string{
		"ENVAPI_MAX_ENVIRONMENTS_PER_PROFILE": "3",
		"ENVAPI_MAX_RUNNING_COMMANDS":         "2",
	}})
	made := together(t, 20, "environments_per_profile", func() error {
		_, err := s.call(context.Background(), "create_environment", object{})
		return err
	})
	if made != 3 {
		t.Errorf("%d environments with a quota of 3", made)
	}
	items := s.must(t, "list_environments", object{})["items"].([]any)
	p := place{s.rest, items[0].(object)["id"].(string)}
	ran := together(t, 20, "running_commands", func() error {
		_, err := p.call(context.Background(), "exec", p.in(object{"command": "sleep 300", "wait_ms": 0}))
		return err
	})
	if ran != 2 {
		t.Errorf("%d commands with a quota of 2", ran)
	}
}

// together makes n calls at once and counts those that are done; the others
// must name the limit.
func together(t *testing.T, n int, limit string, call func() error) int64 {
	t.Helper()
	var done atomic.Int64
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			err := call()
			var p *problem
			switch {
			case err == nil:
				done.Add(1)
			case !errors.As(err, &p) || p.Code != "quota_exceeded" || p.Limit != limit:
				t.Errorf("refused with %v, want the limit %s", err, limit)
			}
		})
	}
	wg.Wait()
	return done.Load()
}
