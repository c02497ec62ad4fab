package boxinit

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"envapi/sandbox/proctree"
	"envapi/sandbox/protocol"
)

const (
	// lookPause is the time between two looks, by which it is told what a process
	// uses.
	lookPause = 200 * time.Millisecond
	// lookPatience is how long the second look may take until it leaves out what
	// takes longest: what is behind a name, and who listens.
	lookPatience = 3 * time.Second
)

// startList begins a List request. It takes the file.
func (s *server) startList(request *protocol.List, fds []int) {
	s.mu.Lock()
	begins := len(fds) == 1 && s.noted == nil
	if begins {
		s.noted = map[int]*command{}
		for _, c := range s.commands {
			s.noted[c.reaper] = c
		}
	}
	s.mu.Unlock()
	if !begins { // the supervisor has none made while one is
		protocol.CloseAll(fds)
		s.send(protocol.Report{Listed: &protocol.Listed{Seq: request.Seq, Errno: unix.EBUSY}})
		return
	}
	go func() {
		length, err := s.list(fds[0])
		protocol.CloseAll(fds)
		s.mu.Lock()
		s.noted = nil
		s.mu.Unlock()
		answer := &protocol.Listed{Seq: request.Seq, Length: length}
		if err != nil {
			answer.Errno = errnoOf(err)
		}
		s.send(protocol.Report{Listed: answer})
	}()
}

// list writes what there is into a file.
func (s *server) list(file int) (length int, err error) {
	before, err := takeLook(nil)
	if err != nil {
		return 0, err
	}
	time.Sleep(lookPause)
	now, err := takeLook(before)
	if err != nil {
		return 0, err
	}
	content, err := encodeListing(s.describe(before, now))
	if err != nil {
		return 0, err
	}
	for rest := content; len(rest) > 0; {
		n, err := unix.Pwrite(file, rest, int64(len(content)-len(rest)))
		if err != nil && err != unix.EINTR {
			return 0, err
		}
		rest = rest[max(n, 0):]
	}
	return len(content), nil
}

// encodeListing cuts the commands short until there is room.
func encodeListing(l protocol.Listing) ([]byte, error) {
	for longest := protocol.MaxCommand; ; longest /= 2 {
		for i := range l.Processes {
			l.Processes[i].Command = cut(l.Processes[i].Command, longest)
		}
		content, err := json.Marshal(l)
		if err != nil || len(content) <= protocol.MaxListing {
			return content, err
		}
		if longest == 0 {
			return nil, unix.E2BIG
		}
	}
}

// sight is a process as it was seen.
type sight struct {
	proctree.Stat
	at   time.Time
	used time.Duration // of processors
}

// look is what one look found.
type look struct {
	sights  map[int]sight
	parents map[int]int // also of what has ended meanwhile
}

// takeLook looks at all processes below the init. What was seen before and lives is
// seen again, also where it was just given another parent and none has shown it.
func takeLook(before *look) (*look, error) {
	parents, err := proctree.Parents(os.Getpid())
	if err != nil {
		return nil, err
	}
	l := &look{map[int]sight{}, parents}
	for pid := range parents {
		if now, ok := see(pid); ok {
			l.sights[pid] = now
		}
	}
	if before == nil {
		return l, nil
	}
	for pid, parent := range before.parents {
		if _, found := parents[pid]; found {
			continue
		}
		parents[pid] = parent
		if now, ok := see(pid); ok && now.Birth == before.sights[pid].Birth {
			l.sights[pid] = now
		}
	}
	return l, nil
}

// see looks at one process.
func see(pid int) (sight, bool) {
	stat, err := proctree.StatOf(pid)
	if err != nil {
		return sight{}, false
	}
	seen := sight{stat, time.Now(), time.Duration(stat.Ticks) * proctree.Tick} //nolint:gosec // the kernel's word
	var used unix.Timespec
	if err := unix.ClockGettime(clockOf(pid), &used); err == nil {
		seen.used = time.Duration(used.Nano())
	}
	return seen, true
}

// clockOf gives the clock of what a process has used, which is finer than the ticks
// of its stat (clock_getcpuclockid(3); CPUCLOCK_SCHED).
func clockOf(pid int) int32 { return int32(^pid<<3 | 2) } //nolint:gosec // a pid has 22 bits

// percentOf gives what a process used of one core, since it was seen before, or
// since it began.
func percentOf(before sight, known bool, now sight) float64 {
	used, over := now.used, lived(now.Birth)
	if known && before.Birth == now.Birth {
		used, over = now.used-before.used, now.at.Sub(before.at)
	}
	tenths := int(1000 * max(used, 0) / max(over, proctree.Tick))
	return float64(tenths) / 10
}

// lived gives how long ago something began.
func lived(birth uint64) time.Duration {
	return time.Duration(proctree.Now()-birth) * proctree.Tick //nolint:gosec // the kernel's word
}

// describe makes a listing of what was seen.
func (s *server) describe(before, now *look) protocol.Listing {
	s.mu.Lock()
	reapers := maps.Clone(s.noted)
	s.mu.Unlock()
	deadline := time.Now().Add(lookPatience)
	sockets := s.listeners()
	listing := protocol.Listing{Processes: []protocol.Entity{}}
	for _, pid := range slices.Sorted(maps.Keys(now.sights)) {
		if _, own := reapers[pid]; own {
			continue
		}
		if len(listing.Processes) == protocol.MaxEntries {
			break
		}
		stat := now.sights[pid]
		was, known := before.sights[pid]
		e := protocol.Entity{
			PID: pid, Parent: stat.Parent, Birth: stat.Birth, State: stateOf(stat.Stat), Command: bracketed(stat.Name),
			CPU: int64(stat.used), Percent: percentOf(was, known, stat), Memory: stat.Pages * int64(os.Getpagesize()), Threads: max(stat.Threads, 0),
		}
		if !stat.Ended() && time.Now().Before(deadline) {
			if arguments := s.argumentsOf(pid); arguments != "" {
				e.Command = arguments
			}
			e.Listens = sockets.of(pid)
		}
		e.Of, e.Marks = s.descent(pid, now, reapers)
		listing.Processes = append(listing.Processes, e)
	}
	return listing
}

// stateOf gives the letter of a process. That of one whose first thread alone has
// ended says nothing of the others.
func stateOf(s proctree.Stat) string {
	if s.State == 'Z' && !s.Ended() {
		return "S"
	}
	return string(rune(s.State))
}

// descent gives the command that a process descends from, and how many marks that
// had when the process came, or what it descends from did.
func (s *server) descent(pid int, l *look, reapers map[int]*command) (id, marks uint64) {
	var line []int
	for at := pid; len(line) <= len(l.parents); at = l.parents[at] { // parents that changed may lead in a circle
		if c := reapers[at]; c != nil {
			return c.id, s.marksOf(c, line, l)
		}
		if _, known := l.parents[at]; !known {
			break // it is the init
		}
		line = append(line, at)
	}
	return 0, 0
}

// marksOf gives how many marks a command had when the last of a line of ancestors
// came; 0 is for its leader.
func (s *server) marksOf(c *command, line []int, l *look) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	leader := int(c.plan.leader.Load())
	if line[0] == leader {
		return 0
	}
	marks := c.marks
	for _, pid := range line {
		if a, known := c.came[pid]; known && a.birth == l.sights[pid].Birth {
			marks = min(marks, a.marks)
		}
	}
	return marks
}
