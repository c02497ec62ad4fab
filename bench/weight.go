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
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// weight is what a service and all below it hold at one time: bytes of PSS, which
// gives each its part of a page that several share.
type weight struct {
	service, inits, shells int64
	descriptors, watches   int64 // the service's
}

// weigh waits until the service is at rest and weighs it.
func (s *service) weigh(ctx context.Context) (weight, error) {
	family, err := s.settled(ctx)
	if err != nil {
		return weight{}, err
	}
	var w weight
	for _, pid := range family {
		if sharesMemory(pid) {
			continue
		}
		bytes, err := pss(pid)
		if gone(err) {
			continue
		}
		if err != nil {
			return weight{}, err
		}
		switch name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); {
		case pid == s.cmd.Process.Pid:
			w.service += bytes
		case strings.TrimSpace(string(name)) == "bash":
			w.shells += bytes
		default:
			w.inits += bytes
		}
	}
	w.descriptors, w.watches, err = opened(s.cmd.Process.Pid)
	return w, err
}

// sharesMemory says whether a process has no memory of its own but its parent's,
// as reapers have, so that it must not be counted twice.
func sharesMemory(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	parent, err := strconv.Atoi(statFields(stat)[1])
	if err != nil {
		return false
	}
	const sameMemory = 1 // KCMP_VM
	order, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(pid), uintptr(parent), sameMemory, 0, 0, 0)
	return errno == 0 && order == 0
}

// settled gives the service and all below it when their number has settled.
func (s *service) settled(ctx context.Context) ([]int, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for last, same := 0, 0; ; {
		now, err := family(s.cmd.Process.Pid)
		if err != nil {
			return nil, err
		}
		if same++; len(now) != last {
			last, same = len(now), 0
		}
		if same == restLooks {
			return now, nil
		}
		select {
		case <-time.After(restPause):
		case <-ctx.Done():
			return nil, fmt.Errorf("cannot see the service at rest: it has %d processes, and now and then others", last)
		}
	}
}

// gone says that a process has ended while it was looked at.
func gone(err error) bool { return errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) }

// opened counts the descriptors of a process, and the inotify watches behind them.
func opened(pid int) (descriptors, watches int64, err error) {
	paths, err := filepath.Glob(fmt.Sprintf("/proc/%d/fdinfo/*", pid))
	if err != nil {
		return 0, 0, err
	}
	for _, path := range paths {
		info, err := os.ReadFile(path)
		if err != nil {
			continue // it was closed
		}
		descriptors++
		watches += int64(bytes.Count(info, []byte("\ninotify wd:")))
	}
	return descriptors, watches, nil
}

// busy gives the share of a core that the service and all below it take for so
// long.
func (s *service) busy(ctx context.Context, d time.Duration) (float64, error) {
	family, err := s.settled(ctx)
	if err != nil {
		return 0, err
	}
	before, begun := cpuTime(family), time.Now()
	select {
	case <-time.After(d):
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	return float64(cpuTime(family)-before) / float64(time.Since(begun)), nil
}

// tick is the unit of the kernel's times in /proc (USER_HZ).
const tick = time.Second / 100

// cpuTime is what processes have had until now.
func cpuTime(pids []int) time.Duration {
	var ticks int64
	for _, pid := range pids {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue // it has ended
		}
		fields := statFields(stat)
		for _, field := range fields[11:13] { // user and system time
			n, err := strconv.ParseInt(field, 10, 64)
			if err == nil {
				ticks += n
			}
		}
	}
	return time.Duration(ticks) * tick
}
