package outputlog

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"envapi/core"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	testEnv = "env_a"
	testCmd = "cmd_a"
)

// The streams; all but the last can be written.
var streams = []core.Stream{core.StreamStdout, core.StreamStderr, core.StreamTTY, core.StreamAll}

func openLogs(t testing.TB, dir string, maxBytes int64) *Logs {
	t.Helper()
	ls, err := Open(dir, maxBytes)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ls.Close() })
	return ls
}

func openLog(t testing.TB, ls *Logs, command string) core.OutputLog {
	t.Helper()
	l, err := ls.Open(testEnv, command)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Release)
	return l
}

func write(t testing.TB, l core.OutputLog, s core.Stream, p []byte) {
	t.Helper()
	if n, err := l.Writer(s).Write(p); n != len(p) || err != nil {
		t.Fatalf("Write gave %d, %v", n, err)
	}
}

func wantRead(t testing.TB, l core.OutputLog, s core.Stream, offset, limit int64, want string) {
	t.Helper()
	got, err := l.Read(s, offset, limit)
	if err != nil || string(got) != want {
		t.Fatalf("Read(%s, %d, %d) = %q, %v; want %q", s, offset, limit, got, err, want)
	}
}

func wantSize(t testing.TB, l core.OutputLog, s core.Stream, total, dropped int64) {
	t.Helper()
	if n, d := l.Size(s); n != total || d != dropped {
		t.Fatalf("Size(%s) = %d, %d; want %d, %d", s, n, d, total, dropped)
	}
}

// diskUse gives the bytes of all files below dir.
func diskUse(t testing.TB, dir string) (size int64, files int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		size, files = size+info.Size(), files+1
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return size, files
}

func TestEachStreamHasItsOffsets(t *testing.T) {
	ls := openLogs(t, t.TempDir(), MinBytes)
	l := openLog(t, ls, testCmd)
	write(t, l, core.StreamStdout, []byte("o1"))
	write(t, l, core.StreamStderr, []byte("e1e1"))
	write(t, l, core.StreamTTY, []byte("t1t"))
	write(t, l, core.StreamStdout, []byte("o2"))
	wantSize(t, l, core.StreamStdout, 4, 0)
	wantSize(t, l, core.StreamStderr, 4, 0)
	wantSize(t, l, core.StreamTTY, 3, 0)
	wantSize(t, l, core.StreamAll, 11, 0)
	for _, c := range []struct {
		stream        core.Stream
		offset, limit int64
		want          string
	}{
		{core.StreamStdout, 0, 100, "o1o2"},
		{core.StreamStdout, 1, 2, "1o"},
		{core.StreamStderr, 0, 100, "e1e1"},
		{core.StreamStderr, 3, 100, "1"},
		{core.StreamTTY, 0, 100, "t1t"},
		{core.StreamTTY, 1, 1, "1"},
		{core.StreamAll, 0, 100, "o1e1e1t1to2"},
		{core.StreamAll, 1, 6, "1e1e1t"},
		{core.StreamAll, 11, 100, ""},
		{core.StreamAll, 900, 100, ""},
		{core.StreamAll, 0, 0, ""},
	} {
		wantRead(t, l, c.stream, c.offset, c.limit, c.want)
	}
}

func TestMistakesAreRefused(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(dir, MinBytes-1); err == nil {
		t.Error("a bound below MinBytes was accepted")
	}
	ls := openLogs(t, dir, MinBytes)
	for _, id := range []string{"", ".", "..", "a", "../env_a", "env_a/b", "env_", "env_A", "env_a\x00"} {
		if _, err := ls.Create(id, testCmd); err == nil {
			t.Errorf("Create accepted the environment %q", id)
		}
		if _, err := ls.Open(testEnv, id); err == nil {
			t.Errorf("Open accepted the command %q", id)
		}
		if err := ls.RemoveEnvironment(id); err == nil {
			t.Errorf("RemoveEnvironment accepted %q", id)
		}
	}
	l := openLog(t, ls, testCmd)
	for _, c := range [][2]int64{{-1, 1}, {0, -1}} {
		if _, err := l.Read(core.StreamAll, c[0], c[1]); err == nil {
			t.Errorf("Read accepted offset %d and limit %d", c[0], c[1])
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("there is a writer for stream all")
		}
	}()
	l.Writer(core.StreamAll)
}

