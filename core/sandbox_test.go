package core_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"envapi/sandbox"
)

// fakeHost is a sandbox whose programs are played by this process:
//
//	exit N      exits with N
//	print TEXT  writes TEXT to stdout and exits with 0
//	cat         copies stdin to stdout and exits with 0
//	read        reads a line from its terminal or open input and prints it
//	wait        runs until the test or a signal ends it
//	stubborn    likewise, but cannot be killed other than with its box
//	tidy        likewise, but at TERM exits with 0
//	heedless    likewise, but heeds no TERM
//
// In the directory /nowhere nothing can be started.
type fakeHost struct {
	needsUID, singleAccount bool
	controls                []sandbox.Control

	mu      sync.Mutex
	boxes   []*fakeBox
	started []*fakeProcess
	shells  []*fakeShell
	openErr error         // what Open fails with
	gate    chan struct{} // Open waits for it, where not nil
	startUp error         // what Start fails with
	memory  *int64        // what every box says that it uses
	daemons int           // processes of every box beside those of its commands
	closing func()        // what happens in a box until it is closed, where not nil
}

func (h *fakeHost) Tier() sandbox.Tier { return sandbox.TierNamespace }
func (h *fakeHost) Report() sandbox.Report {
	return sandbox.Report{Tier: h.Tier(), SingleAccount: h.singleAccount, Controls: h.controls}
}
func (h *fakeHost) NeedsUID() bool              { return h.needsUID }
func (h *fakeHost) WorkspacePath(string) string { return "/workspace" }
func (h *fakeHost) Close() error                { return nil }

func (h *fakeHost) Open(ctx context.Context, spec sandbox.Spec) (sandbox.Box, error) {
	h.mu.Lock()
	gate := h.gate
	h.mu.Unlock()
	if gate != nil {
		<-gate
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	b := &fakeBox{host: h, spec: spec, done: make(chan struct{})}
	h.boxes = append(h.boxes, b)
	if h.openErr != nil {
		close(b.done)
		return nil, h.openErr
	}
	return b, nil
}

// opened gives the boxes that were asked for until now.
func (h *fakeHost) opened() []*fakeBox {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.boxes)
}

// processes gives what was started until now, in that order.
func (h *fakeHost) processes() []*fakeProcess {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.started)
}

func (h *fakeHost) failStarts(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.startUp = err
}

func (h *fakeHost) setMemory(counted *int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.memory = counted
}

func (h *fakeHost) setDaemons(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.daemons = n
}

type fakeBox struct {
	host *fakeHost
	spec sandbox.Spec
	done chan struct{}

	mu        sync.Mutex
	processes []*fakeProcess

	fakeProcesses
	jammed   atomic.Bool  // it cannot be closed
	closings atomic.Int32 // how often that was tried
}

func (b *fakeBox) Temporary() string { return "" }

func (b *fakeBox) Done() <-chan struct{} { return b.done }

func (b *fakeBox) Usage(context.Context) (sandbox.Usage, error) {
	b.host.mu.Lock()
	live, memory := b.host.daemons, b.host.memory
	b.host.mu.Unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.processes {
		if !isClosed(p.quiet) {
			live++
		}
	}
	return sandbox.Usage{Processes: live, MemoryBytes: memory}, nil
}

func (b *fakeBox) Start(_ context.Context, c sandbox.Command) (sandbox.Process, error) {
	p, err := b.start(c)
	if err != nil {
		return nil, err
	}
	go p.play()
	return p, nil
}

func (b *fakeBox) start(c sandbox.Command) (*fakeProcess, error) {
	b.host.mu.Lock()
	defer b.host.mu.Unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	failure := b.host.startUp
	switch {
	case isClosed(b.done):
		return nil, sandbox.ErrBoxClosed
	case errors.Is(failure, sandbox.ErrBoxClosed):
		close(b.done)
		return nil, failure
	case failure != nil:
		return nil, failure
	case c.Dir == "/nowhere":
		return nil, &sandbox.StartError{Dir: true, Err: errors.New("no such file or directory")}
	}
	p := &fakeProcess{command: c, done: make(chan struct{}), quiet: make(chan struct{})}
	if c.Terminal != nil {
		p.reads = newFakeTerminal(*c.Terminal)
	} else if c.Input {
		p.reads = newFakeTerminal(sandbox.Size{})
	}
	b.processes = append(b.processes, p)
	b.host.started = append(b.host.started, p)
	return p, nil
}

