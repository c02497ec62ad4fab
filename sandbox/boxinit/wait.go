package boxinit

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"envapi/sandbox/proctree"
	"envapi/sandbox/protocol"
)

// startWait begins a Wait request, so that a Cancel that follows finds it.
func (s *server) startWait(request *protocol.Wait) {
	ctx, cancel := context.WithCancel(context.Background())
	s.mu.Lock()
	s.waits[request.End] = cancel
	s.mu.Unlock()
	go func() {
		s.wait(ctx, request)
		s.cancelWait(request.End)
	}()
}

// cancelWait ends a wait, and does nothing where there is none.
func (s *server) cancelWait(end uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel := s.waits[end]; cancel != nil {
		cancel()
		delete(s.waits, end)
	}
}

// wait performs a Wait request.
func (s *server) wait(ctx context.Context, request *protocol.Wait) {
	held, err := s.claim(request.Aim)
	found := &protocol.Found{Seq: request.Seq}
	if err != nil {
		found.Errno = errnoOf(err)
	}
	s.send(protocol.Report{Found: found})
	if err != nil {
		return
	}
	f := os.NewFile(uintptr(held.Handle), "process")
	defer f.Close()
	waited := &protocol.Waited{End: request.End}
	if waited.Ended = awaitEnd(ctx, f) || held.Ended(); waited.Ended {
		waited.WaitStatus, waited.Known = exitOf(held)
	}
	s.send(protocol.Report{Waited: waited})
}

// awaitEnd waits until a process has ended, and says false where ctx did. It holds
// no thread.
func awaitEnd(ctx context.Context, process *os.File) bool {
	raw, err := process.SyscallConn()
	if err != nil {
		return false
	}
	stop := context.AfterFunc(ctx, func() { _ = process.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	return raw.Read(func(fd uintptr) bool { return proctree.Held{Handle: int(fd)}.Ended() }) == nil
}

const (
	// exitPatience is how long a parent may take in the middle of its wait.
	exitPatience = time.Second
	exitPause    = time.Millisecond
)

// exitOf gives the wait status of a process that has ended: as /proc has it until
// the process is waited for, and from then on as the kernel keeps it for who has it
// open, since Linux 6.15.
func exitOf(held proctree.Held) (status uint32, known bool) {
	for deadline := time.Now().Add(exitPatience); time.Now().Before(deadline); time.Sleep(exitPause) {
		if status, known := zombieStatus(held); known {
			return status, true
		}
		if held.Reaped() {
			return keptStatus(held)
		}
	}
	return 0, false
}

// zombieStatus reads how a process ended that was not waited for.
func zombieStatus(held proctree.Held) (status uint32, known bool) {
	// Who may not read it is shown 0. By the same right this link is read.
	if _, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/user", held.PID)); err != nil {
		return 0, false
	}
	stat, err := proctree.StatOf(held.PID)
	return stat.Exit, err == nil && stat.Ended() && !held.Reaped()
}

// pidfdInfoExit is PIDFD_INFO_EXIT (linux/pidfd.h), for which package unix has no name.
const pidfdInfoExit = 1 << 3

// keptStatus asks the kernel how a process ended that was waited for.
func keptStatus(held proctree.Held) (status uint32, known bool) {
	info := unix.PidfdInfo{Mask: pidfdInfoExit}
	err := unix.IoctlPidfdInfo(held.Handle, &info)
	return uint32(info.Exit_code), err == nil && info.Mask&pidfdInfoExit != 0 //nolint:gosec // a wait status
}
