package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"envapi/sandbox"
	"envapi/sandbox/cgroup"
	"envapi/sandbox/prompt"
	"envapi/sandbox/protocol"
)

const (
	// setupPatience bounds the making of a box: milliseconds, on a host that
	// is not overloaded.
	setupPatience = 20 * time.Second
	// answerPatience bounds every answer of an init. The longest is to a kill,
	// for which the init itself waits ten seconds.
	answerPatience = 15 * time.Second
	// closePatience is how long an init without a pid namespace may take to
	// kill what it started.
	closePatience = 12 * time.Second
	// endPatience is how long a killed init may take to die: the kernel ends
	// every process of its namespace first, and one that is stuck in a call,
	// on a file system that does not answer, can delay that for ever.
	endPatience = 20 * time.Second
)

// Options says how a tier makes its boxes.
type Options struct {
	ID         string
	Namespaces *Namespaces       // nil: the service's own
	Setup      protocol.Setup    // without what follows from the rest (setup.go)
	Trees      []*os.File        // the mount trees that Setup names; closed by Launch
	Env        map[string]string // what every command finds in its environment
	Spool      string            // a folder for files without a name
	Temporary  string            // see sandbox.Box; removed when the box is gone, or was not made
	Groups     *cgroup.Parent    // where the box gets its cgroup from; nil: it has none
	Account    string            // whose share of the processors that cgroup has a part of; "": nobody's
	Limits     sandbox.Limits    // of that cgroup
	// Killed is called when the init was killed and before the box is said to be
	// gone, to end what may have outlived it; nil where nothing can.
	Killed func()
	Log    *slog.Logger
}

// owner gives the host's uid and gid of what runs in the box; 0 is the service's
// own.
func (o *Options) owner() (uid, gid int) {
	if o.Namespaces != nil {
		return o.Namespaces.UID, o.Namespaces.GID
	}
	return o.Setup.ID, o.Setup.ID
}

// Box is a box by its init.
type Box struct {
	options Options
	inits   *inits
	watcher *watcher
	init    *os.Process
	group   *cgroup.Group
	conn    *net.UnixConn
	looks   *prompt.Turns // at its terminals

	mu        sync.Mutex
	last      uint64 // the last id or seq given
	processes map[uint64]*process
	questions map[uint64]question
	waits     int    // for processes, of which the init has not said how they end
	next      *lists // the list that is to be made; nil: none
	closing   bool

	listing turn // who has a list made has it

	writing sync.Mutex
	served  bool // it was ready; for listen only
	ready   chan protocol.Report
	done    chan struct{}
}

// Launch makes a box.
func Launch(ctx context.Context, l *Launcher, o Options) (*Box, error) {
	defer closeFiles(o.Trees)
	if err := o.complete(); err != nil {
		return nil, err
	}
	i, err := l.infant(o.Namespaces)
	if err != nil {
		return nil, err
	}
	group, err := o.Groups.Take(o.Account, o.Limits)
	if err != nil {
		i.discard()
		return nil, err
	}
	b := &Box{
		options: o, inits: &l.inits, watcher: &l.watcher, init: i.process, group: group, conn: i.conn, looks: prompt.NewTurns(),
		processes: map[uint64]*process{}, questions: map[uint64]question{}, listing: newTurn(),
		ready: make(chan protocol.Report, 1), done: make(chan struct{}),
	}
	go b.listen()
	if err := b.setUp(ctx); err != nil {
		_ = b.init.Kill() // it has started nothing
		<-b.done
		return nil, err
	}
	return b, nil
}

// infant gives an init, as whom n says; nil is the service itself.
func (l *Launcher) infant(n *Namespaces) (*infant, error) {
	if n == nil {
		return l.start(false)
	}
	i, err := l.spare.take()
	if err != nil {
		return nil, err
	}
	if err := n.mapTo(i.process.Pid); err != nil {
		i.discard()
		return nil, err
	}
	return i, nil
}

func closeFiles(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// socketPair gives the supervisor's end and the init's.
func socketPair() (*net.UnixConn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make a socket for a box: %w", err)
	}
	own := os.NewFile(uintptr(fds[0]), "box")
	defer own.Close() // FileConn has its own copy
	control := os.NewFile(uintptr(fds[1]), "control")
	conn, err := net.FileConn(own)
	if err != nil {
		control.Close()
		return nil, nil, fmt.Errorf("cannot use the socket of a box: %w", err)
	}
	unixConn, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, nil, errors.New("cannot use the socket of a box: it is of another kind")
	}
	return unixConn, control, nil
}

// setUp sends the setup and waits for what became of it.
func (b *Box) setUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, setupPatience)
	defer cancel()
	if err := b.write(protocol.Request{Setup: &b.options.Setup}, descriptors(b.options.Trees)); err != nil {
		return err
	}
	select {
	case r := <-b.ready:
		if r.Failed != nil {
			return &StageError{*r.Failed}
		}
		return nil
	case <-b.done:
		return errors.New("cannot make the box: its init ended without a word")
	case <-ctx.Done():
		return fmt.Errorf("cannot make the box: %w", ctx.Err())
	}
}

