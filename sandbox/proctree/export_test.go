package proctree

import (
	"os"

	"golang.org/x/sys/unix"
)

// FailOpen lets the nth file or process that is opened fail for want of a descriptor,
// until the function that it gives is called, which says how many were opened.
func FailOpen(nth int) (done func() (opens int)) {
	opens := 0
	short := func() bool { opens++; return opens-1 == nth }
	readFile = func(name string) ([]byte, error) {
		if short() {
			return nil, &os.PathError{Op: "open", Path: name, Err: unix.EMFILE}
		}
		return os.ReadFile(name)
	}
	readDir = func(name string) ([]os.DirEntry, error) {
		if short() {
			return nil, &os.PathError{Op: "open", Path: name, Err: unix.EMFILE}
		}
		return os.ReadDir(name)
	}
	openProcess = func(pid, flags int) (int, error) {
		if short() {
			return -1, unix.EMFILE
		}
		return unix.PidfdOpen(pid, flags)
	}
	return func() int {
		readFile, readDir, openProcess = os.ReadFile, os.ReadDir, unix.PidfdOpen
		return opens
	}
}

// Order gives the processes below pid in the order in which they get a signal.
func Order(pid int) ([]int, error) {
	t := tree{top: pid}
	_, err := t.grow()
	return t.order, err
}
