package boxinit

import (
	"errors"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"envapi/sandbox/proctree"
	"envapi/sandbox/protocol"
)

const (
	// maxPID is more than any pid (PID_MAX_LIMIT).
	maxPID = 1 << 22
	// maxClaims is how often a line of ancestors is looked at that changes meanwhile.
	maxClaims = 100
)

// errChanging says that a line of ancestors was another at every look.
var errChanging = unix.EAGAIN

// claim opens the process that is aimed at, and sees on what it has opened that it
// is one of the box's: it descends from the init, is not that, and no reaper. The
// caller closes it.
func (s *server) claim(aim protocol.Aim) (proctree.Held, error) {
	if aim.PID <= 0 || aim.PID > maxPID || aim.PID == os.Getpid() {
		return proctree.Held{}, protocol.NoProcess
	}
	handle, err := unix.PidfdOpen(aim.PID, unix.PIDFD_NONBLOCK)
	switch {
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE), errors.Is(err, unix.ENOMEM):
		return proctree.Held{}, err
	case err != nil: // there is none, or it is a thread's
		return proctree.Held{}, protocol.NoProcess
	}
	held := proctree.Held{PID: aim.PID, Handle: handle}
	if err := s.check(held, aim); err != nil {
		_ = unix.Close(handle)
		return proctree.Held{}, err
	}
	return held, nil
}

// check says why a process is not the one that is aimed at.
func (s *server) check(held proctree.Held, aim protocol.Aim) error {
	birth, err := descends(held.PID, os.Getpid())
	if err != nil {
		return err
	}
	// All that was read was of what was opened if that was not waited for since.
	if s.isReaper(held.PID) || held.Reaped() {
		return protocol.NoProcess
	}
	if aim.Birth != 0 && aim.Birth != birth {
		return protocol.Replaced
	}
	return nil
}

func (s *server) isReaper(pid int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.pids[pid]
	return c != nil && c.reaper == pid
}

// kin is a process in a line of ancestors.
type kin struct {
	pid, parent int
	birth       uint64
}

// descends gives when a process began that has top above it.
func descends(pid, top int) (birth uint64, err error) {
	for range maxClaims {
		line, ended := lineOf(pid, top)
		if len(line) == 0 {
			return 0, protocol.NoProcess
		}
		if ended || !holds(line) {
			continue // an ancestor has ended meanwhile
		}
		if line[len(line)-1].parent != top {
			return 0, protocol.NoProcess
		}
		return line[0].birth, nil
	}
	return 0, errChanging
}

// lineOf gives a process and its ancestors, up to the child of top, or of nobody,
// and whether one of them had ended when it was looked for.
func lineOf(pid, top int) (line []kin, ended bool) {
	for len(line) < maxPID {
		stat, err := proctree.StatOf(pid)
		if err != nil {
			return line, true
		}
		line = append(line, kin{pid, stat.Parent, stat.Birth})
		if stat.Parent == top || stat.Parent == 0 {
			break
		}
		pid = stat.Parent
	}
	return line, false
}

// holds looks at a line again, from its end. If it is the same, every parent in it
// was that of the one before for as long as it was looked at, so that no pid in it
// was two processes'.
func holds(line []kin) bool {
	for _, k := range slices.Backward(line) {
		stat, err := proctree.StatOf(k.pid)
		if err != nil || stat.Parent != k.parent || stat.Birth != k.birth {
			return false
		}
	}
	return true
}
