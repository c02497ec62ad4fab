package core

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// reaper ends what nobody uses any more and removes what is old, so that a service
// can be left alone. It is one goroutine. It takes nothing from anybody who comes:
// each step looks, and makes sure in the last moment, under the lock or in the
// transaction that a caller would need too, that nobody came meanwhile; and it holds
// neither for longer than one thing takes. What it cannot do now the next run does.
type reaper struct {
	service *Service
	ctx     context.Context // ends when the service drains
	done    chan struct{}

	boxes  map[*opening]rest    // those in which nothing lives
	page   []EnvironmentRecord  // idle ones that the next run begins with
	after  string               // where it goes on after them
	period time.Duration        // how long a run goes on archiving
	low    bool                 // the disk had no room for archives at the last run
	warned map[string]time.Time // by account: when it was last said that its archives are full
	failed map[string]time.Time // by environment: when it could not be archived
	trims  map[string]time.Time // by environment: until where its logs were trimmed
	record reapRecord
	// archive is archiveIdle, or what a test has in its place.
	archive func(ctx context.Context, env EnvironmentRecord, since time.Time) (done bool, err error)
}

const (
	// reapBatch is how much is asked of the store at a time, and removed in a
	// transaction: some milliseconds.
	reapBatch = 100
	// mostReaped is how much of each kind a run does at most: with one a minute more
	// than a host can make.
	mostReaped = 10_000
	// mostEnded is the same for what is ended, each of which takes time.
	mostEnded = 100
	// archivePeriod is how long a run goes on archiving: it is the last of its steps,
	// and the others are not to wait for long.
	archivePeriod = time.Minute
)

// stepActivity is the step that ends nothing.
const stepActivity = "activity"

// step is one thing that a run does.
type step struct {
	what string
	do   func(context.Context) (count int, err error)
}

// steps are what a run does, in this order. One that fails does not keep the others
// from being done.
func (r *reaper) steps() []step {
	return []step{
		{stepActivity, r.service.recordActivity},
		{"shells", r.closeShells},
		{"boxes", r.letBoxesGo},
		{"keys", r.pruneKeys},
		{"old_commands", r.pruneCommands},
		{"old_shells", r.pruneShells},
		{"logs", r.makeRoom},
		{"environments", r.archiveWithRoom},
	}
}

// startReaper starts the reaper, which ends when the service drains. It gives nil where the
// deployment wants none.
func (s *Service) startReaper() *reaper {
	if s.Retention.Every == 0 {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &reaper{
		service: s, ctx: ctx, done: make(chan struct{}),
		boxes: map[*opening]rest{}, warned: map[string]time.Time{}, trims: map[string]time.Time{}, failed: map[string]time.Time{},
		archive: s.archiveIdle, period: archivePeriod,
	}
	go func() {
		<-s.work.draining
		cancel()
	}()
	go func() {
		defer close(r.done)
		r.run()
	}()
	return r
}

// wait returns when the reaper has ended.
func (r *reaper) wait() error {
	if r == nil {
		return nil
	}
	select {
	case <-r.done:
		return nil
	case <-time.After(vacateBound):
		return errors.New("cannot wait any longer for the reaper")
	}
}

func (r *reaper) run() {
	for {
		select {
		case <-time.After(r.service.Retention.Every):
		case <-r.ctx.Done():
			return
		}
		r.reap()
	}
}

// reap is one run.
func (r *reaper) reap() {
	log := r.service.Log
	var counts []any
	for _, step := range r.steps() {
		count, err := step.do(r.ctx)
		if r.ctx.Err() != nil {
			return
		}
		if err != nil {
			log.Error("the reaper could not do all, and tries again at its next run", "step", step.what, "error", err)
		}
		r.record.note(step.what, count, err)
		counts = append(counts, slog.Int(step.what, count))
	}
	r.record.noteRun(r.service.now())
	log.Debug("the reaper ran", counts...)
}

// idleTimes gives how long an owner's things may be idle, of which it asks once a run.
type idleTimes struct {
	service *Service
	known   map[Owner]IdleTimes
}

func (s *Service) idleTimes() idleTimes { return idleTimes{s, map[Owner]IdleTimes{}} }

func (i idleTimes) of(ctx context.Context, o Owner) IdleTimes {
	if i.service.Lifetimes == nil {
		return IdleTimes{}
	}
	times, ok := i.known[o]
	if !ok {
		times = i.service.Lifetimes.Of(ctx, o)
		i.known[o] = times
	}
	return times
}
