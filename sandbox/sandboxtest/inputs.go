package sandboxtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"envapi/sandbox"
)

// inputs: what is written to a command arrives whole, or it is said what did not.
func inputs(t *testing.T, tier Tier) {
	f := tier.box(t)
	for _, c := range []struct {
		name string
		run  func(*testing.T, fixture)
	}{
		{"a pipe stays open, and ends", openPipe},
		{"what there is comes first", openPipeAfterStdin},
		{"the end comes after long input", endAfterStdin},
		{"a pipe that nobody reads", unreadPipe},
		{"a pipe that nobody can read", brokenPipe},
		{"writers are not mixed", manyWriters},
		{"keys are echoed, and read by lines", typedLine},
		{"ctrl-d ends a reader", ctrlD},
		{"ctrl-d in a line sends it off, and ends", ctrlDInLine},
		{"ctrl-d reaches a program that reads keys", ctrlDRaw},
		{"ctrl-c is for the foreground", ctrlC},
		{"ctrl-c gets past what nobody reads", ctrlCPastInput},
		{"A47 a mebibyte of lines arrives", pastedLines},
		{"A47 a mebibyte of keys arrives", pastedKeys},
		{"a terminal that nobody reads", unreadTerminal},
		{"the longest line, and a longer one", longLines},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, f) })
	}
}

func startOpen(t *testing.T, f fixture, c sandbox.Command) (sandbox.Process, *capture) {
	t.Helper()
	c.Input = true
	p, out, _ := f.start(c)
	return p, out
}

func write(t *testing.T, to sandbox.Input, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if n, err := to.Write(ctx, []byte(text)); n != len(text) || err != nil {
		t.Fatalf("of %d bytes %d were taken: %v", len(text), n, err)
	}
}

