package boxinit

import (
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"envapi/sandbox/proctree"
	"envapi/sandbox/protocol"
)

// strike performs a Strike request.
func (s *server) strike(request *protocol.Strike) {
	answer := &protocol.Signaled{Seq: request.Seq}
	held, err := s.claim(request.Aim)
	if err == nil {
		answer.Reached, err = hit(held, request)
		_ = unix.Close(held.Handle)
	}
	if err != nil {
		answer.Errno = errnoOf(err)
	}
	s.send(protocol.Report{Signaled: answer})
}

// hit signals a process that was claimed. After a KILL it waits until what it has
// reached has ended.
func hit(held proctree.Held, request *protocol.Strike) (reached int, err error) {
	kills := request.Signal == unix.SIGKILL
	switch {
	case kills && request.Tree:
		reached, below, err := held.KillTree(killPatience)
		defer closeAll(below)
		if err != nil {
			return 0, err
		}
		return reached, awaitEnds(append(below, held)...)
	case request.Tree:
		return held.SignalTree(request.Signal)
	}
	ok, err := held.Signal(request.Signal)
	if !ok || err != nil {
		return 0, err
	}
	if kills {
		err = awaitEnds(held)
	}
	return 1, err
}

func closeAll(processes []proctree.Held) {
	for _, h := range processes {
		_ = unix.Close(h.Handle)
	}
}

// awaitEnds waits until processes that were killed have ended.
func awaitEnds(killed ...proctree.Held) error {
	for deadline := time.Now().Add(killPatience); ; pause() {
		killed = slices.DeleteFunc(killed, proctree.Held.Ended)
		if len(killed) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return unix.ETIMEDOUT
		}
	}
}
