package backup

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

const (
	// behind is how far a backup stands behind others, as nice(1) counts.
	behind = 10
	// idle is the class of input and output that is served when no other wants the disk
	// (ioprio_set(2)); what carries it out sees to it that it gets some.
	idle = 3 << 13
	// ofThread says to ioprio_set that a thread is meant.
	ofThread = 1
)

// StandBack puts this process behind all others, at the processors and at the disk, for
// good. Where the kernel refuses, it is a backup that hurries.
func StandBack() {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	for _, t := range threads { // those that come later inherit it
		id, err := strconv.Atoi(t.Name())
		if err != nil {
			continue
		}
		_ = unix.Setpriority(unix.PRIO_PROCESS, id, behind)
		_, _, _ = unix.Syscall(unix.SYS_IOPRIO_SET, ofThread, uintptr(id), idle)
	}
}
