package core_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"envapi/core"
)

// said runs a command that has written text, and gives it.
func (w *world) said(text string) core.Command {
	w.t.Helper()
	n := len(w.host.processes())
	c := w.run(w.env(), "wait", noWait)
	w.process(n).print(text)
	w.process(n).exit(0)
	w.await(c.ID)
	return c
}

// env gives an environment of alice's, made on first use.
func (w *world) env() string {
	w.t.Helper()
	if all := w.environments(); len(all) > 0 {
		return all[0].ID
	}
	return w.create().ID
}

func (w *world) read(id string, change ...func(*core.ReadOutputInput)) core.Output {
	w.t.Helper()
	in := core.ReadOutputInput{CommandID: id}
	for _, c := range change {
		c(&in)
	}
	out, err := w.ReadOutput(context.Background(), alice, in)
	must(w.t, err)
	return out
}

func page(offset, limit int64) func(*core.ReadOutputInput) {
	return func(in *core.ReadOutputInput) { in.Offset, in.LimitBytes = &offset, &limit }
}

func TestExcerpts(t *testing.T) {
	w := newWorld(t)
	for _, test := range []struct {
		name, said string
		inline     int64
		text       string // where it is base64: what it decodes to
		encoding   string
		omitted    int64
	}{
		{"all of it", "abc", 16, "abc", "utf-8", 0},
		{"exactly", "abcd", 4, "abcd", "utf-8", 0},
		{"head and tail", "aaaabbbbbbbbcccc", 8, "aaaa\n[… 8 bytes omitted: read_output from offset 4, stream stdout …]\ncccc", "utf-8", 8},
		{"a head that ends a line", "aaa\nbbbbbbbbcccc", 8, "aaa\n[… 8 bytes omitted: read_output from offset 4, stream stdout …]\ncccc", "utf-8", 8},
		{"characters stay whole", "aaaébbbbbbbéccc", 8, "aaa\n[… 11 bytes omitted: read_output from offset 3, stream stdout …]\nccc", "utf-8", 11},
		{"none wanted", "abc", 0, "", "utf-8", 3},
		{"A29 not UTF-8", "\xff\xfe", 16, "\xff\xfe", "base64", 0},
		{"not UTF-8, the beginning only", "\xff\xfebbbbbbbb", 4, "\xff\xfebb", "base64", 6},
		{"A30 NUL and escapes", "a\x00b\x1b[0m\r\n", 16, "a\x00b\x1b[0m\r\n", "utf-8", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := w.said(test.said)
			got, err := w.GetCommand(t.Context(), alice, core.GetCommandInput{CommandID: c.ID, OutputBytes: &test.inline})
			must(t, err)
			out := got.Stdout
			text := out.Text
			if out.Encoding == "base64" {
				raw, err := base64.StdEncoding.DecodeString(text)
				must(t, err)
				text = string(raw)
			}
			if text != test.text || out.Encoding != test.encoding || out.OmittedBytes != test.omitted || out.TotalBytes != int64(len(test.said)) || out.Truncated != (test.omitted > 0) {
				t.Fatalf("got %q %+v", text, out)
			}
			if out.Truncated != strings.Contains(got.Next, "read_output") {
				t.Fatalf("next: %q", got.Next)
			}
		})
	}
}

func TestPagesAreWholeCharactersAndLoseNothing(t *testing.T) {
	w := newWorld(t)
	for _, text := range []string{"", "abc", strings.Repeat("aé€😀", 50), "\xff\xfe", "a\xffé\x00€", "ends in half \xe2\x82", strings.Repeat("\x80", 9)} {
		c := w.said(text)
		for limit := int64(1); limit < 9; limit++ {
			t.Run(fmt.Sprintf("%.8q by %d", text, limit), func(t *testing.T) {
				got := readAll(w, c.ID, limit)
				if string(got) != text {
					t.Fatalf("got %q, want %q", got, text)
				}
			})
		}
	}
}

