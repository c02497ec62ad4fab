package supervisor

import (
	"iter"
	"slices"

	"golang.org/x/sys/unix"
)

const (
	ctrlD    = 4
	disabled = 0 // _POSIX_VDISABLE: no key does it
)

// discipline says what the kernel's line discipline makes of keys (n_tty.c), by
// the settings of a terminal (termios(3)).
type discipline struct{ modes *unix.Termios }

// typing is the line that was begun, as its program will read it.
type typing struct {
	line   []byte
	quoted bool // whether the next key is taken as it is
}

// lines says whether its program reads whole lines.
func (d discipline) lines() bool { return d.modes.Lflag&unix.ICANON != 0 }

func (d discipline) in(flags uint32) bool { return d.modes.Iflag&flags == flags }

func (d discipline) local(flags uint32) bool { return d.modes.Lflag&flags == flags }

func (d discipline) is(key byte, names ...int) bool {
	return key != disabled && slices.ContainsFunc(names, func(name int) bool { return d.modes.Cc[name] == key })
}

// signals says whether a key sends one.
func (d discipline) signals(key byte) bool {
	return d.local(unix.ISIG) && d.is(key, unix.VINTR, unix.VQUIT, unix.VSUSP)
}

// interrupts says whether a key sends a signal and has the kernel drop what was
// typed before it.
func (d discipline) interrupts(key byte) bool { return d.signals(key) && !d.local(unix.NOFLSH) }

// quotes says whether a key takes its meaning from the next.
func (d discipline) quotes(key byte) bool {
	return d.local(unix.ICANON|unix.IEXTEN) && d.is(key, unix.VLNEXT)
}

// vanishes says whether a key does something, and is not part of a line.
func (d discipline) vanishes(key byte) bool {
	return d.in(unix.IXON) && d.is(key, unix.VSTART, unix.VSTOP) ||
		d.signals(key) ||
		key == '\r' && d.in(unix.IGNCR) ||
		d.local(unix.ECHO|unix.IEXTEN) && d.is(key, unix.VREPRINT)
}

// ends says whether a key sends off the line.
func (d discipline) ends(key byte) bool {
	switch key {
	case '\n':
		return !d.in(unix.INLCR)
	case '\r':
		return d.in(unix.ICRNL)
	default:
		return d.is(key, unix.VEOF, unix.VEOL) || d.local(unix.IEXTEN) && d.is(key, unix.VEOL2)
	}
}

// parts cuts p before each key that interrupts.
func (d discipline) parts(quoted bool, p []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		begin := 0
		for i, key := range p {
			if !quoted && i > begin && d.interrupts(key) {
				if !yield(p[begin:i]) {
					return
				}
				begin = i
			}
			quoted = !quoted && d.quotes(key)
		}
		if begin < len(p) {
			yield(p[begin:])
		}
	}
}

// follow gives what p makes of the line, and the longest that there was. A
// program that reads keys has no lines. It ends at a line that is too long.
func (d discipline) follow(t typing, p []byte) (typing, int) {
	if !d.lines() {
		return typing{}, 0
	}
	t.line = append(make([]byte, 0, maxLine+1), t.line...)
	longest := len(t.line)
	for _, key := range p {
		d.press(&t, key)
		if longest = max(longest, len(t.line)); longest > maxLine {
			break
		}
	}
	t.line = slices.Clip(slices.Clone(t.line)) // seldom more than nothing
	return t, longest
}

func (d discipline) press(t *typing, key byte) {
	switch {
	case t.quoted:
		t.line, t.quoted = append(t.line, key), false
	case d.interrupts(key), !d.vanishes(key) && d.ends(key):
		t.line = t.line[:0]
	case d.vanishes(key):
	case d.is(key, unix.VERASE):
		t.line = t.line[:d.lastCharacter(t.line)]
	case d.is(key, unix.VKILL):
		t.line = t.line[:0]
	case d.local(unix.IEXTEN) && d.is(key, unix.VWERASE):
		t.line = t.line[:d.lastWord(t.line)]
	case d.quotes(key):
		t.quoted = true
	case key == '\n': // with INLCR
		t.line = append(t.line, '\r')
	default:
		t.line = append(t.line, key)
	}
}

// lastCharacter is where the last one of a line begins; its end where that is not
// in it.
func (d discipline) lastCharacter(line []byte) int {
	i := len(line) - 1
	for i > 0 && d.continues(line[i]) {
		i--
	}
	if i < 0 || d.continues(line[i]) {
		return len(line)
	}
	return i
}

func (d discipline) continues(c byte) bool { return d.in(unix.IUTF8) && c&0xc0 == 0x80 }

// lastWord is where the last word of a line begins, as the kernel has words.
func (d discipline) lastWord(line []byte) int {
	inWord := false
	for len(line) > 0 {
		i := d.lastCharacter(line)
		switch {
		case i == len(line):
			return i
		case isWord(line[i]):
			inWord = true
		case inWord:
			return len(line)
		}
		line = line[:i]
	}
	return 0
}

// isWord is the kernel's isalnum, which takes bytes for Latin-1.
func isWord(c byte) bool {
	switch {
	case c >= '0' && c <= '9', c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', c == '_':
		return true
	default:
		return c >= 0xc0 && c != 0xd7 && c != 0xf7
	}
}
