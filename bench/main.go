// Command bench measures envapi beside what it replaces, in one run: an exec
// over HTTP beside bubblewrap with the same view and beside a bare fork of
// bash, a command in an open shell over HTTP beside a bare fork of the program,
// a loud command beside a pipe, files over HTTP beside a plain file server,
// ripgrep, find and dd, the calls of an account while another does its worst beside
// while it does nothing, and the memory that the service, its environments and their
// shells hold. It prints medians and their spread, and fails where a
// ratio is over its bound.
//
// Ratios of one run are comparable between machines, its times are not. It
// measures one client at a time; it says nothing of many at once.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// options say how much to measure.
type options struct {
	program      string // envapi-http
	warmup       int    // rounds that are not counted
	rounds       int    // rounds that are
	environments int    // warm at one time when their memory is taken
	loudBytes    int64  // that one command writes
	loudRounds   int    // how often
	shells       int    // open at one time, each in an environment of its own
	files        fileOptions
	fair         fairOptions
}

func main() {
	if dir := os.Getenv(serveVariable); dir != "" {
		serveFiles(dir)
	}
	if what := os.Getenv(callsVariable); what != "" {
		makeCalls(what)
	}
	bin := flag.String("bin", "bin", "the folder with envapi-http")
	rounds := flag.Int("rounds", 300, "rounds to measure")
	shells := flag.Int("shells", 1000, "environments with an open shell each to have at one time")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	o := options{
		program: filepath.Join(*bin, "envapi-http"), warmup: 30, rounds: *rounds, environments: 10,
		loudBytes: 1 << 30, loudRounds: 9, shells: *shells,
		files: fileOptions{large: 100 << 20, entries: 100_000, source: "src", small: *rounds, rounds: 9},
		fair:  fairOptions{turns: 4, rounds: *rounds / 4, between: 10 * time.Millisecond, among: 5000},
	}
	report, err := run(ctx, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	report.print(os.Stdout)
	if over := report.over(); len(over) > 0 {
		for _, line := range over {
			fmt.Fprintln(os.Stderr, "bench:", line)
		}
		os.Exit(1)
	}
}

// run starts services of its own, measures them and their peers, and ends them.
func run(ctx context.Context, o options) (*report, error) {
	folder, err := os.MkdirTemp("", "envapi-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	s, err := startService(ctx, o.program, filepath.Join(folder, "data"))
	if err != nil {
		return nil, err
	}
	defer s.stop()
	report := &report{}
	if err := report.takeMemory(ctx, s, o.environments); err != nil {
		return nil, err
	}
	contenders, err := line(ctx, s, folder)
	if err != nil {
		return nil, err
	}
	if report.samples, err = measure(ctx, contenders, o.warmup, o.rounds); err != nil {
		return nil, err
	}
	if err = report.takeOutput(ctx, s, o.loudBytes, o.loudRounds); err != nil {
		return nil, err
	}
	if err = report.takeFiles(ctx, s, folder, o.files); err != nil {
		return nil, err
	}
	s.stop() // the next one has the same uids
	if err := report.takeFair(ctx, o, folder); err != nil {
		return nil, err
	}
	return report, report.takeCrowd(ctx, o, folder)
}

// The names of what is measured, as the report prints them.
const (
	warmArgv   = "exec of argv [true], warm environment"
	warmShell  = "exec of command true, warm environment"
	createExec = "create an environment, exec of argv [true]"
	bubblewrap = "bwrap --unshare-all … true"
	bareBash   = "fork and exec of bash -c true"
	inShell    = "run_in_shell of true, open shell"
	bareTrue   = "fork and exec of true"
)

// bounds compare like with like: an argv runs without a shell on both sides, a
// command line with bash on both. A bound of 0 is printed only.
var bounds = slices.Concat(fileBounds, fairBounds(), []bound{
	{warmArgv, bubblewrap, 0.6},
	{warmShell, bareBash, 3},
	{warmShell, bubblewrap, 0},
	{createExec, bubblewrap, 2},
	{loudCommand, loudPipe, 2},
	{inShell, bareTrue, 3},
	{execAmong, execAlone, 1.5},
})

// line gives what is measured, each beside the others.
func line(ctx context.Context, s *service, folder string) ([]contender, error) {
	warm, err := s.create(ctx)
	if err != nil {
		return nil, err
	}
	bwrap, err := wrapped(folder, "true")
	if err != nil {
		return nil, err
	}
	run, err := s.inShell(ctx, warm)
	if err != nil {
		return nil, err
	}
	return []contender{
		{warmArgv, func(ctx context.Context) (time.Duration, error) {
			return timed(func() error { return s.execArgv(ctx, warm) })
		}},
		{warmShell, func(ctx context.Context) (time.Duration, error) {
			return timed(func() error { return s.exec(ctx, warm) })
		}},
		{createExec, s.createAndExec},
		{bubblewrap, bwrap},
		{bareBash, bare("bash", "-c", "true")},
		{inShell, run},
		{bareTrue, bare("true")},
	}, nil
}

// print writes the tables.
func (r *report) print(w io.Writer) {
	fmt.Fprintf(w, "%-46s %9s %9s %9s %6s\n", "one at a time", "median", "p10", "p90", "n")
	for _, s := range r.single() {
		fmt.Fprintf(w, "%-46s %9s %9s %9s %6d\n", s.name, ms(s.quantile(0.5)), ms(s.quantile(0.1)), ms(s.quantile(0.9)), len(s.times))
	}
	fmt.Fprintf(w, "\n%-46s %9s %9s\n", "ratio of medians", "measured", "at most")
	for _, b := range bounds {
		most, verdict := fmt.Sprintf("%.2f", b.max), "ok"
		if why := r.absent[b.to]; why != "" {
			fmt.Fprintf(w, "%-46s not measured: %s\n  to %s\n", b.of, why, b.to)
			continue
		}
		switch {
		case b.max == 0:
			most, verdict = "", ""
		case !r.keeps(b):
			verdict = "OVER"
		}
		fmt.Fprintf(w, "%-46s %9.2f %9s  %s\n", b.of, r.ratio(b), most, verdict)
		fmt.Fprintf(w, "  to %s\n", b.to)
	}
	fmt.Fprintf(w, "\n%-46s %s\n", "private memory of the idle service", r.idle)
	fmt.Fprintf(w, "%-46s %s\n", "private memory of each warm environment", r.each)
	fmt.Fprintf(w, "%-46s %s before, %s at most\n", "resident memory of the service, carrying output", r.loud.before, r.loud.peak)
	r.printFair(w)
	r.crowd.print(w)
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d.Microseconds())/1000) }
