package core_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"envapi/core"
	"envapi/internal/outputlog"
)

var (
	usual = core.TerminalSize{Cols: 80, Rows: 24}
	small = core.TerminalSize{Cols: 10, Rows: 4}
)

// drawn gives what a terminal shows that is sent text.
func drawn(t *testing.T, text string, size core.TerminalSize) core.Screen {
	t.Helper()
	screen, err := core.DrawBytes([]byte(text), size, time.Minute)
	must(t, err)
	return screen
}

// TestScreensOfRealPrograms: the streams are those of real programs, and the
// screens what tmux shows when it is sent them.
func TestScreensOfRealPrograms(t *testing.T) {
	at := map[string]string{
		"git-log": "1,17", "less": "5,23 alternate", "vim": "0,22 alternate",
		"vim-quit": "0,2", "vim-split": "0,10 alternate", "wide": "17,2 alternate",
	}
	for name, want := range at {
		t.Run(name, func(t *testing.T) {
			stream, err := os.ReadFile(filepath.Join("testdata", "screens", name+".bin"))
			must(t, err)
			text, err := os.ReadFile(filepath.Join("testdata", "screens", name+".txt"))
			must(t, err)
			screen := drawn(t, string(stream), usual)
			if got := screen.Text + "\n"; got != string(text) {
				t.Errorf("it shows\n%s\nwant\n%s", got, text)
			}
			got := fmt.Sprintf("%d,%d", screen.CursorCol, screen.CursorRow)
			if screen.Alternate {
				got += " alternate"
			}
			if got != want {
				t.Errorf("the cursor is at %s, want %s", got, want)
			}
		})
	}
}

func TestScreens(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want string // the rows, without the empty ones at the end
		at   string
	}{
		"lines":                      {"a\r\nb", "a\nb", "1,1"},
		"a line that is too long":    {"0123456789ab", "0123456789\nab", "2,1"},
		"scrolling":                  {"1\r\n2\r\n3\r\n4\r\n5", "2\n3\n4\n5", "1,3"},
		"the cursor is moved":        {"\x1b[2;3Hx\x1b[A\x1b[Dy", "  y\n  x", "3,0"},
		"erased":                     {"abcdef\x1b[3D\x1b[K", "abc", "3,0"},
		"a region scrolls alone":     {"1\r\n2\r\n3\r\n4\x1b[2;3r\x1b[3;1H\n", "1\n3\n\n4", "0,2"},
		"lines put in and taken out": {"1\r\n2\r\n3\x1b[2;1H\x1b[L\x1b[1;1H\x1b[M", "\n2\n3", "0,0"},
		"characters put in":          {"abc\x1b[2D\x1b[@-", "a-bc", "2,0"},
		"wide characters":            {"日本x", "日本x", "5,0"},
		"a mark over a letter":       {"e\u0301x", "e\u0301x", "2,0"},
		"lines of boxes":             {"\x1b(0lqk\x1b(B.", "┌─┐.", "4,0"},
		"repeated":                   {"-\x1b[3b", "----", "4,0"},
		"a query":                    {"\x1b[6n\x1b[c\x1b]11;?\x07a", "a", "1,0"},
		"left the alternate screen":  {"a\x1b[?1049hb\x1b[?1049lc", "ac", "2,0"},
		"a reset":                    {"a\x1b[?1049hb\x1bcc", "c", "1,0"},
		"no character":               {"a\x00\x07\xffb", "ab", "2,0"},
	} {
		t.Run(name, func(t *testing.T) {
			screen := drawn(t, c.text, small)
			if got := strings.TrimRight(screen.Text, "\n"); got != c.want {
				t.Errorf("it shows %q, want %q", got, c.want)
			}
			if got := fmt.Sprintf("%d,%d", screen.CursorCol, screen.CursorRow); got != c.at {
				t.Errorf("the cursor is at %s, want %s", got, c.at)
			}
			if rows := strings.Count(screen.Text, "\n") + 1; rows != small.Rows || screen.Alternate {
				t.Errorf("there are %d rows, alternate %t", rows, screen.Alternate)
			}
		})
	}
}

func TestTheAlternateScreenIsNew(t *testing.T) {
	screen := drawn(t, "a\x1b[?1049hold\x1b[?1049l\x1b[?1049h\x1b[2;1Hb", small)
	if got := strings.TrimRight(screen.Text, "\n"); got != "\nb" || !screen.Alternate {
		t.Errorf("it shows %q, alternate %t", got, screen.Alternate)
	}
}

