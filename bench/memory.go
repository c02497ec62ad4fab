package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// memory is a number of bytes, or negative where it cannot be read.
type memory int64

func (m memory) String() string {
	if m < 0 {
		return "cannot be read: only root may look into the service"
	}
	return fmt.Sprintf("%.2f MiB", float64(m)/(1<<20))
}

// takeMemory notes what the idle service holds, and what the init of each warm
// environment does: the mean of all inits when there are n, and the one that is
// kept ready. A difference would not do: a lone init holds alone what several
// share, and for a few environments the service's heap grows by less than what
// a collection gives back meanwhile.
func (r *report) takeMemory(ctx context.Context, s *service, n int) error {
	before, err := s.atRest(ctx, 1)
	if errors.Is(err, os.ErrPermission) {
		r.idle, r.each = -1, -1
		return nil
	}
	if err != nil {
		return err
	}
	made := make([]string, n)
	for i := range made {
		if made[i], err = s.create(ctx); err == nil {
			err = s.exec(ctx, made[i])
		}
		if err != nil {
			return err
		}
	}
	after, err := s.atRest(ctx, before.processes+n)
	if err != nil {
		return err
	}
	r.idle = memory(before.service + before.below)
	r.each = memory(after.below / int64(after.processes-1))
	for _, id := range made {
		if err := s.remove(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// held is what a service and the processes below it hold in private bytes.
type held struct {
	service, below int64
	processes      int // the service is one
}

// The service is at rest when so many looks in a row find as many processes: it
// makes the next box's init ready a moment after one was taken.
const (
	restLooks = 10
	restPause = 20 * time.Millisecond
)

// atRest gives what is held when there are at least so many processes and their
// number has settled.
func (s *service) atRest(ctx context.Context, processes int) (held, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	var last held
	for same := 0; same < restLooks; {
		now, err := tree(s.cmd.Process.Pid)
		if err != nil {
			return held{}, err
		}
		if now.processes == last.processes && now.processes >= processes {
			same++
		} else {
			same = 0
		}
		last = now
		select {
		case <-time.After(restPause):
		case <-ctx.Done():
			return held{}, fmt.Errorf("cannot see %d processes of the service at rest, there are %d", processes, last.processes)
		}
	}
	return last, nil
}

// tree looks at a process and all its descendants.
func tree(pid int) (held, error) {
	members, err := family(pid)
	if err != nil {
		return held{}, err
	}
	var h held
	for _, member := range members {
		bytes, err := private(member)
		if gone(err) {
			continue
		}
		if err != nil {
			return held{}, err
		}
		if member == pid {
			h.service = bytes
		} else {
			h.below += bytes
		}
		h.processes++
	}
	return h, nil
}

// family gives a process and all its descendants.
func family(pid int) ([]int, error) {
	children, err := childrenOf()
	if err != nil {
		return nil, err
	}
	members := []int{pid}
	for i := 0; i < len(members); i++ {
		members = append(members, children[members[i]]...)
	}
	return members, nil
}

func childrenOf() (map[int][]int, error) {
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	children := map[int][]int{}
	for _, path := range paths {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		parent, err := strconv.Atoi(statFields(stat)[1])
		if err != nil {
			return nil, err
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			return nil, err
		}
		children[parent] = append(children[parent], pid)
	}
	return children, nil
}

// statFields gives what is behind the name, which is in parentheses and may hold
// anything, in /proc/PID/stat: the state is the first.
func statFields(stat []byte) []string {
	return strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
}

// private gives the bytes that a process shares with nobody.
func private(pid int) (int64, error) { return rollup(pid, "Private_") }

// pss gives the bytes that a process has, of shared ones its part.
func pss(pid int) (int64, error) { return rollup(pid, "Pss:") }

// rollup adds up the lines of a process's memory that begin so.
func rollup(pid int, prefix string) (int64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, err
	}
	var total int64
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) == 3 && strings.HasPrefix(fields[0], prefix) {
			kib, err := strconv.ParseInt(fields[1], 10, 64)
			if err != nil {
				return 0, err
			}
			total += kib << 10
		}
	}
	return total, nil
}