func end(t *testing.T, of sandbox.Input) {
	t.Helper()
	if err := of.End(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func ended(t *testing.T, p sandbox.Process, out *capture, want string) {
	t.Helper()
	await(t, p.Done(), "it did not end")
	if got := out.String(); got != want {
		t.Errorf("got %.200q, want %.200q", got, want)
	}
}

func closed(t *testing.T, to sandbox.Input) {
	t.Helper()
	if n, err := to.Write(t.Context(), []byte("more\n")); n != 0 || !errors.Is(err, sandbox.ErrInputClosed) {
		t.Errorf("%d were taken: %v", n, err)
	}
}

func openPipe(t *testing.T, f fixture) {
	p, out := startOpen(t, f, sandbox.Command{Script: "cat; echo ."})
	write(t, p.Input(), "one\n")
	out.has(t, "one\n")
	write(t, p.Input(), "two\x00\x03\x04")
	end(t, p.Input())
	ended(t, p, out, "one\ntwo\x00\x03\x04.\n")
	closed(t, p.Input())
}

func openPipeAfterStdin(t *testing.T, f fixture) {
	long := strings.Repeat("0123456789", 100_000)
	p, out := startOpen(t, f, sandbox.Command{Script: "cat", Stdin: input(long)})
	write(t, p.Input(), "after")
	end(t, p.Input())
	ended(t, p, out, long+"after")
}

// endAfterStdin: who says the end need not wait until all was read.
func endAfterStdin(t *testing.T, f fixture) {
	long := strings.Repeat("0123456789", 100_000)
	p, out := startOpen(t, f, sandbox.Command{Script: "until [ -e end-said ]; do sleep 0.01; done; cat", Stdin: input(long)})
	end(t, p.Input())
	f.script(": >end-said")
	ended(t, p, out, long)
}

func unreadPipe(t *testing.T, f fixture) {
	p, out := startOpen(t, f, sandbox.Command{Script: "until [ -e read-on ]; do sleep 0.01; done; cat"})
	text := strings.Repeat("0123456789abcdef", 10_000)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	taken, err := p.Input().Write(ctx, []byte(text))
	if taken < 4096 || taken == len(text) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%d were taken: %v", taken, err)
	}
	f.script(": >read-on")
	write(t, p.Input(), text[taken:])
	end(t, p.Input())
	ended(t, p, out, text)
}

func brokenPipe(t *testing.T, f fixture) {
	p, out := startOpen(t, f, sandbox.Command{Script: "exec 0<&-; echo closed; sleep 300"})
	out.has(t, "closed")
	// Its reaper may hold the other end for a moment longer.
	eventually(t, "that nobody can read it", func() bool {
		_, err := p.Input().Write(t.Context(), []byte("x"))
		return errors.Is(err, sandbox.ErrInputClosed)
	})
	kill(t, p)
	closed(t, p.Input())
}

func manyWriters(t *testing.T, f fixture) {
	p, out := startOpen(t, f, sandbox.Command{Script: "sort | uniq -c | sed 's/^ *//' | cut -c 1-20"})
	var all sync.WaitGroup
	for i := range 8 {
		line := strings.Repeat(string(rune('a'+i)), 20_000) + "\n"
		all.Go(func() {
			for range 5 {
				if n, err := p.Input().Write(t.Context(), []byte(line)); n != len(line) || err != nil {
					t.Errorf("%d were taken: %v", n, err)
				}
			}
		})
	}
	all.Wait()
	end(t, p.Input())
	var want strings.Builder
	for i := range 8 {
		fmt.Fprintf(&want, "5 %s\n", strings.Repeat(string(rune('a'+i)), 18))
	}
	ended(t, p, out, want.String())
}

func typedLine(t *testing.T, f fixture) {
	p, out := f.onTerminal(`echo ready; read -r x; echo "got $x"`)
	out.has(t, "ready")
	write(t, p.Input(), "hallö\x7fo")
	out.has(t, "hall")
	write(t, p.Input(), "\r") // as the key is
	await(t, p.Done(), "it did not end")
	if !strings.HasSuffix(out.String(), "\ngot hallo\n") {
		t.Errorf("got %q", out.String())
	}
}

func ctrlD(t *testing.T, f fixture) {
	p, out := f.onTerminal(`stty -echo; echo ready; cat; echo .`)
	out.has(t, "ready")
	write(t, p.Input(), "one\n")
	end(t, p.Input())
	ended(t, p, out, "ready\none\n.\n")
}

func ctrlDInLine(t *testing.T, f fixture) {
	p, out := f.onTerminal(`stty -echo; echo ready; cat; echo .`)
	out.has(t, "ready")
	write(t, p.Input(), "one")
	end(t, p.Input())
	ended(t, p, out, "ready\none.\n")
}

func ctrlDRaw(t *testing.T, f fixture) {
	p, out := f.onTerminal(`stty raw -echo; echo ready; head -c 2 | od -An -tx1`)
	out.has(t, "ready")
	write(t, p.Input(), "a")
	end(t, p.Input())
	ended(t, p, out, "ready\n 61 04\n")
}

func ctrlC(t *testing.T, f fixture) {
	p, out := f.onTerminal(`trap 'echo shell; exit 130' INT; echo ready; sleep 300`)
	out.has(t, "ready")
	write(t, p.Input(), "\x03")
	await(t, p.Done(), "it was not interrupted")
	if r := p.Result(); r.ExitCode != 130 || !strings.HasSuffix(out.String(), "shell\n") {
		t.Errorf("got %+v and %q", r, out.String())
	}
}

func ctrlCPastInput(t *testing.T, f fixture) {
	p, out := f.onTerminal(`stty -echo; echo ready; exec sleep 300`)
	out.has(t, "ready")
	fill(t, p.Input(), "a line\n")
	write(t, p.Input(), "\x03")
	await(t, p.Done(), "it was not interrupted")
	if r := p.Result(); r.Signal != "INT" {
		t.Errorf("got %+v", r)
	}
}

// fill writes until no more is taken, and says how much that was.
func fill(t *testing.T, to sandbox.Input, text string) int {
	t.Helper()
	taken := 0
	for {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		n, err := to.Write(ctx, []byte(text))
		cancel()
		taken += n
		if errors.Is(err, context.DeadlineExceeded) {
			return taken
		}
		if err != nil || taken > 1<<20 {
			t.Fatalf("%d were taken: %v", taken, err)
		}
	}
}

// numbered gives many lines that all differ.
func numbered(bytes int) string {
	var b strings.Builder
	for i := 0; b.Len() < bytes; i++ {
		fmt.Fprintf(&b, "%d %s\n", i, strings.Repeat("x", i%2000))
	}
	return b.String()
}

func pastedLines(t *testing.T, f fixture) {
	text := numbered(1 << 20)
	p, out := f.onTerminal(`stty -echo; echo ready; cat >pasted`)
	out.has(t, "ready")
	write(t, p.Input(), text)
	end(t, p.Input())
	await(t, p.Done(), "it did not end")
	if got := f.readBack("pasted"); got != text {
		t.Errorf("of %d bytes %d came, or not the same", len(text), len(got))
	}
}

func pastedKeys(t *testing.T, f fixture) {
	text := strings.Repeat("0123456789abcdef\x03\x04\x11\x13\x00\xff\n", 50_000)
	p, out := f.onTerminal(fmt.Sprintf(`stty raw -echo; echo ready; head -c %d >keys`, len(text)))
	out.has(t, "ready")
	write(t, p.Input(), text)
	await(t, p.Done(), "it did not end")
	if got := f.readBack("keys"); got != text {
		t.Errorf("of %d bytes %d came, or not the same", len(text), len(got))
	}
}

// unreadTerminal: what was taken is there when it is read at last, and no more.
func unreadTerminal(t *testing.T, f fixture) {
	p, out := f.onTerminal(`stty -echo; echo ready; until [ -e read-it ]; do sleep 0.01; done; cat >read`)
	out.has(t, "ready")
	taken := fill(t, p.Input(), "0123456789abcde\n")
	if taken < 4000 {
		t.Errorf("only %d were taken", taken)
	}
	f.script(": >read-it")
	if taken%16 != 0 {
		write(t, p.Input(), "0123456789abcde\n"[taken%16:])
	}
	end(t, p.Input())
	await(t, p.Done(), "it did not end")
	want := strings.Repeat("0123456789abcde\n", (taken+15)/16)
	if got := f.readBack("read"); got != want {
		t.Errorf("of %d bytes %d came, or not the same", len(want), len(got))
	}
}

func longLines(t *testing.T, f fixture) {
	p, out := f.onTerminal(`stty -echo; echo ready; cat >lines`)
	out.has(t, "ready")
	longest := strings.Repeat("x", 4095)
	if n, err := p.Input().Write(t.Context(), []byte(longest+"x\n")); n != 0 || !errors.Is(err, sandbox.ErrLineTooLong) {
		t.Errorf("%d were taken: %v", n, err)
	}
	text := strings.Repeat("y", 300) + "\n" + longest + "\n" + longest + "\n"
	write(t, p.Input(), text)
	write(t, p.Input(), "begun")
	if n, err := p.Input().Write(t.Context(), []byte(longest)); n != 0 || !errors.Is(err, sandbox.ErrLineTooLong) {
		t.Errorf("%d were taken: %v", n, err)
	}
	write(t, p.Input(), "\n")
	end(t, p.Input())
	await(t, p.Done(), "it did not end")
	if got := f.readBack("lines"); got != text+"begun\n" {
		t.Errorf("of %d bytes %d came, or not the same", len(text)+6, len(got))
	}
}
