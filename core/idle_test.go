package core_test

import (
	"testing"
	"time"

	"envapi/core"
)

// atPrompt opens a shell of a kind for people, whose bash waits at its prompt until
// stop.
func (w *world) atPrompt(env string, n int) (sh core.Shell, stop func()) {
	sh = w.shellIn(env, asTerminal)
	done, fake := make(chan struct{}), w.fakeShell(n)
	go func() {
		defer close(done)
		fake.terminal.line(fake.done)
	}()
	return sh, func() {
		w.closeShell(sh.ID, false)
		<-done
	}
}

func TestIdleShellsRest(t *testing.T) {
	w := newWorld(t)
	env := w.create().ID
	sh := w.shellIn(env)
	_, stop := w.atPrompt(env, 1)
	eventually(t, "at rest", func() bool { return w.Resting() == 1 })
	c := w.inShell(sh.ID, "wait", atOnce)
	if w.Watched() != 1 || w.Resting() != 0 {
		t.Fatal("an environment rests while a command runs in a shell")
	}
	w.signal(c.ID, "TERM")
	eventually(t, "at rest", func() bool { return w.Resting() == 1 })
	stop()
	w.closeShell(sh.ID, false)
}

// A program can seem to wait at a prompt, and then fill the disk.
func TestWhoSeemsToWaitDoesNotFillTheDisk(t *testing.T) {
	w := newWorld(t)
	env := w.create().ID
	sh, stop := w.atPrompt(env, 0)
	eventually(t, "at rest", func() bool { return w.Resting() == 1 })
	w.folders.grow(env, core.DiskUse{Bytes: 100<<20 + 1})
	w.folders.mu.Lock()
	w.folders.space.Free.Bytes = 0
	w.folders.mu.Unlock()
	eventually(t, "stopped", func() bool { return w.shell(sh.ID).State == core.ShellClosed })
	w.wantClosed(sh.ID, "disk_bytes")
	stop()
}

func TestWhenWhatRestsIsCounted(t *testing.T) {
	for _, test := range []struct {
		ago  time.Duration
		low  bool
		want bool
	}{
		{time.Second, false, false},
		{time.Second, true, false},
		{3 * time.Second, false, false}, // others write
		{3 * time.Second, true, true},
		{11 * time.Second, false, true},
		{6 * time.Minute, false, true},
	} {
		if got := core.DueAtRest(test.ago, test.low); got != test.want {
			t.Errorf("%v after it came to rest, low %v: %v", test.ago, test.low, got)
		}
	}
}
