package prompt_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"envapi/internal/require"
	"envapi/sandbox/proctree"
	"envapi/sandbox/prompt"
)

// patience bounds every wait; it is reached only by a failure.
const patience = 30 * time.Second

// desk is a program at a terminal of its own.
type desk struct {
	*prompt.Terminal
	t      testing.TB
	master *os.File
	cmd    *exec.Cmd

	mu     sync.Mutex
	output bytes.Buffer
}

// seat starts a program as the leader of a session on a new terminal.
func seat(t testing.TB, argv ...string) *desk {
	t.Helper()
	return seatAmong(t, prompt.NewTurns(), argv...)
}

// seatAmong does, and has it looked at with others.
func seatAmong(t testing.TB, turns *prompt.Turns, argv ...string) *desk {
	t.Helper()
	if _, err := exec.LookPath(argv[0]); err != nil {
		require.Feature(t, argv[0], err.Error())
	}
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{t: t, master: master, cmd: exec.Command(argv[0], argv[1:]...)}
	if d.Terminal, err = prompt.New(master, slave, turns); err != nil {
		t.Fatal(err)
	}
	d.cmd.Stdin, d.cmd.Stdout, d.cmd.Stderr = slave, slave, slave
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	d.cmd.Dir = t.TempDir()
	d.cmd.Env = append(os.Environ(), "TERM=xterm", "HISTFILE=/dev/null", "HOME="+d.cmd.Dir)
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(d, master)
	}()
	t.Cleanup(func() {
		_ = proctree.Kill(d.cmd.Process.Pid)
		_ = d.cmd.Process.Kill()
		_ = d.cmd.Wait()
		master.Close()
		<-read
	})
	return d
}

// Write takes what the program writes.
func (d *desk) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.output.Write(p)
}

func (d *desk) shows(s string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Contains(d.output.String(), s)
}

// await waits until the program has written s.
func (d *desk) await(s string) {
	d.t.Helper()
	d.eventually("it writes "+s, func() bool { return d.shows(s) })
}

func (d *desk) eventually(what string, holds func() bool) {
	d.t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.t.Fatalf("it did not come to be: %s; written: %q", what, d.output.String())
		}
	}
}

func (d *desk) reading() bool {
	reading, known := d.Reading(d.t.Context())
	if reading && !known {
		d.t.Error("it reads, and that is not known")
	}
	return reading
}

// waits demands that it comes to wait for input.
func (d *desk) waits() {
	d.t.Helper()
	d.eventually("it is seen to wait", d.reading)
}

// never demands that it does not, however often it is looked at for a while.
func (d *desk) never() {
	d.t.Helper()
	end := time.Now().Add(400 * time.Millisecond)
	for looks := 0; looks < 5 || time.Now().Before(end); looks++ {
		reading, known := d.Reading(d.t.Context())
		if reading || !known {
			d.t.Fatalf("at look %d: reading %v, known %v", looks, reading, known)
		}
	}
}

// send types s.
func (d *desk) send(s string) {
	d.t.Helper()
	if _, err := d.master.WriteString(s); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) signal(sig syscall.Signal) {
	d.t.Helper()
	if err := d.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		d.t.Fatal(err)
	}
}

// state is that of the program's first thread, as in proc(5).
func (d *desk) state() byte {
	content, err := os.ReadFile("/proc/" + itoa(d.cmd.Process.Pid) + "/stat")
	if err != nil {
		return 0
	}
	_, state, _ := prompt.ParseStat(content)
	return state
}

// asRoot says whether /proc refuses nothing.
func asRoot() bool { return unix.Geteuid() == 0 }
