package core_test

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"envapi/sandbox"
)

// fakeProcesses are what a fakeBox says that lives in it: what the test puts there,
// until a signal ends it, as TERM and KILL do, or the test does.
type fakeProcesses struct {
	mu      sync.Mutex
	lives   []sandbox.ProcessInfo
	ends    map[int]sandbox.ProcessEnd
	changed chan struct{} // closed and made anew when ends changes
	signals []string
	// What happens while they are looked at, or one is signalled, where not nil.
	onList, onSignal func()
	fail             error // what is answered about them, where not nil
	waits            int   // how many wait
}

// startedAt is no whole number of milliseconds, as a moment of the system is.
var startedAt = time.Date(2026, 1, 2, 3, 4, 5, 678_901_234, time.UTC)

// put lets processes live in the box.
func (f *fakeProcesses) put(lives ...sandbox.ProcessInfo) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ends == nil {
		f.ends, f.changed = map[int]sandbox.ProcessEnd{}, make(chan struct{})
	}
	for _, p := range lives {
		if p.StartedAt.IsZero() {
			p.StartedAt = startedAt
		}
		f.lives = append(f.lives, p)
	}
}

// end ends a process.
func (f *fakeProcesses) end(pid int, how sandbox.ProcessEnd) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lives = slices.DeleteFunc(f.lives, func(p sandbox.ProcessInfo) bool { return p.PID == pid })
	f.ends[pid] = how
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *fakeProcesses) waiting() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.waits
}

// find says whether there is such a process, as a box does: by the hundredth of a
// second in which it was started.
func (f *fakeProcesses) find(ref sandbox.ProcessRef) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail != nil {
		return f.fail
	}
	for _, p := range f.lives {
		if p.PID != ref.PID {
			continue
		}
		if !ref.StartedAt.IsZero() && ref.StartedAt.Sub(p.StartedAt).Round(10*time.Millisecond) != 0 {
			return sandbox.ErrProcessReplaced
		}
		return nil
	}
	return sandbox.ErrNoProcess
}

func (f *fakeProcesses) Processes(context.Context) ([]sandbox.ProcessInfo, error) {
	f.mu.Lock()
	seen, onList, fail := slices.Clone(f.lives), f.onList, f.fail
	f.mu.Unlock()
	if onList != nil {
		onList()
	}
	return seen, fail
}

func (f *fakeProcesses) SignalProcess(ctx context.Context, ref sandbox.ProcessRef, name string, tree bool) (int, error) {
	if f.onSignal != nil {
		f.onSignal()
	}
	if err := cmp.Or(ctx.Err(), f.find(ref)); err != nil {
		return 0, err
	}
	f.mu.Lock()
	f.signals = append(f.signals, name)
	reached := 1
	if tree {
		reached = len(f.lives)
	}
	f.mu.Unlock()
	if name == "TERM" || name == "KILL" {
		f.end(ref.PID, sandbox.ProcessEnd{Known: true, Signal: name})
	}
	return reached, nil
}

// WaitProcess waits for a process that is there.
func (b *fakeBox) WaitProcess(ctx context.Context, ref sandbox.ProcessRef) (sandbox.ProcessEnd, error) {
	f := &b.fakeProcesses
	if err := f.find(ref); err != nil {
		return sandbox.ProcessEnd{}, err
	}
	f.mu.Lock()
	f.waits++
	defer func() {
		f.waits--
		f.mu.Unlock()
	}()
	for {
		if end, ok := f.ends[ref.PID]; ok {
			return end, nil
		}
		changed := f.changed
		f.mu.Unlock()
		var err error
		select {
		case <-changed:
		case <-b.done:
			f.mu.Lock()
			return sandbox.ProcessEnd{}, nil
		case <-ctx.Done():
			err = ctx.Err()
		}
		f.mu.Lock()
		if err != nil {
			return sandbox.ProcessEnd{}, err
		}
	}
}
