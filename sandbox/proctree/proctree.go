// Package proctree finds, signals and ends the descendants of a process, as
// /proc/PID/task/TID/children shows them. It sees what setsid, a double fork
// and a cleared environment hide, since a subreaper keeps them in the tree.
//
// Not protected: what was re-parented away from the tree, because its
// subreaper was killed, is not in it any more.
package proctree

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Children gives the pids of the children of all threads of pid; none where
// pid is gone.
func Children(pid int) ([]int, error) {
	tasks := fmt.Sprintf("/proc/%d/task", pid)
	threads, err := os.ReadDir(tasks)
	if gone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot list the threads of process %d: %w", pid, err)
	}
	var pids []int
	for _, thread := range threads {
		content, err := os.ReadFile(tasks + "/" + thread.Name() + "/children")
		if err != nil && !gone(err) {
			return nil, fmt.Errorf("cannot read the children of process %d: %w", pid, err)
		}
		for field := range strings.FieldsSeq(string(content)) {
			if child, err := strconv.Atoi(field); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids, nil
}

// gone says whether an error of /proc means that the process has ended.
func gone(err error) bool { return errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) }

// Descendants gives the pids of all processes below pid.
func Descendants(pid int) ([]int, error) {
	found, _, err := below(pid, nil)
	return found, err
}

// Parents gives the pids of all processes below pid with those of their parents, as
// they were found.
func Parents(pid int) (map[int]int, error) {
	_, parents, err := below(pid, nil)
	return parents, err
}

// below gives the pids of all processes below pid, without those that without
// says, and what is below them; each after its parent, and with that.
func below(pid int, without func(pid int) bool) (found []int, parents map[int]int, err error) {
	parents = map[int]int{}
	for next := []int{pid}; len(next) > 0; next = next[1:] {
		children, err := Children(next[0])
		if err != nil {
			return nil, nil, err
		}
		for _, child := range children {
			if _, seen := parents[child]; !seen && child != pid && (without == nil || !without(child)) {
				parents[child] = next[0]
				found = append(found, child)
				next = append(next, child)
			}
		}
	}
	return found, parents, nil
}

// Signal sends sig once to every process below pid.
func Signal(pid int, sig unix.Signal) error {
	t := tree{top: pid}
	defer t.close()
	fresh, err := t.grow()
	if err != nil {
		return err
	}
	t.send(fresh, sig)
	return nil
}

// Kill sends SIGKILL to every process below pid. It first stops them all,
// until a pass finds no new one, so that a runaway forker cannot outrun it.
func Kill(pid int) error {
	t := tree{top: pid}
	defer t.close()
	for {
		fresh, err := t.grow()
		if err != nil {
			return err
		}
		if len(fresh) == 0 {
			t.send(t.handles, unix.SIGKILL)
			return nil
		}
		t.send(fresh, unix.SIGSTOP)
	}
}

// tree holds every process that was seen below top by a descriptor, so that a
// reused pid is never hit.
type tree struct {
	top     int
	without func(pid int) bool // what is not in the tree, with what is below it; nil: nothing
	handles map[int]int        // pidfds, by pid
	order   []int              // those pids, each after its parent's
}

// grow finds the processes that are new in the tree and opens them.
func (t *tree) grow() (fresh map[int]int, err error) {
	if t.handles == nil {
		t.handles = map[int]int{}
	}
	pids, _, err := below(t.top, t.without)
	if err != nil {
		return nil, err
	}
	fresh = map[int]int{}
	for _, pid := range pids {
		if _, known := t.handles[pid]; known {
			continue
		}
		handle, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue // it has ended
		}
		// Between the two the pid may have come to be another's: what is opened
		// belongs here if its parent does.
		if parent, err := parentOf(pid); err != nil || parent != t.top && !slices.Contains(pids, parent) {
			_ = unix.Close(handle)
			continue
		}
		t.handles[pid], fresh[pid] = handle, handle
		t.order = append(t.order, pid)
	}
	return fresh, nil
}

func (t *tree) close() {
	for _, handle := range t.handles {
		_ = unix.Close(handle)
	}
}

// send signals some of the processes, each after its parent: a shell that saw its
// child stop before it is stopped itself would go on as if that were a result.
func (t *tree) send(some map[int]int, sig unix.Signal) {
	for _, pid := range t.order {
		if handle, ok := some[pid]; ok {
			_ = unix.PidfdSendSignal(handle, sig, nil, 0) // it may have ended
		}
	}
}

// parentOf reads the parent's pid.
func parentOf(pid int) (int, error) {
	s, err := StatOf(pid)
	return s.Parent, err
}
