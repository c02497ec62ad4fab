package core_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"envapi/core"
)

// drain drains a service on a goroutine of its own, and gives what is closed when that
// is over. It returns when nothing new begins any more.
func (w *world) drain(grace time.Duration) (over <-chan struct{}) {
	w.t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Drain(grace)
	}()
	eventually(w.t, "it drains", func() bool { _, draining := w.Draining(); return draining })
	return done
}

// untilOver waits for the end of a drain.
func untilOver(t reporter, over <-chan struct{}) {
	t.Helper()
	eventually(t, "the drain is over", func() bool { return isClosed(over) })
}

// waitsFor waits until so much is what a service waits for.
func (w *world) waitsFor(commands, calls int) {
	w.t.Helper()
	eventually(w.t, "that is what it waits for", func() bool {
		left, _ := w.Draining()
		return left.Commands == commands && left.Calls == calls
	})
}

// waiting runs a command and waits for its end on a goroutine of its own.
func (w *world) waiting(env, script string) (answer <-chan core.Command) {
	answered := make(chan core.Command, 1)
	go func() {
		c, err := w.Exec(context.Background(), alice, execInput(env, script, func(in *core.ExecInput) { in.WaitMS = ptr(int64(45_000)) }))
		if err != nil {
			c.Next = err.Error()
		}
		answered <- c
	}()
	return answered
}

func TestWhatEndsWithinTheGraceHasItsOwnResult(t *testing.T) {
	w := newWorld(t)
	answer := w.waiting(w.create().ID, "wait")
	p := w.process(0)
	w.waitsFor(1, 0)
	over := w.drain(time.Hour)
	if left, _ := w.Draining(); left.Commands != 1 || left.Calls != 0 || time.Until(left.Until) < 50*time.Minute {
		t.Errorf("it waits for %+v", left)
	}
	if w.Drained() {
		t.Fatal("it did not wait")
	}
	p.print("all of it")
	p.exit(3)
	untilOver(t, over)
	c := <-answer
	if outcomeOf(c) != "exited 3" || c.Stdout.Text != "all of it" {
		t.Errorf("who waited got %+v", c)
	}
	w.restart()
	if c = w.await(c.ID); outcomeOf(c) != "exited 3" || c.Stdout.Text != "all of it" {
		t.Errorf("after the restart it is %+v", c)
	}
}

func TestWhatNobodyWaitsForHoldsUpNoDrain(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	sh := w.shellIn(env.ID)
	c := w.run(env.ID, "wait", noWait)
	p := w.process(1) // the shell is one
	p.background.Store(true)
	p.exit(0)
	w.await(c.ID)
	untilOver(t, w.drain(time.Hour)) // a child of the command lives, and a shell
	if got := w.shell(sh.ID); got.State != core.ShellOpen {
		t.Errorf("the shell is %+v", got)
	}
	must(t, w.Close())
}

