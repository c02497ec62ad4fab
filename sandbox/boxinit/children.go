package boxinit

import (
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"envapi/sandbox/proctree"
	"envapi/sandbox/protocol"
)

// noticeChild wakes watchChildren.
func (s *server) noticeChild() {
	select {
	case s.born <- struct{}{}:
	default:
	}
}

// watchChildren waits for the init's own children: reapers, and orphans whose
// reaper was killed. It sleeps in the kernel while there are any.
func (s *server) watchChildren() {
	for range s.born {
		for {
			// Only a look: a pid is free for others once it was waited for, and
			// that must not be before it is known here.
			pid, errno := lookForEnd()
			if errno == unix.ECHILD {
				break
			}
			if errno == 0 {
				s.waitChild(pid)
			}
		}
	}
}

// lookForEnd sleeps until a child has ended, and gives its pid.
func lookForEnd() (int, syscall.Errno) {
	var c child
	_, _, errno := syscall.Syscall6(unix.SYS_WAITID, unix.P_ALL, 0, uintptr(unsafe.Pointer(&c)), unix.WEXITED|unix.WNOWAIT, 0, 0)
	return int(c.pid), errno
}

// waitChild takes the end of one child.
func (s *server) waitChild(pid int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pids[pid] == nil {
		s.loseReaperOf(pid)
	}
	var status syscall.WaitStatus
	var usage syscall.Rusage
	if got, err := syscall.Wait4(pid, &status, syscall.WNOHANG, &usage); err != nil || got != pid || status.Stopped() {
		return // stopped: it had the init trace it (PTRACE_TRACEME)
	}
	c := s.pids[pid]
	switch {
	case c == nil: // an orphan
	case pid == c.reaper:
		s.loseReaper(c, status)
	default:
		s.sendEnded(c, status, &usage)
		c.leader = 0
		s.settle(c)
	}
}

// loseReaperOf takes the end of the reaper of an orphan that leads a command. The
// kernel shows the children of one thread after those of another, and so may show
// the leader first.
func (s *server) loseReaperOf(orphan int) {
	for _, c := range s.commands {
		if c.reaper == 0 || int(c.plan.leader.Load()) != orphan {
			continue
		}
		var status syscall.WaitStatus
		if got, err := syscall.Wait4(c.reaper, &status, syscall.WNOHANG, nil); err == nil && got == c.reaper {
			s.loseReaper(c, status)
		}
		return // where it lives, the orphan has only the pid of a leader that is gone
	}
}

// loseReaper takes the end of a reaper. It has ended by itself when nothing of
// its command is left. Otherwise the command killed it, and dies for it: its
// leader, if it was not waited for, is now a child of the init.
func (s *server) loseReaper(c *command, status syscall.WaitStatus) {
	c.reaper = 0
	if status.Exited() {
		s.settle(c)
		return
	}
	if leader := int(c.plan.leader.Load()); c.plan.begun && isChild(leader) {
		c.leader = leader
		s.pids[leader] = c
	}
	go s.killStrays()
	s.settle(c)
}

// isChild says whether a process is a child of the init, which has not waited
// for it: a leader is not if its reaper had.
func isChild(pid int) bool {
	if pid == 0 {
		return false
	}
	return unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil) == nil
}

// settle says that nothing is left of a command; of one whose reaper was killed,
// once its leader has ended.
func (s *server) settle(c *command) {
	if c.leader == 0 {
		s.send(protocol.Report{Gone: &protocol.Gone{ID: c.id}})
		s.forget(c)
	}
}

func (s *server) sendEnded(c *command, status syscall.WaitStatus, usage *syscall.Rusage) {
	s.send(protocol.Report{Ended: &protocol.Ended{
		ID:              c.id,
		WaitStatus:      uint32(status),
		CPUMicroseconds: microseconds(usage),
		PeakMemoryBytes: peakMemory(usage),
	}})
}

func (s *server) forget(c *command) {
	delete(s.commands, c.id)
	for pid, owner := range s.pids {
		if owner == c {
			delete(s.pids, pid)
		}
	}
	close(c.gone)
}

// killStrays ends every child of the init that is no reaper, with its tree, as
// far as that can be done within killPatience.
func (s *server) killStrays() {
	for deadline := time.Now().Add(killPatience); time.Now().Before(deadline); pause() {
		strays := s.strays()
		if len(strays) == 0 {
			return
		}
		for _, pid := range strays {
			_ = proctree.Kill(pid)
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}

func (s *server) strays() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	children, err := proctree.Children(os.Getpid())
	if err != nil {
		return nil
	}
	var strays []int
	for _, pid := range children {
		if c := s.pids[pid]; c == nil || c.reaper != pid {
			strays = append(strays, pid)
		}
	}
	return strays
}
