package supervisor

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"envapi/sandbox"
	"envapi/sandbox/frames"
	"envapi/sandbox/protocol"
)

// shell is a bash that takes commands in frames (package frames).
//
//	service                                       bash
//	    │  file, pipes by name                      │
//	    │ ──────────── the folder of the shell ───▶ │
//	    │  ((0)) or …      what $? is to be         │
//	    │  \. FILE …       run it                   │
//	    │  >NONCE.$?       say how it ended         │
//	    │ ──── its standard input, line by line ──▶ │  opens FILE
//	    │ ◀──────────────────────────── inotify ─── │  …
//	    │ ◀──────────────────────────── inotify ─── │  makes NONCE.0
//
// The terminal is what commands have as standard input, and nothing that bash
// reads or writes itself. docs/adr/framing.md says why.
type shell struct {
	*process // bash
	folder   *frames.Folder
	lines    *os.File      // where bash's standard input is written, a line a packet
	modes    *unix.Termios // of the terminal, for every command anew
	gate     gate          // to the terminal

	// These belong to the command that has the shell.
	bash    *bash         // nil until it has answered
	code    int           // what $? is
	settled bool          // bash has that itself
	killed  bool          // the command before was, and bash may not have noticed
	marks   uint64        // how many there were, and one
	marked  chan struct{} // closed when what was there before the next command is noted
	shared  bool          // that was more than bash; to be read after that

	mu    sync.Mutex
	busy  bool // a command has the shell: it is being started, or runs
	users int  // who needs folder and lines: bash, and a command
}

// Run implements sandbox.Shell.
func (s *shell) Run(ctx context.Context, c sandbox.ShellCommand) (sandbox.Process, error) {
	if err := s.take(); err != nil {
		return nil, err
	}
	command, err := s.begin(ctx, c)
	if err != nil {
		s.giveBack()
		return nil, err
	}
	return command, nil
}

// take has the shell for one command.
func (s *shell) take() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.done:
		return sandbox.ErrShellClosed
	default:
	}
	if s.busy {
		return sandbox.ErrShellBusy
	}
	s.busy = true
	s.users++
	return nil
}

// giveBack lets the next command have the shell.
func (s *shell) giveBack() {
	s.mu.Lock()
	s.busy = false
	s.mu.Unlock()
	s.letGo()
}

// letGo is for who needs the folder and the lines no more.
func (s *shell) letGo() {
	s.mu.Lock()
	s.users--
	last := s.users == 0
	s.mu.Unlock()
	if !last {
		return
	}
	_ = s.lines.Close()
	s.folder.Close()
	s.bash.close()
}

// watchEnd waits for the end of bash.
func (s *shell) watchEnd() {
	<-s.done
	s.gate.shut()
	s.letGo()
}

// begin waits until it is known what is there before the command, and starts it.
func (s *shell) begin(ctx context.Context, c sandbox.ShellCommand) (*shellCommand, error) {
	select {
	case <-s.marked:
	case <-s.done:
		return nil, sandbox.ErrShellClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	command, err := s.newCommand(c)
	if err != nil {
		return nil, err
	}
	s.since.Store(s.marks)
	s.gate.open(command)
	if err := s.send(command); err != nil {
		s.gate.shut()
		command.discard()
		return nil, err
	}
	go command.follow()
	return command, nil
}

// send tells bash of a command.
func (s *shell) send(c *shellCommand) error {
	if err := s.restore(c); err != nil {
		return err
	}
	if err := s.say(c.frame.ScriptLine(c.output)); err != nil {
		return err
	}
	// From here on it is started, and can end bash before the next line is written.
	// Why ever that cannot be: it is for who follows the command to find.
	_ = s.say(c.frame.RecordLine())
	return nil
}

// restore makes $? what the command before has left.
func (s *shell) restore(c *shellCommand) error {
	if s.killed {
		if err := s.say(frames.ReapLine); err != nil {
			return err
		}
	}
	if s.code == 0 && s.settled {
		return nil
	}
	line, err := c.frame.StatusLine(s.code)
	if err != nil {
		return err
	}
	return s.say(line)
}

// say writes a line, which is a packet of its own. There is room for it: bash has
// read all before.
func (s *shell) say(line string) error {
	_ = s.lines.SetWriteDeadline(time.Now().Add(linePatience))
	_, err := s.lines.WriteString(line)
	if errors.Is(err, unix.EPIPE) || errors.Is(err, os.ErrClosed) { // it has ended, and may be done with (letGo)
		return sandbox.ErrShellClosed
	}
	return err
}

// mark notes what processes the shell has now.
func (s *shell) mark() {
	marked := make(chan struct{})
	s.marked = marked
	s.marks++
	go func() {
		defer close(marked)
		answer, err := s.box.ask(context.Background(), func(seq uint64) protocol.Request {
			return protocol.Request{Mark: &protocol.Mark{Seq: seq, ID: s.id}}
		})
		// What is not known is not alone.
		s.shared = err != nil || answer.Marked == nil || answer.Marked.Errno != 0 || !answer.Marked.Alone
	}()
}

// Leave implements sandbox.Shell.
func (s *shell) Leave(ctx context.Context) error { return s.process.leave(ctx) }

// Input implements sandbox.Process.
func (s *shell) Input() sandbox.Input { return s.Terminal() }

// Terminal implements sandbox.Process.
func (s *shell) Terminal() sandbox.Terminal { return &shellTerminal{s.tty, &s.gate, nil} }

var _ sandbox.Shell = (*shell)(nil)
