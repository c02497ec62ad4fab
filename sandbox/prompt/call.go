package prompt

import (
	"bytes"
	"errors"
	"strconv"

	"golang.org/x/sys/unix"
)

// call is a system call that a thread is blocked in.
type call struct {
	number int
	args   [6]uint64
}

// blocked says whether a thread is blocked in a call that reads the terminal, or
// waits until it can be read.
func (l *look) blocked(p process, tid int) bool {
	content, err := p.read(l, taskFile(tid, "syscall"))
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		l.refuse(p, tid)
	}
	if err != nil {
		return false
	}
	c, ok := parseCall(content)
	if !ok {
		return false
	}
	find, known := calls[c.number]
	return known && find(l, p, c)
}

// refuse notes a thread that cannot be looked into.
func (l *look) refuse(p process, tid int) {
	if t, state, err := p.stat(l, tid); err == nil && state != 'Z' && state != 'X' {
		l.refused = append(l.refused, t)
	}
}

// parseCall reads a line such as "0 0x0 0x7ffe… 0x1000 0x0 0x0 0x0 0x7ffe… 0x7f…"
// (proc(5)). A thread that runs has another, and one that is stopped outside of a
// call the number -1.
func parseCall(line []byte) (c call, ok bool) {
	fields := bytes.Fields(line)
	if len(fields) < 1+len(c.args) {
		return call{}, false
	}
	number, err := strconv.Atoi(string(fields[0]))
	if err != nil || number < 0 {
		return call{}, false
	}
	c.number = number
	for i := range c.args {
		hex, found := bytes.CutPrefix(fields[1+i], []byte("0x"))
		if c.args[i], err = strconv.ParseUint(string(hex), 16, 64); err != nil || !found {
			return call{}, false
		}
	}
	return c, true
}

// isTerminal says whether a descriptor of the process is the terminal. Looking at
// a file opens nothing, and asks no server for one that is remote.
func (l *look) isTerminal(p process, fd int) bool {
	if fd < 0 || l.left <= 0 {
		return false
	}
	l.spend()
	var s unix.Statx_t
	err := unix.Statx(p.folder, "fd/"+strconv.Itoa(fd), unix.AT_STATX_DONT_SYNC|unix.AT_NO_AUTOMOUNT, unix.STATX_TYPE|unix.STATX_INO, &s)
	if err != nil || s.Mode&unix.S_IFMT != unix.S_IFCHR {
		return false
	}
	rdev := unix.Mkdev(s.Rdev_major, s.Rdev_minor)
	return rdev == controlling || device{unix.Mkdev(s.Dev_major, s.Dev_minor), s.Ino, rdev} == l.slave
}