// StageError says which stage of an init failed, and why.
type StageError struct{ protocol.Failed }

func (e *StageError) Error() string {
	return "cannot make the box: stage " + e.Stage + ": " + e.Message
}

// Unwrap gives the system's reason; nil where there is none.
func (e *StageError) Unwrap() error {
	if e.Errno == 0 {
		return nil
	}
	return e.Errno
}

// Start implements sandbox.Box.
func (b *Box) Start(ctx context.Context, c sandbox.Command) (sandbox.Process, error) {
	p, spawn, files, err := b.prepare(c)
	if err == nil {
		err = b.spawn(ctx, p, spawn, files)
	}
	closeFiles(files)
	if err != nil {
		p.discard()
		return nil, err
	}
	return p, nil
}

// spawn registers the process, sends the request and waits for the answer.
func (b *Box) spawn(ctx context.Context, p *process, spawn *protocol.Spawn, files []*os.File) error {
	if err := b.register(p); err != nil {
		return err
	}
	go p.follow()
	spawn.ID = p.id
	if err := b.write(protocol.Request{Spawn: spawn}, append(descriptors(files), p.counting.entries()...)); err != nil {
		return err
	}
	closeFiles(files) // so that the pumps see the end of the command's copies
	// A caller who goes away does not matter here: the answer comes at once.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerPatience)
	defer cancel()
	select {
	case err := <-p.started:
		return err
	case <-b.done:
		return sandbox.ErrStartUnknown
	case <-ctx.Done():
		// What is not known must not run on.
		_ = b.violate("no answer to a start")
		return sandbox.ErrStartUnknown
	}
}

func (b *Box) register(p *process) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closing {
		return sandbox.ErrBoxClosed
	}
	b.last++
	p.id = b.last
	p.needed.Store(2)
	b.processes[p.id] = p
	return nil
}

func (b *Box) isClosing() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closing
}

// Usage implements sandbox.Box.
func (b *Box) Usage(ctx context.Context) (sandbox.Usage, error) {
	answer, err := b.ask(ctx, func(seq uint64) protocol.Request {
		return protocol.Request{Count: &protocol.Count{Seq: seq}}
	})
	if err != nil {
		return sandbox.Usage{}, err
	}
	if answer.Counted == nil {
		return sandbox.Usage{}, b.violate("another answer than to a count")
	}
	if answer.Counted.Errno != 0 {
		return sandbox.Usage{}, fmt.Errorf("cannot count the processes of the box: %w", answer.Counted.Errno)
	}
	usage := sandbox.Usage{Processes: answer.Counted.Processes}
	if bytes, ok := b.group.MemoryBytes(); ok {
		usage.MemoryBytes = &bytes
	}
	return usage, nil
}

// descriptors gives those of the files, which must be kept open.
func descriptors(files []*os.File) []int {
	fds := make([]int, len(files))
	for i, f := range files {
		fds[i] = int(f.Fd())
	}
	return fds
}

// write sends a request and copies of the descriptors.
func (b *Box) write(request protocol.Request, fds []int) error {
	frame, err := protocol.Encode(request, len(fds))
	if err != nil {
		return err
	}
	b.writing.Lock()
	defer b.writing.Unlock()
	_ = b.conn.SetWriteDeadline(time.Now().Add(answerPatience))
	n, _, err := b.conn.WriteMsgUnix(frame, unix.UnixRights(fds...), nil)
	if err == nil && n < len(frame) {
		_, err = b.conn.Write(frame[n:])
	}
	switch {
	case err != nil && b.isClosing():
		return sandbox.ErrBoxClosed
	case err != nil: // half a frame may be on its way: the box is of no use
		return errors.Join(sandbox.ErrBoxClosed, b.violate("a request could not be written"))
	}
	return nil
}

// Temporary implements sandbox.Box.
func (b *Box) Temporary() string { return b.options.Temporary }

// Done implements sandbox.Box.
func (b *Box) Done() <-chan struct{} { return b.done }

// Close implements sandbox.Box.
func (b *Box) Close() error {
	b.mu.Lock()
	b.closing = true
	b.mu.Unlock()
	if b.options.Setup.Namespaces {
		_ = b.init.Kill() // and with it, by the kernel, all of its pid namespace
	} else {
		_ = b.conn.CloseWrite() // the init kills what it started, and ends
		select {
		case <-b.done:
		case <-time.After(closePatience):
			_ = b.init.Kill()
		}
	}
	select {
	case <-b.done:
		return nil
	case <-time.After(endPatience):
		return errors.New("cannot end the box: its init does not die")
	}
}