func TestWhileItDrainsNothingNewBegins(t *testing.T) {
	w, env, _ := newFiles(t)
	w.write(env, "x", "1")
	other, err := w.CreateEnvironment(t.Context(), bob, core.CreateEnvironmentInput{})
	must(t, err)
	idle := w.shellIn(env)
	c := w.run(env, "wait", noWait)
	over := w.drain(time.Hour)
	ref, ctx := refTo(env), t.Context()
	for what, call := range map[string]func() error{
		"exec": func() error { _, err := w.Exec(ctx, alice, execInput(env, "exit 0")); return err },
		"open": func() error { _, err := w.OpenShell(ctx, alice, core.OpenShellInput{EnvironmentID: env}); return err },
		"run": func() error {
			_, err := w.RunInShell(ctx, alice, core.RunInShellInput{ShellRef: core.ShellRef{ShellID: idle.ID}, Command: "exit 0"})
			return err
		},
		"create":  func() error { _, err := w.CreateEnvironment(ctx, alice, core.CreateEnvironmentInput{}); return err },
		"reset":   func() error { _, err := w.ResetEnvironment(ctx, alice, ref); return err },
		"archive": func() error { _, err := w.ArchiveEnvironment(ctx, alice, ref); return err },
		"restore": func() error { _, err := w.RestoreEnvironment(ctx, alice, ref); return err },
		"delete":  func() error { _, err := w.DeleteEnvironment(ctx, alice, ref); return err },
		"fork": func() error {
			_, err := w.ForkEnvironment(ctx, alice, core.ForkEnvironmentInput{EnvironmentRef: ref})
			return err
		},
		"update": func() error {
			_, err := w.UpdateEnvironment(ctx, alice, core.UpdateEnvironmentInput{EnvironmentRef: ref, Name: ptr("n")})
			return err
		},
		"write": func() error {
			_, err := w.WriteFile(ctx, alice, core.WriteFileInput{FileRef: at(env, "x"), Content: "2"})
			return err
		},
		"upload": func() error { return w.upload(env, "y", 1) },
		"delete a file": func() error {
			_, err := w.DeleteFile(ctx, alice, core.DeleteFileInput{FileRef: at(env, "x")})
			return err
		},
	} {
		if e := wantCode(t, call(), core.CodeUnavailable); e.Facts["retry_after_ms"] == nil || !strings.Contains(e.Detail, "stopping") {
			t.Errorf("%s: %v", what, e)
		}
	}
	_, err = w.Exec(ctx, alice, execInput(other.ID, "exit 0"))
	wantCode(t, err, core.CodeNotFound)
	if text := w.text(env, "x"); text.Text != "1" {
		t.Errorf("it holds %q", text.Text)
	}
	if n := len(w.host.processes()); n != 2 || w.Drained() {
		t.Errorf("%d processes were started", n)
	}
	w.signal(c.ID, "KILL")
	untilOver(t, over)
}

func TestWhileItDrainsWhatBelongsToWhatRunsGoesOn(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	asks := w.run(env.ID, "read", noWait, func(in *core.ExecInput) { in.StdinOpen, in.IdempotencyKey = true, "k" })
	sh := w.shellIn(env.ID)
	inside := w.inShell(sh.ID, "read", func(in *core.RunInShellInput) { in.WaitMS = ptr(int64(0)) })
	killed := w.run(env.ID, "wait", noWait)
	other := w.shellIn(env.ID)
	over := w.drain(time.Hour)
	w.writeInput(asks.ID, "one\n")
	if c := w.await(asks.ID); outcomeOf(c) != "exited 0" || c.Stdout.Text != "one" {
		t.Errorf("got %+v", c)
	}
	if page := w.read(asks.ID); page.Data != "one" || !page.EOF {
		t.Errorf("got %+v", page)
	}
	w.writeShell(sh.ID, "two\n")
	if c := w.await(inside.ID); outcomeOf(c) != "exited 0" || c.Stdout.Text != "two" {
		t.Errorf("got %+v", c)
	}
	if again, err := w.Exec(t.Context(), alice, execInput(env.ID, "read", func(in *core.ExecInput) { in.StdinOpen, in.IdempotencyKey = true, "k" })); err != nil || again.ID != asks.ID {
		t.Errorf("a retry got %+v, %v", again, err)
	}
	attached, err := w.Attach(t.Context(), alice, core.AttachInput{ShellRef: core.ShellRef{ShellID: sh.ID}})
	must(t, err)
	attached.Close()
	w.closeShell(other.ID, false)
	w.wantClosed(other.ID, core.CloseByCaller)
	if w.Drained() {
		t.Fatal("it did not wait for the last one")
	}
	if c := w.signal(killed.ID, "KILL"); outcomeOf(c) != "killed signal" {
		t.Errorf("got %+v", c)
	}
	untilOver(t, over)
}