func TestACommandWithoutOutputMakesNoFile(t *testing.T) {
	dir := t.TempDir()
	ls := openLogs(t, dir, MinBytes)
	l, err := ls.Create(testEnv, testCmd)
	if err != nil {
		t.Fatal(err)
	}
	write(t, l, core.StreamStdout, nil)
	l.Release()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 0 {
		t.Fatalf("there is %v, %v; want nothing", entries, err)
	}
}

func TestALogIsCreatedOnce(t *testing.T) {
	ls := openLogs(t, t.TempDir(), MinBytes)
	early := openLog(t, ls, testCmd) // a reader may come before the writer
	l, err := ls.Create(testEnv, testCmd)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Release()
	write(t, l, core.StreamStdout, []byte("x"))
	wantRead(t, early, core.StreamAll, 0, 9, "x")
	if _, err := ls.Create(testEnv, testCmd); err == nil {
		t.Fatal("a log with output was created again")
	}
}

// A30 and A29: bytes are kept as they came.
func TestA30EveryByteIsKept(t *testing.T) {
	dir := t.TempDir()
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	l := openLog(t, openLogs(t, dir, MinBytes), testCmd)
	write(t, l, core.StreamStdout, all)
	again := openLog(t, openLogs(t, dir, MinBytes), testCmd)
	wantRead(t, l, core.StreamStdout, 0, 1000, string(all))
	wantRead(t, again, core.StreamStdout, 0, 1000, string(all))
}

// B6 and B9: what nobody read when it was written is there, exactly.
func TestB9ThreeMebibytesAreReadableFromEveryOffset(t *testing.T) {
	dir := t.TempDir()
	want := patterned(0, 3<<20)
	l := openLog(t, openLogs(t, dir, 64<<20), testCmd)
	for chunk := range chunks(want, 10_007) {
		write(t, l, core.StreamStdout, chunk)
	}
	for _, l := range []core.OutputLog{l, openLog(t, openLogs(t, dir, 64<<20), testCmd)} {
		wantSize(t, l, core.StreamStdout, 3<<20, 0)
		for offset := int64(0); offset < 3<<20; offset += 262_139 {
			got, err := l.Read(core.StreamStdout, offset, 100_000)
			if err != nil || !bytes.Equal(got, want[offset:min(offset+100_000, 3<<20)]) {
				t.Fatalf("reading at %d: %d bytes, %v", offset, len(got), err)
			}
		}
	}
}

// B18: a reader that never goes on costs the writer and the others nothing.
func TestB18AFrozenReaderHoldsUpNobody(t *testing.T) {
	ls := openLogs(t, t.TempDir(), 1<<20)
	l := openLog(t, ls, testCmd)
	write(t, l, core.StreamStdout, []byte("first"))
	frozen := openLog(t, ls, testCmd)
	wantRead(t, frozen, core.StreamAll, 0, 5, "first") // and then it reads no more

	data := patterned(5, 10<<20)
	var got []byte
	var read atomic.Int64
	var followers sync.WaitGroup
	follower := openLog(t, ls, testCmd)
	followers.Go(func() { got = follow(t, follower, int64(5+len(data)), &read) })
	for c := range chunks(data, 64<<10) {
		write(t, l, core.StreamStdout, c)
		total, _ := l.Size(core.StreamAll)
		waitFor(t, func() bool { return read.Load() >= total-256<<10 }) // well within the last half
	}
	followers.Wait()
	if !bytes.Equal(got[5:], data) {
		t.Fatalf("the follower got %d bytes that differ from what was written", len(got))
	}
}

// follow reads a log as it grows, up to total bytes, and keeps read up to date.
func follow(t *testing.T, l core.OutputLog, total int64, read *atomic.Int64) (got []byte) {
	for int64(len(got)) < total {
		changed := l.Changed()
		p, err := l.Read(core.StreamAll, int64(len(got)), 100_000)
		if err != nil {
			t.Errorf("following at %d: %v", len(got), err)
			return got
		}
		got = append(got, p...)
		read.Store(int64(len(got)))
		if len(p) > 0 {
			continue
		}
		select {
		case <-changed:
		case <-time.After(30 * time.Second):
			t.Errorf("no change was announced after %d bytes", len(got))
			return got
		}
	}
	return got
}

