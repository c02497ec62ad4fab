package supervisor

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"envapi/sandbox"
	"envapi/sandbox/frames"
	"envapi/sandbox/inotify"
	"envapi/sandbox/proctree"
)

// shellCommand is a command of a shell.
type shellCommand struct {
	shell  *shell
	frame  *frames.Frame
	output frames.Output
	pumps  []*pump
	asides []*sideline
	shared bool   // see sandbox.ShellState
	since  uint64 // when it began (proctree.Now)

	opened   chan struct{}      // closed when bash has opened the script
	openedAt atomic.Int64       // when, in nanoseconds
	made     chan inotify.Event // what is made in the folder
	watch    *inotify.Watch     // of that
	acting   turn               // who sends it a signal has it: so none comes to the next command
	over     bool               // it has ended, and the shell may be another's; needs acting
	killed   bool               // by Kill, before that; needs acting
	result   sandbox.Result     // set once, before done is closed
	done     chan struct{}
	quiet    chan struct{}
	openOnce sync.Once
}

// newCommand makes what bash is to be told of.
func (s *shell) newCommand(c sandbox.ShellCommand) (*shellCommand, error) {
	watcher, err := s.box.watcher.get()
	if err != nil {
		return nil, err
	}
	output := frames.Apart
	switch {
	case c.OnTerminal:
		output = frames.OnTerminal
	case c.Stderr == nil:
		output = frames.Merged
	}
	frame, err := s.folder.New(c.Script, output)
	if err != nil {
		return nil, &sandbox.StartError{Err: err}
	}
	command := &shellCommand{
		shell: s, frame: frame, output: output, shared: s.shared, since: proctree.Now(), opened: make(chan struct{}), made: make(chan inotify.Event, 1),
		acting: newTurn(), done: make(chan struct{}), quiet: make(chan struct{}),
	}
	if err = frame.Watch(watcher, command.wasOpened); err == nil {
		err = command.arm()
	}
	if err != nil && !errors.Is(err, inotify.ErrFull) {
		frame.Remove()
		frame.CloseAll()
		return nil, &sandbox.StartError{Err: err}
	}
	command.startPumps(c)
	s.counting.mark()
	return command, nil
}

func (c *shellCommand) wasOpened() {
	c.openOnce.Do(func() {
		c.openedAt.Store(time.Now().UnixNano())
		close(c.opened)
	})
}

// noticeOpened is for a script that has no watch.
func (c *shellCommand) noticeOpened() {
	if c.frame.WasOpened() {
		c.wasOpened()
	}
}

// arm has the next thing that is made in the folder told. Where it fails with
// inotify.ErrFull, the record must be looked for.
func (c *shellCommand) arm() error {
	watcher, err := c.shell.box.watcher.get()
	if err != nil {
		return err
	}
	watch, err := c.frame.WatchRecord(watcher, func(e inotify.Event) {
		select {
		case c.made <- e:
		default: // the one before was not taken yet, and is as good
		}
	})
	if err == nil {
		c.watch = watch
	}
	return err
}

// startPumps lets the output through.
func (c *shellCommand) startPumps(to sandbox.ShellCommand) {
	writers := []io.Writer{&inTurn{to: orDiscard(to.Stdout)}, &inTurn{to: orDiscard(to.Stderr)}}
	terminal := to.Terminal
	if c.output == frames.OnTerminal {
		terminal = writers[0]
	}
	c.shell.tty.output.to(terminal)
	for i, w := range writers[:c.output.Pipes()] {
		c.pumps = append(c.pumps, startPump(c.frame.Pipe(i).Read, w, drainPipe))
	}
	for i, w := range writers[:c.output.Asides()] {
		c.asides = append(c.asides, newSideline(c.frame, c.output.Pipes()+i, w))
	}
}

// discard undoes what was made for a command that bash was not told of.
func (c *shellCommand) discard() {
	c.watch.Cancel()
	c.frame.Remove()
	c.release()
	c.shell.tty.output.to(nil)
	for _, p := range c.pumps {
		p.stop()
	}
	for _, a := range c.asides {
		a.end(false)
	}
}

// release lets the pipes end.
func (c *shellCommand) release() {
	for i := range c.output.Pipes() + c.output.Asides() {
		c.frame.Pipe(i).Release()
	}
}

// Done implements sandbox.Process.
func (c *shellCommand) Done() <-chan struct{} { return c.done }

// Quiet implements sandbox.Process.
func (c *shellCommand) Quiet() <-chan struct{} { return c.quiet }

// Input implements sandbox.Process.
func (c *shellCommand) Input() sandbox.Input { return c.Terminal() }

// Terminal implements sandbox.Process.
func (c *shellCommand) Terminal() sandbox.Terminal {
	return &shellTerminal{c.shell.tty, &c.shell.gate, c}
}

// Result implements sandbox.Process.
func (c *shellCommand) Result() sandbox.Result {
	<-c.done
	return c.result
}

var _ sandbox.Process = (*shellCommand)(nil)
