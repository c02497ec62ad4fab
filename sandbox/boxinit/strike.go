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
		if err != nil {
			return 0, err
		}
		return reached, awaitEnds(held, below)
	case request.Tree:
		return held.SignalTree(request.Signal)
	}
	ok, err := held.Signal(request.Signal)
	if !ok || err != nil {
		return 0, err
	}
	if kills {
		err = awaitEnds(held, nil)
	}
	return 1, err
}

// awaitEnds waits until a process that was killed has ended, and what was below it.
func awaitEnds(held proctree.Held, below []proctree.Born) error {
	for deadline := time.Now().Add(killPatience); ; pause() {
		below = slices.DeleteFunc(below, func(b proctree.Born) bool {
			ended, err := b.Ended()
			return ended && err == nil
		})
		if len(below) == 0 && held.Ended() {
			return nil
		}
		if time.Now().After(deadline) {
			return unix.ETIMEDOUT
		}
	}
}