func TestTitles(t *testing.T) {
	for text, want := range map[string]string{
		"\x1b]0;one\x07":   "one",
		"\x1b]2;a;b\x1b\\": "a;b",
		"\x1b]1;icon\x07":  "",
		"\x1b]2;one\x07\x1b[22;0;0t\x1b]2;vim\x07\x1b[23;0;0t": "one",
		"\x1b]2;one\x07\x1b[23t\x1b[23t":                       "one",
		"\x1b]2;a\x01\u202eb\xff\x07":                          "ab\ufffd",
		"\x1b]2;" + strings.Repeat("x", 5000) + "\x07":         strings.Repeat("x", 256),
	} {
		if got := drawn(t, text, small).Title; got != want {
			t.Errorf("%.40q: the title is %.80q, want %.80q", text, got, want)
		}
	}
}

// TestHostileStreams: what a box sends can cost neither time nor memory without
// bound, and a fault of the emulator's is none of the service's.
func TestHostileStreams(t *testing.T) {
	large := core.TerminalSize{Cols: 256, Rows: 128}
	for name, piece := range map[string]string{
		"repetition":            "x\x1b[999999999b",
		"margins beyond":        "\x1b[1;9999r\x1b[9999S\x1b[M\x1b[?69h\x1b[1;9999s\x1b[M",
		"scrolled alternate":    "\x1b[?1049h\x1b#8\x1b[9999S",
		"filled lines":          "\x1b[?1049hx\x1b[256b\n",
		"clearings":             "\x1b[2J",
		"switches":              "\x1b[?1049h\x1b[?1049l",
		"resets":                "\x1bc",
		"a title without end":   "\x1b]0;xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
		"marks over one letter": "\u0301\u0302\u0303",
		"modes":                 "\x1b[?31337h\x1b[31338h",
		"titles put aside":      "\x1b[22t\x1b]2;xxxxxxxxxxxxx\x07",
	} {
		t.Run(name, func(t *testing.T) {
			data := bytes.Repeat([]byte(piece), 1<<20/len(piece))
			began := time.Now()
			screen, err := core.DrawBytes(data, large, 200*time.Millisecond)
			if took := time.Since(began); took > 20*time.Second { // many times what it takes, for a busy host
				t.Errorf("it took %v", took)
			}
			if len(screen.Text) > 4*64*large.Cols*large.Rows {
				t.Errorf("the text has %d bytes", len(screen.Text))
			}
			if err != nil && !strings.Contains(err.Error(), "too long") {
				t.Error(err)
			}
		})
	}
}

// TestWhatScrollsAwayIsNotKept: the library would keep it.
func TestWhatScrollsAwayIsNotKept(t *testing.T) {
	wide := core.TerminalSize{Cols: 1000, Rows: 4}
	for name, begin := range map[string]string{"main": "", "alternate": "\x1b[?1049h", "alternate, old": "\x1b[?47h"} {
		t.Run(name, func(t *testing.T) {
			held, err := core.HeldBy([]byte(begin+strings.Repeat("x\x1b[999b\r\n", 2000)), wide)
			must(t, err)
			if held > 24<<20 {
				t.Errorf("the terminal holds %d MiB", held>>20)
			}
		})
	}
}

func TestAFaultOfTheEmulatorIsAnError(t *testing.T) {
	if err := core.DrawFaulty(); err == nil || !strings.Contains(err.Error(), "a fault") {
		t.Errorf("got %v", err)
	}
}

// terminalLog is a log with what was written to a terminal.
func terminalLog(t *testing.T, most int64, data ...[]byte) core.OutputLog {
	t.Helper()
	logs, err := outputlog.Open(t.TempDir(), most)
	must(t, err)
	log, err := logs.Create("env_a", "sh_a")
	must(t, err)
	t.Cleanup(func() {
		log.Release()
		must(t, logs.Close())
	})
	for _, d := range data {
		_, err := log.Writer(core.StreamTTY).Write(d)
		must(t, err)
	}
	return log
}

