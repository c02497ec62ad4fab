package prompt

import (
	"maps"

	"golang.org/x/sys/unix"
)

// calls are the system calls in which a program waits for what is typed, and how
// the terminal is found among what they wait for. Of io_uring, which the sandbox
// refuses, nothing is seen.
var calls = func() map[int]func(*look, process, call) bool {
	all := map[int]func(*look, process, call) bool{
		unix.SYS_READ:         reads(0),
		unix.SYS_READV:        reads(0),
		unix.SYS_PREAD64:      reads(0),
		unix.SYS_PREADV:       reads(0),
		unix.SYS_PREADV2:      reads(0),
		unix.SYS_SPLICE:       reads(0),
		unix.SYS_SENDFILE:     reads(1),
		unix.SYS_PSELECT6:     selects,
		unix.SYS_PPOLL:        polls,
		unix.SYS_EPOLL_PWAIT:  waits,
		unix.SYS_EPOLL_PWAIT2: waits,
	}
	maps.Copy(all, olderCalls)
	return all
}()

// reads is for calls that read the descriptor in one of their arguments.
func reads(argument int) func(*look, process, call) bool {
	return func(l *look, p process, c call) bool { return l.isTerminal(p, descriptor(c.args[argument])) }
}

// descriptor is an argument as the kernel takes it: 32 bits with a sign.
func descriptor(argument uint64) int { return int(int32(uint32(argument))) } //nolint:gosec // cut on purpose
