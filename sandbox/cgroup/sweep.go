package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// clear kills and removes all groups below the Parent's folder.
func (h *hierarchy) clear() error {
	folders, err := children(h.dir)
	for _, folder := range folders {
		err = errors.Join(err, h.destroy(folder))
	}
	return err
}

// destroy kills everything in a group and below it, and removes them.
func (h *hierarchy) destroy(folder string) error {
	deadline := time.Now().Add(killPatience)
	for {
		err := removeAll(h.system, folder)
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("cannot remove a cgroup: %w", err)
		}
		h.kill(folder)
		time.Sleep(killAgain)
	}
}

// empty kills what is in a group and below it, and returns when nothing is left.
func (h *hierarchy) empty(folder string) error {
	deadline := time.Now().Add(killPatience)
	for populated(folder) {
		if time.Now().After(deadline) {
			return errors.New("cannot empty a cgroup: a process does not die")
		}
		h.kill(folder)
		time.Sleep(killAgain)
	}
	return nil
}

// children gives the groups below one.
func children(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var below []string
	for _, e := range entries {
		if e.IsDir() {
			below = append(below, filepath.Join(folder, e.Name()))
		}
	}
	return below, err
}

// removeAll removes a group and those below it, which must be empty.
func removeAll(s system, folder string) error {
	below, err := children(folder)
	for _, b := range below {
		err = errors.Join(err, removeAll(s, b))
	}
	if err != nil {
		return err
	}
	if err := s.rmdir(folder); err != nil && !errors.Is(err, unix.ENOENT) {
		return err
	}
	return nil
}

// kill kills, once, what is in a group and below it.
func (h *hierarchy) kill(folder string) {
	if h.version == 2 && h.system.set(folder, setting{file: "cgroup.kill", value: "1"}) == nil { // Linux 5.14
		return
	}
	pids, _ := processes(folder)
	for _, pid := range pids {
		killIn(folder, pid)
	}
	below, _ := children(folder)
	for _, b := range below {
		h.kill(b)
	}
}

// processes gives those in a group. The file is opened anew each time: version 1
// gives an open one its old content again.
func processes(folder string) ([]int, error) {
	content, err := os.ReadFile(filepath.Join(folder, "cgroup.procs"))
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, field := range strings.Fields(string(content)) {
		if pid, err := strconv.Atoi(field); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// populated says whether a process is in a group or below it.
func populated(folder string) bool {
	if pids, _ := processes(folder); len(pids) > 0 {
		return true
	}
	below, _ := children(folder)
	for _, b := range below {
		if populated(b) {
			return true
		}
	}
	return false
}

// killIn kills a process that is in a group. Once it is held by a descriptor, its
// pid cannot become another's; a last look tells that it has not before.
func killIn(folder string, pid int) {
	if pid <= 1 || pid == os.Getpid() {
		return
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if pids, _ := processes(folder); slices.Contains(pids, pid) {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	}
}
