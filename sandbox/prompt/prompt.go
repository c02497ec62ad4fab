package prompt

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// apart is the time between the two looks that must agree.
	apart = 50 * time.Millisecond
	// idle is how many times as long as a look took no other is made.
	idle = 20
)

// Terminal is a terminal that can be looked at. It costs nothing while nobody
// asks.
type Terminal struct {
	master *os.File
	slave  device
	turns  *Turns
}

// device tells one file from every other: of a devpts there are many, and each
// counts its terminals from 0.
type device struct {
	dev, ino, rdev uint64
}

// controlling is /dev/tty: for a process of the foreground group it is this
// terminal, wherever the file is.
var controlling = unix.Mkdev(5, 0)

// New makes a terminal of its two ends. The master must stay open as long as
// anybody asks; the slave is not kept. Terminals of the same programs share turns.
func New(master, slave *os.File, turns *Turns) (*Terminal, error) {
	connection, err := slave.SyscallConn()
	if err != nil {
		return nil, err
	}
	var stat unix.Stat_t
	var failed error
	if err := connection.Control(func(fd uintptr) { failed = unix.Fstat(int(fd), &stat) }); err != nil {
		return nil, err
	}
	if failed != nil || stat.Mode&unix.S_IFMT != unix.S_IFCHR {
		return nil, fmt.Errorf("cannot tell which terminal this is: mode %o, %w", stat.Mode, failed)
	}
	t := &Terminal{master: master, turns: turns}
	t.slave = device{uint64(stat.Dev), stat.Ino, uint64(stat.Rdev)} //nolint:unconvert // their sizes differ between architectures
	return t, nil
}

// Reading says whether what runs in the foreground is blocked reading the
// terminal, which takes two looks and 50 ms; that it is not takes one. known is
// false where this host does not let it look, and when ctx ends first.
func (t *Terminal) Reading(ctx context.Context) (reading, known bool) {
	first, ok := t.turns.look(ctx, t)
	if ok && !first.Known && pause(ctx, apart) {
		first, ok = t.turns.look(ctx, t) // a process cannot be looked into while it executes another program
	}
	if !ok || !first.Reading {
		return false, ok && first.Known
	}
	if !pause(ctx, apart) {
		return false, false
	}
	second, ok := t.turns.look(ctx, t)
	return ok && second.Reading && first == second, ok && second.Known
}

// pause waits, and says whether ctx let it.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
