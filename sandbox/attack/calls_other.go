//go:build !amd64

package attack

import "golang.org/x/sys/unix"

// extraCalls are calls that only this architecture has.
func extraCalls() []plain { return nil }

// architectureRows are attacks by another architecture's system calls, of which
// this one has none that a program could reach.
func architectureRows() []Row { return nil }

// int80 is a system call of the 32-bit architecture that amd64 has beside it.
//
//go:nosplit
func int80(uintptr) int32 { return -int32(unix.ENOSYS) }
