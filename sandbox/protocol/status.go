package protocol

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"syscall"
	"unsafe"
)

// StatusKind says what a Status reports.
type StatusKind uint32

// The kinds, in the order in which a command passes them: Started and then
// Ended, or Failed alone.
const (
	StatusStarted StatusKind = iota + 1
	StatusFailed             // Value is the errno of the leader's start
	StatusEnded              // Value is the leader's wait status
)

// Status is what a reaper writes to its command's status pipe: its memory as it
// is, since a reaper has no means to encode it. It is shorter than PIPE_BUF, so
// it is written in one piece. The usage is that of the leader and the children
// that it waited for.
type Status struct {
	Kind            StatusKind
	Value           uint32
	CPUMicroseconds int64
	PeakMemoryBytes int64
}

// StatusSize is the length of a Status on the pipe.
const StatusSize = int(unsafe.Sizeof(Status{}))

// ParseStatus reads a Status, strictly.
func ParseStatus(b [StatusSize]byte) (Status, error) {
	s := Status{
		Kind:            StatusKind(binary.NativeEndian.Uint32(b[0:])),
		Value:           binary.NativeEndian.Uint32(b[4:]),
		CPUMicroseconds: int64(binary.NativeEndian.Uint64(b[8:])),  //nolint:gosec // checked below
		PeakMemoryBytes: int64(binary.NativeEndian.Uint64(b[16:])), //nolint:gosec // checked below
	}
	if s.Kind < StatusStarted || s.Kind > StatusEnded || s.CPUMicroseconds < 0 || s.PeakMemoryBytes < 0 {
		return Status{}, fmt.Errorf("cannot accept a status of kind %d", s.Kind)
	}
	if wait := syscall.WaitStatus(s.Value); s.Kind == StatusEnded && !wait.Exited() && !wait.Signaled() {
		return Status{}, fmt.Errorf("cannot accept an end with the wait status %#x", s.Value)
	}
	return s, nil
}

// ReadStatus reads the next Status; io.EOF is the end of the pipe.
func ReadStatus(r io.Reader) (Status, error) {
	var b [StatusSize]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return Status{}, errors.New("cannot accept half a status")
		}
		return Status{}, err
	}
	return ParseStatus(b)
}
