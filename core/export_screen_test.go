package core

import (
	"context"
	"runtime"
	"time"
)

// DrawBytes gives what a terminal shows that is sent data.
func DrawBytes(data []byte, size TerminalSize, bound time.Duration) (Screen, error) {
	e := newEmulator(size, false)
	err := e.feed(data, time.Now().Add(bound))
	return e.show(), err
}

// Draw is draw, for tests of what a screen is drawn of.
func Draw(log OutputLog, size TerminalSize) (Screen, error) {
	screen, _, err := draw(log, size)
	return screen, err
}

// DrawFaulty feeds a terminal whose emulator fails.
func DrawFaulty() error {
	e := newEmulator(TerminalSize{Cols: 80, Rows: 24}, false)
	e.next = func() { panic("a fault") }
	return e.feed([]byte("a"), time.Now().Add(time.Minute))
}

// HeldBy gives how many bytes a terminal holds that was sent data.
func HeldBy(data []byte, size TerminalSize) (int64, error) {
	before := inUse()
	e := newEmulator(size, false)
	err := e.feed(data, time.Now().Add(time.Minute))
	held := inUse() - before
	runtime.KeepAlive(e)
	return held, err
}

func inUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Turns is turns.
type Turns struct{ turns }

// Take is take.
func (t *Turns) Take(ctx context.Context, key string) (func(), error) { return t.take(ctx, key) }

// Keys gives how many turns are taken.
func (t *Turns) Keys() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.taken)
}
