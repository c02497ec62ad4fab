package frames

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"envapi/sandbox/fsuser"
)

// MaxLine is how long a line may be: bash reads so much at once (getc_with_restart
// in its input.c), and of a packet what it does not read is lost.
const MaxLine = 1024

// Every line begins with a blank: an interrupt that comes late takes the first
// character away.
const lineFormat = " %s\n"

// Output says where a command's output goes.
type Output int

// The ways.
const (
	Apart      Output = iota // the pipes 0 and 1
	Merged                   // both to pipe 0
	OnTerminal               // both to the terminal
)

// Pipes is how many pipes it takes for what the script writes.
func (o Output) Pipes() int { return [...]int{2, 1, 0}[o] }

// Asides is how many pipes it takes beside those: for what bash writes where it runs
// the script, outside of it. They come after Pipes.
func (o Output) Asides() int { return [...]int{2, 1, 1}[o] }

// StatusLine makes bash's $? a code, where neither set -e nor a trap for ERR sees it:
// within a list that goes on. It starts no process, of which a box may have no more,
// and takes a file to source for most codes.
func (fr *Frame) StatusLine(code int) (string, error) {
	switch code {
	case 0:
		return fmt.Sprintf(lineFormat, "((1))"), nil
	case 1:
		return fmt.Sprintf(lineFormat, `((0))&&\:`), nil
	}
	fr.status = newName()
	place := fr.folder.place
	err := fsuser.Do(place.UID, place.GID, func() error {
		f, err := fr.write(fr.status, fmt.Sprintf("\\return %d\n", code))
		return errors.Join(err, f.Close())
	})
	if err != nil {
		return "", fmt.Errorf("cannot hand a command to a shell: %w", err)
	}
	return fmt.Sprintf(lineFormat, `\. `+fr.quoted(fr.status)+`&&\:`), nil
}

// ReapLine has bash notice which of its children have ended, which it does when it
// starts one.
const ReapLine = " ( ((0)) )&&\\:\n"

// SetupLine makes a new bash one that says nothing and keeps nothing.
const SetupLine = " set +o history; history -c; set +H; unset HISTFILE PS1 PS2; PS1= PS2=\n"

// ScriptLine makes bash run the script in itself. The backslash hides it from
// aliases; that it was a function or a builtin that is off, the watch of the script
// tells.
//
// Where set -e ends bash, it first undoes the redirections of the script, and then
// runs a trap for EXIT: with those of the group, which it does not undo.
func (fr *Frame) ScriptLine(o Output) string {
	pipes, asides := fr.pipes[:o.Pipes()], fr.pipes[o.Pipes():]
	script := `\. ` + fr.quoted(fr.script) + fr.redirection(pipes)
	return fmt.Sprintf(lineFormat, "{ "+script+"; }"+fr.redirection(asides))
}

// redirection gives bash the terminal to read from, and pipes to write to; without
// any the terminal as well.
func (fr *Frame) redirection(pipes []*Pipe) string {
	const input = " </dev/tty >"
	switch len(pipes) {
	case 0:
		return input + "/dev/tty 2>&1"
	case 1:
		return input + fr.quoted(pipes[0].name) + " 2>&1"
	default:
		return input + fr.quoted(pipes[0].name) + " 2>" + fr.quoted(pipes[1].name)
	}
}

// Outside gives, of what bash has written to one of the pipes aside, what comes after
// the line itself, which it may write there first (set -x).
func (fr *Frame) Outside(written []byte) []byte {
	path := fr.folder.path(fr.script)
	for _, named := range []string{". " + path, ". " + quote(path)} {
		if at := bytes.LastIndex(written, []byte(named)); at >= 0 {
			_, written, _ = bytes.Cut(written[at:], []byte{'\n'})
		}
	}
	return written
}

// RecordLine makes bash make the record. It has no word that could be something
// else, and is not split whatever IFS holds.
func (fr *Frame) RecordLine() string { return fr.recordLine(fr.nonce) }

// AgainLine makes it make the record again.
func (fr *Frame) AgainLine() string { return fr.recordLine(fr.again) }

func (fr *Frame) recordLine(nonce string) string {
	return fmt.Sprintf(lineFormat, ">"+fr.quoted(nonce+".")+`"$?"`)
}

func (fr *Frame) quoted(name string) string { return quote(fr.folder.path(name)) }

// quote gives a word of bash's for a text without NUL.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// errLong is why a shell cannot be had in a place.
var errLong = errors.New("the path of the box's temporary folder is too long for a shell's commands; use a shorter one")

// Fit says whether the lines of a command are as short as they must be.
func (f *Folder) Fit() error {
	fr := &Frame{folder: f, script: newName(), pipes: slices.Repeat([]*Pipe{{name: newName()}}, Apart.Pipes()+Apart.Asides())}
	if line := fr.ScriptLine(Apart); len(line) >= MaxLine || strings.ContainsAny(line, "\x00") || strings.Count(line, "\n") > 1 {
		return errLong
	}
	return nil
}
