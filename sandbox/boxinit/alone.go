package boxinit

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"envapi/sandbox/proctree"
	"envapi/sandbox/protocol"
)

// alonePatience is how long processes that were killed may take to be gone: one
// that is in an uninterruptible call delays it.
const alonePatience = 10 * time.Second

// everybody is -1, the pid that stands for all processes that a signal may reach.
const everybody = ^uintptr(0)

// alone ends every process of the host uid that the init is about to take:
// what a box before it left there, when a command had killed its init. The
// kernel sends one kill to all of them at once, and a fork that it interrupts
// does not happen, so that no forker outruns it (kill(2)).
func alone(s *protocol.Setup, _ []int) error {
	if os.Geteuid() != 0 {
		return errors.New("cannot take a uid of the host: only root can")
	}
	if err := killAllOf(s.ID); err != nil {
		return err
	}
	return awaitNone(s.ID)
}

// killAllOf kills what has a uid. Only this thread takes the uid, for two system
// calls: its real uid must be that one too, since a kill reaches what has the
// real or the effective uid of the sender, and then a process of that uid may
// kill the init in turn. Where one does, the box is not made. The saved uid
// stays 0 for the way back.
func killAllOf(id int) error {
	uid := uintptr(id)
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uid, uid, 0); errno != 0 {
		return fmt.Errorf("cannot take uid %d: %w", id, errno)
	}
	killed := unix.EPERM
	if !mayKillAnybody() {
		_, _, killed = unix.RawSyscall(unix.SYS_KILL, everybody, uintptr(unix.SIGKILL), 0)
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, 0, 0, 0); errno != 0 {
		return fmt.Errorf("cannot be root again: %w", errno)
	}
	if killed != 0 && killed != unix.ESRCH { // there is no other process
		return fmt.Errorf("cannot kill what has uid %d: %w", id, killed)
	}
	return nil
}

// mayKillAnybody says whether this thread's kill would reach every process of the
// host. To take a uid takes that away, but where the service was started with the
// secure bit that keeps capabilities (SECBIT_NO_SETUID_FIXUP, capabilities(7)).
func mayKillAnybody() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	err := unix.Capget(&header, &data[0])
	return err != nil || data[0].Effective&(1<<unix.CAP_KILL) != 0
}

// awaitNone waits until no process has a uid.
func awaitNone(id int) error {
	for deadline := time.Now().Add(alonePatience); ; pause() {
		n, err := countOf(id)
		if err != nil || n == 0 {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("cannot have uid %d alone: %d of its processes were killed and do not end", id, n)
		}
	}
}

// countOf counts the processes that have a uid and have not ended. A zombie can
// do nothing any more.
func countOf(id int) (int, error) {
	proc, err := os.Open("/proc")
	if err != nil {
		return 0, fmt.Errorf("cannot look for processes: %w", err)
	}
	defer proc.Close()
	names, err := proc.Readdirnames(0)
	if err != nil {
		return 0, fmt.Errorf("cannot look for processes: %w", err)
	}
	n := 0
	for _, name := range names {
		if name[0] < '0' || name[0] > '9' {
			continue
		}
		status, err := os.ReadFile("/proc/" + name + "/status")
		if err == nil && hasUID(status, id) { // else it has ended
			n++
		}
	}
	return n, nil
}

// hasUID says whether a /proc/PID/status is of a process with a uid, in whatever
// place, that can still run.
func hasUID(status []byte, id int) bool {
	if hasEnded(status) {
		return false
	}
	for uid := range strings.FieldsSeq(proctree.Field(status, "Uid")) {
		if uid == strconv.Itoa(id) {
			return true
		}
	}
	return false
}

// hasEnded says whether nothing of a process runs any more. One whose first thread
// alone has ended goes on.
func hasEnded(status []byte) bool {
	state := proctree.Field(status, "State")
	threads, _ := strconv.Atoi(proctree.Field(status, "Threads"))
	return threads <= 1 && (strings.HasPrefix(state, "Z") || strings.HasPrefix(state, "X"))
}
