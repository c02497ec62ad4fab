package boxinit

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"envapi/sandbox/protocol"
)

// dropCapabilities takes every capability from every thread, the ambient ones
// with the others (capabilities(7)), and on this one, which starts the commands,
// also the bounding set.
func dropCapabilities(s *protocol.Setup, _ []int) error {
	if s.Namespaces {
		if err := emptyBoundingSet(); err != nil {
			return err
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	errno := onAllThreads(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none[0])), 0)
	if errno != 0 {
		return fmt.Errorf("cannot drop the capabilities: %w", errno)
	}
	return nil
}

func emptyBoundingSet() error {
	for c := 0; ; c++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0)
		if errors.Is(err, unix.EINVAL) && c > 0 {
			return nil // past the last capability of this kernel
		}
		if err != nil {
			return fmt.Errorf("cannot drop capability %d from the bounding set: %w", c, err)
		}
	}
}

func noNewPrivs(*protocol.Setup, []int) error {
	if errno := onAllThreads(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0); errno != 0 {
		return fmt.Errorf("cannot set no_new_privs: %w", errno)
	}
	return nil
}

func onAllThreads(trap, a1, a2, a3 uintptr) syscall.Errno {
	_, _, errno := syscall.AllThreadsSyscall(trap, a1, a2, a3)
	return errno
}

// held is what every thread must show in /proc before a command may run.
var held = map[string]string{
	"CapInh":     "0000000000000000",
	"CapPrm":     "0000000000000000",
	"CapEff":     "0000000000000000",
	"CapAmb":     "0000000000000000",
	"NoNewPrivs": "1",
	"Seccomp":    "2", // a filter
}

// verify reads back what the stages before it did, thread by thread.
func verify(s *protocol.Setup, _ []int) error {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil || len(threads) == 0 {
		return fmt.Errorf("cannot find the threads of the init: %w", err)
	}
	want := maps.Clone(held)
	if s.ID != 0 {
		id := strconv.Itoa(s.ID)
		want["Uid"] = strings.Join([]string{id, id, id, id}, "\t")
		want["Gid"] = want["Uid"]
	}
	if s.DropGroups {
		want["Groups"] = " " // as the kernel writes none
	}
	for _, thread := range threads {
		if err := verifyThread("/proc/self/task/"+thread.Name()+"/status", want); err != nil {
			return err
		}
	}
	if s.ID == 0 {
		return nil
	}
	own := fmt.Sprintf("/proc/self/task/%d/status", unix.Gettid())
	return verifyThread(own, map[string]string{"CapBnd": "0000000000000000"})
}

func verifyThread(file string, want map[string]string) error {
	status, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return nil // a thread that has ended
	}
	if err != nil {
		return fmt.Errorf("cannot read a thread's status: %w", err)
	}
	for name, value := range want {
		if !bytes.Contains(status, []byte("\n"+name+":\t"+value+"\n")) {
			return fmt.Errorf("cannot lock down: a thread does not have %s %s", name, value)
		}
	}
	return nil
}
