package boxinit

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"envapi/sandbox/protocol"
)

// instructionSize is the length of one instruction of a filter (struct
// sock_filter).
const instructionSize = 8

// filter installs the system call filter on every thread at once. The supervisor
// made it (package seccomp); without one there is no box.
func filter(s *protocol.Setup, _ []int) error {
	program, err := parseFilter(s.Filter)
	if err != nil {
		return err
	}
	header := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]} //nolint:gosec // at most BPF_MAXINSNS
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&header)))
	if errno != 0 {
		return fmt.Errorf("cannot install the system call filter: %w", errno)
	}
	if thread != 0 {
		return fmt.Errorf("cannot install the system call filter: thread %d has one of its own", thread)
	}
	return nil
}

func parseFilter(b []byte) ([]unix.SockFilter, error) {
	n := len(b) / instructionSize
	if n == 0 || len(b)%instructionSize != 0 || n > unix.BPF_MAXINSNS {
		return nil, errors.New("cannot install the system call filter: it is none")
	}
	program := make([]unix.SockFilter, n)
	for i := range program {
		at := b[i*instructionSize:]
		program[i] = unix.SockFilter{Code: binary.NativeEndian.Uint16(at), Jt: at[2], Jf: at[3], K: binary.NativeEndian.Uint32(at[4:])}
	}
	return program, nil
}