// readAll reads to the end by pages.
func readAll(w *world, id string, limit int64) []byte {
	w.t.Helper()
	var all bytes.Buffer
	for {
		out := w.read(id, page(int64(all.Len()), limit))
		data := []byte(out.Data)
		if out.Encoding == "base64" {
			data, _ = base64.StdEncoding.DecodeString(out.Data)
			if utf8.Valid(data) {
				w.t.Fatalf("text as base64: %q", data)
			}
		}
		if out.Offset != int64(all.Len()) || out.NextOffset != out.Offset+int64(len(data)) || len(data) > int(max(limit, 4)) {
			w.t.Fatalf("got %+v", out)
		}
		all.Write(data)
		if out.EOF {
			return all.Bytes()
		}
		if len(data) == 0 {
			w.t.Fatalf("no progress at %d", all.Len())
		}
	}
}

func FuzzPagesLoseNothing(f *testing.F) {
	f.Add([]byte("aé€😀"), uint8(1))
	f.Add([]byte("\xf0\x9f\x98"), uint8(3))
	f.Fuzz(func(t *testing.T, data []byte, limit uint8) {
		want := bytes.Clone(data)
		for len(data) > 0 {
			n := core.PageLength(data, int64(limit)+1, true)
			if n < 1 || n > len(data) || n > max(int(limit)+1, utf8.UTFMax) {
				t.Fatalf("a page of %d of %d", n, len(data))
			}
			if utf8.Valid(want) && !utf8.Valid(data[:n]) {
				t.Fatalf("a character was cut: %q", data[:n])
			}
			data = data[n:]
		}
	})
}

func TestReadOutput(t *testing.T) { // B5, B6, B9
	w := newWorld(t)
	c := w.said("one two three")
	for _, test := range []struct {
		name   string
		change func(*core.ReadOutputInput)
		data   string
		offset int64
	}{
		{"all", func(*core.ReadOutputInput) {}, "one two three", 0},
		{"from an offset", page(4, 3), "two", 4},
		{"the end", func(in *core.ReadOutputInput) { in.TailBytes = ptr(int64(5)) }, "three", 8},
		{"an end that is longer than all", func(in *core.ReadOutputInput) { in.TailBytes = ptr(int64(500)) }, "one two three", 0},
		{"another stream", func(in *core.ReadOutputInput) { in.Stream = "stderr" }, "", 0},
		{"at the end", page(13, 10), "", 13},
		{"beyond the end", page(99, 10), "", 99},
		{"no waiting after the end", func(in *core.ReadOutputInput) { in.Offset, in.WaitMS = ptr(int64(13)), ptr(int64(45_000)) }, "", 13},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := w.read(c.ID, test.change); got.Data != test.data || got.Offset != test.offset || got.EOF != (test.name != "from an offset") {
				t.Fatalf("got %+v", got)
			}
		})
	}
	for field, in := range map[string]core.ReadOutputInput{
		"stream":      {Stream: "stdlog"},
		"offset":      {Offset: ptr(int64(-1))},
		"limit_bytes": {LimitBytes: ptr(int64(0))},
		"tail_bytes":  {TailBytes: ptr(int64(1<<20 + 1))},
		"wait_ms":     {WaitMS: ptr(int64(-1))},
	} {
		t.Run(field, func(t *testing.T) {
			in.CommandID = c.ID
			_, err := w.ReadOutput(t.Context(), alice, in)
			wantField(t, err, field)
		})
	}
}

func TestReadOutputStartsATailWithAWholeCharacter(t *testing.T) {
	w := newWorld(t)
	c := w.said("é€😀x")
	for bytes, want := range map[int]string{1: "x", 2: "x", 3: "x", 4: "x", 5: "😀x", 6: "😀x", 7: "😀x", 8: "€😀x", 9: "€😀x", 10: "é€😀x"} {
		got := w.read(c.ID, func(in *core.ReadOutputInput) { in.TailBytes = ptr(int64(bytes)) })
		if got.Data != want || got.Offset != int64(10-len(want)) {
			t.Errorf("the last %d: got %+v, want %q", bytes, got, want)
		}
	}
}

