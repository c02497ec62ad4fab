package core

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"envapi/sandbox"
)

// killBound is how long it may take to see that the tree of a killed command is
// gone, somewhat more than a box itself tries. Then the whole box is closed.
const killBound = 12 * time.Second

// run is a command in memory: from before its record is written until it has
// ended and nothing of it can write output any more.
type run struct {
	record CommandRecord // as it was started
	place  *place
	shell  *shell // the one that it runs in, or nil
	turn   *turn  // its place in the line of shell
	tty    keepsTerminal

	started outcome // whether it was started, or came in line
	// The following are valid once it was.
	in     *opening // the box that it runs in
	output *recorder

	begun   chan struct{}   // closed by begin
	process sandbox.Process // valid once begun
	counted bool            // it is counted as a command that runs; set before it is watched
	eye     *eye            // on its terminal

	ended outcome    // never with an error; settled when the end is recorded
	end   CommandEnd // valid once ended
	gone  outcome    // never with an error; settled when nothing is left of it

	mu        sync.Mutex
	doom      *doom
	asked     bool      // doom is about how it is asked to end, see ask
	startedAt time.Time // of one that waited in line, once begun
}

func newRun(p *place, record CommandRecord) *run {
	return &run{
		place: p, record: record, eye: &eye{}, begun: make(chan struct{}),
		started: newOutcome(), ended: newOutcome(), gone: newOutcome(),
	}
}

// begin lets others reach the process. It is called once.
func (r *run) begin(p sandbox.Process) {
	r.process = p
	close(r.begun)
}

// vanished is the process of which nobody knows whether it was started, since
// its box is gone: it was lost from the beginning.
type vanished struct{}

var past = func() <-chan struct{} { c := make(chan struct{}); close(c); return c }()

func (vanished) Done() <-chan struct{}                { return past }
func (vanished) Quiet() <-chan struct{}               { return past }
func (vanished) Result() sandbox.Result               { return sandbox.Result{Lost: true} }
func (vanished) Signal(context.Context, string) error { return nil }
func (vanished) Kill(context.Context) error           { return nil }
func (vanished) Input() sandbox.Input                 { return nil }
func (vanished) Terminal() sandbox.Terminal           { return nil }

// current gives the record as it stands.
func (r *run) current() CommandRecord {
	record := r.record
	r.mu.Lock()
	if !r.startedAt.IsZero() {
		record.StartedAt = r.startedAt
	}
	r.mu.Unlock()
	if isClosed(r.ended.known) {
		record.CommandEnd = r.end
		record.Cwd = cmp.Or(r.end.Cwd, record.Cwd)
	}
	return record
}

// counts has what waits for commands wait for one whose start is counted.
func (s *Service) counts(r *run) {
	s.work.add(aCommand)
	r.counted = true
}

// watch follows a command that has begun to its end and beyond, until nothing of
// it is left. It is one goroutine for each command that lives, however many wait.
func (s *Service) watch(r *run, timeout time.Duration) {
	defer s.watchers.Done()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-r.process.Done():
	case <-timer.C:
		s.kill(r, doom{status: CommandTimedOut, advice: timedOut(timeout)})
		<-r.process.Done()
	}
	if r.shell != nil {
		r.shell.after(r)
	}
	s.finish(r)
	if r.counted {
		s.work.leave(aCommand)
	}
	<-r.process.Quiet()
	r.output.close(s.Log)
	s.forget(r)
	r.gone.settle(nil)
}

// kill ends the whole tree of a command, and its box where that cannot be seen
// to work.
func (s *Service) kill(r *run, d doom) {
	r.condemn(d)
	ctx, cancel := context.WithTimeout(context.Background(), killBound)
	defer cancel()
	s.endOrClose(ctx, r.in, r.record.ID, r.process.Kill)
}

// endOrClose ends something in a box, and the box where that cannot be seen to
// work.
func (s *Service) endOrClose(ctx context.Context, in *opening, id string, end func(context.Context) error) {
	err := end(ctx)
	if err == nil || errors.Is(err, sandbox.ErrBoxClosed) {
		return
	}
	s.Log.Error("cannot kill what runs, closing its box", "id", id, "error", err)
	if err := in.box.Close(); err != nil {
		s.Log.Error("cannot close a box", "id", id, "error", err)
	}
}

// finish records how the command ended, then tells those who wait.
func (s *Service) finish(r *run) {
	r.output.flush(s.Log)
	end := r.verdict(r.process.Result(), s.now())
	end.Late = r.output.ends()
	if r.shell != nil {
		r.shell.active(*end.EndedAt)
	}
	s.insist("record the end of a command", r.record.ID, func(ctx context.Context) error {
		return s.Store.FinishCommand(ctx, r.record.ID, end)
	})
	r.end = end
	r.ended.settle(nil)
}

// remember lets others find a command.
func (s *Service) remember(r *run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs[r.record.ID] = r
}

// forget is the opposite of remember: from then on the store and the log say
// what is known of the command.
func (s *Service) forget(r *run) {
	s.mu.Lock()
	delete(s.runs, r.record.ID)
	s.mu.Unlock()
	r.tty.letGo()
}

// live gives a command that is in memory, or nil.
func (s *Service) live(id string) *run {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs[id]
}

// runsIn gives the commands of an environment that are in memory. None is just
// being started only where the caller has its place for itself.
func (s *Service) runsIn(id string) []*run {
	s.mu.Lock()
	defer s.mu.Unlock()
	var runs []*run
	for _, r := range s.runs {
		if r.record.EnvironmentID == id {
			runs = append(runs, r)
		}
	}
	return runs
}

// condemnAll condemns every command and every shell.
func (s *Service) condemnAll(d doom, closeReason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.runs {
		r.condemn(d)
	}
	for _, sh := range s.shells {
		sh.condemn(closeReason)
	}
}
