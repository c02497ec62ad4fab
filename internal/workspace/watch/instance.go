package watch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"envapi/core"
)

const (
	// bufferSize is room for some hundred events.
	bufferSize = 64 << 10
	// told is what is asked of the kernel for each directory.
	told = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO |
		unix.IN_MODIFY | unix.IN_CLOSE_WRITE | unix.IN_ATTRIB | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF |
		unix.IN_ONLYDIR | unix.IN_EXCL_UNLINK
)

// instance is one of inotify.
type instance struct {
	file   *os.File
	buffer []byte
}

// event is an inotify_event.
type event struct {
	number int32
	mask   uint32
	cookie uint32
	name   string
}

func (e *event) is(mask uint32) bool { return e.mask&mask != 0 }

func newInstance() (*instance, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) {
		return nil, exhausted("instances of inotify").Because(err)
	}
	if err != nil {
		return nil, err
	}
	return &instance{file: os.NewFile(uintptr(fd), "inotify"), buffer: make([]byte, bufferSize)}, nil
}

func exhausted(what string) *core.Error {
	return core.Errorf(core.CodeUnavailable, "cannot watch: the host's kernel gives the service no more %s; list the directory instead, or try again", what).With("retry_after_ms", retryAfter)
}

// control runs do on the descriptor. Its method Fd would make reading it wait for ever.
func (i *instance) control(do func(fd int) error) error {
	conn, err := i.file.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := conn.Control(func(fd uintptr) { failed = do(int(fd)) }); err != nil {
		return err
	}
	return failed
}

// add watches what is open, and gives its number: the same for the same directory.
func (i *instance) add(dir *os.File) (number int32, err error) {
	err = i.control(func(fd int) error {
		n, err := unix.InotifyAddWatch(fd, "/proc/self/fd/"+strconv.Itoa(int(dir.Fd())), told)
		number = int32(n) //nolint:gosec // the kernel's are that small
		return err
	})
	return number, err
}

func (i *instance) remove(number int32) {
	// It fails where the directory is gone, and the watch with it.
	_ = i.control(func(fd int) error {
		_, err := unix.InotifyRmWatch(fd, uint32(number)) //nolint:gosec // never negative
		return err
	})
}

// drained says whether all events were read.
func (i *instance) drained() bool {
	waiting := 1
	err := i.control(func(fd int) (err error) {
		waiting, err = unix.IoctlGetInt(fd, unix.TIOCINQ)
		return err
	})
	return err == nil && waiting == 0
}

// read waits for events; none by the deadline is none. The zero time is no deadline.
func (i *instance) read(until time.Time) ([]event, error) {
	if err := i.file.SetReadDeadline(until); err != nil {
		return nil, err
	}
	n, err := i.file.Read(i.buffer)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var events []event
	for rest := i.buffer[:n]; len(rest) >= unix.SizeofInotifyEvent; {
		var e event
		e, rest = parse(rest)
		events = append(events, e)
	}
	return events, nil
}

// parse takes an event off the bytes that the kernel gave: it gives whole ones.
func parse(b []byte) (e event, rest []byte) {
	e.number = int32(binary.NativeEndian.Uint32(b[0:])) //nolint:gosec // -1 is possible
	e.mask = binary.NativeEndian.Uint32(b[4:])
	e.cookie = binary.NativeEndian.Uint32(b[8:])
	length := int(binary.NativeEndian.Uint32(b[12:]))
	b = b[unix.SizeofInotifyEvent:]
	length = min(length, len(b))
	name, _, _ := bytes.Cut(b[:length], []byte{0})
	e.name = string(name)
	return e, b[length:]
}