func TestReadOutputWaitsForBytesOrTheEnd(t *testing.T) {
	w := newWorld(t)
	c := w.run(w.env(), "wait", noWait)
	p := w.process(0)
	waiting := func(offset int64) func(*core.ReadOutputInput) {
		return func(in *core.ReadOutputInput) { in.Offset, in.WaitMS = &offset, ptr(int64(40_000)) }
	}
	after := func(do func()) {
		t.Helper()
		go func() {
			time.Sleep(10 * time.Millisecond) // so that the read is likely to wait; it is right either way
			do()
		}()
	}

	after(func() { p.print("x") })
	if got := w.read(c.ID, waiting(0)); got.Data != "x" || got.EOF {
		t.Fatalf("got %+v", got)
	}
	after(func() { p.print("\xe2\x82"); p.print("\xac") })
	if got := w.read(c.ID, waiting(1)); got.Data != "€" || got.Encoding != "utf-8" { // A29: half a character is no news
		t.Fatalf("got %+v", got)
	}
	after(func() { p.exit(0) })
	if got := w.read(c.ID, waiting(4)); got.Data != "" || !got.EOF {
		t.Fatalf("got %+v", got)
	}
	if got := w.read(c.ID, func(in *core.ReadOutputInput) { in.Offset = ptr(int64(4)) }); !got.EOF {
		t.Fatalf("got %+v", got)
	}
}

func TestReadOutputOfDroppedBytesSaysWhereToReadOn(t *testing.T) { // A28
	w := newWorld(t)
	c := w.said(strings.Repeat("0123456789abcdef", 16<<10)) // four times what a log holds
	_, err := w.ReadOutput(t.Context(), alice, core.ReadOutputInput{CommandID: c.ID, Offset: ptr(int64(100 << 10))})
	e := wantCode(t, err, core.CodeOutputExpired)
	next, ok := e.Facts["next_offset"].(int64)
	if !ok || next <= 100<<10 {
		t.Fatalf("got %v", e.Facts)
	}
	out := w.read(c.ID, page(next, 16))
	if out.DroppedBytes == 0 || out.TotalBytes != 256<<10 || out.Data == "" {
		t.Fatalf("got %+v", out)
	}
	if got := w.read(c.ID, func(in *core.ReadOutputInput) { in.TailBytes = ptr(int64(200 << 10)) }); got.Data == "" || got.Offset != next {
		t.Fatalf("a tail that reaches into the dropped part: %d %+v", len(got.Data), got.Offset)
	}
}

func TestMergedOutputKeepsItsOrder(t *testing.T) { // A49
	w := newWorld(t)
	c := w.run(w.env(), "wait", noWait)
	p := w.process(0)
	for i := range 4 {
		_, _ = fmt.Fprintf(p.command.Stdout, "o%d", i)
		_, _ = fmt.Fprintf(p.command.Stderr, "e%d", i)
	}
	p.exit(0)
	w.await(c.ID)
	if got := w.read(c.ID); got.Data != "o0e0o1e1o2e2o3e3" {
		t.Fatalf("got %q", got.Data)
	}
	if got := w.read(c.ID, func(in *core.ReadOutputInput) { in.Stream = "stderr" }); got.Data != "e0e1e2e3" {
		t.Fatalf("got %q", got.Data)
	}
}

// dropping are logs on a disk that is full: all is counted and nothing kept.
type dropping struct{ core.OutputLogs }

type droppingLog struct {
	core.OutputLog
	end int64
}

func (d dropping) Open(environmentID, commandID string) (core.OutputLog, error) {
	log, err := d.OutputLogs.Open(environmentID, commandID)
	return &droppingLog{log, 100_000}, err
}

func (l *droppingLog) Size(core.Stream) (total, dropped int64) { return l.end, l.end }

func (l *droppingLog) Read(core.Stream, int64, int64) ([]byte, error) {
	l.end++ // it is written to all the time
	return nil, &core.ExpiredError{NextOffset: l.end}
}

func TestD12ACommandWhoseOutputIsAllDroppedIsAnsweredWithItsLength(t *testing.T) {
	w := newWorld(t, func(w *world) { w.config.Logs = dropping{w.config.Logs} })
	c := w.run(w.create().ID, "print lost")
	if c.Stdout == nil || c.Stdout.TotalBytes < 100_000 || c.Stdout.Text != "" {
		t.Errorf("got %+v, next %q", c.Stdout, c.Next)
	}
}
