package supervisor

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"envapi/sandbox"
	"envapi/sandbox/inotify"
	"envapi/sandbox/protocol"
)

const (
	// look is the time between two looks at a bash whose command has not ended.
	// Two must agree.
	look = 200 * time.Millisecond
	// firstPause and lastPause are after how long the next thing that is made in a
	// folder is told, when what was made was no record: a command that makes many
	// gains nothing.
	firstPause = time.Millisecond
	lastPause  = look
)

// follow waits for the end of a command, and tells.
func (c *shellCommand) follow() {
	code, how := c.await()
	c.retire()
	switch how {
	case recorded:
		c.finish(sandbox.Result{ExitCode: code}, sandbox.ShellState{})
	case corrupt:
		c.endShell()
		c.finish(c.shell.result, sandbox.ShellState{Ended: true, Corrupt: !c.killed})
	case bashEnded:
		c.finish(c.shell.result, sandbox.ShellState{Ended: true})
	}
}

// ending is how a command ended.
type ending int

const (
	recorded  ending = iota
	corrupt          // there will be no record
	bashEnded        // and with it the command
)

func (c *shellCommand) await() (code int, how ending) {
	defer func() { c.watch.Cancel() }()
	ticks := time.NewTicker(look)
	defer ticks.Stop()
	rearm := time.NewTimer(0)
	defer rearm.Stop()
	pause, o := firstPause, observation{}
	<-rearm.C
	if c.watch == nil {
		rearm.Reset(pause)
	}
	for {
		select {
		case e := <-c.made:
			if code, ok := c.frame.Record(e.Name); ok {
				return code, c.judge(code)
			}
			rearm.Reset(pause)
			pause = min(2*pause, lastPause)
		case <-rearm.C:
			if errors.Is(c.arm(), inotify.ErrFull) {
				rearm.Reset(pause)
				pause = min(2*pause, lastPause)
			}
			c.noticeOpened()
			if code, ok := c.frame.Find(); ok { // it came meanwhile
				return code, c.judge(code)
			}
		case <-ticks.C:
			if code, ok := c.looked(&o); ok {
				return code, c.judge(code)
			}
			if o.corrupt {
				return 0, corrupt
			}
		case <-c.shell.done:
			if code, ok := c.frame.Find(); ok && c.judge(code) == recorded {
				return code, recorded
			}
			return 0, bashEnded
		}
	}
}

// judge says whether a record counts: bash must have opened the script. An
// interrupt can have kept it from that.
func (c *shellCommand) judge(code int) ending {
	if code == interruptedCode && c.shell.gate.wasInterrupted() {
		return recorded
	}
	c.noticeOpened()
	// That it was opened may be told a moment later than a record is found.
	timer := time.NewTimer(look)
	defer timer.Stop()
	select {
	case <-c.opened:
		return recorded
	case <-timer.C:
		return corrupt
	}
}

const interruptedCode = 128 + int(unix.SIGINT)

// observation is what looks at a bash have found.
type observation struct {
	silent  int  // looks in a row at which it had read all and not answered
	looks   int  // all of them
	asked   bool // for the record again
	corrupt bool
}

// looked looks at bash, and for the record.
func (c *shellCommand) looked(o *observation) (code int, ok bool) {
	o.looks++
	waiting, broken := c.shell.waiting()
	switch {
	case broken, waiting && o.looks%2 == 0 && !c.shell.bash.holds(c.shell.lines):
		// It will not read any more; what was started in its place need not.
		o.corrupt = !c.shell.bash.replaced()
		return 0, false
	case waiting:
		o.silent = 0
		return 0, false
	default:
		o.silent++
	}
	if code, ok := c.frame.Find(); ok || o.silent < 2 {
		return code, ok
	}
	// An interrupt may have taken the record away.
	if o.asked || c.shell.say(c.frame.AgainLine()) != nil {
		o.corrupt = true
	}
	o.asked, o.silent = true, 0
	return 0, false
}

// waiting says whether there is a line that bash has not read, and whether nobody
// can read it.
func (s *shell) waiting() (waiting, broken bool) {
	err := control(s.lines, func(fd int) error {
		n, err := unix.IoctlGetInt(fd, unix.TIOCINQ) // FIONREAD
		waiting = err == nil && n > 0
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}} //nolint:gosec // a descriptor
		if _, err := unix.Poll(poll, 0); err == nil {
			broken = poll[0].Revents&unix.POLLERR != 0
		}
		return nil
	})
	return waiting, broken || err != nil
}

// endShell ends a bash that does not answer, and all that is below it.
func (c *shellCommand) endShell() {
	if err := c.shell.process.Kill(context.Background()); err != nil {
		_ = c.shell.box.violate("the bash of a shell does not end")
	}
	<-c.shell.done
}

// finish lets the output through, makes the shell ready for the next command, and
// tells.
func (c *shellCommand) finish(r sandbox.Result, state sandbox.ShellState) {
	s := c.shell
	s.gate.shut()
	if !state.Ended {
		c.settleShell(r.ExitCode)
		state.Cwd, state.CwdGone = s.bash.cwd()
	}
	state.Shared = c.shared
	r.Shell = &state
	used := s.counted
	if !state.Ended {
		used = s.counting.used()
	}
	r.OutOfMemory, r.Used = used.OutOfMemory, sandbox.Used{}
	if !c.shared {
		r.Used = used.Used
	}
	c.settleOutput(state.Ended)
	c.frame.Remove(r.ExitCode)
	if c.killed && !r.Lost && (!state.Ended || r.Signal == signalName(unix.SIGINT)) {
		// The interrupt was a part of the kill (Kill).
		r.ExitCode, r.Signal = 0, signalName(unix.SIGKILL)
	}
	c.release()
	c.result = r
	s.giveBack()
	close(c.done)
	c.awaitQuiet()
}

// settleShell makes a bash that has answered ready for the next command.
func (c *shellCommand) settleShell(code int) {
	s := c.shell
	if s.bash == nil { // it is the first
		s.bash, _ = findBash(s.tty)
	}
	if c.killed {
		_, _ = s.ask(context.Background(), protocol.Signal{Signal: unix.SIGKILL, Fresh: true, Since: c.since})
	}
	_ = s.tty.setModes(s.modes)
	_ = s.tty.dropInput()
	s.code, s.settled, s.killed = code, code == 0 && !c.killed && !s.gate.wasInterrupted(), c.killed
	s.mark()
}

// settleOutput carries all that was written until now. What bash has written beside
// the script counts where it has ended.
func (c *shellCommand) settleOutput(ended bool) {
	settling := []<-chan struct{}{c.shell.tty.settle()}
	for _, p := range c.pumps {
		settling = append(settling, p.settle())
	}
	for _, settled := range settling {
		<-settled
	}
	for _, a := range c.asides {
		a.end(ended)
	}
	c.shell.tty.output.to(nil)
}

// awaitQuiet waits until nobody can write to the pipes any more. Where the box is
// gone and something outside can, it is not waited for.
func (c *shellCommand) awaitQuiet() {
	for _, p := range c.pumps {
		select {
		case <-p.quiet:
		case <-c.shell.box.done:
			p.stop()
		}
	}
	close(c.quiet)
}
