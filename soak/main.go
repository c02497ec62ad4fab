// Command soak puts a service of its own under many clients at one time, which drive
// every operation over REST and over MCP and check each answer, with hostile ones
// among them. Then it lets everything come to rest and compares what the service
// holds (descriptors, goroutines, threads, memory, processes, mounts, cgroups, disk)
// with what it held after a warm-up: whatever has grown beyond a small allowance is
// a leak. It prints latencies and errors by operation, and exits with 1 on a leak, on
// an answer that is wrong, on an error that nobody had asked for, and on an operation
// that was not driven.
//
// With -environments it makes a crowd instead: so many environments, shells and
// running commands at one time, each asked whether it works.
//
// What a hostile client is refused is no error, as long as it is refused in the words
// of the contract: a code that is not "internal".
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// options say how much there is to be.
type options struct {
	program string        // envapi-http
	load    time.Duration // how long the clients go on after the warm-up, where rounds is 0
	rounds  int           // how often each client then plays all that it can, or 0
	clients int           // that use the service as it is meant
	hostile int           // that do not
	every   time.Duration // how often the service is looked at meanwhile
	seed    uint64        // of the clients' choices
	crowd   crowd
}

// crowd is how many of each there are to be at one time.
type crowd struct{ environments, shells, commands int }

func main() {
	bin := flag.String("bin", "bin", "the folder with envapi-http")
	minutes := flag.Float64("minutes", 10, "how long the load lasts")
	var o options
	flag.IntVar(&o.clients, "clients", 24, "clients that use the service as it is meant")
	flag.IntVar(&o.hostile, "hostile", 8, "clients that do not")
	flag.DurationVar(&o.every, "every", 15*time.Second, "how often the service is looked at")
	flag.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "of the clients' choices")
	flag.IntVar(&o.crowd.environments, "environments", 0, "make a crowd instead, with so many environments")
	flag.IntVar(&o.crowd.shells, "shells", 500, "open shells of the crowd")
	flag.IntVar(&o.crowd.commands, "commands", 200, "running commands of the crowd")
	flag.Parse()
	o.program = filepath.Join(*bin, "envapi-http")
	o.load = time.Duration(*minutes * float64(time.Minute))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	do := soak
	if o.crowd.environments > 0 {
		do = gather
	}
	if err := do(ctx, os.Stdout, o); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1) //nolint:gocritic // stop was called
	}
}

// soak is the run with a load.
func soak(ctx context.Context, out io.Writer, o options) (err error) {
	fmt.Fprintf(out, "%d clients, %d hostile ones, seed %d\n", o.clients, o.hostile, o.seed)
	s, err := startService(ctx, o.program, soakSettings()...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	tally := newTally()
	all, err := hire(ctx, s, tally, o)
	if err != nil {
		return err
	}
	defer all.dismiss()

	if err := all.fill(ctx, s, o.seed); err != nil {
		return err
	}
	all.work(ctx, time.Time{}, 1)
	tally.startCounting()
	before, err := s.rest(ctx, nil)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%-8s %s\n", "at rest", before)

	until := time.Time{}
	if o.rounds == 0 {
		until = time.Now().Add(o.load)
	}
	stop := s.watch(ctx, out, o.every)
	all.work(ctx, until, o.rounds)
	stop()
	after, err := s.rest(ctx, &before)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%-8s %s\n\n", "at rest", after)
	tally.print(out)
	return errors.Join(ctx.Err(), tally.verdict(all.operations()), after.grown(before, growth))
}
