package supervisor

import (
	"golang.org/x/sys/unix"
)

// modes gives the settings of the terminal as its programs have them
// (termios(3)), to be set again later.
func (t *terminal) modes() (*unix.Termios, error) { return t.keys.modes() }

// setModes sets them.
func (t *terminal) setModes(m *unix.Termios) error {
	return t.control(func(fd int) error { return unix.IoctlSetTermios(fd, unix.TCSETS, m) })
}

// setDefaults sets what a terminal of ours begins with, beside what the kernel
// gives any: lines, echo, keys that send signals.
//
// A line ends as its program ended it: "echo x" gives "x\n", as on a pipe. UTF-8
// is erased by characters. Ctrl-s is a key like others: nobody who is to press
// ctrl-q sits here.
func (t *terminal) setDefaults() error {
	m, err := t.modes()
	if err != nil {
		return err
	}
	m.Oflag &^= unix.ONLCR
	m.Iflag &^= unix.IXON
	m.Iflag |= unix.IUTF8
	return t.setModes(m)
}

// forPeople sets what a terminal needs that is shown as it is: a line feed goes
// to the beginning of the next line.
func (t *terminal) forPeople() error {
	m, err := t.modes()
	if err != nil {
		return err
	}
	m.Oflag |= unix.ONLCR
	return t.setModes(m)
}

// dropInput takes away what was written to the terminal and not read.
func (t *terminal) dropInput() error { return t.keys.drop() }