func TestAllStreamsAreWrittenAtTheSameTime(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, openLogs(t, dir, 64<<20), testCmd)
	data := patterned(0, 1<<20)
	var writers sync.WaitGroup
	for _, s := range streams[:3] {
		writers.Go(func() {
			for c := range chunks(data, 1009) {
				_, _ = l.Writer(s).Write(c)
			}
		})
	}
	writers.Wait()
	for _, l := range []core.OutputLog{l, openLog(t, openLogs(t, dir, 64<<20), testCmd)} {
		for _, s := range streams[:3] {
			if got, err := l.Read(s, 0, 1<<20); err != nil || !bytes.Equal(got, data) {
				t.Errorf("%s: %d bytes, %v", s, len(got), err)
			}
		}
		wantSize(t, l, core.StreamAll, 3<<20, 0)
	}
}

func TestRemovedLogsLoseTheirBytesAndMakeNoFile(t *testing.T) {
	dir := t.TempDir()
	ls := openLogs(t, dir, MinBytes)
	l := openLog(t, ls, testCmd)
	write(t, l, core.StreamStdout, []byte("secret"))
	changed := l.Changed()
	if err := ls.RemoveEnvironment(testEnv); err != nil {
		t.Fatal(err)
	}
	<-changed
	write(t, l, core.StreamStdout, []byte("late"))
	wantSize(t, l, core.StreamStdout, 10, 10)
	var expired *core.ExpiredError
	if _, err := l.Read(core.StreamAll, 0, 100); !errors.As(err, &expired) || expired.NextOffset != 10 {
		t.Errorf("reading what was removed: %v", err)
	}
	wantSize(t, openLog(t, ls, testCmd), core.StreamAll, 0, 0)
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("there is %v, %v; want nothing", entries, err)
	}
}

// B13: logs that have ended cost neither descriptors nor memory.
func TestB13EndedLogsAreForgotten(t *testing.T) {
	ls := openLogs(t, t.TempDir(), MinBytes)
	before := openFiles(t)
	for i := range 1000 {
		l, err := ls.Create(testEnv, fmt.Sprintf("cmd_%d", i))
		if err != nil {
			t.Fatal(err)
		}
		write(t, l, core.StreamStdout, []byte("x"))
		l.Release()
	}
	if len(ls.logs) > maxIdle || len(ls.idle) > maxIdle {
		t.Errorf("%d logs are known, %d idle; want %d at most", len(ls.logs), len(ls.idle), maxIdle)
	}
	waitFor(t, func() bool { return openFiles(t) <= before })
	for _, i := range []int{0, 999} {
		wantRead(t, openLog(t, ls, fmt.Sprintf("cmd_%d", i)), core.StreamAll, 0, 10, "x")
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func TestWrittenSegmentsAreSynced(t *testing.T) {
	for _, logs := range []int{1, maxFileSyncs + 1} { // one by one, and all at once
		ls := openLogs(t, t.TempDir(), MinBytes)
		for i := range logs {
			write(t, openLog(t, ls, fmt.Sprintf("cmd_%d", i)), core.StreamStdout, make([]byte, 10_000))
		}
		l := openLog(t, ls, "cmd_0").(*Log)
		waitFor(t, func() bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			last := l.segments[len(l.segments)-1]
			return last.named && !last.dirty
		})
	}
}

// waitFor waits for a condition, ten seconds at most.
func waitFor(t testing.TB, met func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !met(); {
		if time.Now().After(deadline) {
			t.Fatal("what must come to hold did not within ten seconds")
		}
		time.Sleep(100 * time.Microsecond)
	}
}

// patterned gives n bytes that differ from place to place.
func patterned(from, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		at := from + i
		b[i] = byte(at ^ at>>8 ^ at>>16)
	}
	return b
}

// chunks cuts b into pieces of size bytes.
func chunks(b []byte, size int) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(b) > 0 {
			n := min(size, len(b))
			if !yield(b[:n]) {
				return
			}
			b = b[n:]
		}
	}
}
