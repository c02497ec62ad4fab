package supervisor

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"envapi/internal/random"
)

// usual are the settings of a terminal as the kernel gives it.
func usual() *unix.Termios {
	m := &unix.Termios{
		Iflag: unix.ICRNL | unix.IUTF8,
		Lflag: unix.ICANON | unix.ISIG | unix.IEXTEN | unix.ECHO,
	}
	for name, key := range map[int]byte{
		unix.VINTR: 3, unix.VQUIT: 28, unix.VSUSP: 26, unix.VEOF: ctrlD, unix.VERASE: 127,
		unix.VKILL: 21, unix.VWERASE: 23, unix.VLNEXT: 22,
	} {
		m.Cc[name] = key
	}
	return m
}

func TestTheLineIsFollowed(t *testing.T) {
	full := strings.Repeat("x", maxLine)
	for _, c := range []struct {
		name, before, keys, rest string
		longest                  int
	}{
		{"a line that is not ended", "ab", "cd", "abcd", 4},
		{"a line that is", "ab", "cd\ne", "e", 4},
		{"the key that ends it", "", "ab\r", "", 2},
		{"the end of the file", "", "ab\x04c", "c", 2},
		{"a character is erased", "", "ab\u00f6\x7f", "ab", 4},
		{"more than there is is erased", "", "a\x7f\x7fb", "b", 1},
		{"a word is erased", "", "one two \x17x", "one x", 8},
		{"half a character is not", "", "\xb6\x7f", "\xb6", 1},
		{"all is erased", "ab", "cd\x15e", "e", 4},
		{"an interrupt drops it", "ab", "cd\x03e", "e", 4},
		{"a quoted key is one", "", "a\x16\x03\x16\nb", "a\x03\nb", 4},
		{"a line without end", full, "y", full + "y", maxLine + 1},
	} {
		rest, longest := discipline{usual()}.follow(typing{line: []byte(c.before)}, []byte(c.keys))
		if string(rest.line) != c.rest || longest != c.longest {
			t.Errorf("%s: got %q, %d", c.name, rest.line, longest)
		}
	}
}

func TestKeysHaveNoLines(t *testing.T) {
	m := usual()
	m.Lflag &^= unix.ICANON
	rest, longest := discipline{m}.follow(typing{line: []byte("before")}, []byte(strings.Repeat("x", 2*maxLine)))
	if len(rest.line) != 0 || longest != 0 {
		t.Errorf("got %d bytes, %d", len(rest.line), longest)
	}
}

func TestWhatEndsALine(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*unix.Termios)
		key    byte
		want   bool
	}{
		{"a line feed", func(*unix.Termios) {}, '\n', true},
		{"a line feed that is made a return", func(m *unix.Termios) { m.Iflag |= unix.INLCR }, '\n', false},
		{"a return", func(*unix.Termios) {}, '\r', true},
		{"a return that stays one", func(m *unix.Termios) { m.Iflag = 0 }, '\r', false},
		{"a key of one's own", func(m *unix.Termios) { m.Cc[unix.VEOL] = ';' }, ';', true},
		{"a second one", func(m *unix.Termios) { m.Cc[unix.VEOL2] = ';' }, ';', true},
		{"no key", func(*unix.Termios) {}, 0, false},
	} {
		m := usual()
		c.change(m)
		if got := (discipline{m}).ends(c.key); got != c.want {
			t.Errorf("%s: got %v", c.name, got)
		}
	}
}

