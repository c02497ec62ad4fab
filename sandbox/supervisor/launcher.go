// Package supervisor is the outside of a box: it starts the init, speaks the
// protocol with it, and carries the streams of its commands. The tiers differ
// only in what they ask of it (Launch).
//
// It runs in the service's own process. It executes nothing but the init's
// sealed program, and believes an init only what concerns that init's own
// commands.
package supervisor

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"envapi/sandbox/initbin"
	"envapi/sandbox/protocol"
)

// Launcher starts inits, all from one sealed copy of the program and from one
// thread that lasts as long as it does: the kernel ends a box when the thread
// that started its init ends (PR_SET_PDEATHSIG, prctl(2); go.dev/issue/27505).
type Launcher struct {
	binary  *os.File
	starts  chan func()
	spare   *spare
	inits   inits
	watcher watcher

	closing sync.RWMutex // for reading while starts is used
	closed  bool
}

// NewLauncher makes a Launcher of the embedded init, or of the one at path
// where it is not empty.
func NewLauncher(path string) (*Launcher, error) {
	// Orphans of a box whose init is killed come to the service (orphans.go).
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("cannot become subreaper: %w", err)
	}
	program, err := openProgram(path)
	if err != nil {
		return nil, err
	}
	defer program.Close()
	binary, err := seal(program)
	if err != nil {
		return nil, err
	}
	l := &Launcher{binary: binary, starts: make(chan func())}
	l.spare = &spare{make: func() (*infant, error) { return l.start(true) }}
	_, _ = l.watcher.get()
	go l.run()
	return l, nil
}

func openProgram(path string) (io.ReadCloser, error) {
	if path == "" {
		return initbin.Open()
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot open the box init: %w", err)
	}
	return f, nil
}

// seal copies a program into memory where nobody can change it, not its bytes
// and not its mode: a process inside a box must not reach the host's file
// through /proc/1/exe.
func seal(program io.Reader) (*os.File, error) {
	fd, err := unix.MemfdCreate("envapi-init", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3 there is no MFD_EXEC, and no need of it
		fd, err = unix.MemfdCreate("envapi-init", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot make a memory file for the box init: %w", err)
	}
	f := os.NewFile(uintptr(fd), "envapi-init")
	if _, err := io.Copy(f, program); err != nil {
		f.Close()
		return nil, fmt.Errorf("cannot copy the box init: %w", err)
	}
	if err := sealFile(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("cannot seal the box init: %w", err)
	}
	return f, nil
}

// sealFile makes a memory file one that nobody can change.
func sealFile(f *os.File) error {
	const seals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	_, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals)
	return err
}

// run is the thread that starts the inits.
func (l *Launcher) run() {
	runtime.LockOSThread() // not unlocked: the thread ends with the goroutine
	for start := range l.starts {
		start()
	}
}

// onThread runs do on the thread, or says that it is gone.
func (l *Launcher) onThread(do func()) bool {
	l.closing.RLock()
	defer l.closing.RUnlock()
	if l.closed {
		return false
	}
	done := make(chan struct{})
	l.starts <- func() {
		defer close(done)
		do()
	}
	<-done
	return true
}

// Close ends the Launcher, and with it every box that it started and that is
// still there.
func (l *Launcher) Close() error {
	l.spare.close()
	l.closing.Lock()
	defer l.closing.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	l.watcher.close()
	close(l.starts)
	return l.binary.Close()
}

// infant is an init that was started and waits for its setup.
type infant struct {
	inits   *inits
	process *os.Process
	conn    *net.UnixConn // the supervisor's end of its socket
}

// discard ends an infant that is not needed.
func (i *infant) discard() {
	_ = i.conn.Close()
	_ = i.process.Kill()
	i.inits.wait(i.process)
}

// start starts an init, in namespaces of its own or in the service's.
func (l *Launcher) start(namespaces bool) (*infant, error) {
	own, control, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer control.Close()
	process, err := l.execute(control, namespaces)
	if err != nil {
		_ = own.Close()
		return nil, fmt.Errorf("cannot start the box init: %w", err)
	}
	offer(process.Pid)
	return &infant{&l.inits, process, own}, nil
}

// victimScore is far above what the host's own programs have
// (proc_pid_oom_score_adj(5)).
const victimScore = 500

// offer lets the kernel end an init and all that it starts before others when the
// host has no memory left, be it by what no limit counts. Root's word cannot be
// taken back by a command.
func offer(pid int) {
	path := fmt.Sprintf("/proc/%d/oom_score_adj", pid)
	now, err := os.ReadFile(path)
	if err != nil {
		return
	}
	if score, err := strconv.Atoi(strings.TrimSpace(string(now))); err == nil && score < victimScore {
		_ = os.WriteFile(path, strconv.AppendInt(nil, victimScore, 10), 0)
	}
}

// execute makes the process of an init whose end of the socket is control.
func (l *Launcher) execute(control *os.File, namespaces bool) (*os.Process, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	var files [protocol.BinaryFD + 1]int
	for i := range files {
		files[i] = int(null.Fd())
	}
	files[protocol.ControlFD], files[protocol.BinaryFD] = int(control.Fd()), int(l.binary.Fd())
	e, err := newEmbryo(files, namespaces)
	if err != nil {
		return nil, err
	}
	return l.inits.add(func() (pid int, err error) {
		if !l.onThread(func() { pid, err = e.grow() }) {
			return 0, errClosing
		}
		return pid, err
	})
}

// errClosing is why no init is started any more.
var errClosing = errors.New("the service is closing")
