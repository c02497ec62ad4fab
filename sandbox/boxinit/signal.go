package boxinit

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"envapi/sandbox/proctree"
	"envapi/sandbox/protocol"
)

const (
	// killPatience is how long the tree of a command may take to be gone
	// after it was killed: a process in an uninterruptible call delays it, and
	// thousands of them on a busy host do.
	killPatience = 10 * time.Second
	// killAgain is how often a kill is repeated for what was forked meanwhile.
	killAgain = 5 * time.Millisecond
)

// signal performs a Signal request.
func (s *server) signal(request *protocol.Signal) {
	s.mu.Lock()
	c := s.commands[request.ID]
	s.mu.Unlock()
	answer := &protocol.Signaled{Seq: request.Seq}
	var err error
	switch {
	case c == nil: // gone already
	case request.Leader:
		answer.Reached, err = s.signalLeader(c, request.Signal)
	case request.Fresh:
		answer.Reached, err = s.signalFresh(c, request)
	case request.Signal == unix.SIGKILL:
		err = s.kill(c)
	default:
		top, _ := s.treeOf(c)
		err = proctree.Signal(top, request.Signal)
	}
	if err != nil {
		answer.Errno = errnoOf(err)
	}
	s.send(protocol.Report{Signaled: answer})
}

// kill ends every process of a command and returns when none is left.
func (s *server) kill(c *command) error {
	deadline := time.After(killPatience)
	for {
		if err := s.killOnce(c); err != nil {
			return err
		}
		select {
		case <-c.gone:
			return nil
		case <-deadline:
			return unix.ETIMEDOUT
		case <-time.After(killAgain):
		}
	}
}

func (s *server) killOnce(c *command) error {
	top, _ := s.treeOf(c)
	if top == noProcess {
		s.killStrays()
		return nil
	}
	if err := proctree.Kill(top); err != nil {
		return err
	}
	// The command may have stopped it.
	_ = unix.Kill(top, unix.SIGCONT)
	return nil
}

// killAll ends everything that the init started, at its own end, and says whether
// it could. In a pid namespace the kernel does the same when it exits.
func (s *server) killAll() bool {
	if s.setup.Namespaces {
		return true
	}
	deadline := time.Now().Add(killPatience)
	for time.Now().Before(deadline) {
		pids, err := proctree.Descendants(os.Getpid())
		if err != nil || len(pids) == 0 {
			return err == nil
		}
		_ = proctree.Kill(os.Getpid())
		pause()
	}
	return false
}

func pause() { time.Sleep(killAgain) }
