package supervisor

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// bash is the bash of a shell as the host's /proc shows it.
type bash struct {
	dir int // its folder there, which is never another process's
}

// findBash finds the process whose session has the terminal. That it leads it is
// the kernel's word, and that it has not ended.
func findBash(t *terminal) (*bash, error) {
	pid, err := sessionOf(t)
	if err != nil {
		return nil, err
	}
	dir, err := unix.Open("/proc/"+strconv.Itoa(pid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if again, err := sessionOf(t); err != nil || again != pid {
		_ = unix.Close(dir)
		return nil, unix.ESRCH
	}
	return &bash{dir}, nil
}

func sessionOf(t *terminal) (pid int, err error) {
	err = t.control(func(fd int) error {
		pid, err = unix.IoctlGetInt(fd, unix.TIOCGSID)
		return err
	})
	if err == nil && pid <= 0 {
		err = unix.ESRCH
	}
	return pid, err
}

func (b *bash) close() {
	if b != nil {
		_ = unix.Close(b.dir)
	}
}

// deletedMark is what the kernel appends to the path of what was deleted.
const deletedMark = " (deleted)"

// cwd gives bash's directory as seen inside, and whether it was deleted. It is ""
// where that is not known.
func (b *bash) cwd() (path string, gone bool) {
	if b == nil {
		return "", false
	}
	buffer := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(b.dir, "cwd", buffer)
	if err != nil || n == len(buffer) {
		return "", false
	}
	var stat unix.Stat_t
	if err := unix.Fstatat(b.dir, "cwd", &stat, 0); err != nil {
		return "", false
	}
	// A directory may have a name that ends so.
	gone = stat.Nlink == 0
	path = string(buffer[:n])
	if gone {
		path = strings.TrimSuffix(path, deletedMark)
	}
	return path, gone
}

// replaced says whether another program has taken bash's place (exec), or bash is
// just ending.
func (b *bash) replaced() bool {
	if b == nil {
		return false
	}
	fd, err := unix.Openat(b.dir, "cmdline", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return true
	}
	defer unix.Close(fd)
	own := strings.Join(commandShell, "\x00") + "\x00"
	buffer := make([]byte, len(own)+1)
	n, err := unix.Read(fd, buffer)
	return err != nil || string(buffer[:n]) != own
}

// maxLooked is how many of its descriptors are looked at: what bash keeps aside is
// among the first.
const maxLooked = 256

// holds says whether bash has a pipe open; also where it cannot be told.
func (b *bash) holds(pipe *os.File) bool {
	inode, err := inodeOf(pipe)
	if b == nil || err != nil {
		return true
	}
	fd, err := unix.Openat(b.dir, "fd", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return true
	}
	dir := os.NewFile(uintptr(fd), "fd")
	defer dir.Close()
	names, err := dir.Readdirnames(maxLooked)
	if err != nil && !errors.Is(err, io.EOF) {
		return true
	}
	want := fmt.Sprintf("pipe:[%d]", inode)
	buffer := make([]byte, len(want)+1)
	for _, name := range names {
		if n, err := unix.Readlinkat(fd, name, buffer); err == nil && string(buffer[:n]) == want {
			return true
		}
	}
	return len(names) == maxLooked
}

func inodeOf(f *os.File) (uint64, error) {
	var stat unix.Stat_t
	err := control(f, func(fd int) error { return unix.Fstat(fd, &stat) })
	return stat.Ino, err
}
