package supervisor

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// bufferSize is what one read of a stream takes at most: a pipe's capacity.
const bufferSize = 64 << 10

// buffers are shared by all pumps: one is taken only while there are bytes, so
// that a thousand silent commands hold none.
var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// pump carries one stream of a command from its pipe to its writer, as long as
// any process can write to it.
type pump struct {
	from  *os.File // not blocking; deadlines interrupt it
	to    io.Writer
	drain func(*pump) error // carries what is in it at the call, and no more
	quiet chan struct{}     // closed when nothing can come any more
	loud  bool              // it has a large pipe; for run only

	mu       sync.Mutex
	settling []chan struct{} // who waits for what was written until settle
	over     bool            // nothing can come any more
}

// newPump gives a running pump and the end of its pipe that a command gets.
func newPump(to io.Writer) (*pump, *os.File, error) {
	read, write, err := newPipe(readEnd, 0)
	if err != nil {
		return nil, nil, err
	}
	return startPump(read, to, drainPipe), write, nil
}

// startPump carries from a file that does not block, and closes it at its end.
func startPump(from *os.File, to io.Writer, drain func(*pump) error) *pump {
	p := &pump{from: from, to: to, drain: drain, quiet: make(chan struct{})}
	go p.run()
	return p
}

// The ends of a pipe.
const (
	readEnd = iota
	writeEnd
)

// newPipe gives a pipe of which one end is for this process, and does not block.
// With O_DIRECT one read takes what one write has put in.
func newPipe(own, flags int) (read, write *os.File, err error) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC|flags); err != nil {
		return nil, nil, os.NewSyscallError("pipe2", err)
	}
	if err := unix.SetNonblock(ends[own], true); err != nil {
		_ = unix.Close(ends[0])
		_ = unix.Close(ends[1])
		return nil, nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(ends[0]), "pipe"), os.NewFile(uintptr(ends[1]), "pipe"), nil
}

func (p *pump) run() {
	defer close(p.quiet)
	defer p.finish()
	defer p.calm()
	for {
		err := p.carry()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = p.answer()
		}
		if err != nil {
			return
		}
	}
}

// settle asks that all that is in the pipe now be carried, after which the
// channel is closed. A writer that has ended before has all in it.
func (p *pump) settle() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	settled := make(chan struct{})
	if p.over {
		close(settled)
		return settled
	}
	p.settling = append(p.settling, settled)
	_ = p.from.SetReadDeadline(time.Unix(1, 0)) // wakes the pump
	return settled
}

// answer does what was asked for by settle.
func (p *pump) answer() error {
	p.mu.Lock()
	asked := p.settling
	p.settling = nil
	_ = p.from.SetReadDeadline(time.Time{})
	p.mu.Unlock()
	err := p.drain(p)
	for _, settled := range asked {
		close(settled)
	}
	return err
}

// finish says that nothing can come any more.
func (p *pump) finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	_ = p.from.Close()
	for _, settled := range p.settling {
		close(settled)
	}
}

// stop ends the pump, whoever may still hold the other end.
func (p *pump) stop() {
	<-p.settle()
	_ = p.from.Close()
}

// carry waits for bytes and carries one buffer of them.
func (p *pump) carry() error {
	conn, err := p.from.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = conn.Read(func(fd uintptr) bool {
		_, failed = p.copyOnce(int(fd), loudSize)
		return !errors.Is(failed, unix.EAGAIN)
	})
	return errors.Join(err, failed)
}

// drainPipe carries as many bytes as are in the pipe at its call: a background
// child that writes for ever does not hold it.
func drainPipe(p *pump) error {
	return control(p.from, func(fd int) error {
		left, err := unix.IoctlGetInt(fd, unix.TIOCINQ) // FIONREAD
		if err != nil {
			return err
		}
		return p.copyUpTo(fd, left)
	})
}

// copyUpTo carries up to limit bytes of those that are there.
func (p *pump) copyUpTo(fd, limit int) error {
	for limit > 0 {
		n, err := p.copyOnce(fd, limit)
		if errors.Is(err, unix.EAGAIN) {
			return nil
		}
		if err != nil {
			return err
		}
		limit -= n
	}
	return nil
}

// copyOnce carries up to limit bytes; io.EOF at the end.
func (p *pump) copyOnce(fd, limit int) (int, error) {
	buffer, release := p.buffer()
	defer release()
	for {
		n, err := unix.Read(fd, buffer[:min(limit, len(buffer))])
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 0, err
		case n == 0:
			return 0, io.EOF
		default:
			p.adapt(fd, n)
			_, err = p.to.Write(buffer[:n])
			return n, err
		}
	}
}

// buffer gives a buffer until release.
func (p *pump) buffer() (buffer []byte, release func()) {
	if p.loud {
		b, _ := loudBuffers.Get().(*[loudSize]byte)
		return b[:], func() { loudBuffers.Put(b) }
	}
	b, _ := buffers.Get().(*[bufferSize]byte)
	return b[:], func() { buffers.Put(b) }
}
