package core_test

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"envapi/core"
	"envapi/internal/random"
)

func TestStripLeavesTheText(t *testing.T) {
	for name, c := range map[string]struct{ raw, want string }{
		"nothing":                        {"", ""},
		"plain":                          {"a\tb\r\nc\bd\x07", "a\tb\r\nc\bd\x07"},
		"colours":                        {"\x1b[1;31mred\x1b[0m.", "red."},
		"a colour with colons":           {"\x1b[38:2::1:2:3mx", "x"},
		"a private mode":                 {"\x1b[?2004hx\x1b[?2004l", "x"},
		"an intermediate byte":           {"\x1b[2 qx\x1b[!px", "xx"},
		"the title, ended by BEL":        {"\x1b]0;title\x07x", "x"},
		"the title, ended by ST":         {"\x1b]0;title\x1b\\x", "x"},
		"a title in UTF-8":               {"\x1b]0;✓ “ü”\x07x", "x"},
		"a link":                         {"\x1b]8;;http://h/\x1b\\link\x1b]8;;\x1b\\", "link"},
		"a device control string":        {"\x1bPq#0;2;0\n\x07~~\x1b\\x", "x"},
		"SOS, PM and APC":                {"\x1bXa\x1b\\1\x1b^b\x1b\\2\x1b_Gc\x1b\\3", "123"},
		"character sets":                 {"\x1b(B\x1b)0\x1b%Gx", "x"},
		"single escapes":                 {"\x1b7\x1b8\x1bc\x1b=\x1b>\x1bMx", "x"},
		"a sequence in a string":         {"\x1bPtmux;\x1b\x1b]0;t\x07\x1b\\x", "x"},
		"a sequence cut by another":      {"\x1b[1;3\x1b[0mx", "x"},
		"a sequence that is cancelled":   {"\x1b[1;3\x18x\x1b]0;t\x1ay", "xy"},
		"a newline in a sequence":        {"\x1b[3\r\n1mx", "\r\nx"},
		"DEL in a sequence":              {"\x1b[3\x7f1mx", "x"},
		"a character in a sequence":      {"\x1b[3é1m", "é1m"},
		"ESC before a character":         {"\x1béx", "éx"},
		"ESC at the end":                 {"x\x1b", "x"},
		"a sequence that is not whole":   {"x\x1b[1;3", "x"},
		"a NUL":                          {"a\x00b", "a\x00b"},
		"bytes that are not UTF-8":       {"\xff\x9b31mx\x90", "\xff\x9b31mx\x90"},
		"C1 as characters":               {"\u009b31mx\u009dy\u009c", "\u009b31mx\u009dy\u009c"},
		"a character cut by a sequence":  {"\xe2\x1b[0m\x82\xac", "€"},
		"a title that does not end":      {"\x1b]0;" + long(100<<10), long(100<<10 + 4 - 64<<10)},
		"a sequence that does not end":   {"\x1b[" + strings.Repeat("1", 100<<10), strings.Repeat("1", 100<<10+2-64<<10)},
		"an ESC far behind another":      {"\x1b]0;" + long(60<<10) + "\x1b]1;" + long(60<<10) + "\x07y", "y"},
		"carriage returns and backspace": {"10%\r20%\r\n", "10%\r20%\r\n"}, // A42
	} {
		t.Run(name, func(t *testing.T) {
			for _, size := range []int{1, 3, 1 << 20} {
				if got := core.Strip([]byte(c.raw), size); string(got) != c.want {
					t.Fatalf("in pieces of %d: got %.80q (%d), want %.80q (%d)", size, got, len(got), c.want, len(c.want))
				}
			}
		})
	}
}

// pieces are what escape sequences are made of, and text.
var pieces = []string{
	"\x1b", "[", "]", "P", "_", "\\", "\x07", "\x18", "0;title", "31", "m", "H", "(", "B", "\n", "\r", "é", "€", "😀", "\xff", "\x9c", "\x00", "text ", "\x7f",
	"\x1b[0m", "\x1b]0;" + long(5000), long(3000),
}

// Whatever is read page by page with strip, by whatever pages, is what there is
// without the sequences; offsets are those of the stream all the same.
func TestPagesThatAreStrippedAreTheWholeThatIs(t *testing.T) {
	w := newWorld(t)
	random.Check(t, func(rt *rapid.T) {
		raw := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 40).Draw(rt, "pieces"), "")
		c := w.said(raw)
		var got []byte
		for next, eof := int64(0), false; !eof; {
			limit := rapid.OneOf(rapid.Int64Range(1, 8), rapid.Int64Range(1, 5000)).Draw(rt, "limit")
			page := w.read(c.ID, page(next, limit), strip)
			if page.Offset != next || page.NextOffset < next || page.TotalBytes != int64(len(raw)) {
				rt.Fatalf("at %d: %+v", next, page)
			}
			got, next, eof = append(got, bytesOf(rt, page)...), page.NextOffset, page.EOF
		}
		if want := core.Strip([]byte(raw), 1<<20); !bytes.Equal(got, want) {
			rt.Fatalf("%q was read as %q, want %q", raw, got, want)
		}
	})
}

