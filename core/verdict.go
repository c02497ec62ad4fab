package core

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"envapi/sandbox"
)

// doom is what becomes of a command that dies by SIGKILL or with its box,
// because that was for a reason of ours.
type doom struct {
	status CommandStatus
	reason string
	advice string // see CommandEnd
}

// What is said where the service stopped, and where a shell ended with its command.
const (
	adviceStopped    = "The service stopped before it had ended: look at what it has done, and run it again where that is needed."
	adviceShellEnded = "The shell has ended too: open another with open_shell."
)

// timedOut says what to do where a command did not end in its time.
func timedOut(timeout time.Duration) string {
	return fmt.Sprintf("It was ended after its timeout_ms of %d: give a longer one where it needs more.", timeout.Milliseconds())
}

// condemn notes why the command is about to be killed. The first reason stays.
func (r *run) condemn(d doom) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.doom == nil {
		r.doom = &d
	}
}

// ask condemns a command that is about to be sent SIGTERM for that: how it ends then
// says nothing about whether it came to its own end.
func (r *run) ask(d doom) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.doom == nil {
		r.doom, r.asked = &d, true
	}
}

// endsFor says whether a command ended for a reason of ours.
func (r *run) endsFor(d *doom, killed bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return d != nil && (killed || r.asked)
}

// doomed gives why the command is killed: for a reason of its own, or with its
// whole box. It is nil where we had no reason.
func (r *run) doomed() *doom {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.doom == nil {
		return r.in.fate.Load()
	}
	return r.doom
}

// verdict is how the command ended. What the system says of its leader decides.
// From the first row that fits:
//
//	it is a shell's, and that could not say how it ended               killed, shell_closed
//	it was asked to end, for a reason of ours                          that reason
//	the leader died by SIGKILL or with its box, for a reason of ours   that reason
//	the kernel killed for memory, and the leader died by SIGKILL,
//	  with its box, or exited with another code than 0                 out_of_memory
//	its box is gone                                                    lost
//	the leader died by a signal                                        signaled
//	it exited                                                          exited
//
// So a command that got by without the process that was killed for memory, and
// exited 0, has succeeded, and is told of it; and one that was timed out afterwards, timed out.
func (r *run) verdict(result sandbox.Result, at time.Time) CommandEnd {
	end := r.judge(result)
	end.EndedAt, end.Usage = &at, usageOf(result.Used)
	if result.OutOfMemory {
		end.Advice = cmp.Or(end.Advice, r.in.limits.lostProcess())
	}
	if r.shell != nil {
		r.shellVerdict(&end, result)
	}
	return end
}

// judge finds the row.
func (r *run) judge(result sandbox.Result) (end CommandEnd) {
	killed := result.Lost || result.Signal == signalKill
	exited := !result.Lost && result.Signal == ""
	if exited {
		end.ExitCode = &result.ExitCode
	}
	switch d := r.doomed(); {
	case d == nil && corrupt(result):
		end.Status, end.Reason, end.ExitCode = CommandKilled, ReasonShellClosed, nil
	case r.endsFor(d, killed):
		end.Status, end.Reason, end.Advice, end.ExitCode = d.status, d.reason, d.advice, nil
	case result.OutOfMemory && (killed || exited && result.ExitCode != 0):
		end.Status, end.Advice = CommandOutOfMemory, r.in.limits.shortOfMemory()
	case result.Lost:
		end.Status, end.Reason = CommandLost, ReasonSandboxFailed
	case exited:
		end.Status = CommandExited
	default:
		end.Status, end.Signal = CommandSignaled, result.Signal
	}
	return end
}

func corrupt(r sandbox.Result) bool { return r.Shell != nil && r.Shell.Corrupt }

// shellVerdict completes the end of a shell's command with what became of the
// shell.
func (r *run) shellVerdict(end *CommandEnd, result sandbox.Result) {
	end.ShellClosed = r.endsShell() || end.Reason == ReasonServiceStopped // it is closed with the service
	var advice string
	switch state := result.Shell; {
	case corrupt(result):
		advice = "The shell lived, but could not say any more how this command ended: a command in it had redefined what tells that, closed its descriptors, or stopped it from reading commands (as set -n does). It was closed: open another with open_shell."
	case end.ShellClosed:
		advice = adviceShellEnded
	case state != nil && state.CwdGone:
		advice = "The shell's directory was deleted: start the next command with a cd to one that exists."
	}
	if result.Shell != nil {
		end.Cwd = result.Shell.Cwd
	}
	end.Advice = strings.TrimSpace(end.Advice + " " + advice)
}

// usageOf gives what is known of what a command used; nil where that is nothing.
func usageOf(u sandbox.Used) *CommandUsage {
	if u == (sandbox.Used{}) {
		return nil
	}
	usage := &CommandUsage{PeakMemoryBytes: u.PeakMemoryBytes, Processes: u.Processes}
	if u.CPU != nil {
		ms := u.CPU.Milliseconds()
		usage.CPUMS = &ms
	}
	return usage
}

// lostProcess says what in a pipeline nothing else tells.
func (l boxLimits) lostProcess() string {
	return "A process of it was killed for want of memory, so its result may not be whole. " + l.shortOfMemory()
}

// shortOfMemory says what to do where the memory was used up.
func (l boxLimits) shortOfMemory() string {
	return fmt.Sprintf("The processes of the environment may have %d bytes of memory together (limit memory_bytes), with the files of /tmp and /dev/shm where those are in memory, and needed more: work on less at a time, run fewer commands at once, or end background processes.", l.MemoryBytes)
}
