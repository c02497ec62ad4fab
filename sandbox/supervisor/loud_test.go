package supervisor

import (
	"bytes"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// gatedSink takes what a pump carries once its gate is open.
type gatedSink struct {
	gate chan struct{}
	got  bytes.Buffer // to be read when the pump is quiet
}

func (s *gatedSink) Write(p []byte) (int, error) {
	<-s.gate
	return s.got.Write(p)
}

// pipeSize is what a pipe holds.
func pipeSize(t *testing.T, f *os.File) int {
	t.Helper()
	size, err := unix.FcntlInt(f.Fd(), unix.F_GETPIPE_SZ, 0)
	if err != nil {
		t.Fatal(err)
	}
	return size
}

func comesTrue(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// A28: a loud command is carried in large pieces, all of it, and what that takes is
// given back when it is loud no more, or at its end.
func TestA28ALoudPumpHasRoomAndGivesItBack(t *testing.T) {
	for _, calms := range []bool{true, false} {
		to := &gatedSink{gate: make(chan struct{})}
		p, write, err := newPump(to)
		if err != nil {
			t.Fatal(err)
		}
		data := bytes.Repeat([]byte("0123456789abcdef"), 1<<18)
		written := make(chan error, 1)
		go func() {
			_, err := write.Write(data)
			written <- err
		}()
		comesTrue(t, "the pipe is full", func() bool {
			n, err := unix.IoctlGetInt(int(write.Fd()), unix.TIOCINQ)
			return err == nil && n == pipeSize(t, write)
		})
		close(to.gate)
		if err := <-written; err != nil {
			t.Fatal(err)
		}
		if calms {
			comesTrue(t, "the pump is calm", func() bool {
				_, err := write.WriteString(".")
				return err == nil && pipeSize(t, write) == bufferSize && len(loudTurns) == 0
			})
		}
		if err := write.Close(); err != nil {
			t.Fatal(err)
		}
		<-p.quiet
		if len(loudTurns) != 0 || !bytes.Equal(to.got.Bytes()[:len(data)], data) {
			t.Errorf("%d turns are held, and %d bytes came", len(loudTurns), to.got.Len())
		}
	}
}

// More loud pumps than there are turns are carried all the same.
func TestLoudPumpsAreFew(t *testing.T) {
	to := &gatedSink{gate: make(chan struct{})}
	close(to.gate)
	for range maxLoud {
		loudTurns <- struct{}{} // others
	}
	defer func() {
		for range maxLoud {
			<-loudTurns
		}
	}()
	p, write, err := newPump(to)
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, 1<<20)
	if _, err := write.Write(data); err != nil {
		t.Fatal(err)
	}
	if size := pipeSize(t, write); size != bufferSize {
		t.Errorf("the pipe holds %d bytes", size)
	}
	_ = write.Close()
	<-p.quiet
	if to.got.Len() != len(data) {
		t.Errorf("%d bytes came", to.got.Len())
	}
}
