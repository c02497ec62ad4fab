package prompt

import (
	"time"

	"golang.org/x/sys/unix"
)

// Sample is what one look found. Two that are equal found the same.
type Sample struct {
	// Reading says that a thread of the foreground is blocked reading the terminal.
	Reading bool
	// Known says that it could be looked at.
	Known bool

	reader thread
}

// thread is who was found blocked.
type thread struct {
	pid, tid int
	start    uint64 // when it began: a number can be used again
	ticks    uint64 // the time on a processor that it had, where that must stand still
}

const (
	// files is how many files of /proc one look opens at most, of which each costs
	// ten or so microseconds. A group with more threads and children than that is
	// not seen through.
	files = 400
	// dear is how much of a processor a look may take before it is given up: many
	// times what those files cost, unless a program makes them dear.
	dear = 50 * time.Millisecond
)

// processes is how many processes it asks for the group of.
const processes = 4000

// look is one look at a terminal.
type look struct {
	slave   device
	group   int // the foreground
	left    int // how many files may still be opened
	began   time.Duration
	refused []thread
	buffer  [8 << 10]byte
}

// Look looks once.
func (t *Terminal) Look() Sample {
	connection, err := t.master.SyscallConn()
	if err != nil {
		return Sample{}
	}
	var s Sample
	if err := connection.Control(func(fd uintptr) { s = lookAt(int(fd), t.slave) }); err != nil {
		return Sample{}
	}
	return s
}

func lookAt(master int, slave device) Sample {
	group, err := unix.IoctlGetUint32(master, unix.TIOCGPGRP)
	if err != nil {
		return Sample{}
	}
	// 0 is a group that is gone, or one that is not in this pid namespace.
	leader, err := unix.IoctlGetUint32(master, unix.TIOCGSID)
	if err != nil || group == 0 || leader == 0 {
		return Sample{Known: true}
	}
	l := &look{slave: slave, group: int(group), left: files, began: used()}
	reader, found := l.walk(int(leader))
	if !found && len(l.refused) > 0 && hidesTyping(master) {
		reader, found = l.sleeper()
	}
	if found {
		return Sample{Reading: true, Known: true, reader: reader}
	}
	return Sample{Known: len(l.refused) == 0 && l.left > 0}
}

// spend counts a file that is opened, and ends a look that has become dear.
func (l *look) spend() {
	if l.left--; used()-l.began > dear {
		l.left = 0
	}
}

// walk looks at the processes of the foreground group, and finds them: first the
// group's leader and what is below it, then what is below the session's.
func (l *look) walk(leader int) (thread, bool) {
	seen := map[int]bool{l.group: true, leader: true}
	group, others := []int{l.group}, []int{leader}
	if leader == l.group {
		others = nil
	}
	for l.left > 0 && len(group)+len(others) > 0 {
		pids := &group
		if len(group) == 0 {
			pids = &others
		}
		pid := (*pids)[0]
		*pids = (*pids)[1:]
		found, children, ok := l.process(pid)
		if ok {
			return found, true
		}
		for _, child := range children {
			switch {
			case seen[child]:
				continue
			case len(seen) > processes:
				l.left = 0
			case l.inGroup(child):
				group = append(group, child)
			default:
				others = append(others, child)
			}
			seen[child] = true
		}
	}
	return thread{}, false
}

// inGroup asks the kernel, which tells it of every process.
func (l *look) inGroup(pid int) bool {
	group, err := unix.Getpgid(pid)
	return err == nil && group == l.group
}

// process looks at the threads of one process, if it is of the group, and gives
// its children.
func (l *look) process(pid int) (found thread, children []int, ok bool) {
	in := l.inGroup(pid)
	p, err := l.open(pid)
	if err != nil {
		if in && l.inGroup(pid) { // it lives, and is hidden
			l.refused = append(l.refused, thread{})
		}
		return thread{}, nil, false
	}
	defer p.close()
	for _, tid := range p.threads(l) {
		if l.left <= 0 {
			break
		}
		if in && l.blocked(p, tid) {
			// Until now the number can have come to be another's.
			if t, state, err := p.stat(l, tid); err == nil && state == 'S' && l.inGroup(pid) {
				t.ticks = 0 // a program that looks around now and then may wait nevertheless
				return t, nil, true
			}
		}
		children = p.children(l, tid, children)
	}
	return thread{}, children, false
}