// TestALongStreamIsDrawnOfItsEnd: also where its beginning was dropped, or what it
// says of the alternate screen lies far back.
func TestALongStreamIsDrawnOfItsEnd(t *testing.T) {
	flood := bytes.Repeat([]byte("a line that floods the terminal\r\n"), 3<<20/33)
	redraw := bytes.Repeat([]byte("\x1b[1;1Hone\x1b[K\x1b[2;1Htwo\x1b[K\x1b[3;1H"), 3<<20/30)
	entry := []byte("\x1b[?1049h\x1b[2J")
	for name, c := range map[string]struct {
		most int64
		data [][]byte
		want string
		alt  bool
	}{
		"lines":            {64 << 20, [][]byte{flood, []byte("$ ")}, "a line that floods the terminal\n$", false},
		"lines, dropped":   {1 << 20, [][]byte{flood, []byte("$ ")}, "a line that floods the terminal\n$", false},
		"redrawn":          {64 << 20, [][]byte{entry, redraw}, "one\ntwo", true},
		"left":             {64 << 20, [][]byte{entry, redraw, []byte("\x1b[?1049l"), flood, []byte("$ ")}, "a line that floods the terminal\n$", false},
		"entered at last":  {64 << 20, [][]byte{flood, entry, []byte("\x1b[1;1Hone\r\ntwo")}, "one\ntwo", true},
		"redrawn and left": {64 << 20, [][]byte{flood, entry, redraw, []byte("\x1b[?1049l$ ")}, "$", false},
	} {
		t.Run(name, func(t *testing.T) {
			screen, err := core.Draw(terminalLog(t, c.most, c.data...), usual)
			must(t, err)
			if !strings.HasSuffix(strings.TrimRight(screen.Text, "\n"), c.want) || screen.Alternate != c.alt {
				t.Errorf("it shows\n%s\nalternate %t", screen.Text, screen.Alternate)
			}
		})
	}
}

// TestWhatCostsTooMuchIsDrawnOfLess: the end of it.
func TestWhatCostsTooMuchIsDrawnOfLess(t *testing.T) {
	entry, clearings := []byte("\x1b[?1049h"), bytes.Repeat([]byte("\x1b[2J"), 1<<20/4)
	screen, err := core.Draw(terminalLog(t, 64<<20, entry, clearings, []byte("\x1b[1;1Hone")), usual)
	must(t, err)
	if !strings.HasPrefix(screen.Text, "one\n") || !screen.Alternate {
		t.Errorf("it shows\n%s\nalternate %t", screen.Text, screen.Alternate)
	}
}

func TestReadShellGivesTheScreen(t *testing.T) {
	w := newWorld(t)
	sh := w.shellIn(w.env(), asTerminal)
	_, err := w.fakeShell(0).spec.Output.Write([]byte("one\r\n\x1b[31mtwo\x1b[0m"))
	must(t, err)
	read := core.ReadShellInput{ShellRef: core.ShellRef{ShellID: sh.ID}, Screen: true}
	out, err := w.ReadShell(t.Context(), alice, read)
	must(t, err)
	if out.Screen == nil || !strings.HasPrefix(out.Screen.Text, "one\ntwo\n") || out.Screen.CursorCol != 3 {
		t.Fatalf("it shows %+v", out.Screen)
	}
	if out.Data != "" || out.EOF || out.NextOffset != out.TotalBytes || out.TotalBytes == 0 {
		t.Errorf("it says %+v of the stream", out.Output)
	}
	_, err = w.ResizeShell(t.Context(), alice, core.ResizeShellInput{ShellRef: read.ShellRef, TerminalSize: small})
	must(t, err)
	w.closeShell(sh.ID, false)
	out, err = w.ReadShell(t.Context(), alice, read)
	must(t, err)
	if out.Screen.Cols != small.Cols || out.Screen.Rows != small.Rows || !out.EOF {
		t.Errorf("of the closed shell it gives %+v, eof %t", out.Screen, out.EOF)
	}
	_, err = w.ReadShell(t.Context(), bob, read)
	wantCode(t, err, core.CodeNotFound)
}

func TestATerminalThatIsTooLargeIsNotDrawn(t *testing.T) {
	w := newWorld(t)
	sh := w.shellIn(w.env(), asTerminal, func(in *core.OpenShellInput) {
		in.Cols, in.Rows = ptr(1000), ptr(1000)
	})
	_, err := w.ReadShell(t.Context(), alice, core.ReadShellInput{ShellRef: core.ShellRef{ShellID: sh.ID}, Screen: true})
	wantCode(t, err, core.CodeInvalidArgument)
}

