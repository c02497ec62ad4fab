package supervisor

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"envapi/sandbox"
	"envapi/sandbox/cgroup"
	"envapi/sandbox/protocol"
)

// maxArgument is the longest argument that execve(2) takes, without its NUL
// (MAX_ARG_STRLEN).
const maxArgument = 128<<10 - 1

// longScript runs a script that is longer than that: it comes on a descriptor,
// which is closed before the script's first line. Like bash -c it reads no
// file and keeps line numbers.
const longScript = `eval "exec 3<&-;$(</dev/fd/3)"`

// process is a command that was sent to the init.
type process struct {
	box   *Box
	name  string // the ID of the command or shell
	id    uint64
	since atomic.Uint64 // of a shell: after how many marks the command that has it came
	pumps []*pump
	input *input    // where its standard input is written; nil if it is empty or a terminal
	open  bool      // whether that is the caller's to write
	tty   *terminal // nil if it has none
	// slave is that terminal's, open until the leader has ended: it may close all
	// that it has of it before, as cat does, or have nothing of it open, as the bash
	// of a shell, and would get SIGHUP for that.
	slave *os.File

	counting counting
	counted  cgroup.Used // what that says at the end; set with result

	status   *os.File      // the end where its reaper's reports are read
	followed chan struct{} // closed when that is at its end

	started chan error // buffered: how the start went
	running atomic.Bool
	ended   atomic.Bool
	adopted bool           // the init has said how it ended; for listen only
	gone    bool           // the init has said its last word; for listen only
	needed  atomic.Int32   // by what is to come: the init's last word, and the streams' end
	result  sandbox.Result // set once, before done is closed
	done    chan struct{}
	quiet   chan struct{}
}

func (b *Box) newProcess(name string) *process {
	return &process{
		box: b, name: name, followed: make(chan struct{}), started: make(chan error, 1), done: make(chan struct{}), quiet: make(chan struct{}),
	}
}

// prepare makes a process's streams and the request to start it. The files are
// the command's ends, in the protocol's order; the caller closes them.
func (b *Box) prepare(c sandbox.Command) (*process, *protocol.Spawn, ends, error) {
	p := b.newProcess(c.ID)
	spawn := &protocol.Spawn{Argv: c.Argv, Dir: c.Dir}
	spawn.Env, spawn.Path = b.environ(variables(c), c.Env)
	files, err := p.openStreams(c, spawn)
	if err == nil && c.Argv == nil {
		spawn.Argv = []string{"bash", "-c", "--", c.Script}
		if spawn.Script = len(c.Script) > maxArgument; spawn.Script {
			spawn.Argv[3] = longScript
			err = files.take(scriptFile(c.Script))
		}
	}
	if spawn.Terminal && err == nil {
		files = append(files, files[1])
	}
	if err == nil {
		err = p.count(spawn)
	}
	return p, spawn, files, err
}

// variables are what differs for a command from others.
func variables(c sandbox.Command) map[string]string {
	if c.Terminal == nil {
		return nil
	}
	return onTerminal
}

// ends are those of a command, in the protocol's order.
type ends []*os.File

func (e *ends) take(f *os.File, err error) error {
	if err == nil {
		*e = append(*e, f)
	}
	return err
}

// openStreams makes the status pipe and what a command has as 0, 1 and 2.
func (p *process) openStreams(c sandbox.Command, spawn *protocol.Spawn) (files ends, err error) {
	if err := files.take(p.openStatus()); err != nil {
		return files, err
	}
	if c.Terminal != nil {
		spawn.Terminal, spawn.Merge, spawn.Stdin = true, true, true
		slave, err := p.openTerminal(*c.Terminal, c.Stdout)
		if err == nil {
			files = append(files, slave, slave)
		}
		return files, err
	}
	p.open = c.Input
	spawn.Merge, spawn.Stdin = c.Stderr == nil, c.Stdin != nil || c.Input
	err = files.take(p.box.given(p.addPump(c.Stdout)))
	if err == nil && !spawn.Merge {
		err = files.take(p.box.given(p.addPump(c.Stderr)))
	}
	if err == nil && spawn.Stdin {
		err = files.take(p.box.given(p.openInput(c.Stdin, c.Input)))
	}
	return files, err
}

