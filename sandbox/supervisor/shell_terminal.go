package supervisor

import (
	"bytes"
	"context"
	"sync"

	"envapi/sandbox"
)

// shellTerminal is a command shell's terminal: it takes input while a command
// runs, since nobody else there reads it.
type shellTerminal struct {
	*terminal
	gate *gate
	// of is the command whose terminal it is, so that what is typed for it never
	// comes to the next one; nil is whichever runs.
	of *shellCommand
}

// Write implements sandbox.Input.
func (t *shellTerminal) Write(ctx context.Context, p []byte) (n int, err error) {
	err = t.gate.pass(ctx, t.of, bytes.ContainsAny(p, interrupts), func(ctx context.Context) error {
		n, err = t.terminal.Write(ctx, p)
		return err
	})
	return n, err
}

// End implements sandbox.Input.
func (t *shellTerminal) End(ctx context.Context) error {
	return t.gate.pass(ctx, t.of, false, t.terminal.End)
}

// interrupts are the keys that interrupt, unless a program has changed that.
const interrupts = "\x03\x1c"

// gate is open while a command runs.
type gate struct {
	mu          sync.Mutex
	passing     sync.WaitGroup
	close       context.CancelFunc // nil while it is shut
	shutting    context.Context
	command     *shellCommand // the one that runs, or ran last
	interrupted bool          // an interrupt has passed since it was opened
}

func (g *gate) open(c *shellCommand) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.interrupted, g.command = false, c
	g.shutting, g.close = context.WithCancel(context.Background())
}

// shut returns when nobody passes any more.
func (g *gate) shut() {
	g.mu.Lock()
	if g.close != nil {
		g.close()
	}
	g.close = nil
	g.mu.Unlock()
	g.passing.Wait()
}

// pass does something unless the gate is shut, or open for another command, and
// until it is shut.
func (g *gate) pass(ctx context.Context, of *shellCommand, interrupts bool, do func(context.Context) error) error {
	g.mu.Lock()
	if g.close == nil || of != nil && of != g.command {
		g.mu.Unlock()
		return sandbox.ErrInputClosed
	}
	g.interrupted = g.interrupted || interrupts
	g.passing.Add(1)
	shutting, command := g.shutting, g.command
	g.mu.Unlock()
	defer g.passing.Done()
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(shutting, cancel)()
	if interrupts {
		command.awaitBegun(inner) // until it can be interrupted
	}
	err := do(inner)
	if err != nil && ctx.Err() == nil && shutting.Err() != nil {
		return sandbox.ErrInputClosed
	}
	return err
}

// interrupt notes that one is sent another way.
func (g *gate) interrupt() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.interrupted = true
}

func (g *gate) wasInterrupted() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.interrupted
}
