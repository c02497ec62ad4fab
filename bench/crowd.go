package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// crowd is what many environments with an open shell each cost a service. It is
// nil where nobody asked for one.
type crowd struct {
	shells int
	// per are what one shell adds to an environment that is warm, bash apart.
	per cost
	// bash is what one bash takes.
	bash memory
	// busy is the share of a core that the service, its inits and all shells take
	// together while nobody asks for anything.
	busy float64
}

// cost is what a shell takes of the service.
type cost struct {
	service, inits       memory // PSS
	descriptors, watches float64
}

// The names of what is measured alone and in a crowd.
const (
	execAlone = "exec of argv [true], one environment alone"
	execAmong = "exec of argv [true], among open shells"
)

const (
	// idleTime is how long the crowd is watched doing nothing.
	idleTime = 5 * time.Second
	// aftermath is how long the service may still work off what was asked before:
	// each folder is counted once more, and memory given back.
	aftermath = 30 * time.Second
	// maxBusy is how much of a core it may take then: nothing but timers.
	maxBusy = 0.02
	// openers is how many environments are made at one time.
	openers = 8
)

// takeCrowd measures a service of its own with so many environments.
func (r *report) takeCrowd(ctx context.Context, o options, folder string) (err error) {
	allowed := strconv.Itoa(o.shells + 10)
	s, err := startService(ctx, o.program, filepath.Join(folder, "crowd"),
		"ENVAPI_MAX_ENVIRONMENTS_PER_ACCOUNT="+allowed, "ENVAPI_MAX_ENVIRONMENTS_PER_PROFILE="+allowed)
	if err != nil {
		return err
	}
	defer s.stop()
	subject, err := s.create(ctx)
	if err != nil {
		return err
	}
	one := func(name string) error {
		samples, err := measure(ctx, []contender{{name, func(ctx context.Context) (time.Duration, error) {
			return timed(func() error { return s.execArgv(ctx, subject) })
		}}}, o.warmup, o.rounds)
		r.samples = append(r.samples, samples...)
		return err
	}
	if err := one(execAlone); err != nil {
		return err
	}
	made, err := s.populate(ctx, o.shells)
	if err != nil {
		return err
	}
	r.crowd = &crowd{shells: o.shells}
	if err := r.crowd.open(ctx, s, made); err != nil {
		return err
	}
	if err := one(execAmong); err != nil {
		return err
	}
	r.crowd.busy, err = s.idle(ctx)
	return err
}

// populate makes environments and runs something in each.
func (s *service) populate(ctx context.Context, n int) ([]string, error) {
	made := make([]string, n)
	return made, each(n, func(i int) (err error) {
		if made[i], err = s.create(ctx); err != nil {
			return err
		}
		return s.execArgv(ctx, made[i])
	})
}

// open opens a shell in each environment, uses it once, and notes what all of
// them add.
func (c *crowd) open(ctx context.Context, s *service, environments []string) error {
	before, err := s.weigh(ctx)
	unseen := errors.Is(err, os.ErrPermission)
	if err != nil && !unseen {
		return err
	}
	err = each(len(environments), func(i int) error {
		shell, err := s.openShell(ctx, environments[i])
		if err != nil {
			return err
		}
		return s.runInShell(ctx, shell)
	})
	if err != nil {
		return err
	}
	if unseen {
		c.bash, c.per = -1, cost{service: -1, inits: -1}
		return nil
	}
	after, err := s.weigh(ctx)
	if err != nil {
		return err
	}
	n := float64(len(environments))
	share := func(before, after int64) float64 { return float64(after-before) / n }
	c.per = cost{
		service:     memory(share(before.service, after.service)),
		inits:       memory(share(before.inits, after.inits)),
		descriptors: share(before.descriptors, after.descriptors),
		watches:     share(before.watches, after.watches),
	}
	c.bash = memory(share(before.shells, after.shells))
	return nil
}

// each does so many things, a few at one time.
func each(n int, do func(i int) error) error {
	next := make(chan int)
	failed := make(chan error, openers)
	var all sync.WaitGroup
	for range openers {
		all.Go(func() {
			var err error
			for i := range next {
				if err == nil {
					err = do(i)
				}
			}
			failed <- err
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	all.Wait()
	close(failed)
	for err := range failed {
		if err != nil {
			return err
		}
	}
	return nil
}

// idle gives the share of a core that all of it takes for idleTime, once what was
// asked before is worked off.
func (s *service) idle(ctx context.Context) (float64, error) {
	for end := time.Now().Add(aftermath); time.Now().Before(end); {
		now, err := s.busy(ctx, time.Second)
		if err != nil {
			return 0, err
		}
		if now <= maxBusy {
			break
		}
	}
	return s.busy(ctx, idleTime)
}

// over says in words what a crowd takes beyond its bounds.
func (c *crowd) over() []string {
	if c == nil || c.busy <= maxBusy {
		return nil
	}
	return []string{fmt.Sprintf("over its bound: %d idle shells take %.1f %% of a core, at most %.1f %% is allowed", c.shells, 100*c.busy, 100*maxBusy)}
}

func (c *crowd) print(w io.Writer) {
	if c == nil {
		return
	}
	fmt.Fprintf(w, "\n%d environments with an open shell each; a shell adds\n", c.shells)
	fmt.Fprintf(w, "%-46s %s\n", "  to the service's memory (PSS)", c.per.service)
	fmt.Fprintf(w, "%-46s %s\n", "  to inits and reapers (PSS)", c.per.inits)
	fmt.Fprintf(w, "%-46s %s\n", "  as bash itself (PSS)", c.bash)
	fmt.Fprintf(w, "%-46s %.1f\n", "  descriptors of the service", c.per.descriptors)
	fmt.Fprintf(w, "%-46s %.1f\n", "  inotify watches of the service", c.per.watches)
	fmt.Fprintf(w, "%-46s %.2f %% of a core, at most %.0f %%\n", "  all of them idle, with the service and inits", 100*c.busy, 100*maxBusy)
}