// TestTheScreenIsThatOfAProgramThatHasDrawn: which is when it reads its terminal.
func TestTheScreenIsThatOfAProgramThatHasDrawn(t *testing.T) {
	w := newWorld(t)
	sh := w.shellIn(w.env(), asTerminal)
	fake := w.fakeShell(0)
	time.AfterFunc(50*time.Millisecond, func() {
		_, _ = fake.spec.Output.Write([]byte("drawn"))
		go fake.terminal.line(fake.done)
	})
	began := time.Now()
	out, err := w.ReadShell(t.Context(), alice, core.ReadShellInput{
		ShellRef: core.ShellRef{ShellID: sh.ID}, Screen: true, WaitMS: ptr(int64(40_000)),
	})
	must(t, err)
	if !strings.HasPrefix(out.Screen.Text, "drawn\n") {
		t.Errorf("it shows %q", out.Screen.Text)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it waited for %v", took)
	}
}

// TestWhereNobodyCanTellSilenceIsWaitedFor.
func TestWhereNobodyCanTellSilenceIsWaitedFor(t *testing.T) {
	w := newWorld(t)
	sh := w.shellIn(w.env(), asTerminal)
	fake := w.fakeShell(0)
	fake.terminal.mu.Lock()
	fake.terminal.blind = true
	fake.terminal.mu.Unlock()
	began := time.Now()
	_, err := w.ReadShell(t.Context(), alice, core.ReadShellInput{
		ShellRef: core.ShellRef{ShellID: sh.ID}, Screen: true, WaitMS: ptr(int64(40_000)),
	})
	must(t, err)
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it waited for %v", took)
	}
}

// TestOneScreenAtATimeIsDrawnForAnAccount: its memory is that of one.
func TestOneScreenAtATimeIsDrawnForAnAccount(t *testing.T) {
	var turns core.Turns
	release, err := turns.Take(t.Context(), "alice")
	must(t, err)
	other, err := turns.Take(t.Context(), "bob")
	must(t, err)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := turns.Take(gone, "alice"); err == nil {
		t.Error("alice has two turns")
	}
	const waiting = 10
	var drawing, most atomic.Int64
	var all sync.WaitGroup
	for range waiting {
		all.Go(func() {
			release, err := turns.Take(t.Context(), "alice")
			if err != nil {
				t.Error(err)
				return
			}
			most.Store(max(most.Load(), drawing.Add(1)))
			drawing.Add(-1)
			release()
		})
	}
	release()
	all.Wait()
	other()
	if most.Load() != 1 || turns.Keys() != 0 {
		t.Errorf("%d were drawn at one time, %d turns are left", most.Load(), turns.Keys())
	}
}

func FuzzScreen(f *testing.F) {
	for _, seed := range []string{
		"a\x1b[5;5Hb\x1b[?1049hx\x1b[?1049l", "x\x1b[999999999b", "\x1b[2;4r\n\n\n\x1bM\x1b[5L\x1b[3M",
		"日本\x1b[1D\x1b[P\x1b[@e\u0301", "\x1b#8\x1b[1;1H\x1b[10X\x1b[3g\x1bH\t\x1b[9I\x1b[9Z",
		"\x1b]0;hi\x07\x1b]8;;http://x\x1b\\a", "\x1bP$q q\x1b\\\x1b[?6h\x1b[?69h\x1b[3;4s\x1b[6n\x1b[c\x1b[?7l",
		"\x1b[4h\x1b[20h\x1b(0lqk\x0e\x0f", "\x1b[s\x1b[u\x1b7\x1b8\x1bD\x1bE\x1bZ\x1b[!p", "\xff\xfe\xc3\x28\xf0\x9f",
		"\x1b[0;2r\x1b[M",
	} {
		f.Add([]byte(seed), uint8(10), uint8(5))
	}
	f.Fuzz(func(t *testing.T, data []byte, cols, rows uint8) {
		size := core.TerminalSize{Cols: 1 + int(cols), Rows: 1 + int(rows)/8}
		screen, err := core.DrawBytes(data, size, time.Minute)
		if err != nil {
			t.Fatal(err) // the service would survive it: but then it should be known
		}
		if strings.Count(screen.Text, "\n") != size.Rows-1 {
			t.Errorf("there are not %d rows", size.Rows)
		}
		if screen.CursorCol >= size.Cols || screen.CursorRow >= size.Rows || screen.CursorCol < 0 || screen.CursorRow < 0 {
			t.Errorf("the cursor is beyond the screen: %+v", screen)
		}
	})
}
