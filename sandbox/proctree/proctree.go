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
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// What opens a descriptor, so that a test can have none left.
var (
	readFile    = os.ReadFile
	readDir     = os.ReadDir
	openProcess = unix.PidfdOpen
)

// Children gives the pids of the children of all threads of pid; none where
// pid is gone.
func Children(pid int) ([]int, error) {
	tasks := fmt.Sprintf("/proc/%d/task", pid)
	threads, err := readDir(tasks)
	if gone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot list the threads of process %d: %w", pid, err)
	}
	var pids []int
	for _, thread := range threads {
		content, err := readFile(tasks + "/" + thread.Name() + "/children")
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
func below(pid int, without func(pid int) (bool, error)) (found []int, parents map[int]int, err error) {
	parents = map[int]int{}
	for next := []int{pid}; len(next) > 0; next = next[1:] {
		children, err := Children(next[0])
		if err != nil {
			return nil, nil, err
		}
		for _, child := range children {
			if _, seen := parents[child]; seen || child == pid {
				continue
			}
			if without != nil {
				if out, err := without(child); err != nil {
					return nil, nil, err
				} else if out {
					continue
				}
			}
			parents[child] = next[0]
			found = append(found, child)
			next = append(next, child)
		}
	}
	return found, parents, nil
}

// Signal sends sig once to every process below pid. Where one cannot be looked at or
// signalled, the others are, and it fails.
func Signal(pid int, sig unix.Signal) error {
	t := tree{top: pid}
	fresh, err := t.grow()
	if err != nil {
		return err
	}
	_, err = t.send(fresh, sig)
	return err
}

// Kill sends SIGKILL to every process below pid. It first stops them all,
// until a pass finds no new one, so that a runaway forker cannot outrun it. Where one
// cannot be looked at or signalled, those that were found are killed, and it fails.
func Kill(pid int) error {
	t := tree{top: pid}
	for {
		fresh, err := t.grow()
		if err == nil && len(fresh) > 0 {
			_, err = t.send(fresh, unix.SIGSTOP)
			if err == nil {
				continue
			}
		}
		_, failure := t.send(t.births, unix.SIGKILL)
		return errors.Join(err, failure)
	}
}
