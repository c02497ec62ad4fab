// Package rawclone makes processes that share their maker's memory until they
// execute a program, or for good, and run on a stack of their own (clone(2) with
// CLONE_VM and without CLONE_THREAD).
//
// There is no Go runtime for such a process: it must not allocate, grow its
// stack, write pointers into the heap, or call anything that might. What it
// enters is marked go:nosplit and go:norace and makes raw system calls on memory
// that was laid ready and is kept until it has executed or ended. Signals stay
// blocked in it while its handlers are its maker's.
//
// Nothing here checks that; a mistake corrupts the maker's memory.
package rawclone

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// StackSize is more than functions that may not grow a stack can use.
const StackSize = 4 << 10

// Stack is what a process runs on.
type Stack [StackSize]byte

// top is where a stack begins; it grows downwards, and must be aligned.
//
//go:nosplit
//go:norace
func (s *Stack) top() unsafe.Pointer {
	return unsafe.Pointer(uintptr(unsafe.Pointer(&s[StackSize-16])) &^ 15)
}

// Entry is the address of a function for Start.
type Entry uintptr

// EntryOf gives the address of a function of this program that takes a pointer.
func EntryOf[T any](f func(*T)) Entry {
	return **(**Entry)(unsafe.Pointer(&f))
}

// Start makes a process that enters a function with arg, and gives its pid or
// the negative errno. The function must not return.
//
//go:nosplit
//go:norace
func Start(flags uintptr, s *Stack, entry Entry, arg unsafe.Pointer) int {
	return clone(flags|unix.CLONE_VM|uintptr(unix.SIGCHLD), s.top(), entry, arg)
}

//go:noescape
func clone(flags uintptr, stack unsafe.Pointer, entry Entry, arg unsafe.Pointer) int

// BlockSignals blocks every signal for the calling thread, which must be
// locked, and gives the mask to restore.
func BlockSignals() (before uint64) {
	everything := ^uint64(0)
	setMask(&everything, &before)
	return before
}

// RestoreSignals sets the mask that BlockSignals gave.
func RestoreSignals(before uint64) { setMask(&before, nil) }

// UnblockAll unblocks every signal, for a process that is about to execute.
//
//go:nosplit
//go:norace
func UnblockAll() {
	var none uint64
	setMask(&none, nil)
}

//go:nosplit
//go:norace
func setMask(set, old *uint64) {
	syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(set)), uintptr(unsafe.Pointer(old)), 8, 0, 0)
}

// LastSignal is the highest number of a signal (SIGRTMAX).
const LastSignal = 64

// action is sigaction(2)'s argument as the kernel takes it; its zero value is
// SIG_DFL.
type action struct{ _, _, _, _ uintptr }

// DefaultSignal gives a signal its default action.
//
//go:nosplit
//go:norace
func DefaultSignal(sig uintptr) syscall.Errno {
	var byDefault action
	_, _, errno := syscall.RawSyscall6(unix.SYS_RT_SIGACTION, sig, uintptr(unsafe.Pointer(&byDefault)), 0, 8, 0, 0)
	return errno
}

// Exit ends the process.
//
//go:nosplit
//go:norace
func Exit(code uintptr) {
	for {
		syscall.RawSyscall(unix.SYS_EXIT_GROUP, code, 0, 0)
	}
}
