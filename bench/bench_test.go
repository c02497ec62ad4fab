package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"envapi/internal/require"
	"envapi/internal/testbin"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(serveVariable); dir != "" {
		serveFiles(dir)
	}
	if what := os.Getenv(callsVariable); what != "" {
		makeCalls(what)
	}
	os.Exit(testbin.Run(m))
}

// Whether the bounds are kept is for "make bench" on a quiet machine.
func TestAShortRunMeasuresEverything(t *testing.T) {
	if _, err := exec.LookPath("bwrap"); err != nil {
		require.Feature(t, "bwrap", err.Error())
	}
	r, err := run(t.Context(), options{
		program: testbin.Path(t, "envapi-http"), warmup: 1, rounds: 3, environments: 2, loudBytes: 16 << 20, loudRounds: 2, shells: 3,
		files: fileOptions{large: 16 << 20, entries: 2000, source: "src/encoding", small: 3, rounds: 2},
		fair:  fairOptions{turns: 2, rounds: 2, between: time.Millisecond, among: 100},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{warmArgv, warmShell, createExec, bubblewrap, bareBash, inShell, bareTrue, loudCommand, loudPipe, execAlone, execAmong, getSmall, getLarge, plainLarge, putLarge, ddSmall, listWide, listTree, findTree, searches[0].ours()} {
		if r.median(name) <= 0 {
			t.Errorf("%q was not measured", name)
		}
	}
	for _, b := range fairBounds() {
		if r.median(b.of) <= 0 || r.median(b.to) <= 0 {
			t.Errorf("%q was not measured beside %q", b.of, b.to)
		}
	}
	if os.Getuid() == 0 && (r.idle <= 0 || r.each <= 0 || r.crowd.bash <= 0 || r.crowd.per.descriptors <= 0) {
		t.Errorf("memory: idle %s, each environment %s, each shell %+v", r.idle, r.each, r.crowd)
	}
	var out bytes.Buffer
	r.print(&out)
	if r.loud.before <= 0 || r.loud.peak < r.loud.before {
		t.Errorf("memory: %s before the output, %s at most", r.loud.before, r.loud.peak)
	}
	if n := strings.Count(out.String(), "\n"); n < 35 {
		t.Errorf("the report has %d lines:\n%s", n, &out)
	}
	t.Log("\n" + out.String())
}

func TestABoundThatIsNotKeptIsSaid(t *testing.T) {
	made := func(exec time.Duration) *report {
		return &report{files: kept(), samples: []sample{
			{warmArgv, []time.Duration{exec}},
			{warmShell, []time.Duration{exec}},
			{createExec, []time.Duration{1}},
			{bubblewrap, []time.Duration{10}},
			{bareBash, []time.Duration{10}},
			{loudCommand, []time.Duration{2}},
			{loudPipe, []time.Duration{1}},
			{inShell, []time.Duration{exec}},
			{bareTrue, []time.Duration{11}},
			{execAlone, []time.Duration{4}},
			{execAmong, []time.Duration{6}},
		}}
	}
	for _, c := range []struct {
		name string
		r    *report
		over int
	}{
		{"within", made(6), 0},
		{"over one", made(7), 1},
		{"over two", made(31), 2},
		{"over three", made(34), 3},
		{"nothing was measured", &report{}, 6 + len(kept())/2},
		{"no ripgrep", without(made(6), searches[0].peer()), 0},
		{"idle shells work", busy(made(6), 2*maxBusy), 1},
		{"idle shells do nothing", busy(made(6), 0), 0},
	} {
		if got := c.r.over(); len(got) != c.over {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestGrowthWithOutputIsSaid(t *testing.T) {
	for peak, want := range map[memory]bool{1: false, 1 + flatBytes: false, 2 + flatBytes: true} {
		if got := (loud{before: 1, peak: peak}).flat(); (got != "") != want {
			t.Errorf("%d: %q", peak, got)
		}
	}
}

// kept are samples of files and of other accounts that keep their bounds.
func kept() []sample {
	var all []sample
	for _, b := range slices.Concat(fileBounds, fairBounds()) {
		if b.max > 0 {
			all = append(all, sample{b.of, []time.Duration{1}}, sample{b.to, []time.Duration{1}})
		}
	}
	return all
}

// without is a report of a host where a program is not.
func without(r *report, name string) *report {
	r.files = slices.DeleteFunc(r.files, func(s sample) bool { return s.name == name })
	r.lacks(name, "it is not there")
	return r
}

// busy is a report on idle shells that take such a share of a core.
func busy(r *report, share float64) *report {
	r.crowd = &crowd{shells: 3, busy: share}
	return r
}

func TestMeasureRunsEachOnceARoundAndLeavesTheWarmupOut(t *testing.T) {
	round := map[string]int{}
	noting := func(name string) contender {
		return contender{name, func(context.Context) (time.Duration, error) {
			round[name]++
			if round["a"]-round["b"] > 1 || round["b"]-round["a"] > 1 {
				t.Errorf("a ran %d times when b ran %d", round["a"], round["b"])
			}
			return time.Duration(10 - round[name]), nil
		}}
	}
	samples, err := measure(t.Context(), []contender{noting("a"), noting("b")}, 2, 3)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range samples {
		if !slices.Equal(s.times, []time.Duration{5, 6, 7}) {
			t.Errorf("%s: %v", s.name, s.times)
		}
	}
}

func TestQuantile(t *testing.T) {
	s := sample{times: []time.Duration{1, 2, 3, 4, 5}}
	for q, want := range map[float64]time.Duration{0: 1, 0.5: 3, 0.9: 5, 1: 5} {
		if got := s.quantile(q); got != want {
			t.Errorf("quantile %v is %d, want %d", q, got, want)
		}
	}
}
