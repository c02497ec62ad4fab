package outputlog

import (
	"fmt"
	"testing"

	"envapi/core"
)

// What the write path costs for a loud command and for one that prints lines.
func BenchmarkWrite(b *testing.B) {
	for _, size := range []int{64 << 10, 4 << 10, 10} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			w := openLog(b, openLogs(b, b.TempDir(), 64<<20), testCmd).Writer(core.StreamStdout)
			p := make([]byte, size)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				_, _ = w.Write(p)
			}
		})
	}
}

// What a command costs that prints one line.
func BenchmarkSmallCommand(b *testing.B) {
	ls := openLogs(b, b.TempDir(), 64<<20)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		l, err := ls.Create(testEnv, fmt.Sprintf("cmd_%d", i))
		if err != nil {
			b.Fatal(err)
		}
		_, _ = l.Writer(core.StreamStdout).Write([]byte("hello\n"))
		if p, err := l.Read(core.StreamStdout, 0, 1<<14); err != nil || len(p) != 6 {
			b.Fatal(p, err)
		}
		l.Release()
	}
}

// What a page costs at a random place of a full log of one-line writes.
func BenchmarkRandomRead(b *testing.B) {
	l := openLog(b, openLogs(b, b.TempDir(), 64<<20), testCmd)
	for range 1 << 20 {
		_, _ = l.Writer(core.StreamStdout).Write([]byte("0123456789"))
	}
	total, _ := l.Size(core.StreamStdout)
	b.ReportAllocs()
	for i := int64(0); b.Loop(); i++ {
		if _, err := l.Read(core.StreamStdout, i*7919%total, 1<<14); err != nil {
			b.Fatal(err)
		}
	}
}
