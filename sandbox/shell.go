package sandbox

import (
	"context"
	"errors"
	"io"
)

// Size is that of a terminal, in characters.
type Size struct{ Cols, Rows uint16 }

// Input is the way to what a program reads. Its methods may be called from many
// goroutines; what one Write takes is not mixed with what another does.
type Input interface {
	// Write takes p as far as there is room, and waits for more room until ctx
	// ends. It gives how many bytes were taken; where those are not all, why:
	// ctx's error, or ErrInputClosed where nobody can read any more.
	Write(ctx context.Context, p []byte) (int, error)
	// End says that no more will come, after what was written: the reader finds
	// the end of the file. A pipe takes no Write after that; a terminal does.
	End(ctx context.Context) error
}

// Terminal is a terminal as who sits before it has it.
type Terminal interface {
	Input
	Resize(Size) error
	// Reading says whether what runs in its foreground is blocked reading it. It
	// looks twice, which takes about 50 ms, and believes only what it sees both
	// times. known is false where this host does not let it look.
	Reading(ctx context.Context) (reading, known bool)
}

// ErrInputClosed says that a program's input has ended, or the program.
var ErrInputClosed = errors.New("nobody can read this input any more")

// ErrLineTooLong says that a terminal that gives its reader whole lines was to be
// given one that is longer than it can hold (4095 bytes); nothing was written.
var ErrLineTooLong = errors.New("a terminal cannot hold so long a line")

// ErrNoTerminal says that what was to have a terminal was not started, since as
// many are open as there may be: in the box, or on the host.
var ErrNoTerminal = errors.New("as many terminals are open as there may be")

// ShellSpec is what a shell is made of.
type ShellSpec struct {
	ID string // what ProcessInfo.Of calls it
	// Interactive makes a shell for people: bash itself reads the terminal, and
	// Run is not for it. Otherwise bash takes commands from Run only, and the
	// terminal is their standard input.
	Interactive bool
	Env         map[string]string
	Dir         string // as seen inside; empty means the workspace
	Size        Size
	// Output receives what is written to the terminal, echo included, from one
	// goroutine. It must not block.
	Output io.Writer
}

// Shell is a bash on a terminal of its own, and every process that descends from
// it. As a Process it is bash: Done when bash has ended, and Signal and Kill are
// for the whole tree.
type Shell interface {
	Process
	// Run starts a command. There is one at a time: before the one before is
	// done, it fails with ErrShellBusy. It fails with ErrShellClosed where bash
	// has ended. The command's Terminal is the shell's, and takes input until the
	// command is done.
	Run(ctx context.Context, c ShellCommand) (Process, error)
	// Leave ends bash alone, and returns when it has ended; what it started in
	// the background lives on.
	Leave(ctx context.Context) error
}

// ShellCommand is what to run in a shell.
type ShellCommand struct {
	Script string // of any length
	// Stdout and Stderr receive the output, one write at a time each. A nil Stderr
	// means that it goes where Stdout goes. They must not block.
	Stdout, Stderr io.Writer
	// OnTerminal gives the command the terminal for its output too; Stdout then
	// receives what is written to the terminal, and Stderr nothing.
	OnTerminal bool
	// Terminal receives what is written to the terminal until the command is
	// done, unless OnTerminal; nil is nobody. ShellSpec.Output receives it in
	// either case.
	Terminal io.Writer
}

// ShellState is what the result of a shell's command says of the shell.
type ShellState struct {
	// Cwd is the shell's directory as seen inside; "" where it is not known.
	Cwd string
	// CwdGone says that this directory was deleted.
	CwdGone bool
	// Ended says that bash ended with the command. Result then says how bash
	// ended, unless Corrupt.
	Ended bool
	// Corrupt says that bash lives but could not say how the command ended: it
	// was then killed for that. Result is that of the kill.
	Corrupt bool
	// Shared says that other processes of the shell lived when the command was
	// started, so that what the command used cannot be told apart.
	Shared bool
}

// ErrShellBusy says that a command runs in the shell.
var ErrShellBusy = errors.New("a command runs in this shell")

// BashError says why a shell was not opened: its bash was started, but was not fit
// to run commands, for example since it is not in the PATH that it was given.
type BashError struct{ How string } // for people: "ended at once, with 127"

func (e *BashError) Error() string { return "bash " + e.How }

// ErrShellClosed says that a shell has ended.
var ErrShellClosed = errors.New("the shell has ended")
