package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// tally collects how calls ended. Its methods may be called from many goroutines.
type tally struct {
	mu       sync.Mutex
	calls    map[kind]*record
	refused  map[string]int  // what hostile clients were told, by code
	hostile  int             // their calls
	driven   map[string]bool // door and operation that once succeeded
	wrong    []error         // the first few
	wrongs   int
	counting bool // whether the times are noted: not in the warm-up
}

// kind is what is told apart: an operation over a door, "rest" or "mcp".
type kind struct{ door, operation string }

func (k kind) String() string { return k.door + " " + k.operation }

// record is how the calls of one kind ended.
type record struct {
	times []time.Duration // of those that were answered, refusals too
	codes map[string]int  // of refusals
}

// most is how many errors are kept in words.
const most = 25

func newTally() *tally {
	return &tally{calls: map[kind]*record{}, refused: map[string]int{}, driven: map[string]bool{}}
}

func (t *tally) startCounting() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counting = true
}

// note takes one call of a client that uses the service as it is meant.
func (t *tally) note(k kind, took time.Duration, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		t.driven[k.String()] = true
	}
	if !t.counting {
		return
	}
	r := t.calls[k]
	if r == nil {
		r = &record{codes: map[string]int{}}
		t.calls[k] = r
	}
	var refused *refusal
	if errors.As(err, &refused) {
		r.codes[refused.code]++
	} else if err != nil {
		r.codes["no answer"]++
	}
	r.times = append(r.times, took)
}

// endured takes one call of a hostile client: any refusal will do, and so will a
// connection that breaks, but not an error of the service's own.
func (t *tally) endured(what string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hostile++
	var refused *refusal
	switch {
	case err == nil:
		t.refused["none"]++
	case errors.As(err, &refused):
		t.refused[refused.code]++
		if refused.code == "internal" {
			t.fail(fmt.Errorf("a hostile %s was answered %w", what, err))
		}
	case errors.Is(err, context.DeadlineExceeded):
		t.refused["gave up waiting"]++
	default:
		t.refused["broken off"]++
	}
}

// blame notes what must not be.
func (t *tally) blame(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fail(err)
}

func (t *tally) fail(err error) {
	t.wrongs++
	if len(t.wrong) < most {
		t.wrong = append(t.wrong, fmt.Errorf("%s %w", time.Now().Format(time.TimeOnly), err))
	}
}

// verdict says what was wrong, and which of these operations, each with its door before
// it, never succeeded.
func (t *tally) verdict(operations []string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	wrong := slices.Clone(t.wrong)
	if t.wrongs > len(t.wrong) {
		wrong = append(wrong, fmt.Errorf("and %d more", t.wrongs-len(t.wrong)))
	}
	var missed []string
	for _, name := range operations {
		if !t.driven[name] {
			missed = append(missed, name)
		}
	}
	if len(missed) > 0 {
		wrong = append(wrong, fmt.Errorf("never succeeded: %s", strings.Join(missed, ", ")))
	}
	return errors.Join(wrong...)
}

// print writes the table.
func (t *tally) print(out io.Writer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(out, "%-26s %8s %10s %10s %10s  %s\n", "operation", "calls", "p50", "p99", "most", "refusals")
	kinds := slices.SortedFunc(maps.Keys(t.calls), func(a, b kind) int {
		return cmp.Or(cmp.Compare(a.operation, b.operation), cmp.Compare(b.door, a.door))
	})
	calls := 0
	for _, k := range kinds {
		r := t.calls[k]
		calls += len(r.times)
		slices.Sort(r.times)
		fmt.Fprintf(out, "%-26s %8d %10s %10s %10s  %s\n", k, len(r.times),
			ms(quantile(r.times, 0.5)), ms(quantile(r.times, 0.99)), ms(quantile(r.times, 1)), counts(r.codes))
	}
	fmt.Fprintf(out, "\n%d calls in all, %d wrong; hostile ones: %d, refused as %s\n\n", calls, t.wrongs, t.hostile, counts(t.refused))
}

// counts are numbers by name, the largest first.
func counts(of map[string]int) string {
	names := slices.SortedFunc(maps.Keys(of), func(a, b string) int {
		return cmp.Or(cmp.Compare(of[b], of[a]), cmp.Compare(a, b))
	})
	var parts []string
	for _, name := range names {
		parts = append(parts, fmt.Sprintf("%s %d", name, of[name]))
	}
	return strings.Join(parts, ", ")
}

// quantile gives that of sorted times; 0 where there are none.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(q*float64(len(sorted)-1)+0.5)]
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000) }

// succeeded says whether an operation over a door ever has.
func (t *tally) succeeded(k kind) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.driven[k.String()]
}