func TestPartsBeginWithWhatInterrupts(t *testing.T) {
	noSignals, noFlush := usual(), usual()
	noSignals.Lflag &^= unix.ISIG
	noFlush.Lflag |= unix.NOFLSH
	for _, c := range []struct {
		name  string
		modes *unix.Termios
		keys  string
		want  []string
	}{
		{"nothing", usual(), "", nil},
		{"none", usual(), "abc", []string{"abc"}},
		{"alone", usual(), "\x03", []string{"\x03"}},
		{"among others", usual(), "ab\x03cd\x1c\x1ae", []string{"ab", "\x03cd", "\x1c", "\x1ae"}},
		{"quoted", usual(), "ab\x16\x03c", []string{"ab\x16\x03c"}},
		{"where it is a key like others", noSignals, "ab\x03c", []string{"ab\x03c"}},
		{"where it drops nothing", noFlush, "ab\x03c", []string{"ab\x03c"}},
	} {
		var got []string
		for part := range (discipline{c.modes}).parts(false, []byte(c.keys)) {
			got = append(got, string(part))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q", c.name, got)
		}
	}
}

// typedKeys are those that mean something, among some that do not.
var typedKeys = []byte("ab_9 .\xc3\xb6\xd7\xff\n\r\x00\x03\x04\x11\x12\x13\x15\x16\x17\x1a\x1c\x7f;,")

// TestTheKernelTypesTheSame: whatever keys are pressed, with whatever settings,
// the line is the one that the kernel has.
func TestTheKernelTypesTheSame(t *testing.T) {
	random.Check(t, func(t *rapid.T) {
		m := usual()
		m.Cc[unix.VSTART], m.Cc[unix.VSTOP], m.Cc[unix.VREPRINT] = 0x11, 0x13, 0x12
		draw := func(of *uint32, flags ...uint32) {
			for _, flag := range flags {
				*of &^= flag
				if rapid.Bool().Draw(t, fmt.Sprintf("flag %#x", flag)) {
					*of |= flag
				}
			}
		}
		draw(&m.Iflag, unix.ICRNL, unix.IGNCR, unix.INLCR, unix.IXON, unix.IUTF8)
		if m.Iflag&unix.INLCR != 0 { // so that there is a key that ends a line
			m.Iflag = m.Iflag&^unix.IGNCR | unix.ICRNL
		}
		draw(&m.Lflag, unix.ISIG, unix.IEXTEN, unix.ECHO, unix.NOFLSH)
		m.Cc[unix.VEOL] = rapid.SampledFrom([]byte{disabled, ';'}).Draw(t, "eol")
		m.Cc[unix.VEOL2] = rapid.SampledFrom([]byte{disabled, ','}).Draw(t, "eol2")
		pieces := rapid.SliceOfN(rapid.SliceOfN(rapid.SampledFrom(typedKeys), 1, 20), 1, 5).Draw(t, "keys")
		if got, followed := kernelsLine(t, m, pieces); string(got) != string(followed) {
			t.Errorf("the kernel has %q, not %q", got, followed)
		}
	})
}

// endKey is one that always ends a line.
func endKey(m *unix.Termios) string {
	if m.Iflag&unix.INLCR != 0 {
		return "\r"
	}
	return "\n"
}

// kernelsLine gives the line that the kernel has after these keys, and the one
// that is known here.
func kernelsLine(t *rapid.T, m *unix.Termios, pieces [][]byte) (kernels, known []byte) {
	master, slave, err := hostTerminal()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	defer slave.Close()
	if err := unix.IoctlSetTermios(int(slave.Fd()), unix.TCSETS, m); err != nil {
		t.Fatal(err)
	}
	k := newKeyboard(master)
	for _, p := range pieces {
		if n, err := k.write(context.Background(), p); n != len(p) || err != nil {
			t.Fatalf("%d of %q: %v", n, p, err)
		}
	}
	_ = master.SetWriteDeadline(time.Time{}) // the keyboard has left its own
	if _, err := master.WriteString("#" + endKey(m)); err != nil {
		t.Fatal(err)
	}
	return lastLine(t, slave), k.typing.line
}

// lastLine reads lines up to one that ends as the test has it end.
func lastLine(t *rapid.T, slave *os.File) []byte {
	line := make([]byte, 2*maxLine)
	for {
		n, err := unix.Read(int(slave.Fd()), line)
		if err != nil {
			t.Fatal(err)
		}
		if before, found := bytes.CutSuffix(line[:n], []byte("#\n")); found {
			return before
		}
	}
}