// openTerminal gives the slave of a terminal of the command's own, whose bytes go
// to a writer.
func (p *process) openTerminal(size sandbox.Size, to io.Writer) (*os.File, error) {
	t, slave, err := p.box.openTerminal(size)
	if err != nil {
		return nil, err
	}
	t.start(to)
	p.tty, p.pumps = t, []*pump{t.pump}
	if p.slave, err = openPeer(t.master); err != nil {
		return nil, errors.Join(err, slave.Close())
	}
	return slave, nil
}

// openStatus makes the status pipe.
func (p *process) openStatus() (*os.File, error) {
	read, write, err := newPipe(readEnd, 0)
	p.status = read
	return write, err
}

func (p *process) addPump(to io.Writer) (*os.File, error) {
	pump, write, err := newPump(to)
	if err != nil {
		return nil, err
	}
	p.pumps = append(p.pumps, pump)
	return write, nil
}

// scriptFile holds a script in memory, at its beginning, sealed: whoever gets
// hold of it cannot make it grow.
func scriptFile(script string) (*os.File, error) {
	f, err := memoryFile("script")
	if err != nil {
		return nil, err
	}
	if _, err := f.WriteAt([]byte(script), 0); err != nil {
		f.Close()
		return nil, fmt.Errorf("cannot write the script: %w", err)
	}
	if err := sealFile(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("cannot seal the script: %w", err)
	}
	return f, nil
}

// memoryFile makes a file in memory that can be sealed.
func memoryFile(name string) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3
		fd, err = unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot make a memory file for a %s: %w", name, err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// discard ends the streams of a command that was not started.
func (p *process) discard() {
	if p.status != nil {
		_ = p.status.Close()
	}
	if p.id != 0 { // it was registered, and is followed
		<-p.followed
	}
	p.closeInput()
	p.letTerminalEnd()
	p.counting.release()
	for _, pump := range p.pumps {
		pump.stop()
	}
}

// end takes how the command ended, and false if that was said before.
func (p *process) end(r sandbox.Result) bool {
	if p.ended.Swap(true) {
		return false
	}
	p.result = r
	go p.finish()
	return true
}

// finish lets the output through, and tells.
func (p *process) finish() {
	p.closeInput()
	settled := make([]<-chan struct{}, len(p.pumps))
	for i, pump := range p.pumps {
		settled[i] = pump.settle()
	}
	for _, s := range settled {
		<-s
	}
	p.letTerminalEnd()
	close(p.done)
	for _, pump := range p.pumps {
		<-pump.quiet
	}
	close(p.quiet)
	p.release()
}

// Done implements sandbox.Process.
func (p *process) Done() <-chan struct{} { return p.done }

// Quiet implements sandbox.Process.
func (p *process) Quiet() <-chan struct{} { return p.quiet }

// Input implements sandbox.Process.
func (p *process) Input() sandbox.Input {
	switch {
	case p.tty != nil:
		return p.tty
	case p.open:
		return p.input
	default:
		return nil
	}
}

// Terminal implements sandbox.Process.
func (p *process) Terminal() sandbox.Terminal {
	if p.tty == nil {
		return nil // and no interface that holds nil
	}
	return p.tty
}

// letTerminalEnd lets the terminal end with the last process that has it open.
func (p *process) letTerminalEnd() {
	if p.slave != nil {
		_ = p.slave.Close()
	}
}

// closeInput ends the standard input of a command that has ended.
func (p *process) closeInput() {
	if p.input != nil {
		p.input.close()
	}
	if p.tty != nil {
		p.tty.keys.close()
	}
}

// Result implements sandbox.Process.
func (p *process) Result() sandbox.Result {
	<-p.done
	return p.result
}
