package core_test

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"envapi/core"
	"envapi/sandbox"
)

// testRetention is that of a reaper that runs only when a test says so.
var testRetention = core.Retention{
	Shell:       core.Bounded{Default: time.Hour, Least: time.Minute, Most: 24 * time.Hour},
	Environment: core.Bounded{Default: 100 * time.Hour, Least: 10 * time.Minute, Most: 1000 * time.Hour},
	Box:         10 * time.Minute,
	Ended:       2000 * time.Hour,
	Keys:        20 * time.Hour,
	Every:       time.Hour,
}

// clock is a time that a test sets.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) time() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// askedTimes is what owners have asked for.
type askedTimes struct {
	mu    sync.Mutex
	times core.IdleTimes
	asked int
}

func (a *askedTimes) Of(context.Context, core.Owner) core.IdleTimes {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked++
	return a.times
}

func (a *askedTimes) Known(context.Context, core.Owner) core.IdleTimes {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.times
}

func (a *askedTimes) set(t core.IdleTimes) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.times = t
}

// logged is what a service has logged.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) count(words string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Count(l.text.Bytes(), []byte(words))
}

// aged is a world whose time the test makes pass.
type aged struct {
	*world
	clock *clock
	times *askedTimes
	log   *logged
}

func newAged(t testing.TB, change ...func(*world)) *aged {
	a := &aged{clock: &clock{now: time.Now().Truncate(time.Millisecond)}, times: &askedTimes{}, log: &logged{}}
	a.world = newWorld(t, append([]func(*world){func(w *world) {
		w.config.Now, w.config.Retention, w.config.Lifetimes = a.clock.time, testRetention, a.times
		w.config.Log = slog.New(slog.NewTextHandler(a.log, nil))
	}}, change...)...)
	return a
}

// after lets time pass and the reaper run.
func (a *aged) after(d time.Duration) {
	a.clock.pass(d)
	a.Reap()
}

func (w *world) environment(id string) core.Environment {
	w.t.Helper()
	env, err := w.GetEnvironment(context.Background(), alice, core.EnvironmentRef{EnvironmentID: id})
	must(w.t, err)
	return env
}

// listing is a sandbox whose boxes list what a test says.
type listing struct {
	*fakeHost
	mu        sync.Mutex
	processes []sandbox.ProcessInfo
	err       error
	looked    func() // what happens when a box was looked at, where not nil
}

type listedBox struct {
	*fakeBox
	host *listing
}

func (l *listing) Open(ctx context.Context, spec sandbox.Spec) (sandbox.Box, error) {
	b, err := l.fakeHost.Open(ctx, spec)
	if err != nil {
		return nil, err
	}
	return listedBox{b.(*fakeBox), l}, nil
}

func (b listedBox) Processes(context.Context) ([]sandbox.ProcessInfo, error) {
	defer b.host.then()
	b.host.mu.Lock()
	defer b.host.mu.Unlock()
	return b.host.processes, b.host.err
}

// Usage is followed by what happens then, once.
func (b listedBox) Usage(ctx context.Context) (sandbox.Usage, error) {
	usage, err := b.fakeBox.Usage(ctx)
	b.host.then()
	return usage, err
}

func (l *listing) then() {
	l.mu.Lock()
	looked := l.looked
	l.looked = nil
	l.mu.Unlock()
	if looked != nil {
		looked()
	}
}

func (l *listing) set(err error, processes ...sandbox.ProcessInfo) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.processes, l.err = processes, err
}
