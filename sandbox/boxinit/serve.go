package boxinit

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"envapi/sandbox/proctree"
	"envapi/sandbox/protocol"
)

// serve performs requests until the supervisor closes the socket. It runs on
// the locked thread.
func (s *server) serve() {
	for {
		request, fds, err := protocol.ReadRequest(protocol.ControlFD)
		if err != nil {
			return
		}
		switch {
		case request.Spawn != nil:
			s.spawn(request.Spawn, fds)
		case request.Signal != nil:
			go s.signal(request.Signal)
		case request.Mark != nil:
			go s.mark(request.Mark)
		case request.Count != nil:
			s.send(protocol.Report{Counted: s.count(request.Count.Seq)})
		case request.List != nil:
			s.startList(request.List, fds)
			fds = nil
		case request.Strike != nil:
			go s.strike(request.Strike)
		case request.Wait != nil:
			s.startWait(request.Wait)
		case request.Cancel != nil:
			s.cancelWait(request.Cancel.End)
		default: // a second setup
			return
		}
		protocol.CloseAll(fds)
	}
}

// send writes a report; that the supervisor is gone is found by serve. It must not
// end the init, by SIGPIPE, in the middle of ending what it started.
func (s *server) send(r protocol.Report) {
	frame, err := protocol.Encode(r, 0)
	if err != nil {
		return
	}
	s.sending.Lock()
	defer s.sending.Unlock()
	for len(frame) > 0 {
		n, err := unix.SendmsgN(protocol.ControlFD, frame, nil, nil, unix.MSG_NOSIGNAL)
		if err != nil && err != unix.EINTR {
			return
		}
		frame = frame[max(n, 0):]
	}
}

// count gives the number of processes in the box, without its own.
func (s *server) count(seq uint64) *protocol.Counted {
	pids, err := proctree.Descendants(os.Getpid())
	if err != nil {
		return &protocol.Counted{Seq: seq, Errno: errnoOf(err)}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	counted := &protocol.Counted{Seq: seq}
	for _, pid := range pids {
		if c := s.pids[pid]; c == nil || c.reaper != pid {
			counted.Processes++
		}
	}
	return counted
}

// errnoOf gives the system's reason of an error, or EIO where it has none.
func errnoOf(err error) syscall.Errno {
	errno := unix.EIO
	errors.As(err, &errno)
	return errno
}