// A page may begin anywhere: of a sequence that it begins in, nothing is seen.
func TestAPageThatBeginsInASequenceDoesNotLeakIt(t *testing.T) {
	w := newWorld(t)
	raw := "one\x1b[1;31mtwo\x1b]0;" + long(5000) + "\x07three"
	c := w.said(raw)
	for offset := range len(raw) {
		want := core.Strip([]byte(raw), 1)[len(core.Strip([]byte(raw[:offset]), 1)):]
		if offset%501 != 0 && offset > 20 && offset < len(raw)-10 {
			continue // as many as are of use
		}
		if got := w.read(c.ID, page(int64(offset), 10_000), strip); got.Data != string(want) {
			t.Fatalf("at %d: %q, want %q", offset, got.Data, want)
		}
		tail := func(in *core.ReadOutputInput) { in.TailBytes = ptr(int64(len(raw) - offset)) }
		if got := w.read(c.ID, tail, strip); got.Data != string(want) {
			t.Fatalf("the last %d: %q, want %q", len(raw)-offset, got.Data, want)
		}
	}
}

// An answer without text would say that there is none yet.
func TestAWaitIsNotEndedByWhatIsStripped(t *testing.T) {
	w := newWorld(t)
	c := w.run(w.env(), "wait", noWait)
	p := w.process(0)
	p.print(strings.Repeat("\x1b[0m", 10_000))
	got := w.read(c.ID, page(0, 1000), strip)
	if got.Data != "" || got.Offset != 0 || got.NextOffset != 40_000 || got.EOF {
		t.Fatalf("got %+v", got)
	}
	answer := make(chan core.Output, 1)
	go func() {
		out, _ := w.ReadOutput(t.Context(), alice, core.ReadOutputInput{CommandID: c.ID, ANSI: "strip", WaitMS: ptr(int64(40_000))})
		answer <- out
	}()
	p.print("\x1b]0;title\x07")
	p.print("x")
	if got := <-answer; got.Data != "x" || got.NextOffset != 40_011 {
		t.Fatalf("got %+v", got)
	}
}

// An offset far beyond the end, which is no error, has nothing before it to look at.
func TestAStrippedPageBeyondTheEndIsEmpty(t *testing.T) {
	w := newWorld(t)
	c := w.run(w.env(), "print x")
	done := make(chan core.Output, 1)
	go func() { done <- w.read(c.ID, page(500, 10), strip) }()
	select {
	case got := <-done:
		if got.Data != "" || got.Offset != 500 || got.NextOffset != 500 {
			t.Errorf("got %+v", got)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it does not answer")
	}
}

// What lies before a dropped part says nothing of what lies behind it.
func TestADroppedPartEndsASequence(t *testing.T) {
	w := newWorld(t)
	c := w.said("\x1b[31m" + long(40<<10) + "\x1b]0;" + long(256<<10)) // a log holds 64 KiB
	end := w.read(c.ID, func(in *core.ReadOutputInput) { in.TailBytes = ptr(int64(1000)) }, strip)
	if end.Data != long(1000) {
		t.Fatalf("got %q", end.Data)
	}
	for _, before := range []int{60 << 10, 256 << 10} { // and one that begins behind it goes on
		c = w.said(long(before) + "\x1b]0;" + long(10<<10))
		end := w.read(c.ID, func(in *core.ReadOutputInput) { in.TailBytes = ptr(int64(1000)) }, strip)
		if end.Data != "" || end.DroppedBytes == 0 {
			t.Fatalf("got %q, %d dropped", end.Data, end.DroppedBytes)
		}
	}
}

func TestAnsiIsRefusedWhereItIsUnknown(t *testing.T) {
	w := newWorld(t)
	_, err := w.ReadOutput(t.Context(), alice, core.ReadOutputInput{CommandID: w.said("x").ID, ANSI: "html"})
	wantField(t, err, "ansi")
}

// FuzzStrip holds that it does not matter in which pieces bytes come, that what
// has no ESC is left alone, and that no ESC is left.
func FuzzStrip(f *testing.F) {
	f.Add([]byte("\x1b[1;31mred\x1b]0;title\x07\x1bPq\x1b\\x"), uint8(1))
	f.Add([]byte("\x1b]0;\x1b[\x18\x1b(B€"), uint8(2))
	f.Fuzz(func(t *testing.T, raw []byte, size uint8) {
		whole := core.Strip(raw, max(1, len(raw)))
		if got := core.Strip(raw, int(size)+1); !bytes.Equal(got, whole) {
			t.Fatalf("in pieces %q, whole %q", got, whole)
		}
		if at := bytes.IndexByte(raw, 0x1b); at < 0 && !bytes.Equal(whole, raw) || bytes.IndexByte(whole, 0x1b) >= 0 {
			t.Fatalf("%q became %q", raw, whole)
		}
	})
}

// strip asks for pages without escape sequences.
func strip(in *core.ReadOutputInput) { in.ANSI = "strip" }

func bytesOf(t reporter, out core.Output) []byte {
	t.Helper()
	if out.Encoding != "base64" {
		return []byte(out.Data)
	}
	data, err := base64.StdEncoding.DecodeString(out.Data)
	must(t, err)
	return data
}
