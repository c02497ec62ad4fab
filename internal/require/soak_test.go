package require_test

import (
	"testing"

	"envapi/internal/require"
)

func TestRoundsAreMoreWhereThatIsAskedFor(t *testing.T) {
	for _, c := range []struct {
		variable string
		want     int
		ended    string
	}{
		{"", 7, ""}, {"1", 7, ""}, {"10", 70, ""}, {"0", 0, "failed"}, {"-1", 0, "failed"}, {"many", 0, "failed"},
	} {
		t.Run(c.variable, func(t *testing.T) {
			t.Setenv(require.SoakVariable, c.variable)
			r, got := &recorder{TB: t}, 0
			done := make(chan struct{})
			go func() {
				defer close(done)
				got = require.Rounds(r, 7)
			}()
			<-done
			if got != c.want || r.ended != c.ended {
				t.Errorf("got %d, %q; want %d, %q", got, r.ended, c.want, c.ended)
			}
		})
	}
}
