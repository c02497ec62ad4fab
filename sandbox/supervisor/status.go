package supervisor

import (
	"cmp"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"envapi/sandbox"
	"envapi/sandbox/protocol"
)

// lastWords is how long the reports of a box that is gone may take to be read:
// they are in the pipe.
const lastWords = time.Second

// follow takes the reports of a command's reaper until there are no more. A
// reaper that was killed has not said all; then the init does.
func (p *process) follow() {
	defer close(p.followed)
	defer p.status.Close()
	for {
		status, err := protocol.ReadStatus(p.status)
		if err == nil {
			err = p.take(status)
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF), errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, os.ErrClosed):
			return
		default:
			_ = p.box.violate(err.Error())
			return
		}
	}
}

// take acts on one report. It never waits.
func (p *process) take(s protocol.Status) error {
	switch s.Kind {
	case protocol.StatusStarted:
		p.running.Store(true)
		return p.answerStart(nil)
	case protocol.StatusFailed: // the init's last word is to come
		if p.running.Load() {
			return errViolation
		}
		return p.answerStart(&sandbox.StartError{Err: syscall.Errno(s.Value)})
	default:
		if !p.running.Load() || !p.end(p.measured(resultOf(s))) {
			return errViolation
		}
		return nil
	}
}

func (p *process) answerStart(err error) error {
	select {
	case p.started <- err:
		return nil
	default: // twice
		return errViolation
	}
}

func resultOf(s protocol.Status) sandbox.Result {
	wait := syscall.WaitStatus(s.Value)
	cpu := time.Duration(s.CPUMicroseconds) * time.Microsecond
	result := sandbox.Result{Used: sandbox.Used{CPU: &cpu, PeakMemoryBytes: &s.PeakMemoryBytes}}
	if wait.Signaled() {
		result.Signal = signalName(wait.Signal())
	} else {
		result.ExitCode = wait.ExitStatus()
	}
	return result
}

// measured adds what the whole command has used, where its cgroup has counted
// that. A command can have had less there than the reaper saw: memory that an
// earlier one left in the cgroup was taken away meanwhile.
func (p *process) measured(r sandbox.Result) sandbox.Result {
	used := p.counting.used()
	p.counted = used
	r.OutOfMemory = used.OutOfMemory
	r.Used.CPU = larger(r.Used.CPU, used.CPU)
	r.Used.PeakMemoryBytes = larger(r.Used.PeakMemoryBytes, used.PeakMemoryBytes)
	r.Used.Processes = used.Processes
	return r
}

// larger gives the larger of those that are known.
func larger[T cmp.Ordered](a, b *T) *T {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}

// signalName gives a signal's name without SIG; real-time signals have their
// number from the first one on, as bash shows them.
func signalName(sig syscall.Signal) string {
	if name := unix.SignalName(sig); name != "" {
		return strings.TrimPrefix(name, "SIG")
	}
	if sig < firstRealTime {
		return strconv.Itoa(int(sig))
	}
	return "RTMIN+" + strconv.Itoa(int(sig)-firstRealTime)
}

// firstRealTime is SIGRTMIN as glibc, and so bash, has it.
const firstRealTime = 34

// release forgets a command of which neither words nor bytes are to come. Until
// then the end of the box must find it.
func (p *process) release() {
	if p.needed.Add(-1) == 0 {
		p.box.forget(p)
	}
}

// lose ends a command whose box is gone, after its reaper's last words.
func (p *process) lose() {
	_ = p.status.SetReadDeadline(time.Now().Add(lastWords))
	<-p.followed
	p.end(sandbox.Result{Lost: true})
	p.counting.release()
	// Nothing can write any more; where something outside can, it is not waited
	// for.
	for _, pump := range p.pumps {
		pump.stop()
	}
}
