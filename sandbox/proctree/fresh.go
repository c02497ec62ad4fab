package proctree

import (
	"errors"
	"maps"
	"time"

	"golang.org/x/sys/unix"
)

// Fresh are the processes below Top, without Leader, that were not there at an
// earlier time and do not descend from those.
//
// Not protected: what an old process has started in a way that hides it from its
// parent, by a double fork, is taken for a fresh one.
type Fresh struct {
	Top    int
	Leader int            // a child of Top
	Old    map[int]uint64 // what Births gave then
	Since  uint64         // what began before that is old too, in ticks since the host did
}

// Tick is how /proc counts (USER_HZ, which is the same everywhere).
const Tick = 10 * time.Millisecond

// Now gives the time as Since has it.
func Now() uint64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return 0 // before everything
	}
	return uint64(now.Nano()) / uint64(Tick) //nolint:gosec // after the host began
}

// Births gives the processes below top that have not ended, without leader, and
// when each began, so that another with the same pid is told from it.
func Births(top, leader int) (map[int]uint64, error) {
	pids, err := Descendants(top)
	if err != nil {
		return nil, err
	}
	births := map[int]uint64{}
	for _, pid := range pids {
		s, err := StatOf(pid)
		if err != nil && !gone(err) {
			return nil, err // else it would be taken for a fresh one later
		}
		if err == nil && !s.Ended() && pid != leader {
			births[pid] = s.Birth
		}
	}
	return births, nil
}

// isOld says whether a process was there at the earlier time.
func (f Fresh) isOld(pid int) (bool, error) {
	if pid == f.Leader {
		return false, nil
	}
	s, err := StatOf(pid)
	if err != nil {
		if gone(err) {
			err = nil
		}
		return false, err
	}
	birth, known := f.Old[pid]
	return known && s.Birth == birth || s.Birth < f.Since, nil
}

// Signal sends a signal to each of them, once, and says how many there were.
func (f Fresh) Signal(sig unix.Signal) (int, error) {
	t := tree{top: f.Top, without: f.isOld}
	fresh, err := t.grow()
	if err != nil {
		return 0, err
	}
	f.spare(fresh)
	return t.send(fresh, sig)
}

// Kill kills them, as the other Kill does, and says how many there were.
func (f Fresh) Kill() (int, error) {
	t := tree{top: f.Top, without: f.isOld}
	for {
		fresh, err := t.grow()
		f.spare(fresh)
		if err == nil && len(fresh) > 0 {
			var stopped int
			if stopped, err = t.send(fresh, unix.SIGSTOP); err == nil && stopped > 0 {
				continue
			}
		}
		all := maps.Clone(t.births)
		f.spare(all)
		killed, failure := t.send(all, unix.SIGKILL)
		return killed, errors.Join(err, failure)
	}
}

// spare takes out the leader, which is not meant. What has ended is not reached.
func (f Fresh) spare(births map[int]uint64) { delete(births, f.Leader) }

// SignalChild sends a signal to a process, if it is a child of parent.
func SignalChild(parent, pid int, sig unix.Signal) error {
	handle, err := openProcess(pid, 0)
	if err != nil {
		return err
	}
	defer unix.Close(handle)
	// It is looked at after it was opened, so that the pid was no other's.
	s, err := StatOf(pid)
	if err != nil && !gone(err) {
		return err
	}
	if err != nil || s.Parent != parent || s.Ended() {
		return unix.ESRCH
	}
	return unix.PidfdSendSignal(handle, sig, nil, 0)
}
