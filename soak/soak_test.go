package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"envapi/internal/require"
	"envapi/internal/testbin"
)

func TestMain(m *testing.M) { os.Exit(testbin.Run(m)) }

// needNamespaces ends a test where commands could not be contained in a way that lets
// hostile ones be among others.
func needNamespaces(t *testing.T) {
	t.Helper()
	unshare := exec.Command("unshare", "--user", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "none", os.TempDir())
	if out, err := unshare.CombinedOutput(); err != nil {
		require.Feature(t, "userns", string(out))
	}
}

// Every operation is driven over both doors, every attack made, and nothing is left.
func TestAShortRunIsFlat(t *testing.T) {
	needNamespaces(t)
	var out bytes.Buffer
	err := soak(t.Context(), &out, options{
		program: testbin.Path(t, "envapi-http"), rounds: 1, clients: 6, hostile: 4, every: 5 * time.Second, seed: uint64(time.Now().UnixNano()),
	})
	t.Log("\n" + out.String())
	if err != nil {
		t.Error(err)
	}
}

func TestASmallCrowdIsThereAtOneTime(t *testing.T) {
	needNamespaces(t)
	var out bytes.Buffer
	err := gather(t.Context(), &out, options{
		program: testbin.Path(t, "envapi-http"), crowd: crowd{environments: 12, shells: 6, commands: 4},
	})
	t.Log("\n" + out.String())
	if err != nil {
		t.Error(err)
	}
	if !strings.Contains(out.String(), "6 shells, each with a command") {
		t.Error("the shells are not in the report")
	}
}

func TestWhatGrowsIsSaid(t *testing.T) {
	before := held{descriptors: 50, goroutines: 30, threads: 10, processes: 1, memory: 1 << 20, cgroups: 10, files: 8, disk: 1 << 20}
	for name, c := range map[string]struct {
		change func(*held)
		said   string
	}{
		"nothing":              {func(*held) {}, ""},
		"within the allowance": {func(h *held) { h.goroutines += growth.goroutines }, ""},
		"less than before":     {func(h *held) { h.memory, h.threads = 0, 1 }, ""},
		"goroutines":           {func(h *held) { h.goroutines += growth.goroutines + 1 }, "goroutines are not flat"},
		"descriptors":          {func(h *held) { h.descriptors += growth.descriptors + 1 }, "descriptors"},
		"open slots":           {func(h *held) { h.cgroups += 4; h.descriptors += growth.descriptors + 9 }, ""},
		"groups":               {func(h *held) { h.cgroups += growth.cgroups + 1 }, "cgroups are not flat"},
		"a file":               {func(h *held) { h.files++ }, "files are not flat"},
		"a mount":              {func(h *held) { h.mounts++ }, "mounts are not flat"},
		"processes":            {func(h *held) { h.processes += 2 }, "processes are not flat"},
		"threads":              {func(h *held) { h.threads += growth.threads + 1 }, "threads are not flat"},
		"memory":               {func(h *held) { h.memory += growth.memory + 1 }, "bytes of memory are not flat"},
		"the disk":             {func(h *held) { h.disk += growth.disk + 1 }, "bytes on the disk are not flat"},
	} {
		after := before
		c.change(&after)
		err := after.grown(before, growth)
		if (err == nil) != (c.said == "") || err != nil && !strings.Contains(err.Error(), c.said) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhatIsWrongIsSaid(t *testing.T) {
	internal := fmt.Errorf("exec: %w", &refusal{"internal", "x"})
	for name, c := range map[string]struct {
		do   func(*tally)
		said string
	}{
		"nothing":                    {func(*tally) {}, ""},
		"a hostile client's refusal": {func(t *tally) { t.endured("exec", &refusal{"quota_exceeded", "x"}) }, ""},
		"a broken connection of his": {func(t *tally) { t.endured("exec", errors.New("reset")) }, ""},
		"an error of the service's":  {func(t *tally) { t.endured("exec", internal) }, "a hostile exec"},
		"a wrong answer":             {func(t *tally) { t.blame(errors.New("a wrong answer")) }, "a wrong answer"},
		"more than are kept": {func(t *tally) {
			for range most + 3 {
				t.blame(errors.New("x"))
			}
		}, "and 3 more"},
	} {
		tally := newTally()
		tally.startCounting()
		tally.note(kind{"rest", "exec"}, time.Second, nil)
		c.do(tally)
		err := tally.verdict([]string{"rest exec"})
		if (err == nil) != (c.said == "") || err != nil && !strings.Contains(err.Error(), c.said) {
			t.Errorf("%s: %v", name, err)
		}
		if err := tally.verdict([]string{"mcp exec"}); err == nil || !strings.Contains(err.Error(), "never succeeded: mcp exec") {
			t.Errorf("an operation that was not driven: %v", err)
		}
	}
}

func TestComplaintsOfTheServiceAreFound(t *testing.T) {
	var said buffer
	fmt.Fprintln(&said, "time=x level=INFO msg=\"an ERROR of somebody else\"\ntime=x level=ERROR msg=bad\npanic: worse")
	if got := said.complaints(); len(got) != 2 {
		t.Errorf("found %v", got)
	}
}

func TestQuantile(t *testing.T) {
	times := []time.Duration{1, 2, 3, 4, 5}
	for q, want := range map[float64]time.Duration{0: 1, 0.5: 3, 0.99: 5, 1: 5} {
		if got := quantile(times, q); got != want {
			t.Errorf("quantile %v is %d, want %d", q, got, want)
		}
	}
}
