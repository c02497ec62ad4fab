package proctree

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// Held is a process that is held by a descriptor (pidfd_open(2)).
type Held struct{ PID, Handle int }

// Reaped says whether it has ended and was waited for: from then on its pid can be
// another's. Until then what /proc says of the pid is said of it.
func (h Held) Reaped() bool {
	return errors.Is(unix.PidfdSendSignal(h.Handle, 0, nil, 0), unix.ESRCH)
}

// Ended says whether it has ended, waited for or not.
func (h Held) Ended() bool {
	poll := []unix.PollFd{{Fd: int32(h.Handle), Events: unix.POLLIN}} //nolint:gosec // a descriptor
	n, err := unix.Poll(poll, 0)
	return err == nil && n == 1
}

// Signal sends it a signal, and says whether there was anything to signal.
func (h Held) Signal(sig unix.Signal) (reached bool, err error) {
	if h.Ended() {
		return false, nil
	}
	err = unix.PidfdSendSignal(h.Handle, sig, nil, 0)
	if errors.Is(err, unix.ESRCH) {
		return false, nil
	}
	return err == nil, err
}

// SignalTree sends a signal to it and to all below it, parents first, and says how
// many it reached.
func (h Held) SignalTree(sig unix.Signal) (reached int, err error) {
	t := tree{top: h.PID}
	if _, err := h.grow(&t); err != nil {
		return 0, err
	}
	return h.signalAll(&t, sig)
}

// KillTree kills it and all below it, and says how many that were, and what was below
// it. It first stops them, until no look finds a new one, so that nobody outruns it.
// Where one cannot be looked at or signalled, those that were found are killed, and it
// fails.
//
// Not protected: what has left its parent, by a double fork, is not below any more.
func (h Held) KillTree(patience time.Duration) (reached int, below []Born, err error) {
	t := tree{top: h.PID}
	_, err = h.Signal(unix.SIGSTOP)
	for deadline := time.Now().Add(patience); err == nil; {
		var fresh map[int]uint64
		fresh, err = h.grow(&t)
		if err != nil || len(fresh) == 0 {
			break
		}
		_, err = t.send(fresh, unix.SIGSTOP)
		if time.Now().After(deadline) {
			err = unix.ETIMEDOUT
		}
	}
	reached, failure := h.signalAll(&t, unix.SIGKILL)
	for pid, birth := range t.births {
		below = append(below, Born{pid, birth})
	}
	return reached, below, errors.Join(err, failure)
}

// grow lets the tree below it grow. What is found after it was waited for is another's.
func (h Held) grow(t *tree) (fresh map[int]uint64, err error) {
	fresh, err = t.grow()
	if err != nil || !h.Reaped() {
		return fresh, err
	}
	for pid := range fresh {
		delete(t.births, pid)
	}
	return nil, nil
}

// signalAll signals it and then what was found below it.
func (h Held) signalAll(t *tree, sig unix.Signal) (reached int, err error) {
	itself, err := h.Signal(sig)
	if err != nil {
		return 0, err
	}
	reached, err = t.send(t.births, sig)
	if itself {
		reached++
	}
	return reached, err
}
