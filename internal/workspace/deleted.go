package workspace

import (
	"bytes"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"envapi/core"
)

const (
	// pidsFresh is how long a list of processes serves.
	pidsFresh = 500 * time.Millisecond
	// maxHandles bounds a count: what the processes of an environment hold
	// open. It is far above what they do for any honest purpose.
	maxHandles = 200_000
)

// processes lists the processes of the host by their uid, for all counts of a
// moment together.
type processes struct {
	mu   sync.Mutex
	at   time.Time
	pids map[int][]string
}

// of gives the processes of a uid.
func (p *processes) of(uid int) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.at) < pidsFresh {
		return p.pids[uid]
	}
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1)
	p.pids = map[int][]string{}
	for _, name := range names {
		if _, err := strconv.Atoi(name); err != nil {
			continue
		}
		if uid := uidOf(proc, name); uid > 0 {
			p.pids[uid] = append(p.pids[uid], name)
		}
	}
	p.at = time.Now()
	return p.pids[uid]
}

// uidOf gives the uid of a process, whose folder in /proc belongs to it also
// where it has made itself unreadable (PR_SET_DUMPABLE).
func uidOf(proc *os.File, pid string) int {
	var st unix.Stat_t
	if unix.Fstatat(fd(proc), pid, &st, 0) != nil {
		return -1 // it has ended
	}
	return int(st.Uid)
}

// handles counts the files of one owner that have no name any more and which
// processes hold open, or have mapped: they take space and are in no folder.
type handles struct {
	uid     uint32
	dev     uint64
	counted map[uint64]struct{} // inodes
	use     core.DiskUse
	hidden  bool // descriptors are on their way through a socket
	left    int  // how many may still be looked at
}

// deleted counts for the folder that st describes. Its error says what it has not
// seen: core.ErrPartial or core.ErrHidden. Without a uid of the environment's own
// there is no telling whose a process is, and it counts nothing.
func (w *Workspaces) deleted(st *unix.Stat_t) (core.DiskUse, error) {
	if st.Uid == 0 || os.Geteuid() != 0 {
		return core.DiskUse{}, nil
	}
	h := handles{uid: st.Uid, dev: st.Dev, counted: map[uint64]struct{}{}, left: maxHandles}
	for _, pid := range w.processes.of(int(st.Uid)) {
		h.look("/proc/" + pid + "/map_files")
		h.lookAtThreads(pid)
	}
	switch {
	case h.left <= 0:
		return h.use, core.ErrPartial
	case h.hidden:
		return h.use, core.ErrHidden
	default:
		return h.use, nil
	}
}

// lookAtThreads goes through the descriptors of a process: a thread may have some
// of its own, and outlive the first one, which then has none.
func (h *handles) lookAtThreads(pid string) {
	threads, err := os.ReadDir("/proc/" + pid + "/task")
	if err != nil {
		return // it has ended
	}
	first, _ := strconv.Atoi(pid)
	for _, thread := range threads {
		if h.left--; h.left <= 0 {
			return
		}
		tid, _ := strconv.Atoi(thread.Name())
		if tid == first || !shareDescriptors(first, tid) {
			h.look("/proc/" + pid + "/task/" + thread.Name() + "/fd")
		}
	}
}

// shareDescriptors says whether two threads have the same descriptors. Where the
// kernel does not say, they may have others.
func shareDescriptors(one, other int) bool {
	const files = 2 // KCMP_FILES
	order, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(one), uintptr(other), files, 0, 0, 0)
	return errno == 0 && order == 0
}

// look goes through a folder of links that lead to open files. They are asked
// for what they lead to; nothing is opened.
func (h *handles) look(path string) {
	dir, err := os.Open(path)
	if err != nil {
		return // the process has ended
	}
	defer dir.Close()
	for {
		names, err := dir.Readdirnames(namesAtOnce)
		for _, name := range names {
			if h.left--; h.left <= 0 {
				return
			}
			var st unix.Stat_t
			if unix.Fstatat(fd(dir), name, &st, 0) != nil {
				continue
			}
			h.add(&st)
			if st.Mode&unix.S_IFMT == unix.S_IFSOCK && !h.hidden {
				h.hidden = hasDescriptors(path + "info/" + name)
			}
		}
		if err != nil { // at the end, or the process has ended
			return
		}
	}
}

func (h *handles) add(st *unix.Stat_t) {
	if st.Nlink != 0 || st.Uid != h.uid || st.Dev != h.dev || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return
	}
	if _, counted := h.counted[st.Ino]; counted {
		return
	}
	h.counted[st.Ino] = struct{}{}
	h.use.Bytes += st.Blocks * 512
	h.use.Files++
}

// hasDescriptors says whether descriptors were sent to a socket that nobody has
// received (Linux 5.12), by its file in fdinfo.
func hasDescriptors(info string) bool {
	said, err := os.ReadFile(info)
	if err != nil {
		return false // it is closed
	}
	_, after, found := bytes.Cut(said, []byte("scm_fds: "))
	return found && !bytes.HasPrefix(after, []byte("0\n"))
}
