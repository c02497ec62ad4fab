package core_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"

	"envapi/sandbox"
)

// fakeTerminal holds few bytes that nobody has read yet.
type fakeTerminal struct {
	mu       sync.Mutex
	pending  []byte
	changed  chan struct{} // closed and made anew when pending changes
	readers  int
	blind    bool // Reading cannot tell
	over     chan struct{}
	size     sandbox.Size
	looks    int
	within   atomic.Int32 // looks that are under way
	together atomic.Bool  // there was more than one at a time
	onLook   func()       // what happens when Reading is asked, where not nil
	dying    func()       // what happens when the terminal is used; it is at its end then
}

const fakeTerminalRoom = 8

func newFakeTerminal(size sandbox.Size) *fakeTerminal {
	return &fakeTerminal{size: size, changed: make(chan struct{}), over: make(chan struct{})}
}

func (t *fakeTerminal) Write(ctx context.Context, p []byte) (n int, err error) {
	if t.dying != nil {
		t.dying()
		return 0, sandbox.ErrInputClosed
	}
	if len(p) > 4095 {
		return 0, sandbox.ErrLineTooLong
	}
	for n < len(p) {
		t.mu.Lock()
		room := min(fakeTerminalRoom-len(t.pending), len(p)-n)
		t.pending = append(t.pending, p[n:n+room]...)
		n += room
		changed := t.change(room)
		t.mu.Unlock()
		if n == len(p) {
			break
		}
		select {
		case <-changed:
		case <-t.over:
			return n, sandbox.ErrInputClosed
		case <-ctx.Done():
			return n, ctx.Err()
		}
	}
	return n, nil
}

// change tells who waits, where n is not 0, and gives what to wait for.
func (t *fakeTerminal) change(n int) <-chan struct{} {
	if n != 0 {
		close(t.changed)
		t.changed = make(chan struct{})
	}
	return t.changed
}

func (t *fakeTerminal) End(ctx context.Context) error {
	_, err := t.Write(ctx, []byte{4})
	return err
}

// line reads up to a newline or the end of the file.
func (t *fakeTerminal) line(over ...<-chan struct{}) string {
	var line []byte
	t.mu.Lock()
	t.readers++
	defer func() {
		t.readers--
		t.mu.Unlock()
	}()
	for {
		for len(t.pending) > 0 {
			c := t.pending[0]
			t.pending = t.pending[1:]
			t.change(1)
			if c == '\n' || c == 4 {
				return string(line)
			}
			line = append(line, c)
		}
		changed := t.changed
		t.mu.Unlock()
		select {
		case <-changed:
		case <-t.over:
		case <-over[0]:
		}
		t.mu.Lock()
		if isClosed(t.over) || isClosed(over[0]) {
			return string(line)
		}
	}
}

func (t *fakeTerminal) flush() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pending = nil
	t.change(1)
}

