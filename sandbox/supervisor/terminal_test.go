package supervisor

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"envapi/internal/random"
	"envapi/sandbox"
	"envapi/sandbox/prompt"
)

// sink keeps what it is given.
type sink struct {
	mu   sync.Mutex
	data bytes.Buffer
}

func (s *sink) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.data.Write(p)
}

func (s *sink) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.data.String()
}

// newTerminal gives a terminal of the host's, as the weaker tiers have it.
func newTerminal(t *testing.T) (*terminal, *os.File, *sink) {
	t.Helper()
	b := &Box{looks: prompt.NewTurns()}
	term, slave, err := b.openTerminal(sandbox.Size{Cols: 80, Rows: 24})
	if err != nil {
		t.Fatal(err)
	}
	var always sink
	term.start(&always)
	t.Cleanup(func() {
		_ = slave.Close()
		term.pump.stop()
		<-term.pump.quiet
	})
	return term, slave, &always
}

func say(t *testing.T, to *os.File, what string) {
	t.Helper()
	if _, err := to.WriteString(what); err != nil {
		t.Fatal(err)
	}
}

// TestATerminalsBytesGoToTheCommandThatRuns is what shells need of it.
func TestATerminalsBytesGoToTheCommandThatRuns(t *testing.T) {
	term, slave, always := newTerminal(t)
	var first, second sink
	long := strings.Repeat("0123456789", 2_000) // more than the kernel has room for
	say(t, slave, "before ")
	<-term.settle()
	term.output.to(&first)
	say(t, slave, long)
	<-term.settle()
	term.output.to(&second)
	say(t, slave, "second")
	<-term.settle()
	term.output.to(nil)
	say(t, slave, " after")
	<-term.settle()
	if first.String() != long || second.String() != "second" || always.String() != "before "+long+"second after" {
		t.Errorf("got %d bytes, %q, and %d", len(first.String()), second.String(), len(always.String()))
	}
}

func TestSettlingDoesNotWaitForWhoWritesForEver(t *testing.T) {
	term, slave, _ := newTerminal(t)
	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_, _ = slave.WriteString("for ever\n")
			}
		}
	})
	for range 20 {
		select {
		case <-term.settle():
		case <-time.After(10 * time.Second):
			t.Error("it waits")
		}
	}
	close(stop)
	writer.Wait()
}

func TestATerminalEndsWithItsSlave(t *testing.T) {
	term, slave, always := newTerminal(t)
	say(t, slave, "last words")
	if err := slave.Close(); err != nil {
		t.Fatal(err)
	}
	<-term.pump.quiet
	<-term.settle() // at once
	if always.String() != "last words" {
		t.Errorf("got %q", always.String())
	}
	if _, err := term.Write(t.Context(), []byte("x")); !errors.Is(err, sandbox.ErrInputClosed) {
		t.Errorf("it is written to: %v", err)
	}
	if err := term.End(t.Context()); !errors.Is(err, sandbox.ErrInputClosed) {
		t.Errorf("it is ended: %v", err)
	}
	if _, err := term.modes(); !errors.Is(err, sandbox.ErrInputClosed) {
		t.Errorf("it has settings: %v", err)
	}
}

// TestModesAreRestored: what a command did to the terminal is undone.
func TestModesAreRestored(t *testing.T) {
	term, slave, _ := newTerminal(t)
	before, err := term.modes()
	if err != nil {
		t.Fatal(err)
	}
	raw := *before
	raw.Lflag, raw.Iflag, raw.Oflag = 0, 0, 0
	if err := unix.IoctlSetTermios(int(slave.Fd()), unix.TCSETS, &raw); err != nil {
		t.Fatal(err)
	}
	if err := term.setModes(before); err != nil {
		t.Fatal(err)
	}
	after, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
	if err != nil || *after != *before {
		t.Errorf("got %+v, want %+v: %v", after, before, err)
	}
}

func TestALineFeedIsTwoForPeople(t *testing.T) {
	term, slave, always := newTerminal(t)
	say(t, slave, "a\n")
	<-term.settle()
	if err := term.forPeople(); err != nil {
		t.Fatal(err)
	}
	say(t, slave, "b\n")
	<-term.settle()
	if always.String() != "a\nb\r\n" {
		t.Errorf("got %q", always.String())
	}
}

// TestDroppedInputIsGone: also what waits to be taken.
func TestDroppedInputIsGone(t *testing.T) {
	term, slave, _ := newTerminal(t)
	waiting := make(chan error, 1)
	full := make(chan struct{})
	go func() {
		short, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		_, _ = term.Write(short, bytes.Repeat([]byte("old\n"), 10_000))
		close(full)
		_, err := term.Write(context.Background(), bytes.Repeat([]byte("old\n"), 10_000))
		waiting <- err
	}()
	<-full
	for len(term.keys.turn) == 0 { // until it writes
		time.Sleep(time.Millisecond)
	}
	if err := term.dropInput(); err != nil {
		t.Fatal(err)
	}
	if err := <-waiting; !errors.Is(err, sandbox.ErrInputClosed) {
		t.Errorf("who waited was told %v", err)
	}
	if _, err := term.Write(t.Context(), []byte("new\n")); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 100)
	if n, err := slave.Read(line); err != nil || string(line[:n]) != "new\n" {
		t.Errorf("got %q: %v", line[:n], err)
	}
}

// TestOnlyAMasterIsOne: a hostile file tree may have anything by that name.
func TestOnlyAMasterIsOne(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "ptmx")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	_, slave, _ := newTerminal(t)
	for _, path := range []string{"/dev/null", fifo, "/proc/self/fd/0"} {
		f, err := os.OpenFile(path, os.O_RDWR|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
		if err != nil {
			continue // a standard input that cannot be opened again
		}
		if mustBeMaster(f) == nil {
			t.Errorf("%s is taken for one", path)
		}
		_ = f.Close()
	}
	if mustBeMaster(slave) == nil {
		t.Error("a slave is taken for one")
	}
}

// TestNoLineIsLost: whatever pieces the lines come in, and however slowly they
// are read.
func TestNoLineIsLost(t *testing.T) {
	random.Check(t, func(rt *rapid.T) {
		var text []byte
		for i, n := range rapid.SliceOfN(rapid.IntRange(0, maxLine), 1, 12).Draw(rt, "lines") {
			text = append(append(text, bytes.Repeat([]byte{'a' + byte(i%26)}, n)...), '\n')
		}
		piece := rapid.IntRange(1, 3*maxLine).Draw(rt, "piece")
		buffer := rapid.IntRange(1, 2*maxLine).Draw(rt, "buffer")
		term, slave, _ := newTerminal(t)
		defer slave.Close()
		got := make(chan []byte)
		go func() {
			var all []byte
			b := make([]byte, buffer)
			for len(all) < len(text) {
				n, err := slave.Read(b)
				if err != nil {
					break
				}
				all = append(all, b[:n]...)
				if len(all)%97 == 0 {
					time.Sleep(100 * time.Microsecond)
				}
			}
			got <- all
		}()
		for rest := text; len(rest) > 0; {
			n, err := term.Write(t.Context(), rest[:min(piece, len(rest))])
			if err != nil {
				rt.Fatalf("%d were taken: %v", n, err)
			}
			rest = rest[n:]
		}
		if all := <-got; !bytes.Equal(all, text) {
			rt.Errorf("of %d bytes %d came, or not the same", len(text), len(all))
		}
	})
}
