package protocol

import (
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"
)

// ReadRequest reads one request and its descriptors, close-on-exec, from the
// supervisor's end of the socket. It blocks its thread. io.EOF means that the
// supervisor is gone or done with the box.
func ReadRequest(fd int) (Request, []int, error) {
	var request Request
	h, fds, err := readHeader(fd)
	if err != nil {
		return request, nil, err
	}
	if len(fds) != int(h.FDs) {
		CloseAll(fds)
		return request, nil, fmt.Errorf("cannot accept a frame: %d descriptors came, not %d", len(fds), h.FDs)
	}
	body := make([]byte, h.Length)
	if err := readFull(fd, body); err != nil {
		CloseAll(fds)
		return request, nil, err
	}
	if err := Decode(body, &request); err != nil {
		CloseAll(fds)
		return request, nil, err
	}
	return request, fds, nil
}

// CloseAll closes descriptors.
func CloseAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}

func readHeader(fd int) (Header, []int, error) {
	var header [HeaderSize]byte
	control := make([]byte, unix.CmsgSpace(4*MaxFDs))
	n, controlLength, flags, _, err := recvmsg(fd, header[:], control)
	if err != nil {
		return Header{}, nil, err
	}
	if n == 0 {
		return Header{}, nil, io.EOF
	}
	fds, err := parseRights(control[:controlLength])
	if err != nil {
		return Header{}, nil, err
	}
	if flags&unix.MSG_CTRUNC != 0 {
		CloseAll(fds)
		return Header{}, nil, errors.New("cannot accept a frame: too many descriptors came with it")
	}
	if err := readFull(fd, header[n:]); err != nil {
		CloseAll(fds)
		return Header{}, nil, err
	}
	h, err := ParseHeader(header, MaxRequest, MaxFDs)
	if err != nil {
		CloseAll(fds)
	}
	return h, fds, err
}

func recvmsg(fd int, b, control []byte) (n, controlLength, flags int, from unix.Sockaddr, err error) {
	for {
		n, controlLength, flags, from, err = unix.Recvmsg(fd, b, control, unix.MSG_CMSG_CLOEXEC)
		if !errors.Is(err, unix.EINTR) {
			return n, controlLength, flags, from, err
		}
	}
}

func parseRights(control []byte) ([]int, error) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return nil, fmt.Errorf("cannot read the descriptors of a frame: %w", err)
	}
	var fds []int
	for _, m := range messages {
		rights, err := unix.ParseUnixRights(&m)
		if err != nil {
			CloseAll(fds)
			return nil, fmt.Errorf("cannot read the descriptors of a frame: %w", err)
		}
		fds = append(fds, rights...)
	}
	return fds, nil
}

func readFull(fd int, b []byte) error {
	for len(b) > 0 {
		n, err := unix.Read(fd, b)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return fmt.Errorf("cannot read a frame: %w", err)
		case n == 0:
			return io.ErrUnexpectedEOF
		default:
			b = b[n:]
		}
	}
	return nil
}