func (t *fakeTerminal) Resize(s sandbox.Size) error {
	if t.dying != nil {
		t.dying()
		return sandbox.ErrInputClosed
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.size = s
	return nil
}

func (t *fakeTerminal) Reading(context.Context) (reading, known bool) {
	if t.within.Add(1) > 1 {
		t.together.Store(true)
	}
	defer t.within.Add(-1)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.onLook != nil {
		t.onLook()
	}
	t.looks++
	return t.readers > 0 && len(t.pending) == 0, !t.blind
}

// fakeShell is a shell whose commands are played, beside those of fakeProcess:
//
//	cd DIR     changes the directory; "cd gone" to one that was deleted
//	read       reads a line from the terminal and prints it
//	tty TEXT   writes TEXT to the terminal
//	quit N     bash exits with N
//	suicide    bash dies by SIGKILL
//	corrupt    bash cannot say how it ended
//	deaf       runs on, and bash does not come back when it is killed
type fakeShell struct {
	*fakeProcess
	box      *fakeBox
	spec     sandbox.ShellSpec
	terminal *fakeTerminal
	failRun  error // what Run fails with

	shellMu sync.Mutex
	cwd     string
	running *fakeProcess
	left    bool   // Leave was called
	killed  bool   // Kill was called
	onDeath func() // what happens before the kill of deaf returns, where not nil
	ran     []string
}

func (b *fakeBox) OpenShell(_ context.Context, spec sandbox.ShellSpec) (sandbox.Shell, error) {
	p, err := b.start(sandbox.Command{Dir: spec.Dir, Script: "wait"})
	if err != nil {
		return nil, err
	}
	sh := &fakeShell{fakeProcess: p, box: b, spec: spec, terminal: newFakeTerminal(spec.Size), cwd: spec.Dir}
	b.host.mu.Lock()
	b.host.shells = append(b.host.shells, sh)
	b.host.mu.Unlock()
	go func() {
		<-p.done
		close(sh.terminal.over)
	}()
	return sh, nil
}

func (sh *fakeShell) Terminal() sandbox.Terminal { return sh.terminal }

func (sh *fakeShell) Leave(context.Context) error {
	sh.shellMu.Lock()
	sh.left = true
	sh.shellMu.Unlock()
	sh.end(sandbox.Result{Signal: "KILL"})
	return nil
}

func (sh *fakeShell) Kill(ctx context.Context) error {
	sh.shellMu.Lock()
	sh.killed = true
	sh.shellMu.Unlock()
	if r := sh.now(); r != nil {
		r.end(sandbox.Result{Signal: "KILL", Shell: &sandbox.ShellState{Ended: true}})
		r.fallSilent()
	}
	return sh.fakeProcess.Kill(ctx)
}

// now gives the command that runs, or nil.
func (sh *fakeShell) now() *fakeProcess {
	sh.shellMu.Lock()
	defer sh.shellMu.Unlock()
	return sh.running
}

func (sh *fakeShell) Run(_ context.Context, c sandbox.ShellCommand) (sandbox.Process, error) {
	sh.shellMu.Lock()
	defer sh.shellMu.Unlock()
	switch {
	case sh.failRun != nil:
		return nil, sh.failRun
	case isClosed(sh.done):
		return nil, sandbox.ErrShellClosed
	case sh.running != nil && !isClosed(sh.running.done):
		return nil, sandbox.ErrShellBusy
	}
	p, err := sh.box.start(sandbox.Command{Script: c.Script, Stdout: c.Stdout, Stderr: c.Stderr, Dir: sh.cwd})
	if err != nil {
		return nil, err
	}
	sh.running = p
	sh.ran = append(sh.ran, c.Script)
	played := &fakeShellProcess{p, sh, c}
	go played.playInShell()
	return played, nil
}

// fakeShellProcess is a command of a fakeShell.
type fakeShellProcess struct {
	*fakeProcess
	shell   *fakeShell
	command sandbox.ShellCommand
}

func (p *fakeShellProcess) Terminal() sandbox.Terminal { return p.shell.terminal }

func (p *fakeShellProcess) playInShell() {
	verb, rest, _ := strings.Cut(p.command.Script, " ")
	switch verb {
	case "cd":
		p.shell.shellMu.Lock()
		p.shell.cwd = rest
		p.shell.shellMu.Unlock()
		p.exit(0)
	case "read":
		p.print(p.shell.terminal.line(p.done))
		p.exit(0)
	case "tty":
		p.onTerminal(rest)
		p.exit(0)
	case "ask":
		p.onTerminal(rest)
		p.print(p.shell.terminal.line(p.done))
		p.exit(0)
	case "quit":
		var code int
		_, _ = fmt.Sscan(rest, &code)
		p.endWithBash(sandbox.Result{ExitCode: code}, false)
	case "suicide":
		p.endWithBash(sandbox.Result{Signal: "KILL"}, false)
	case "corrupt":
		p.endWithBash(sandbox.Result{Signal: "KILL"}, true)
	case "deaf":
	default:
		p.play()
	}
}

func (p *fakeShellProcess) onTerminal(text string) {
	for _, w := range []io.Writer{p.shell.spec.Output, p.command.Terminal} {
		if w != nil {
			_, _ = io.WriteString(w, text)
		}
	}
}

// endWithBash ends the command as bash ends.
func (p *fakeShellProcess) endWithBash(r sandbox.Result, corrupt bool) {
	of := r
	of.Shell = &sandbox.ShellState{Ended: !corrupt, Corrupt: corrupt}
	p.shell.terminal.flush()
	p.fakeProcess.end(of)
	p.shell.end(r)
}

// Result adds what a command of a shell says of it.
func (p *fakeShellProcess) Result() sandbox.Result {
	r := p.fakeProcess.Result()
	if r.Shell == nil && !r.Lost {
		p.shell.shellMu.Lock()
		r.Shell = &sandbox.ShellState{Cwd: p.shell.cwd, CwdGone: p.shell.cwd == "gone"}
		p.shell.shellMu.Unlock()
	}
	return r
}

func (p *fakeShellProcess) Kill(ctx context.Context) error {
	if p.command.Script == "deaf" {
		p.endWithBash(sandbox.Result{Signal: "KILL"}, false)
		if p.shell.onDeath != nil {
			p.shell.onDeath()
		}
		return nil
	}
	return p.fakeProcess.Kill(ctx)
}

// looked gives how often Reading was asked.
func (t *fakeTerminal) looked() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.looks
}
