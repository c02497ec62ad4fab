package core

import (
	"context"
	"encoding/base64"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"envapi/sandbox"
)

const (
	// processBound is how long a box may take to answer about its processes. It bounds
	// its own answers below that: the longest is to KILL, which returns when all that
	// it reached has ended.
	processBound = 20 * time.Second
	// defaultProcessWait is how long wait_process waits where nothing is said.
	defaultProcessWait = 10 * time.Second
	// signalGrace is how long it is watched whether a signal ends a process: a program
	// that does nothing about it takes a millisecond.
	signalGrace = 100 * time.Millisecond
	// staySignals end no program, whatever it does about them.
	staySignals = "CONT STOP TSTP WINCH"
)

// ListProcesses gives a page of what lives in an environment, in the order of the
// pids. Each page is of its own moment. For an environment in which nothing runs
// nothing is opened or restored: it has none. It fails with `not_found`.
func (s *Service) ListProcesses(ctx context.Context, c Caller, in ListProcessesInput) (Page[Process], error) {
	paging, err := in.sized()
	if err != nil {
		return Page[Process]{}, err
	}
	after, err := afterPID(in.Cursor)
	if err != nil {
		return Page[Process]{}, err
	}
	if _, err := s.ownEnvironment(ctx, c.Owner, in.EnvironmentID); err != nil {
		return Page[Process]{}, err
	}
	processes, err := s.processesIn(ctx, in.EnvironmentID)
	if err != nil {
		return Page[Process]{}, err
	}
	page := Page[Process]{Items: []Process{}}
	for _, p := range processes {
		if p.PID <= after {
			continue
		}
		if len(page.Items) == paging.Limit {
			page.NextCursor = cursorAfter(page.Items[paging.Limit-1].PID)
			break
		}
		page.Items = append(page.Items, p)
	}
	return page, nil
}

// processesIn looks at what lives in an environment.
func (s *Service) processesIn(ctx context.Context, id string) ([]Process, error) {
	box := s.boxOf(id)
	if box == nil {
		return nil, nil
	}
	before := s.latestIn(id)
	looking, cancel := context.WithTimeout(ctx, processBound)
	defer cancel()
	seen, err := box.Processes(looking)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case isClosed(box.Done()):
		return nil, nil // what was seen has ended with it
	case err != nil:
		return nil, unavailable("the sandbox of environment %q does not say what runs in it: try again", id).Because(err)
	}
	after := s.latestIn(id)
	processes := make([]Process, len(seen))
	for i, p := range seen {
		processes[i] = shownProcess(p)
		// Of which command of a shell it is can be told only where that stayed the
		// same while they were looked at.
		if latest := before[p.Of]; p.Current && latest == after[p.Of] {
			processes[i].CommandID = latest
		}
	}
	return processes, nil
}

// latestIn gives the command that each shell of an environment runs, or ran last, by
// the shell's id.
func (s *Service) latestIn(id string) map[string]string {
	latest := map[string]string{}
	for _, sh := range s.shellsIn(id) {
		latest[sh.record.ID] = sh.latestCommand()
	}
	return latest
}

func shownProcess(p sandbox.ProcessInfo) Process {
	shown := Process{
		PID:         p.PID,
		PPID:        p.PPID,
		State:       string(p.State),
		Command:     p.Command,
		CPUPercent:  math.Round(10*p.CPUPercent) / 10,
		CPUMS:       p.CPU.Milliseconds(),
		MemoryBytes: p.MemoryBytes,
		Threads:     p.Threads,
		StartedAt:   At(p.StartedAt),
		Listening:   make([]ListenerInfo, len(p.Listens)),
	}
	if strings.HasPrefix(p.Of, idShell) {
		shown.ShellID = p.Of
	} else {
		shown.CommandID = p.Of
	}
	for i, l := range p.Listens {
		shown.Listening[i] = ListenerInfo(l)
	}
	return shown
}

// SignalProcess signals a process of an environment, or it and all that descends from
// it. What is not of the environment is as absent as what never was. It fails with
// `invalid_argument`, `not_found`, `process_replaced` or `unavailable`.
func (s *Service) SignalProcess(ctx context.Context, c Caller, in SignalProcessInput) (SignaledProcess, error) {
	name, err := signalName(in.Signal)
	if err != nil {
		return SignaledProcess{}, err
	}
	box, err := s.boxWith(ctx, c.Owner, in.ProcessRef)
	if err != nil {
		return SignaledProcess{}, err
	}
	// Who goes away does not take back a signal.
	sending, cancel := context.WithTimeout(context.WithoutCancel(ctx), processBound)
	defer cancel()
	reached, err := box.SignalProcess(sending, in.ref(), name, in.Tree)
	if err != nil {
		return SignaledProcess{}, in.failure(err)
	}
	s.used(in.EnvironmentID)
	ended := name == signalKill || endsSoon(ctx, box, in.ref(), name)
	return SignaledProcess{PID: in.PID, Signal: name, Reached: reached, Ended: ended}, nil
}

