package supervisor

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"envapi/sandbox/proctree"
)

const (
	// orphanPatience is how long killed orphans may take to be gone.
	orphanPatience = 10 * time.Second
	// orphanPause is the time between two looks.
	orphanPause = 2 * time.Millisecond
)

// inits are the children of the service that it started itself. The service is
// a subreaper (prctl(2)), so whatever lives on when an init without a pid
// namespace is killed becomes its child too, and is known by not being here.
type inits struct {
	mu    sync.Mutex // held while one is made, so that none is taken for an orphan
	known map[int]*os.Process
}

// add starts an init and keeps it.
func (n *inits) add(start func() (pid int, err error)) (*os.Process, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	pid, err := start()
	if err != nil {
		return nil, err
	}
	process, err := os.FindProcess(pid)
	if err != nil {
		return nil, err
	}
	if n.known == nil {
		n.known = map[int]*os.Process{}
	}
	n.known[pid] = process
	return process, nil
}

// wait waits for the end of an init.
func (n *inits) wait(process *os.Process) *os.ProcessState {
	state, _ := process.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.known[process.Pid] == process { // the pid may be another's by now
		delete(n.known, process.Pid)
	}
	return state
}

// endOrphans ends everything that was left behind by inits that were killed, and
// returns when nothing is left. What it kills are the service's own children,
// whose pids are nobody else's until they are waited for.
func (n *inits) endOrphans() error {
	for deadline := time.Now().Add(orphanPatience); ; time.Sleep(orphanPause) {
		left, err := n.killOrphans()
		if err != nil || left == 0 {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("cannot end %d processes that a killed box left: they do not die", left)
		}
	}
}

// killOrphans kills the orphans, each with what is below it, waits for those
// that have ended, and says how many there were. The children of those become
// orphans in turn.
func (n *inits) killOrphans() (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	children, err := proctree.Children(os.Getpid())
	if err != nil {
		return 0, err
	}
	orphans := 0
	for _, pid := range children {
		if n.known[pid] != nil || !lockedDown(pid) {
			continue
		}
		orphans++
		_ = proctree.Kill(pid)
		_ = unix.Kill(pid, unix.SIGKILL)
		_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil) // it may not have ended yet
	}
	return orphans, nil
}

// lockedDown says whether a process has no_new_privs and a system call filter more
// than the service itself, as all that comes out of a box has, and what else the
// service may have for a child has not: where it is the first process of a
// container, what others start in there and leave, which has the container's own.
func lockedDown(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil || first(status, "NoNewPrivs") != "1" {
		return false
	}
	n, err := strconv.Atoi(first(status, "Seccomp_filters"))
	return err != nil || n > ownFilters() // before Linux 5.9 the kernel does not say it
}

// ownFilters gives the number of the service's own filters. None is added later.
var ownFilters = sync.OnceValue(func() int {
	status, _ := os.ReadFile("/proc/self/status")
	n, _ := strconv.Atoi(first(status, "Seccomp_filters"))
	return n
})