func TestWhatWaitsInLineIsNotBegun(t *testing.T) {
	w := newWorld(t)
	sh := w.shellIn(w.create().ID)
	first := w.inShell(sh.ID, "wait", func(in *core.RunInShellInput) { in.WaitMS = ptr(int64(0)) })
	answer := make(chan core.Command, 1)
	go func() {
		c, _ := w.RunInShell(context.Background(), alice, core.RunInShellInput{ShellRef: core.ShellRef{ShellID: sh.ID}, Command: "print never", Queue: true, WaitMS: ptr(int64(45_000))})
		answer <- c
	}()
	eventually(t, "it is in line", func() bool { return len(w.list()) == 2 })
	over := w.drain(time.Hour)
	c := <-answer // at once: the first one still runs
	if outcomeOf(c) != "lost service_stopped" || !strings.Contains(c.Next, "never begun") {
		t.Errorf("it is %+v", c)
	}
	if w.Drained() {
		t.Error("the first one was not waited for")
	}
	w.process(1).exit(0)
	untilOver(t, over)
	if c := w.await(first.ID); outcomeOf(c) != "exited 0" {
		t.Errorf("the first is %+v", c)
	}
	if ran := w.fakeShell(0).ran; !slices.Equal(ran, []string{"wait"}) {
		t.Errorf("the shell ran %v", ran)
	}
	w.restart()
	if c = w.await(c.ID); outcomeOf(c) != "lost service_stopped" || !strings.Contains(c.Next, "never begun") {
		t.Errorf("after the restart it is %+v", c)
	}
}

// What still runs at the end of the grace is asked to end, and lost however it does: only
// its caller's own signals say something of it.
func TestAtTheEndOfTheGraceWhatRunsIsAskedThenEnded(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	answers := map[string]<-chan core.Command{}
	scripts := []string{"wait", "tidy", "heedless"}
	for i, script := range scripts {
		answers[script] = w.waiting(env.ID, script)
		w.process(i)
	}
	killed := w.run(env.ID, "wait", noWait)
	w.signal(killed.ID, "KILL")
	w.waitsFor(3, 0)
	untilOver(t, w.drain(40*time.Millisecond))
	for i := range scripts {
		if !w.process(i).signaled("TERM") {
			t.Errorf("%s was not asked", scripts[i])
		}
	}
	if w.process(3).signaled("TERM") {
		t.Error("one that had ended was asked")
	}
	w.waitsFor(1, 0) // the one that heeds nothing
	must(t, w.Close())
	for script, answer := range answers {
		if c := <-answer; outcomeOf(c) != "lost service_stopped" || !strings.Contains(c.Next, "SIGTERM") {
			t.Errorf("%s is %+v", script, c)
		}
	}
	w.start()
	if c := w.await(killed.ID); outcomeOf(c) != "killed signal" {
		t.Errorf("what its caller killed is %+v", c)
	}
}

// Without a grace nothing is asked: there would be no time to do anything about it.
func TestWithoutAGraceWhatRunsIsEndedAtOnce(t *testing.T) {
	w := newWorld(t)
	answer := w.waiting(w.create().ID, "tidy")
	p := w.process(0)
	w.waitsFor(1, 0)
	w.Drain(0)
	must(t, w.Close())
	if c := <-answer; outcomeOf(c) != "lost service_stopped" || p.signaled("TERM") {
		t.Errorf("who waited got %+v", c)
	}
}

// Who came in time is served, also where his command has not begun yet.
func TestADrainWaitsForWhatIsBeingStarted(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	gate := make(chan struct{})
	w.host.mu.Lock()
	w.host.gate = gate
	w.host.mu.Unlock()
	answer := w.waiting(env.ID, "print came")
	w.waitsFor(0, 1)
	over := w.drain(time.Hour)
	if w.Drained() {
		t.Fatal("it did not wait")
	}
	close(gate)
	untilOver(t, over)
	if c := <-answer; outcomeOf(c) != "exited 0" || c.Stdout.Text != "came" {
		t.Errorf("got %+v", c)
	}
}

