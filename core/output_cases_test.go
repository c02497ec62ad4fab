package core_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"envapi/core"
	"envapi/internal/outputlog"
	"envapi/internal/random"
)

// bigLogs gives a world logs that keep all that a test writes.
func bigLogs(t *testing.T) func(*world) {
	t.Helper()
	logs, err := outputlog.Open(filepath.Join(t.TempDir(), "logs"), 64<<20)
	must(t, err)
	t.Cleanup(func() { must(t, logs.Close()) })
	return func(w *world) { w.config.Logs = logs }
}

// B9, B11: of much output the totals are exact and all of it can be read, whether
// the command failed or not.
func TestB9MuchOutputIsCountedAndReadable(t *testing.T) {
	w := newWorld(t, bigLogs(t))
	for name, c := range map[string]struct{ size, code int }{"B9": {3 << 20, 0}, "B11": {1 << 20, 1}} {
		t.Run(name, func(t *testing.T) {
			n := len(w.host.processes())
			id := w.run(w.env(), "wait", noWait).ID
			raw := strings.Repeat("0123456789abcde\n", c.size/16)
			w.process(n).print(raw)
			w.process(n).exit(c.code)
			got := w.await(id)
			if *got.ExitCode != c.code || got.Stdout.TotalBytes != int64(c.size) || !got.Stdout.Truncated || got.Stdout.OmittedBytes != int64(c.size-16<<10) {
				t.Fatalf("got %d, %d, %d omitted", *got.ExitCode, got.Stdout.TotalBytes, got.Stdout.OmittedBytes)
			}
			if !strings.Contains(got.Next, "read_output") || !strings.Contains(got.Next, "offset 8192") {
				t.Errorf("next is %q", got.Next)
			}
			if all := w.readAll(t, id, "stdout", "keep", func() int64 { return 1 << 20 }); string(all) != raw {
				t.Errorf("%d bytes were read of %d", len(all), c.size)
			}
		})
	}
}

// readAll reads a stream page by page, and holds each to its rules.
func (w *world) readAll(t reporter, id, stream, ansi string, limit func() int64) []byte {
	t.Helper()
	var all []byte
	for at, eof := int64(0), false; !eof; {
		out := w.read(id, page(at, limit()), func(in *core.ReadOutputInput) { in.Stream, in.ANSI = stream, ansi })
		data := bytesOf(t, out)
		if out.Offset != at || out.NextOffset < at || (out.Encoding == "utf-8") != utf8.Valid(data) {
			t.Fatalf("at %d: %+v", at, out)
		}
		if ansi == "keep" && out.NextOffset-at != int64(len(data)) || out.NextOffset == at && !out.EOF {
			t.Fatalf("at %d: %d bytes up to %d", at, len(data), out.NextOffset)
		}
		all, at, eof = append(all, data...), out.NextOffset, out.EOF
	}
	return all
}

// A29, A30, A42: whatever bytes come, in whatever pieces and streams, every way to
// read them loses none and cuts no character.
func TestA29A30A42EveryWayOfReadingIsExact(t *testing.T) {
	bits := []string{"\x00", "\xff\xfe", "😀", "\xf0\x9f", "\x98\x80", "é", "a", "10%\r20%\r\n", "\x1b[1m", "\x1b]0;t\x07", "\x1b", long(300)}
	w := newWorld(t, bigLogs(t))
	random.Check(t, func(rt *rapid.T) {
		n := len(w.host.processes())
		id := w.run(w.env(), "wait", noWait).ID
		log, err := w.config.Logs.Open(w.env(), id)
		must(rt, err)
		defer log.Release()
		want := map[string][]byte{}
		for range rapid.IntRange(0, 30).Draw(rt, "writes") {
			stream := rapid.SampledFrom([]string{"stdout", "stderr", "tty"}).Draw(rt, "stream")
			bit := rapid.SampledFrom(bits).Draw(rt, "bit")
			_, err := log.Writer(core.Stream(stream)).Write([]byte(bit))
			must(rt, err)
			want[stream] = append(want[stream], bit...)
			want["all"] = append(want["all"], bit...)
		}
		w.process(n).exit(0)
		w.await(id)
		limit := func() int64 { return rapid.Int64Range(1, 50).Draw(rt, "limit") }
		for _, stream := range []string{"stdout", "stderr", "tty", "all"} {
			raw := want[stream]
			if got := w.readAll(rt, id, stream, "keep", limit); !bytes.Equal(got, raw) {
				rt.Fatalf("%s: %q was read as %q", stream, raw, got)
			}
			if got := w.readAll(rt, id, stream, "strip", limit); !bytes.Equal(got, core.Strip(raw, 1000)) {
				rt.Fatalf("%s: %q was stripped to %q", stream, raw, got)
			}
			w.readTail(rt, id, stream, raw, limit())
		}
	})
}

// readTail wants the last bytes: as many as were asked for, or fewer by what is cut
// of the character they begin in.
func (w *world) readTail(t reporter, id, stream string, raw []byte, n int64) {
	t.Helper()
	out := w.read(id, func(in *core.ReadOutputInput) { in.Stream, in.TailBytes = stream, &n })
	got := bytesOf(t, out)
	if !bytes.HasSuffix(raw[:out.NextOffset], got) || out.Offset+int64(len(got)) != out.NextOffset {
		t.Fatalf("the last %d of %q are %q, at %d to %d", n, raw, got, out.Offset, out.NextOffset)
	}
	if begin := max(0, int64(len(raw))-n); out.Offset < begin || out.Offset > begin+3 {
		t.Fatalf("the last %d of %q begin at %d", n, raw, out.Offset)
	}
}

// A29: a character that a pause cuts comes whole, in every stream.
func TestA29ACharacterThatAPauseCutsComesWhole(t *testing.T) {
	w := newWorld(t)
	id := w.run(w.env(), "wait", noWait).ID
	log, err := w.config.Logs.Open(w.env(), id)
	must(t, err)
	defer log.Release()
	for _, stream := range []string{"stdout", "stderr", "tty"} {
		for _, ansi := range []string{"keep", "strip"} {
			total, _ := log.Size(core.Stream(stream))
			ask := func(in *core.ReadOutputInput) { in.Stream, in.ANSI, in.Offset = stream, ansi, &total }
			write := func(text string) {
				_, err := log.Writer(core.Stream(stream)).Write([]byte(text))
				must(t, err)
			}
			write("\xf0\x9f")
			if got := w.read(id, ask); got.Data != "" || got.NextOffset != total || got.EOF {
				t.Fatalf("half of it: %+v", got)
			}
			answer := make(chan core.Output, 1)
			go func() {
				answer <- w.read(id, ask, func(in *core.ReadOutputInput) { in.WaitMS = ptr(int64(40_000)) })
			}()
			write("\x98")
			write("\x80")
			if got := <-answer; got.Data != "😀" || got.Encoding != "utf-8" || got.NextOffset != total+4 {
				t.Fatalf("%s, %s: %+v", stream, ansi, got)
			}
		}
	}
	w.process(0).exit(0)
	w.await(id)
}
