package supervisor

import (
	"context"
	"errors"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"envapi/sandbox"
)

// maxLine is the longest line that a terminal holds for a program that reads
// lines, without the character that ends it. What is beyond that the kernel
// drops, and says nothing (termios(3), "Canonical and noncanonical mode").
const maxLine = 4095

// keyboard is what is written to a terminal. The kernel keeps about 12 KiB that
// nobody reads, after which there is no room: with whole lines among them none is
// lost. Only of one line that is longer than maxLine would something be.
type keyboard struct {
	master *os.File
	turn   turn
	ended  atomic.Bool
	drops  atomic.Int64 // how often drop was called
	typing typing       // by what was written; needs the turn
}

func newKeyboard(master *os.File) *keyboard {
	return &keyboard{master: master, turn: newTurn()}
}

// close refuses whatever comes, and wakes who waits for room. The terminal lives
// on, for those who write to it.
func (k *keyboard) close() {
	k.ended.Store(true)
	wake(k.master)
}

// control does something with the master, unless the terminal has ended.
func (k *keyboard) control(do func(fd int) error) error {
	err := control(k.master, do)
	if errors.Is(err, os.ErrClosed) {
		return sandbox.ErrInputClosed
	}
	return err
}

func (k *keyboard) modes() (modes *unix.Termios, err error) {
	err = k.control(func(fd int) error {
		modes, err = unix.IoctlGetTermios(fd, unix.TCGETS)
		return err
	})
	return modes, err
}

// write is sandbox.Input's Write.
func (k *keyboard) write(ctx context.Context, p []byte) (int, error) {
	drops := k.drops.Load()
	if err := k.turn.take(ctx); err != nil {
		return 0, err
	}
	defer k.turn.give()
	modes, err := k.modes()
	if err != nil {
		return 0, err
	}
	d := discipline{modes}
	if _, longest := d.follow(k.typing, p); longest > maxLine {
		return 0, sandbox.ErrLineTooLong
	}
	taken := 0
	for part := range d.parts(k.typing.quoted, p) {
		if d.interrupts(part[0]) && !k.typing.quoted {
			// The kernel would drop it too when it comes to this key, but it would
			// not come to it while what nobody reads is before it.
			_ = k.discard()
		}
		n, err := k.push(ctx, part, drops)
		k.typing, _ = d.follow(k.typing, part[:n])
		taken += n
		if err != nil {
			return taken, err
		}
	}
	return taken, nil
}

// end is sandbox.Input's End: the key for it, twice where a line has begun, since
// the first only sends that off.
func (k *keyboard) end(ctx context.Context) error {
	drops := k.drops.Load()
	if err := k.turn.take(ctx); err != nil {
		return err
	}
	defer k.turn.give()
	modes, err := k.modes()
	if err != nil {
		return err
	}
	d := discipline{modes}
	keys := []byte{ctrlD}
	if d.lines() {
		if keys[0] = modes.Cc[unix.VEOF]; keys[0] == disabled {
			return errors.New("cannot say the end on this terminal: its program has taken the key for it away")
		}
		if len(k.typing.line) > 0 {
			keys = append(keys, keys[0])
		}
	}
	n, err := k.push(ctx, keys, drops)
	k.typing, _ = d.follow(k.typing, keys[:n])
	return err
}

// push writes as there is room, until ctx ends, or drop was called once more.
func (k *keyboard) push(ctx context.Context, p []byte, drops int64) (int, error) {
	return pour(ctx, k.master, p, func() bool { return k.ended.Load() || k.drops.Load() != drops })
}

// drop takes away what was written and not read, and what is being written.
func (k *keyboard) drop() error {
	k.drops.Add(1)
	wake(k.master)
	if err := k.turn.take(context.Background()); err != nil {
		return err
	}
	defer k.turn.give()
	return k.discard()
}

// discard takes away what was written and not read. The master reaches only what
// is on its way, the slave all.
func (k *keyboard) discard() error {
	k.typing = typing{}
	slave, err := openPeer(k.master)
	if err != nil {
		return err
	}
	defer slave.Close()
	return unix.IoctlSetInt(int(slave.Fd()), unix.TCFLSH, unix.TCIFLUSH)
}
