package supervisor

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"envapi/sandbox"
	"envapi/sandbox/protocol"
)

const (
	// returnPatience is how long bash may take to come back when what it ran was
	// killed.
	returnPatience = 500 * time.Millisecond
	// killPause is the time after which what bash has started meanwhile is killed
	// too.
	killPause = 100 * time.Millisecond
	// earlyPatience is how long bash may take to start the first program of a
	// script.
	earlyPatience = 40 * time.Millisecond
)

// Signal implements sandbox.Process. What a person has keys for, the kernel sends
// to what is in the foreground.
func (c *shellCommand) Signal(ctx context.Context, name string) error {
	sig, err := signalNumber(name)
	if err != nil {
		return err
	}
	c.awaitBegun(ctx)
	if sig == unix.SIGKILL {
		return c.Kill(ctx)
	}
	return c.act(ctx, func() error { return c.deliver(ctx, sig) })
}

// act does something to the command, unless it has ended. Its end waits for that:
// nothing is done to the next command of the shell.
func (c *shellCommand) act(ctx context.Context, do func() error) error {
	if err := c.acting.take(ctx); err != nil {
		return err
	}
	defer c.acting.give()
	if c.over {
		return nil
	}
	return do()
}

// retire lets nobody act on the command any more.
func (c *shellCommand) retire() {
	_ = c.acting.take(context.Background())
	c.over = true
	c.acting.give()
}

// deliver sends a signal other than KILL.
func (c *shellCommand) deliver(ctx context.Context, sig unix.Signal) error {
	switch sig {
	case unix.SIGINT, unix.SIGQUIT, unix.SIGTSTP:
		return c.press(sig)
	}
	reached, err := c.shell.ask(ctx, protocol.Signal{Signal: sig, Fresh: true, Since: c.since})
	if err == nil && reached == 0 && (sig == unix.SIGTERM || sig == unix.SIGHUP) {
		// There is only bash itself, which is not what is to end.
		return c.press(unix.SIGINT)
	}
	if errors.Is(err, sandbox.ErrBoxClosed) {
		return nil
	}
	return err
}

// awaitBegun waits until a command can get a signal: what comes before bash has
// opened the script would hit a bash that waits for it, and what comes when bash has
// just forked, a process that does not know yet what it is to do with it.
func (c *shellCommand) awaitBegun(ctx context.Context) {
	if !c.awaitOpened(ctx) {
		return
	}
	if early := earlyPatience - time.Since(time.Unix(0, c.openedAt.Load())); early > 0 {
		c.ended(ctx, early)
	}
}

// awaitOpened waits until bash has opened the script.
func (c *shellCommand) awaitOpened(ctx context.Context) bool {
	patience := time.NewTimer(returnPatience)
	defer patience.Stop()
	select {
	case <-c.opened:
		return true
	case <-c.done:
	case <-patience.C:
	case <-ctx.Done():
	}
	return false
}

// press sends a signal as a key of the terminal does.
func (c *shellCommand) press(sig unix.Signal) error {
	c.shell.gate.interrupt()
	return c.shell.tty.control(func(fd int) error { return unix.IoctlSetInt(fd, unix.TIOCSIG, int(sig)) })
}

// Kill implements sandbox.Process. What was there before the command is spared,
// and bash is, if it comes back.
func (c *shellCommand) Kill(ctx context.Context) error {
	c.awaitOpened(ctx)
	for deadline := time.Now().Add(returnPatience); time.Now().Before(deadline); {
		patience := killPause
		err := c.act(ctx, func() error {
			if _, ok := c.frame.Find(); ok { // it has just ended by itself, or by the last one
				patience = returnPatience
				return nil
			}
			return c.killFresh(ctx)
		})
		if err != nil {
			break
		}
		if c.ended(ctx, patience) {
			return nil
		}
	}
	if err := c.act(ctx, func() error { return c.killShell(ctx) }); err != nil {
		return err
	}
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// killFresh kills what the command has started, and interrupts bash.
func (c *shellCommand) killFresh(ctx context.Context) error {
	c.killed = true
	c.shell.gate.interrupt()
	_, err := c.shell.ask(ctx, protocol.Signal{Signal: unix.SIGKILL, Fresh: true, Since: c.since, Interrupt: true})
	return err
}

// killShell kills the bash that does not come back, and all that is below it.
func (c *shellCommand) killShell(ctx context.Context) error {
	c.killed = true
	return c.shell.process.Kill(ctx)
}

// ended waits for the end, for a time.
func (c *shellCommand) ended(ctx context.Context, patience time.Duration) bool {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-c.done:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}
