package boxinit

import (
	"errors"
	"maps"
	"time"

	"golang.org/x/sys/unix"

	"envapi/sandbox/proctree"
	"envapi/sandbox/protocol"
)

// mark performs a Mark request.
func (s *server) mark(request *protocol.Mark) {
	answer := &protocol.Marked{Seq: request.Seq, Alone: true}
	s.mu.Lock()
	c := s.commands[request.ID]
	s.mu.Unlock()
	if c != nil {
		old, err := proctree.Births(s.treeOf(c))
		if err != nil {
			answer.Errno = errnoOf(err)
		}
		answer.Alone = len(old) == 0
		s.mu.Lock()
		c.remember(old)
		s.mu.Unlock()
	}
	s.send(protocol.Report{Marked: answer})
}

// arrival is when a process came.
type arrival struct {
	birth uint64
	marks uint64 // see protocol.Entity
}

// remember notes what there is at a mark, and of what is new since the last one that
// it came between the two.
func (c *command) remember(births map[int]uint64) {
	came := make(map[int]arrival, len(births))
	for pid, birth := range births {
		a, known := c.came[pid]
		if !known || a.birth != birth {
			a = arrival{birth, c.marks}
		}
		came[pid] = a
	}
	c.old, c.came = births, came
	c.marks++
}

// noProcess is a pid that no process has.
const noProcess = -1

// treeOf gives the top of a command's processes, and its leader. Where the command
// has killed its reaper, all that is left of it dies (loseReaper), and there is
// nothing to look for.
func (s *server) treeOf(c *command) (top, leader int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.reaper == 0 {
		return noProcess, noProcess
	}
	return c.reaper, int(c.plan.leader.Load())
}

func (s *server) signalLeader(c *command, sig unix.Signal) (reached int, err error) {
	top, leader := s.treeOf(c)
	err = proctree.SignalChild(top, leader, sig)
	if errors.Is(err, unix.ESRCH) { // it has ended
		return 0, nil
	}
	return 1, err
}

// signalFresh signals what has come to a command since the last mark.
func (s *server) signalFresh(c *command, request *protocol.Signal) (reached int, err error) {
	top, leader := s.treeOf(c)
	s.mu.Lock()
	fresh := proctree.Fresh{Top: top, Leader: leader, Old: maps.Clone(c.old), Since: request.Since}
	s.mu.Unlock()
	if request.Signal != unix.SIGKILL {
		return fresh.Signal(request.Signal)
	}
	if request.Interrupt {
		_ = proctree.SignalChild(top, leader, unix.SIGSTOP)
		defer func() {
			_ = proctree.SignalChild(top, leader, unix.SIGINT)
			_ = proctree.SignalChild(top, leader, unix.SIGCONT)
		}()
	}
	for deadline := time.Now().Add(killPatience); time.Now().Before(deadline); pause() {
		left, err := fresh.Kill()
		if err != nil || left == 0 {
			return 0, err
		}
	}
	return 0, unix.ETIMEDOUT
}
