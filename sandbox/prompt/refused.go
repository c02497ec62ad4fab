package prompt

import (
	"slices"

	"golang.org/x/sys/unix"
)

// hidesTyping says whether the terminal gives whole lines and does not show what
// is typed, as those do who ask for a password. The master answers for the slave.
func hidesTyping(master int) bool {
	settings, err := unix.IoctlGetTermios(master, unix.TCGETS)
	return err == nil && settings.Lflag&(unix.ICANON|unix.ECHO) == unix.ICANON
}

// sleeper gives a process that could not be looked into, and that sleeps as if it
// read the terminal. That it had no time on a processor in the meantime is a part
// of what two looks must find.
func (l *look) sleeper() (thread, bool) {
	for _, t := range l.refused {
		if t.pid == 0 || t.pid != t.tid {
			continue
		}
		p, err := l.open(t.pid)
		if err != nil {
			continue
		}
		now, state, err := p.stat(l, t.tid)
		where, _ := p.read(l, taskFile(t.tid, "wchan"))
		sleeps := err == nil && state == 'S' && now.start == t.start && slices.Contains(readers, string(where))
		p.close()
		if sleeps && l.inGroup(t.pid) {
			return now, true
		}
	}
	return thread{}, false
}

// readers are where in the kernel a thread sleeps that reads a terminal. 0 and
// nothing are where that is not told either.
var readers = []string{"n_tty_read", "wait_woken", "0", ""}