// uploadFrom has the file x hold what a sender sends.
func (w *world) uploadFrom(env string, body io.Reader) error {
	_, err := w.UploadFile(context.Background(), alice, core.UploadFileInput{FileRef: at(env, "x")}, body, -1)
	return err
}

func TestADrainWaitsForWhatIsUploaded(t *testing.T) {
	for name, whole := range map[string]bool{"in time": true, "too late": false} {
		t.Run(name, func(t *testing.T) {
			w, env, _ := newFiles(t)
			body, sender := io.Pipe()
			failed := make(chan error, 1)
			go func() { failed <- w.uploadFrom(env, body) }()
			_, err := sender.Write([]byte("half "))
			must(t, err)
			w.waitsFor(0, 1)
			grace := time.Hour
			if !whole {
				grace = 10 * time.Millisecond
			}
			over := w.drain(grace)
			if w.Drained() {
				t.Error("it does not wait")
			}
			if !whole {
				untilOver(t, over)
				must(t, w.Close()) // which waits for no sender
			}
			_, err = sender.Write([]byte("whole"))
			must(t, err)
			must(t, sender.Close())
			if err = <-failed; !whole {
				wantCode(t, err, core.CodeUnavailable)
				return
			}
			must(t, err)
			untilOver(t, over)
			if text := w.text(env, "x"); text.Text != "half whole" {
				t.Errorf("it holds %q", text.Text)
			}
		})
	}
}

func TestCloseEndsADrain(t *testing.T) {
	w, env, _ := newFiles(t)
	answer := w.waiting(env, "wait")
	w.process(0)
	body, sender := io.Pipe()
	refused := make(chan error, 1)
	go func() { refused <- w.uploadFrom(env, body) }()
	w.waitsFor(1, 1)
	over := w.drain(time.Hour)
	w.Drain(time.Hour) // the second one returns at once
	if w.Drained() {
		t.Fatal("it did not wait")
	}
	must(t, w.Close())
	untilOver(t, over) // though the sender still sends
	must(t, sender.Close())
	wantCode(t, <-refused, core.CodeUnavailable)
	if c := <-answer; outcomeOf(c) != "lost service_stopped" {
		t.Errorf("who waited got %+v", c)
	}
}

func TestTheReaperStopsWhenTheServiceDrains(t *testing.T) {
	w := newAged(t)
	w.run(w.create().ID, "wait", noWait)
	w.drain(time.Hour)
	eventually(t, "the reaper has ended", func() bool { return isClosed(w.ReaperEnded()) })
}

// A store that takes no end any more holds up neither the grace nor Close.
func TestADrainEndsThoughTheStoreFails(t *testing.T) {
	store := &flaky{failures: 1 << 20}
	w := newWorld(t, func(w *world) { store.Store = w.config.Store; w.config.Store = store })
	c := w.run(w.create().ID, "wait", noWait)
	w.process(0).exit(0)
	untilOver(t, w.drain(40*time.Millisecond))
	must(t, w.Close())
	atomic.StoreInt32(&store.failures, 0)
	w.start()
	if c = w.await(c.ID); outcomeOf(c) != "lost service_stopped" {
		t.Errorf("it is %+v", c)
	}
}

func TestADrainSaysWhatItWaitsFor(t *testing.T) {
	var log lines
	w := newWorld(t, func(w *world) { w.config.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	w.run(w.create().ID, "heedless", noWait)
	w.Drain(40 * time.Millisecond)
	begin, end, found := strings.Cut(log.text(), "waits no longer")
	if !found || !strings.Contains(begin, "commands=1 calls=0 grace=40ms") || !strings.Contains(end, "commands=1 calls=0 waited=") {
		t.Errorf("it said %s", log.text())
	}
}

// lines is a log that can be read while it is written.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}
