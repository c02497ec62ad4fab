package prompt

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	// maxSet is how many descriptors of a set are looked at: what the buffer holds
	// of struct pollfd. A terminal that comes later in it is not seen.
	maxSet = 1024
	// pollfd is the size of that struct: a descriptor, what is waited for, what
	// happened.
	pollfd = 8
	// readable is POLLIN and POLLRDNORM, which have the same numbers in epoll.
	readable = unix.POLLIN | unix.EPOLLRDNORM
)

// memory reads what a process has at an address, into the buffer. The address is
// the program's word, and may be any.
func (p process) memory(l *look, address uint64, size int) []byte {
	if address == 0 || address > math.MaxInt64 || size > len(l.buffer) || l.left <= 0 {
		return nil
	}
	l.spend()
	fd, err := unix.Openat(p.folder, "mem", unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	n, err := unix.Pread(fd, l.buffer[:size], int64(address)) // #nosec G115 -- within, as checked above
	if err != nil {
		return nil
	}
	return l.buffer[:n]
}

// selects: select(number, readable, …) and pselect6: a bit for each descriptor.
func selects(l *look, p process, c call) bool {
	number := min(max(descriptor(c.args[0]), 0), maxSet)
	words := (number + 63) / 64
	set := p.memory(l, c.args[1], 8*words)
	for word := range len(set) / 8 {
		for left := binary.NativeEndian.Uint64(set[8*word:]); left != 0; left &= left - 1 {
			fd := 64*word + bits.TrailingZeros64(left)
			if fd < number && l.isTerminal(p, fd) {
				return true
			}
		}
	}
	return false
}

// polls: poll(set, number, …) and ppoll.
func polls(l *look, p process, c call) bool {
	number := int(min(c.args[1], maxSet)) // #nosec G115 -- at most maxSet
	set := p.memory(l, c.args[0], pollfd*number)
	for ; len(set) >= pollfd; set = set[pollfd:] {
		fd := descriptor(uint64(binary.NativeEndian.Uint32(set)))
		events := binary.NativeEndian.Uint16(set[4:])
		if events&readable != 0 && l.isTerminal(p, fd) {
			return true
		}
	}
	return false
}

// epolls lets one set of epoll be listed at a time in the whole service. Of these
// the kernel writes down all before it gives the beginning: a program can have
// millions, which take seconds and hundreds of megabytes. Others take microseconds,
// so that nobody waits here; what could not be listed is not known, and looked at
// again soon.
var epolls sync.Mutex

// waits: epoll_wait(set, …) and its relatives; the kernel lists the set itself.
func waits(l *look, p process, c call) bool {
	fd := descriptor(c.args[0])
	if fd < 0 {
		return false
	}
	if !epolls.TryLock() {
		l.left = 0
		return false
	}
	defer epolls.Unlock()
	content, err := p.read(l, "fdinfo/"+strconv.Itoa(fd))
	if err != nil {
		return false
	}
	for line := range bytes.Lines(content) {
		if target, ok := parseTarget(line); ok && l.isTerminal(p, target) {
			return true
		}
	}
	return false
}

// parseTarget reads a line such as "tfd:  0 events: 19 data: …", and says whether
// input is waited for there.
func parseTarget(line []byte) (fd int, ok bool) {
	fields := bytes.Fields(line)
	if len(fields) < 4 || string(fields[0]) != "tfd:" || string(fields[2]) != "events:" {
		return 0, false
	}
	fd, err := strconv.Atoi(string(fields[1]))
	events, err2 := strconv.ParseUint(string(fields[3]), 16, 32)
	return fd, err == nil && err2 == nil && fd >= 0 && events&readable != 0
}
