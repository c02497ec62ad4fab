// Package inotify tells of one thing that happens to a file or folder, by one
// inotify instance for all (inotify(7)): the kernel gives a user 128 of them, and
// a service has thousands of shells.
//
// Every watch ends with the first event, so that who makes many costs nothing.
//
// Not protected: an event says what happened, not who did it.
package inotify

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// bufferSize is room for several events with the longest names.
const bufferSize = 16 << 10

// Watcher is one inotify instance.
type Watcher struct {
	file *os.File
	done chan struct{} // closed when nothing is told any more

	mu      sync.Mutex // held while a watch is made, so that its event finds it
	watches map[int32]*Watch
}

// Watch waits for one event.
type Watch struct {
	watcher *Watcher
	number  int32
	tell    func(Event)
}

// Event is what happened.
type Event struct {
	Name string // in a folder: of what
	// Lost says that events were lost, and it is not known whether this one was
	// there. The watch may be over.
	Lost bool
}

// New makes a Watcher.
func New() (*Watcher, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("cannot watch files: %w", err)
	}
	w := &Watcher{file: os.NewFile(uintptr(fd), "inotify"), done: make(chan struct{}), watches: map[int32]*Watch{}}
	go w.run()
	return w, nil
}

// Close ends all watches.
func (w *Watcher) Close() error {
	err := w.file.Close()
	<-w.done
	return err
}

// ErrFull is why there is no watch where the kernel gives the user no more: boxes
// whose user namespaces he made count as well.
var ErrFull = errors.New("cannot watch a file: the kernel gives this user no more watches")

// Once tells of the first event of the mask that happens to what is open as fd;
// tell must not block. A file or folder has one watch at a time: with another it
// fails with EEXIST. A nil Watcher has room for none.
func (w *Watcher) Once(fd int, mask uint32, tell func(Event)) (*Watch, error) {
	if w == nil {
		return nil, ErrFull
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	conn, err := w.file.SyscallConn()
	if err != nil {
		return nil, err
	}
	var number int
	var failed error
	err = conn.Control(func(own uintptr) {
		number, failed = unix.InotifyAddWatch(int(own), fmt.Sprintf("/proc/self/fd/%d", fd), mask|unix.IN_ONESHOT|unix.IN_MASK_CREATE)
	})
	if errors.Is(failed, unix.ENOSPC) {
		return nil, ErrFull
	}
	if err := errors.Join(err, failed); err != nil {
		return nil, fmt.Errorf("cannot watch a file: %w", err)
	}
	watch := &Watch{watcher: w, number: int32(number), tell: tell} //nolint:gosec // the kernel's are that small
	w.watches[watch.number] = watch
	return watch, nil
}

// Cancel ends a watch; nothing is told when it has returned. A nil Watch waits for
// nothing.
func (watch *Watch) Cancel() {
	if watch == nil {
		return
	}
	w := watch.watcher
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watches[watch.number] != watch {
		return // it is over
	}
	delete(w.watches, watch.number)
	conn, err := w.file.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Control(func(own uintptr) { _, _ = unix.InotifyRmWatch(int(own), uint32(watch.number)) }) //nolint:gosec // never negative
}

func (w *Watcher) run() {
	defer close(w.done)
	buffer := make([]byte, bufferSize)
	for {
		n, err := w.file.Read(buffer)
		if err != nil {
			return // closed
		}
		for rest := buffer[:n]; len(rest) > 0; {
			var e event
			if e, rest = next(rest); e.whole {
				w.take(e)
			}
		}
	}
}

// event is an inotify_event.
type event struct {
	whole  bool // else the bytes were none
	number int32
	mask   uint32
	name   string
}

// next takes an event off the bytes that the kernel gave.
func next(b []byte) (e event, rest []byte) {
	if len(b) < unix.SizeofInotifyEvent {
		return e, nil
	}
	e.number = int32(binary.NativeEndian.Uint32(b[0:])) //nolint:gosec // -1 is possible
	e.mask = binary.NativeEndian.Uint32(b[4:])
	length := binary.NativeEndian.Uint32(b[12:])
	b = b[unix.SizeofInotifyEvent:]
	if uint64(length) > uint64(len(b)) {
		return event{}, nil
	}
	name, _, _ := bytes.Cut(b[:length], []byte{0})
	e.name, e.whole = string(name), true
	return e, b[length:]
}

// take tells what an event is of. It holds the lock meanwhile, for Cancel.
func (w *Watcher) take(e event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.mask&unix.IN_Q_OVERFLOW != 0 {
		for _, watch := range w.watches {
			watch.tell(Event{Lost: true})
		}
		return
	}
	watch := w.watches[e.number]
	if watch == nil {
		return // of a watch that is over, and that it is
	}
	delete(w.watches, e.number)
	watch.tell(Event{Name: e.name, Lost: e.mask&unix.IN_IGNORED != 0})
}
