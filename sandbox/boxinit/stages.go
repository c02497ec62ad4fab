package boxinit

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"envapi/sandbox/landlock"
	"envapi/sandbox/protocol"
)

// stage is one step of the lock-down.
type stage struct {
	name string
	only func(*protocol.Setup) bool // nil: always
	run  func(*protocol.Setup, []int) error
}

// stages are performed in this order. What needs privileges comes before they
// are dropped; Landlock needs no_new_privs; a system call filter comes last.
var stages = []stage{
	{"alone", takesHostUID, alone},
	{"identity", nil, identity},
	{"root", namespaces, buildRoot},
	{"pivot", namespaces, pivot},
	{"hostname", namespaces, hostname},
	{"shares", namespaces, takeShares},
	{"loopback", namespaces, loopback},
	{"descriptors", nil, descriptors},
	{"capabilities", nil, dropCapabilities},
	{"no_new_privs", nil, noNewPrivs},
	{"landlock", hasLandlock, restrict},
	{"seccomp", nil, filter},
	{"verify", nil, verify},
}

func namespaces(s *protocol.Setup) bool { return s.Namespaces }

// takesHostUID says whether the init becomes a user of the host.
func takesHostUID(s *protocol.Setup) bool { return !s.Namespaces && s.ID != 0 }

func hasLandlock(s *protocol.Setup) bool { return len(s.Landlock) > 0 }

// runStages performs the stages and closes fds. It says which one failed.
func runStages(s *protocol.Setup, fds []int) *protocol.Failed {
	defer protocol.CloseAll(fds)
	for _, stage := range stages {
		if stage.only != nil && !stage.only(s) {
			continue
		}
		if err := stage.run(s, fds); err != nil {
			failed := &protocol.Failed{Stage: stage.name, Message: err.Error()}
			errors.As(err, &failed.Errno)
			return failed
		}
	}
	return nil
}

// processName is what ps shows for the init and the reapers.
var processName = []byte("envapi-init\x00")

// nameThread names the calling thread, and what starts on it. For show alone.
func nameThread() {
	_ = unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&processName[0])), 0, 0, 0)
}

// identity makes the init unreadable for what it starts, and its end certain.
func identity(s *protocol.Setup, _ []int) error {
	if s.Namespaces && os.Getpid() != 1 {
		return errors.New("cannot be init: not the first process of its pid namespace")
	}
	if err := becomeSomebody(s); err != nil {
		return err
	}
	if os.Geteuid() == 0 {
		return errors.New("cannot run as uid 0: no command may")
	}
	// Not dumpable: /proc/1/exe, mem, environ and ptrace are refused to
	// processes of the same uid.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("cannot become not dumpable: %w", err)
	}
	nameThread()
	// Orphans whose reaper was killed come here and not to the host's init.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("cannot become subreaper: %w", err)
	}
	return nil
}

// becomeSomebody makes the init who it is to be. In namespaces its end is tied to
// the supervisor's again, since a change of uid unties it. Without a pid namespace
// it is not tied: it must outlive the supervisor to end what it started.
func becomeSomebody(s *protocol.Setup) error {
	switch {
	case s.Namespaces:
		if err := becomeUser(s.ID, s.DropGroups); err != nil {
			return err
		}
		if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
			return fmt.Errorf("cannot be tied to the supervisor: %w", err)
		}
		return nil
	case takesHostUID(s):
		if err := emptyBoundingSet(); err != nil { // while it is root: afterwards it cannot
			return err
		}
		return becomeUser(s.ID, s.DropGroups)
	default:
		return nil
	}
}

// becomeUser takes a uid and the gid of the same number on every thread.
func becomeUser(id int, dropGroups bool) error {
	own := uintptr(id)
	if dropGroups {
		if errno := onAllThreads(unix.SYS_SETGROUPS, 0, 0, 0); errno != 0 {
			return fmt.Errorf("cannot drop the supplementary groups: %w", errno)
		}
	}
	if errno := onAllThreads(unix.SYS_SETRESGID, own, own, own); errno != 0 {
		return fmt.Errorf("cannot take gid %d: %w", id, errno)
	}
	if errno := onAllThreads(unix.SYS_SETRESUID, own, own, own); errno != 0 {
		return fmt.Errorf("cannot take uid %d: %w", id, errno)
	}
	return nil
}

func hostname(s *protocol.Setup, _ []int) error {
	if err := unix.Sethostname([]byte(s.Hostname)); err != nil {
		return fmt.Errorf("cannot set the host name: %w", err)
	}
	return nil
}

// loopback brings up the one interface of the empty network namespace, so that
// programs inside can talk to each other.
func loopback(*protocol.Setup, []int) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("cannot open a socket for the loopback interface: %w", err)
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return fmt.Errorf("cannot name the loopback interface: %w", err)
	}
	request.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request); err != nil {
		return fmt.Errorf("cannot bring up the loopback interface: %w", err)
	}
	return nil
}

// descriptors replaces the standard descriptors by the box's own /dev/null, so
// that nothing refers to the host's file tree any more.
func descriptors(*protocol.Setup, []int) error {
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("cannot open /dev/null: %w", err)
	}
	defer unix.Close(null)
	for fd := range 3 {
		if err := unix.Dup3(null, fd, 0); err != nil {
			return fmt.Errorf("cannot replace a standard descriptor: %w", err)
		}
	}
	return nil
}

func restrict(s *protocol.Setup, _ []int) error {
	rules := make([]landlock.Rule, len(s.Landlock))
	for i, a := range s.Landlock {
		rules[i] = landlock.Rule(a)
	}
	// Where there are namespaces the network is empty, and what listens on its
	// loopback is the caller's own.
	return landlock.Restrict(rules, !s.Namespaces)
}
