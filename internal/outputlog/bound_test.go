package outputlog

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"envapi/core"
)

// A28: totals are exact, disk and memory bounded, both halves kept.
func TestA28ABoundedLogKeepsBothHalves(t *testing.T) {
	const bound, total, size = 1 << 20, 10 << 20, 4096
	for _, chunk := range []int{size, 1000, 200_000} {
		t.Run(fmt.Sprint(chunk), func(t *testing.T) {
			dir := t.TempDir()
			l := openLog(t, openLogs(t, dir, bound), testCmd)
			data := patterned(0, total)
			for c := range chunks(data, chunk) {
				write(t, l, core.StreamStdout, c)
			}
			wantBothHalves(t, l, data, bound)
			if used, files := diskUse(t, dir); used > bound+bound/segmentsPerLog || files > segmentsPerLog+1 {
				t.Errorf("%d bytes in %d files are on disk, the bound is %d", used, files, bound)
			}
			wantBothHalves(t, openLog(t, openLogs(t, dir, bound), testCmd), data, bound)
		})
	}
}

// wantBothHalves wants the halves of bound that are payload, but for the frame
// headers, and an ExpiredError between them that leads to what follows.
func wantBothHalves(t *testing.T, l core.OutputLog, data []byte, bound int64) {
	t.Helper()
	total := int64(len(data))
	half := bound / 2 * 98 / 100 // a frame of 1000 bytes has a header of 8
	head, err := l.Read(core.StreamAll, 0, total)
	if err != nil || int64(len(head)) < half || !bytes.Equal(head, data[:len(head)]) {
		t.Fatalf("of the first half %d bytes are kept, %v", len(head), err)
	}
	var expired *core.ExpiredError
	if _, err := l.Read(core.StreamAll, int64(len(head)), 1); !errors.As(err, &expired) {
		t.Fatalf("reading behind the first half: %v", err)
	}
	tail, err := l.Read(core.StreamAll, expired.NextOffset, total)
	if err != nil || int64(len(tail)) < half || !bytes.Equal(tail, data[expired.NextOffset:]) {
		t.Fatalf("of the last half %d bytes are kept, %v", len(tail), err)
	}
	wantSize(t, l, core.StreamAll, total, total-int64(len(head)+len(tail)))
}

func TestA28AMillionOneByteWritesAreBounded(t *testing.T) {
	const bound = 1 << 20
	dir := t.TempDir()
	l := openLog(t, openLogs(t, dir, bound), testCmd)
	w, x := l.Writer(core.StreamStderr), []byte("x")
	for range 1_000_000 {
		_, _ = w.Write(x)
	}
	if used, _ := diskUse(t, dir); used > bound+bound/segmentsPerLog {
		t.Errorf("%d bytes are on disk, the bound is %d", used, bound)
	}
	total, dropped := l.Size(core.StreamStderr)
	if kept := total - dropped; total != 1_000_000 || kept < bound/10 {
		t.Errorf("the total is %d, %d are kept", total, kept)
	}
}

// A stream of which no byte was dropped has no gap, whatever the other lost.
func TestAQuietStreamLosesNothingToALoudOne(t *testing.T) {
	l := openLog(t, openLogs(t, t.TempDir(), MinBytes), testCmd)
	write(t, l, core.StreamStderr, []byte("begin "))
	write(t, l, core.StreamStdout, make([]byte, 1<<20))
	write(t, l, core.StreamStderr, []byte("end"))
	wantSize(t, l, core.StreamStderr, 9, 0)
	wantRead(t, l, core.StreamStderr, 0, 100, "begin end")
	wantRead(t, l, core.StreamStderr, 5, 2, " e")
}
