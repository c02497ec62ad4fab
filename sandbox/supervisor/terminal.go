package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"envapi/sandbox"
	"envapi/sandbox/prompt"
)

// terminal is the end of a terminal that is ours. The other, which the programs
// have, is called its slave.
//
// What is written to the slave goes to the outputs (output). When no process has
// the slave open any more the terminal has ended, and is closed.
type terminal struct {
	master *os.File // does not block; deadlines interrupt it
	output *tee
	pump   *pump
	keys   *keyboard
	looks  *prompt.Terminal
}

// devpts is what says that a file system is one of terminals (statfs(2)).
const devpts = 0x1cd1

// openTerminal makes a terminal, and gives it with its slave, which a box's
// processes may open again. Whoever gets the slave must close it: while it is
// open, the terminal does not end. Nobody gets what is written to it before
// t.output.always is set and t.start was called.
func (b *Box) openTerminal(size sandbox.Size) (t *terminal, slave *os.File, err error) {
	var master *os.File
	if b.options.Setup.Namespaces {
		master, slave, err = b.ownTerminal()
	} else {
		master, slave, err = hostTerminal()
	}
	if errors.Is(err, unix.ENOSPC) { // of the file system of terminals, not of a disk
		return nil, nil, sandbox.ErrNoTerminal
	}
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make a terminal: %w", err)
	}
	t = &terminal{master: master, output: &tee{}, keys: newKeyboard(master)}
	if _, err = b.given(slave, nil); err == nil {
		err = slave.Chmod(0o600) // not even for write(1)
	}
	if err == nil {
		err = t.Resize(size)
	}
	if err == nil {
		err = t.setDefaults()
	}
	if err == nil {
		t.looks, err = prompt.New(master, slave, b.looks)
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("cannot make a terminal: %w", err), slave.Close(), master.Close())
	}
	return t, slave, nil
}

// start lets what is written to the terminal go to always, and for a while to
// others (tee). always must not block.
func (t *terminal) start(always io.Writer) {
	t.output.always = always
	t.pump = startPump(t.master, t.output, drainTerminal)
}

// ownTerminal makes a terminal in the box's own file system of terminals, which
// no other box has and whose number of terminals is bounded.
func (b *Box) ownTerminal() (master, slave *os.File, err error) {
	f, err := b.inside("/dev/pts/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK)
	if err != nil {
		return nil, nil, err
	}
	if err = mustBeMaster(f); err == nil {
		slave, err = openPeer(f)
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, slave, nil
}

// mustBeMaster refuses what is no master of a terminal.
func mustBeMaster(f *os.File) error {
	var system unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &system); err != nil {
		return err
	}
	if _, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPTN); err != nil || system.Type != devpts {
		return errors.New("what the box has as /dev/pts/ptmx makes none")
	}
	return unix.IoctlSetPointerInt(int(f.Fd()), unix.TIOCSPTLCK, 0)
}

// openPeer opens the slave of a terminal, by no path. It becomes nobody's
// controlling terminal by that.
func openPeer(master *os.File) (*os.File, error) {
	var slave *os.File
	err := control(master, func(m int) error {
		fd, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(m), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
		if errno != 0 {
			return errno
		}
		slave = os.NewFile(fd, "slave")
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cannot open the other end: %w", err)
	}
	return slave, nil
}

// hostTerminal makes one of the host's terminals.
func hostTerminal() (master, slave *os.File, err error) {
	m, slave, err := pty.Open()
	if err != nil {
		return nil, nil, err
	}
	defer m.Close()
	// It blocks. What is not blocking from the first is so for package os too.
	fd, err := unix.FcntlInt(m.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, nil, errors.Join(err, slave.Close())
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, nil, errors.Join(err, slave.Close(), unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), "master"), slave, nil
}

// tee is where a terminal's bytes go: always to one writer, and for a time to
// another as well.
type tee struct {
	always io.Writer

	mu  sync.Mutex
	now io.Writer
}

// to sets the other writer; nil is none. A write to the one before is over when
// it returns.
func (t *tee) to(w io.Writer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.now = w
}

// Write implements io.Writer.
func (t *tee) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.now != nil {
		_, _ = t.now.Write(p) // of no matter for the other
	}
	return t.always.Write(p)
}

// ptyful is more than what there can be on the way from the slave to the master:
// the kernel keeps 8 KiB for that and 4 KiB in the line discipline.
const ptyful = 32 << 10

// drainTerminal carries what was written before its call: a process that writes
// for ever does not hold it. How much that is cannot be asked, since some of it is
// still on its way in the kernel, for which a read waits.
func drainTerminal(p *pump) error {
	return control(p.from, func(fd int) error { return p.copyUpTo(fd, ptyful) })
}

// settle carries what is in the terminal now, after which the channel is closed.
func (t *terminal) settle() <-chan struct{} { return t.pump.settle() }

// control does something with the master, unless the terminal has ended.
func (t *terminal) control(do func(fd int) error) error { return t.keys.control(do) }

// Resize implements sandbox.Terminal. What runs in the foreground gets SIGWINCH.
// (creack/pty would ask for the descriptor itself, which may be another's when
// the terminal ends in that moment.)
func (t *terminal) Resize(size sandbox.Size) error {
	return t.control(func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: size.Rows, Col: size.Cols})
	})
}

// Write implements sandbox.Input.
func (t *terminal) Write(ctx context.Context, p []byte) (int, error) { return t.keys.write(ctx, p) }

// End implements sandbox.Input.
func (t *terminal) End(ctx context.Context) error { return t.keys.end(ctx) }

// Reading implements sandbox.Terminal.
func (t *terminal) Reading(ctx context.Context) (reading, known bool) { return t.looks.Reading(ctx) }

var _ sandbox.Terminal = (*terminal)(nil)
