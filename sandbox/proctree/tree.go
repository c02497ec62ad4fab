package proctree

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// Born is a process by its pid and when it began, in ticks since the host did: another
// one with the same pid began later.
type Born struct {
	PID   int
	Birth uint64
}

// Ended says whether it has ended, waited for or not. It fails where that cannot be
// looked at.
func (b Born) Ended() (bool, error) {
	s, err := StatOf(b.PID)
	if gone(err) {
		return true, nil
	}
	return s.Birth != b.Birth || s.Ended(), err
}

// signal sends it a signal, and says whether there was anything to signal. It holds one
// descriptor for that time, by which a pid that comes to be another's is never hit.
func (b Born) signal(sig unix.Signal) (reached bool, err error) {
	handle, err := openProcess(b.PID, 0)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
		return false, nil // it was waited for, or is just then
	}
	if err != nil {
		return false, fmt.Errorf("cannot open process %d: %w", b.PID, err)
	}
	defer unix.Close(handle)
	// It is looked at after it was opened: what is seen is what is signalled, or gone.
	if ended, err := b.Ended(); ended || err != nil {
		return false, err
	}
	err = unix.PidfdSendSignal(handle, sig, nil, 0)
	if errors.Is(err, unix.ESRCH) {
		return false, nil
	}
	return err == nil, err
}

// tree knows every process that was seen below top by when it began, so that a reused
// pid is never hit. It holds none of them by a descriptor: there may be more of them
// than a process may have, and what cannot be opened would be left alive.
type tree struct {
	top     int
	without func(pid int) (bool, error) // what is not in the tree, with what is below it; nil: nothing
	births  map[int]uint64              // by pid
	order   []int                       // those pids, each after its parent's
}

// grow finds the processes that are new in the tree.
func (t *tree) grow() (fresh map[int]uint64, err error) {
	if t.births == nil {
		t.births = map[int]uint64{}
	}
	pids, _, err := below(t.top, t.without)
	if err != nil {
		return nil, err
	}
	fresh = map[int]uint64{}
	for _, pid := range pids {
		if _, known := t.births[pid]; known {
			continue
		}
		s, err := StatOf(pid)
		if gone(err) {
			continue
		}
		if err != nil {
			return nil, err // what cannot be looked at has not ended
		}
		// Meanwhile the pid may have come to be another's: what is seen belongs here
		// if its parent does.
		if s.Parent != t.top && !slices.Contains(pids, s.Parent) {
			continue
		}
		t.births[pid], fresh[pid] = s.Birth, s.Birth
		t.order = append(t.order, pid)
	}
	return fresh, nil
}

// send signals some of the processes, each after its parent: a shell that saw its
// child stop before it is stopped itself would go on as if that were a result. It says
// how many it reached. Where one cannot be signalled the others are, and it fails.
func (t *tree) send(some map[int]uint64, sig unix.Signal) (reached int, err error) {
	for _, pid := range t.order {
		birth, ok := some[pid]
		if !ok {
			continue
		}
		ok, failure := Born{pid, birth}.signal(sig)
		if ok {
			reached++
		}
		err = errors.Join(err, failure)
	}
	return reached, err
}
