package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"envapi/sandbox"
	"envapi/sandbox/frames"
	"envapi/sandbox/protocol"
)

const (
	// openPatience is how long a bash may take to answer for the first time:
	// milliseconds, but for what the caller's own variables make it do.
	openPatience = 10 * time.Second
	// linePatience is how long a line may take to be written, for which there is
	// room at once.
	linePatience = time.Second
)

// FramesPath is where boxes with a file tree of their own have the folders of
// their shells.
const FramesPath = "/run/envapi"

// commandShell is a bash that reads no file of the caller's, edits no lines, and
// has job control: it survives what ends a command, as under a person's hands.
var commandShell = []string{"bash", "--noprofile", "--norc", "--noediting", "-i"}

// peopleShell reads the files that people keep for it. It is no login shell:
// the system's file for those sets another PATH.
var peopleShell = []string{"bash", "-i"}

// OpenShell implements sandbox.Box.
func (b *Box) OpenShell(ctx context.Context, spec sandbox.ShellSpec) (sandbox.Shell, error) {
	if spec.Interactive {
		return b.openInteractive(ctx, spec)
	}
	place, err := b.framesPlace()
	if err != nil {
		return nil, err
	}
	folder, err := frames.Open(place)
	if err != nil {
		return nil, err
	}
	if err := folder.Fit(); err != nil {
		folder.Close()
		return nil, err
	}
	s, err := b.startShell(ctx, spec, folder)
	if err != nil {
		folder.Close()
		return nil, err
	}
	if err := s.ready(ctx); err != nil {
		_ = s.process.Kill(context.WithoutCancel(ctx))
		return nil, fmt.Errorf("cannot open a shell: %w", err)
	}
	return s, nil
}

// framesPlace gives where the box has the folders of its shells.
func (b *Box) framesPlace() (frames.Place, error) {
	p := frames.Place{Path: FramesPath}
	p.UID, p.GID = b.options.owner()
	var err error
	if b.options.Setup.Namespaces {
		p.Dir, err = b.ownFrames()
	} else {
		p.Path = b.options.Temporary
		p.Dir, err = openFolder(unix.AT_FDCWD, p.Path)
	}
	if err != nil {
		return p, fmt.Errorf("cannot open a shell: %w", err)
	}
	return p, nil
}

// ownFrames opens the place in a box with a file tree of its own.
func (b *Box) ownFrames() (*os.File, error) {
	path, err := b.inside(FramesPath, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	defer path.Close()
	return unlocked(int(path.Fd()))
}

// startShell starts the bash of a command shell.
func (b *Box) startShell(ctx context.Context, spec sandbox.ShellSpec, folder *frames.Folder) (*shell, error) {
	p := b.newProcess(spec.ID)
	s := &shell{process: p, folder: folder, users: 1, marks: 1, marked: make(chan struct{})}
	close(s.marked) // there is nothing before the first command
	spawn := &protocol.Spawn{Argv: commandShell, Dir: spec.Dir, Silent: true, Stdin: true, Terminal: true}
	spawn.Env, spawn.Path = b.environ(onTerminal, spec.Env)
	files, err := s.openStreams(spec)
	if err == nil {
		err = p.count(spawn)
	}
	if err == nil {
		err = b.spawn(ctx, p, spawn, files)
	}
	closeFiles(files)
	if err != nil {
		_ = s.lines.Close() // nil closes as well
		p.discard()
		return nil, err
	}
	go s.watchEnd()
	return s, nil
}

// openStreams makes the status pipe, bash's standard input and the terminal.
func (s *shell) openStreams(spec sandbox.ShellSpec) (files ends, err error) {
	if err := files.take(s.openStatus()); err != nil {
		return files, err
	}
	// Bash reads a line only when it is its turn: one read takes one packet.
	read, write, err := newPipe(writeEnd, unix.O_DIRECT)
	s.lines = write
	if err := files.take(s.box.given(read, err)); err != nil {
		return files, err
	}
	if err := files.take(s.openTerminal(spec.Size, orDiscard(spec.Output))); err != nil {
		return files, err
	}
	s.modes, err = s.tty.modes()
	return files, err
}

func orDiscard(w io.Writer) io.Writer {
	if w == nil {
		return io.Discard
	}
	return w
}

// ready waits until bash has answered.
func (s *shell) ready(ctx context.Context) error {
	bound, cancel := context.WithTimeout(ctx, openPatience)
	defer cancel()
	answered, err := s.greet(bound)
	if errors.Is(err, sandbox.ErrShellClosed) {
		answered, err = s.process, nil // it has ended, or is about to
	}
	if err != nil {
		return err
	}
	select {
	case <-answered.Done():
	case <-bound.Done():
		if err := ctx.Err(); err != nil {
			return err
		}
		return &sandbox.BashError{How: "does not answer"}
	}
	switch r := answered.Result(); {
	case r.Lost:
		return sandbox.ErrStartUnknown
	case r.Signal != "":
		return &sandbox.BashError{How: "was ended at once, by " + r.Signal}
	case r.Shell == nil, r.Shell.Ended, r.Shell.Corrupt: // nil is of bash itself
		return &sandbox.BashError{How: fmt.Sprintf("ended at once, with %d", r.ExitCode)}
	}
	return nil
}

// greet tells bash what it needs, and gives it a first command to answer.
func (s *shell) greet(ctx context.Context) (sandbox.Process, error) {
	if err := s.say(frames.SetupLine); err != nil {
		return nil, err
	}
	return s.Run(ctx, sandbox.ShellCommand{})
}

// interactive is a bash for people.
type interactive struct{ *process }

func (b *Box) openInteractive(ctx context.Context, spec sandbox.ShellSpec) (sandbox.Shell, error) {
	p, spawn, files, err := b.prepare(sandbox.Command{
		ID: spec.ID, Argv: peopleShell, Env: spec.Env, Dir: spec.Dir, Terminal: &spec.Size, Stdout: orDiscard(spec.Output),
	})
	if err == nil {
		spawn.Env, spawn.Path = b.environ(forPeople, spec.Env)
		err = p.tty.forPeople()
	}
	if err == nil {
		err = b.spawn(ctx, p, spawn, files)
	}
	closeFiles(files)
	if err != nil {
		p.discard()
		return nil, err
	}
	return interactive{p}, nil
}

// errForPeople is why an interactive shell runs no framed commands.
var errForPeople = errors.New("cannot run a command in an interactive shell: type it")

// Run implements sandbox.Shell.
func (interactive) Run(context.Context, sandbox.ShellCommand) (sandbox.Process, error) {
	return nil, errForPeople
}

// Leave implements sandbox.Shell.
func (i interactive) Leave(ctx context.Context) error { return i.leave(ctx) }

var _ sandbox.Shell = interactive{}
