package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// contender is one thing to measure; run does it once and says how long that
// took, without what is not part of it.
type contender struct {
	name string
	run  func(context.Context) (time.Duration, error)
}

// sample is how long a contender took, sorted.
type sample struct {
	name  string
	times []time.Duration
}

// bound says how many times as long one thing may take as another; 0 is as long
// as it likes.
type bound struct {
	of, to string
	max    float64
}

// report is the outcome of a run.
type report struct {
	samples    []sample
	idle, each memory
	loud       loud
	files      []sample
	crowd      *crowd
	fair       []sample
	refused    int               // calls of the loud account
	absent     map[string]string // what could not be measured here, and why
}

// all are the samples in the order of the tables.
func (r *report) all() []sample { return slices.Concat(r.single(), r.fair) }

// single are those of one thing at a time.
func (r *report) single() []sample { return slices.Concat(r.samples, r.loud.samples, r.files) }

// measure runs each contender once a round, so that whatever the machine does
// besides hits all of them, in an order that differs from round to round, so
// that none always follows the same other. The orders are the same in each run.
func measure(ctx context.Context, line []contender, warmup, rounds int) ([]sample, error) {
	samples := make([]sample, len(line))
	orders := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // no secret
	for round := range warmup + rounds {
		for _, at := range orders.Perm(len(line)) {
			took, err := line[at].run(ctx)
			if err != nil {
				return nil, fmt.Errorf("cannot measure %q: %w", line[at].name, err)
			}
			if round >= warmup {
				samples[at].times = append(samples[at].times, took)
			}
		}
	}
	for i, c := range line {
		samples[i].name = c.name
		slices.Sort(samples[i].times)
	}
	return samples, nil
}

// quantile gives the time that the share q of the samples stays below.
func (s sample) quantile(q float64) time.Duration {
	return s.times[int(q*float64(len(s.times)-1)+0.5)]
}

// sample gives what was measured under a name; nil where nothing was.
func (r *report) sample(name string) *sample {
	for _, s := range r.all() {
		if s.name == name {
			return &s
		}
	}
	return nil
}

func (r *report) median(name string) time.Duration {
	if s := r.sample(name); s != nil {
		return s.quantile(0.5)
	}
	return 0
}

func (r *report) ratio(b bound) float64 {
	return float64(r.median(b.of)) / float64(r.median(b.to))
}

// keeps says whether a bound is kept; what was not measured, a NaN, keeps none,
// unless the other program is not on this host.
func (r *report) keeps(b bound) bool {
	return b.max == 0 || r.absent[b.to] != "" || r.ratio(b) <= b.max
}

// over says in words which bounds are not kept.
func (r *report) over() []string {
	var lines []string
	for _, b := range bounds {
		if !r.keeps(b) {
			lines = append(lines, fmt.Sprintf("over its bound: %s takes %.2f times as long as %s, at most %.2f is allowed", b.of, r.ratio(b), b.to, b.max))
		}
	}
	if line := r.loud.flat(); line != "" {
		lines = append(lines, line)
	}
	return append(lines, r.crowd.over()...)
}

func timed(do func() error) (time.Duration, error) {
	begin := time.Now()
	err := do()
	return time.Since(begin), err
}