// endsSoon says whether a process is seen to have ended by a signal.
func endsSoon(ctx context.Context, box sandbox.Box, ref sandbox.ProcessRef, signal string) bool {
	grace := signalGrace
	if strings.Contains(staySignals, signal) {
		grace = 0
	}
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	_, err := box.WaitProcess(ctx, ref)
	return err == nil || isAbsent(err) || errors.Is(err, sandbox.ErrProcessReplaced)
}

// WaitProcess waits for the end of a process of an environment, at most as long as
// the caller wants, and less where the service stops. It fails with `not_found`, also
// for one that has ended and was waited for by its parent, with `process_replaced` or
// `rate_limited`.
func (s *Service) WaitProcess(ctx context.Context, c Caller, in WaitProcessInput) (ProcessEnd, error) {
	wait, err := waitTime(in.WaitMS, defaultProcessWait)
	if err != nil {
		return ProcessEnd{}, err
	}
	box, err := s.boxWith(ctx, c.Owner, in.ProcessRef)
	if err != nil {
		return ProcessEnd{}, err
	}
	defer s.using(in.EnvironmentID)() // so that what is waited for is not archived away
	begun := time.Now()
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	go func() {
		select {
		case <-s.closing:
			cancel()
		case <-waiting.Done():
		}
	}()
	end, err := box.WaitProcess(waiting, in.ref())
	shown := ProcessEnd{WaitedMS: time.Since(begun).Milliseconds()}
	switch {
	case ctx.Err() != nil:
		return ProcessEnd{}, ctx.Err()
	case err != nil && waiting.Err() != nil && errors.Is(err, waiting.Err()):
		return shown, nil
	case err != nil:
		return ProcessEnd{}, in.failure(err)
	}
	shown.Ended = true
	if end.Known {
		shown.Signal = end.Signal
		if end.Signal == "" {
			shown.ExitCode = &end.ExitCode
		}
	}
	return shown, nil
}

// boxWith gives the box in which a process is, if it is one of o's: where an
// environment has no box it has no process.
func (s *Service) boxWith(ctx context.Context, o Owner, ref ProcessRef) (sandbox.Box, error) {
	if _, err := s.ownEnvironment(ctx, o, ref.EnvironmentID); err != nil {
		return nil, err
	}
	box := s.boxOf(ref.EnvironmentID)
	if box == nil {
		return nil, ref.failure(sandbox.ErrNoProcess)
	}
	return box, nil
}

func (ref ProcessRef) ref() sandbox.ProcessRef {
	named := sandbox.ProcessRef{PID: ref.PID}
	if ref.StartedAt != nil {
		named.StartedAt = ref.StartedAt.Time
	}
	return named
}

// isAbsent says whether an error means that there is no such process: also one whose
// box is gone.
func isAbsent(err error) bool {
	return errors.Is(err, sandbox.ErrNoProcess) || errors.Is(err, sandbox.ErrBoxClosed)
}

// failure says in the caller's words why nothing was done about a process.
func (ref ProcessRef) failure(err error) error {
	switch {
	case isAbsent(err):
		return Errorf(CodeNotFound, "environment %q has no process %d: list_processes gives those that live", ref.EnvironmentID, ref.PID)
	case errors.Is(err, sandbox.ErrProcessReplaced):
		started := "the one that was meant"
		if ref.StartedAt != nil {
			started = "the one that was started at " + ref.StartedAt.Format(timeLayout)
		}
		return Errorf(CodeProcessReplaced, "process %d of environment %q is not %s: that has ended, and another has its number; list_processes gives those that live", ref.PID, ref.EnvironmentID, started)
	case errors.Is(err, sandbox.ErrTooManyWaits):
		return Errorf(CodeRateLimited, "as many calls wait for processes of environment %q as can: try again when one has ended", ref.EnvironmentID).
			With("retry_after_ms", retryAfter.Milliseconds()).Because(err)
	}
	return unavailable("the sandbox of environment %q does not answer about process %d: look with list_processes what became of it, or try again", ref.EnvironmentID, ref.PID).Because(err)
}

// cursorAfter is the cursor of the page that begins behind a pid.
func cursorAfter(pid int) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.Itoa(pid)))
}

// afterPID gives the pid behind which a page begins.
func afterPID(cursor string) (int, error) {
	if cursor == "" {
		return math.MinInt, nil
	}
	text, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	pid, notPID := strconv.Atoi(string(text))
	if err != nil || notPID != nil || cursorAfter(pid) != cursor {
		return 0, invalid("cursor", "the cursor is not one that this list gave: leave it out to start from the first page")
	}
	return pid, nil
}
