package watch

import (
	"fmt"
	"strings"
	"testing"

	"envapi/core"
)

// What waits is bounded by number and by bytes; what comes after the bound is lost, and
// that is told last.
func TestWhatWaitsIsBounded(t *testing.T) {
	for path, most := range map[string]int{"short": 4096, strings.Repeat("x", 1000): 1 << 20 / 1000} {
		q := newQueue("")
		for n := range 2 * mostEvents {
			q.add(core.FileEvent{Type: core.FileCreated, Path: fmt.Sprintf("%s%d", path, n)})
		}
		events, err := q.take()
		if err != nil || len(events) < most/2 || len(events) > most+1 {
			t.Errorf("%.5s: %d events, %v", path, len(events), err)
		}
		if last := events[len(events)-1]; last.Type != core.FileOverflow {
			t.Errorf("%.5s: the last is %+v", path, last)
		}
		q.add(core.FileEvent{Type: core.FileCreated, Path: "on"})
		if events, err := q.take(); err != nil || len(events) != 1 {
			t.Errorf("afterwards: %v, %v", events, err)
		}
	}
}