func (b *fakeBox) Close() error {
	b.closings.Add(1)
	if b.jammed.Load() {
		return errDisk
	}
	b.host.mu.Lock()
	closing := b.host.closing
	b.host.mu.Unlock()
	if closing != nil {
		closing()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if isClosed(b.done) {
		return nil
	}
	close(b.done)
	for _, p := range b.processes {
		p.end(sandbox.Result{Lost: true})
		p.fallSilent()
	}
	return nil
}

type fakeProcess struct {
	command     sandbox.Command
	done, quiet chan struct{}
	ending      sync.Once
	silence     sync.Once
	result      sandbox.Result
	background  atomic.Bool // a child writes on after the end
	starved     atomic.Bool
	signals     sync.Map
	// reads is the terminal, or the input that was kept open; nil where neither.
	reads *fakeTerminal
}

func (p *fakeProcess) play() {
	verb, rest, _ := strings.Cut(p.command.Script, " ")
	switch verb {
	case "exit":
		var code int
		_, _ = fmt.Sscan(rest, &code)
		p.exit(code)
	case "print":
		p.print(rest)
		p.exit(0)
	case "cat":
		if p.command.Stdin != nil {
			_, _ = io.Copy(p.command.Stdout, p.command.Stdin)
		}
		p.exit(0)
	case "read":
		p.print(p.reads.line(p.done))
		p.exit(0)
	case "wait", "stubborn", "tidy", "heedless":
	default:
		p.exit(127)
	}
}

func (p *fakeProcess) print(text string) { _, _ = io.WriteString(p.command.Stdout, text) }

// exit ends the process by itself.
func (p *fakeProcess) exit(code int) {
	p.end(sandbox.Result{ExitCode: code, Used: sandbox.Used{Processes: ptr[int64](1)}})
}

// starve has the kernel kill a child of the process for want of memory.
func (p *fakeProcess) starve() { p.starved.Store(true) }

func (p *fakeProcess) end(r sandbox.Result) {
	p.ending.Do(func() {
		p.result = r
		p.result.OutOfMemory = r.OutOfMemory || p.starved.Load()
		if p.reads != nil {
			close(p.reads.over)
		}
		close(p.done)
	})
	if !p.background.Load() {
		p.fallSilent()
	}
}

func (p *fakeProcess) fallSilent()               { p.silence.Do(func() { close(p.quiet) }) }
func (p *fakeProcess) Done() <-chan struct{}     { return p.done }
func (p *fakeProcess) Quiet() <-chan struct{}    { return p.quiet }
func (p *fakeProcess) Result() sandbox.Result    { return p.result }
func (p *fakeProcess) signaled(name string) bool { _, ok := p.signals.Load(name); return ok }

func (p *fakeProcess) Input() sandbox.Input {
	if p.reads == nil {
		return nil
	}
	return p.reads
}

func (p *fakeProcess) Terminal() sandbox.Terminal {
	if p.command.Terminal == nil {
		return nil
	}
	return p.reads
}

func (p *fakeProcess) Signal(_ context.Context, name string) error {
	p.signals.Store(name, true)
	if name == "TERM" && p.command.Script == "tidy" {
		p.exit(0)
	}
	if name == "TERM" && p.command.Script == "heedless" {
		return nil
	}
	if name == "TERM" || name == "INT" || name == "HUP" {
		p.end(sandbox.Result{Signal: name})
	}
	return nil
}

func (p *fakeProcess) Kill(context.Context) error {
	if p.command.Script == "stubborn" {
		return errors.New("cannot see that the tree is gone")
	}
	p.end(sandbox.Result{Signal: "KILL"})
	p.fallSilent()
	return nil
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
