package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// TestAKillAtEachStepOfAStart kills a service in the middle of an operation, then the
// next start at its first step, that after it at its second, and so on, until one serves:
// what a start mends is the old or the new too, however often that is cut short.
func TestAKillAtEachStepOfAStart(t *testing.T) {
	cases := []string{"create", "fork", "reset of an archived one", "archive", "restore", "delete", "patch"}
	for _, c := range faultCases {
		if !slices.Contains(cases, c.name) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newFaultBed(t, c)
			steps := b.traced()
			at := steps[len(steps)/2]
			w := b.scene()
			b.arm(fmt.Sprintf("kill %d %s", at.n, at.name))
			answer, err := b.call(t.Context(), w.place)
			if !b.s.wait(patience) {
				t.Fatalf("%s: it was not reached: %v", at, err)
			}
			kills := b.startInPieces()
			t.Logf("killed %s, and in %d starts", at, kills)
			if kills < 3 {
				t.Error("a start has no steps")
			}
			w.rest = b.s.rest
			b.check(w, at, answer, err)
		})
	}
}

// startInPieces kills starts, each at one step later than that before, until there is
// none so late any more. It says how many that were.
func (b *faultBed) startInPieces() (kills int) {
	b.t.Helper()
	for ; ; kills++ {
		b.arm(fmt.Sprintf("kill %d", kills+1))
		s := launch(b.t, b.s.config)
		ended := false
		err := eventually(func() error {
			if ended = s.wait(time.Millisecond); ended {
				return nil
			}
			status, body, err := s.probe(b.t.Context(), "/ready")
			if err == nil && status != 200 {
				err = fmt.Errorf("/ready answered %d: %s", status, body)
			}
			return err
		})
		if err != nil {
			b.t.Fatal(err)
		}
		if !ended {
			b.disarm()
			s.stop(b.t)
			b.s = b.s.restart(b.t)
			return kills
		}
	}
}
