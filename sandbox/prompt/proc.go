package prompt

import (
	"bytes"
	"strconv"

	"golang.org/x/sys/unix"
)

// process is a process by its folder in /proc, which stays its own when the pid
// is used again.
type process struct {
	pid, folder int
}

// open opens a process's folder.
func (l *look) open(pid int) (process, error) {
	l.spend()
	folder, err := unix.Open("/proc/"+strconv.Itoa(pid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	return process{pid, folder}, err
}

func (p process) close() { _ = unix.Close(p.folder) }

// read gives the beginning of one of the process's files, as much as the buffer
// holds. It is valid until the next read.
func (p process) read(l *look, name string) ([]byte, error) {
	l.spend()
	fd, err := unix.Openat(p.folder, name, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	n, err := unix.Read(fd, l.buffer[:])
	if err != nil {
		return nil, err
	}
	return l.buffer[:n], nil
}

// threads lists the process's threads, the first one first: as many as one call
// gives into the buffer.
func (p process) threads(l *look) []int {
	l.spend()
	fd, err := unix.Openat(p.folder, "task", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		if unix.Kill(p.pid, 0) != unix.ESRCH && l.inGroup(p.pid) {
			l.refused = append(l.refused, thread{})
		}
		return nil
	}
	defer unix.Close(fd)
	var tids []int
	for n, err := unix.ReadDirent(fd, l.buffer[:]); err == nil && n > 0 && len(tids) < l.left; n, err = unix.ReadDirent(fd, l.buffer[:]) {
		_, _, names := unix.ParseDirent(l.buffer[:n], -1, nil)
		for _, name := range names {
			if tid, err := strconv.Atoi(name); err == nil {
				tids = append(tids, tid)
			}
		}
	}
	return tids
}

// children adds the pids of a thread's children.
func (p process) children(l *look, tid int, to []int) []int {
	content, err := p.read(l, taskFile(tid, "children"))
	if err != nil {
		return to
	}
	for field := range bytes.FieldsSeq(content) {
		if pid, err := strconv.Atoi(string(field)); err == nil && pid > 0 {
			to = append(to, pid)
		}
	}
	return to
}

// stat reads a thread's state and since when it is. Everybody may read that of
// every process, unless they are hidden.
func (p process) stat(l *look, tid int) (thread, byte, error) {
	content, err := p.read(l, taskFile(tid, "stat"))
	if err != nil {
		return thread{}, 0, err
	}
	t, state, ok := parseStat(content)
	if !ok {
		return thread{}, 0, unix.EINVAL
	}
	t.pid, t.tid = p.pid, tid
	return t, state, nil
}

// parseStat takes a /proc/PID/stat apart: fields are counted from behind the name,
// which may hold anything (proc(5)).
func parseStat(content []byte) (t thread, state byte, ok bool) {
	fields := bytes.Fields(content[bytes.LastIndexByte(content, ')')+1:])
	if len(fields) < 20 || len(fields[0]) != 1 {
		return thread{}, 0, false
	}
	user, err1 := strconv.ParseUint(string(fields[11]), 10, 64)
	system, err2 := strconv.ParseUint(string(fields[12]), 10, 64)
	start, err3 := strconv.ParseUint(string(fields[19]), 10, 64)
	return thread{start: start, ticks: user + system}, fields[0][0], err1 == nil && err2 == nil && err3 == nil
}

func taskFile(tid int, name string) string { return "task/" + strconv.Itoa(tid) + "/" + name }
