package core_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"envapi/core"
	"envapi/sandbox"
)

// inhabited makes an environment of alice's in which a command runs, and gives the
// box, in which the processes live.
func (w *world) inhabited(lives ...sandbox.ProcessInfo) (env string, box *fakeBox) {
	w.t.Helper()
	env = w.create().ID
	w.run(env, "wait", noWait)
	opened := w.host.opened()
	box = opened[len(opened)-1]
	box.put(lives...)
	return env, box
}

// listed lists all processes of an environment of alice's.
func (w *world) listed(env string) []core.Process {
	w.t.Helper()
	page, err := w.ListProcesses(context.Background(), alice, core.ListProcessesInput{EnvironmentRef: core.EnvironmentRef{EnvironmentID: env}})
	must(w.t, err)
	return page.Items
}

func process(env string, pid int) core.ProcessRef {
	return core.ProcessRef{EnvironmentRef: core.EnvironmentRef{EnvironmentID: env}, PID: pid}
}

func signalOf(ref core.ProcessRef, name string) core.SignalProcessInput {
	return core.SignalProcessInput{ProcessRef: ref, Signal: name}
}

func waitFor(ref core.ProcessRef, ms int64) core.WaitProcessInput {
	return core.WaitProcessInput{ProcessRef: ref, WaitMS: &ms}
}

func TestAProcessIsShownAsItWasSeen(t *testing.T) {
	w := newWorld(t)
	env, _ := w.inhabited(sandbox.ProcessInfo{
		PID: 12, PPID: 3, State: sandbox.ProcessStopped, Command: "python3 -m http.server", CPU: 1234567 * time.Microsecond,
		CPUPercent: 33.3333, MemoryBytes: 4096, Threads: 2, Of: "cmd_x", Listens: []sandbox.Listener{{Protocol: "udp6", Address: "::", Port: 53}},
	}, sandbox.ProcessInfo{PID: 13})
	text, err := json.Marshal(w.listed(env))
	must(t, err)
	const want = `[{"pid":12,"ppid":3,"state":"stopped","command":"python3 -m http.server","cpu_percent":33.3,"cpu_ms":1234,"memory_bytes":4096,"threads":2,` +
		`"started_at":"2026-01-02T03:04:05.678Z","command_id":"cmd_x","listening":[{"protocol":"udp6","address":"::","port":53}]},` +
		`{"pid":13,"ppid":0,"state":"","command":"","cpu_percent":0,"cpu_ms":0,"memory_bytes":0,"threads":0,"started_at":"2026-01-02T03:04:05.678Z","listening":[]}]`
	if string(text) != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
}

func TestTheSandboxIsToldTheIDsOfWhatItStarts(t *testing.T) {
	w := newWorld(t)
	env := w.create().ID
	command := w.run(env, "exit 0")
	sh := w.shellIn(env)
	if got := w.process(0).command.ID; got != command.ID {
		t.Errorf("the command is %q to the sandbox, want %s", got, command.ID)
	}
	if got := w.host.shells[0].spec.ID; got != sh.ID {
		t.Errorf("the shell is %q to the sandbox, want %s", got, sh.ID)
	}
}

func TestAProcessOfAShellHasTheCommandThatStartedIt(t *testing.T) {
	w := newWorld(t)
	env, box := w.inhabited()
	sh := w.shellIn(env)
	box.put(
		sandbox.ProcessInfo{PID: 2, Of: sh.ID},
		sandbox.ProcessInfo{PID: 3, Of: sh.ID, Current: true},
		sandbox.ProcessInfo{PID: 4, Of: "sh_forgotten", Current: true},
		sandbox.ProcessInfo{PID: 5},
	)
	compare := func(when string, of3 string) {
		t.Helper()
		var got []string
		for _, p := range w.listed(env) {
			got = append(got, p.ShellID+" "+p.CommandID)
		}
		if want := []string{sh.ID + " ", sh.ID + " " + of3, "sh_forgotten ", " "}; !slices.Equal(got, want) {
			t.Errorf("%s: shells and commands are %q, want %q", when, got, want)
		}
	}
	compare("before the first command", "")
	first := w.inShell(sh.ID, "wait", func(in *core.RunInShellInput) { in.WaitMS = ptr(int64(0)) })
	compare("while a command runs", first.ID)
	box.onList = func() {
		box.onList = nil
		_, err := w.SignalCommand(context.Background(), alice, core.SignalCommandInput{CommandID: first.ID})
		must(t, err)
		w.await(first.ID)
		w.inShell(sh.ID, "exit 0")
	}
	compare("where the command changed meanwhile", "")
	last := w.inShell(sh.ID, "exit 0")
	compare("after a command", last.ID)
}

func TestProcessesArePaged(t *testing.T) {
	w := newWorld(t)
	env, box := w.inhabited()
	for pid := 10; pid < 15; pid++ {
		box.put(sandbox.ProcessInfo{PID: pid})
	}
	page := func(cursor string) (pids []int, next string) {
		t.Helper()
		got, err := w.ListProcesses(t.Context(), alice, core.ListProcessesInput{
			EnvironmentRef: core.EnvironmentRef{EnvironmentID: env}, Paging: core.Paging{Limit: 2, Cursor: cursor},
		})
		must(t, err)
		for _, p := range got.Items {
			pids = append(pids, p.PID)
		}
		return pids, got.NextCursor
	}
	first, next := page("")
	box.end(11, sandbox.ProcessEnd{}) // the last one of the page, and one before
	box.end(10, sandbox.ProcessEnd{})
	second, next := page(next)
	third, end := page(next)
	if !slices.Equal(first, []int{10, 11}) || !slices.Equal(second, []int{12, 13}) || !slices.Equal(third, []int{14}) || end != "" {
		t.Errorf("the pages are %v, %v, %v and then %q", first, second, third, end)
	}
	for _, bad := range []string{"x", "MTE=", base64.RawURLEncoding.EncodeToString([]byte("+11")), strings.Repeat("M", 500)} {
		_, err := w.ListProcesses(t.Context(), alice, core.ListProcessesInput{
			EnvironmentRef: core.EnvironmentRef{EnvironmentID: env}, Paging: core.Paging{Cursor: bad},
		})
		wantField(t, err, "cursor")
	}
	_, err := w.ListProcesses(t.Context(), alice, core.ListProcessesInput{
		EnvironmentRef: core.EnvironmentRef{EnvironmentID: env}, Paging: core.Paging{Limit: 201},
	})
	wantField(t, err, "limit")
}

func TestAnEnvironmentInWhichNothingRunsHasNoProcesses(t *testing.T) {
	w := newWorld(t)
	env := w.create().ID
	if got := w.listed(env); got == nil || len(got) != 0 {
		t.Errorf("it lists %v", got)
	}
	_, err := w.SignalProcess(t.Context(), alice, signalOf(process(env, 1), ""))
	wantCode(t, err, core.CodeNotFound)
	_, err = w.WaitProcess(t.Context(), alice, waitFor(process(env, 1), 0))
	wantCode(t, err, core.CodeNotFound)
	if n := len(w.host.opened()); n != 0 {
		t.Errorf("%d boxes were opened for that", n)
	}
}

func TestWhatABoxDoesNotSayOfItsProcesses(t *testing.T) {
	w := newWorld(t)
	env, box := w.inhabited(sandbox.ProcessInfo{PID: 7})
	box.fail = errors.New("its init does not answer")
	_, err := w.ListProcesses(t.Context(), alice, core.ListProcessesInput{EnvironmentRef: core.EnvironmentRef{EnvironmentID: env}})
	wantCode(t, err, core.CodeUnavailable)
	_, err = w.SignalProcess(t.Context(), alice, signalOf(process(env, 7), ""))
	wantCode(t, err, core.CodeUnavailable)
	_, err = w.WaitProcess(t.Context(), alice, waitFor(process(env, 7), 1000))
	wantCode(t, err, core.CodeUnavailable)

	box.fail = sandbox.ErrTooManyWaits
	_, err = w.WaitProcess(t.Context(), alice, waitFor(process(env, 7), 1000))
	if e := wantCode(t, err, core.CodeRateLimited); e.Facts["retry_after_ms"] == nil {
		t.Error("it is not said when to try again")
	}

	box.fail = sandbox.ErrBoxClosed
	_, err = w.SignalProcess(t.Context(), alice, signalOf(process(env, 7), ""))
	wantCode(t, err, core.CodeNotFound)
	box.onList = func() { must(t, box.Close()) } // it goes while it is asked
	if got := w.listed(env); len(got) != 0 {
		t.Errorf("a box that is gone has %v", got)
	}
}

func TestProcessesOfAnotherAreAsIfTheyNeverWere(t *testing.T) {
	w := newWorld(t)
	env, _ := w.inhabited(sandbox.ProcessInfo{PID: 7})
	ask := func(id string) (answers []string) {
		_, listing := w.ListProcesses(t.Context(), bob, core.ListProcessesInput{EnvironmentRef: core.EnvironmentRef{EnvironmentID: id}})
		_, signaling := w.SignalProcess(t.Context(), bob, signalOf(process(id, 7), "KILL"))
		_, waiting := w.WaitProcess(t.Context(), bob, waitFor(process(id, 7), 0))
		for _, err := range []error{listing, signaling, waiting} {
			answers = append(answers, strings.ReplaceAll(wantCode(t, err, core.CodeNotFound).Detail, id, "ID"))
		}
		return answers
	}
	if theirs, never := ask(env), ask("env_never"); !slices.Equal(theirs, never) {
		t.Errorf("of another's: %q, of what never was: %q", theirs, never)
	}
	if len(w.listed(env)) != 1 {
		t.Error("the process was reached")
	}
}

func TestSignalsOfProcesses(t *testing.T) {
	for name, test := range map[string]struct {
		signal string
		tree   bool
		want   core.SignaledProcess
	}{
		"TERM where nothing is said": {"", false, core.SignaledProcess{PID: 7, Signal: "TERM", Reached: 1, Ended: true}},
		"KILL":                       {"SIGKILL", false, core.SignaledProcess{PID: 7, Signal: "KILL", Reached: 1, Ended: true}},
		"a tree":                     {"term", true, core.SignaledProcess{PID: 7, Signal: "TERM", Reached: 2, Ended: true}},
		"one that it survives":       {"HUP", false, core.SignaledProcess{PID: 7, Signal: "HUP", Reached: 1}},
		"one that ends nobody":       {"STOP", false, core.SignaledProcess{PID: 7, Signal: "STOP", Reached: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			env, box := w.inhabited(sandbox.ProcessInfo{PID: 7}, sandbox.ProcessInfo{PID: 9})
			in := signalOf(process(env, 7), test.signal)
			in.Tree = test.tree
			got, err := w.SignalProcess(t.Context(), alice, in)
			must(t, err)
			if got != test.want || !slices.Equal(box.signals, []string{test.want.Signal}) {
				t.Errorf("got %+v and %v were sent, want %+v", got, box.signals, test.want)
			}
		})
	}
}

func TestRefusedSignalsOfProcesses(t *testing.T) {
	w := newWorld(t)
	env, box := w.inhabited(sandbox.ProcessInfo{PID: 7})
	_, err := w.SignalProcess(t.Context(), alice, signalOf(process(env, 7), "SEGV"))
	wantField(t, err, "signal")
	for _, pid := range []int{-7, -1, 0, 1, 8, 1 << 40} {
		_, err = w.SignalProcess(t.Context(), alice, signalOf(process(env, pid), ""))
		wantCode(t, err, core.CodeNotFound)
	}
	if len(box.signals) != 0 {
		t.Errorf("%v were sent", box.signals)
	}
}

// Who takes started_at from a list means that process, whatever is left out of the
// moment on its way through JSON.
func TestTheStartThatIsShownNamesTheProcess(t *testing.T) {
	w := newWorld(t)
	env, box := w.inhabited()
	for tick := range 120 {
		pid, start := 1000+tick, startedAt.Add(time.Duration(tick)*10*time.Millisecond)
		box.lives, box.signals = nil, nil
		box.put(sandbox.ProcessInfo{PID: pid, StartedAt: start})
		text, err := json.Marshal(w.listed(env)[0])
		must(t, err)
		ref := process(env, 0)
		must(t, json.Unmarshal(text, &ref))
		_, err = w.SignalProcess(t.Context(), alice, signalOf(ref, "STOP"))
		must(t, err)
		_, err = w.WaitProcess(t.Context(), alice, waitFor(ref, 0))
		must(t, err)
		for _, off := range []time.Duration{-10 * time.Millisecond, 10 * time.Millisecond, time.Hour} {
			other := process(env, pid)
			other.StartedAt = ptr(core.At(start.Add(off)))
			_, err = w.SignalProcess(t.Context(), alice, signalOf(other, "KILL"))
			e := wantCode(t, err, core.CodeProcessReplaced)
			if meant, _ := json.Marshal(other.StartedAt); !strings.Contains(e.Detail, strings.Trim(string(meant), `"`)) {
				t.Errorf("does not say which one was meant: %s", e.Detail)
			}
			_, err = w.WaitProcess(t.Context(), alice, waitFor(other, 0))
			wantCode(t, err, core.CodeProcessReplaced)
		}
		if !slices.Equal(box.signals, []string{"STOP"}) {
			t.Fatalf("%v were sent", box.signals)
		}
	}
}

func TestASignalIsSentAlsoWhereTheCallerGoesAway(t *testing.T) {
	w := newWorld(t)
	env, box := w.inhabited(sandbox.ProcessInfo{PID: 7})
	ctx, cancel := context.WithCancel(t.Context())
	box.onSignal = cancel
	if _, err := w.SignalProcess(ctx, alice, signalOf(process(env, 7), "HUP")); err != nil {
		t.Errorf("a signal that was on its way was taken back: %v", err)
	}
}

func TestHowAProcessEnded(t *testing.T) {
	for name, test := range map[string]struct {
		end  sandbox.ProcessEnd
		want string
	}{
		"with a code":         {sandbox.ProcessEnd{Known: true, ExitCode: 3}, `"ended":true,"exit_code":3`},
		"with 0":              {sandbox.ProcessEnd{Known: true}, `"ended":true,"exit_code":0`},
		"by a signal":         {sandbox.ProcessEnd{Known: true, Signal: "SEGV"}, `"ended":true,"signal":"SEGV"`},
		"so that nobody says": {sandbox.ProcessEnd{}, `"ended":true`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			env, box := w.inhabited(sandbox.ProcessInfo{PID: 7})
			go func() {
				eventually(w.t, "somebody waits", func() bool { return box.waiting() == 1 })
				box.end(7, test.end)
			}()
			got, err := w.WaitProcess(t.Context(), alice, waitFor(process(env, 7), 30_000))
			must(t, err)
			got.WaitedMS = 0
			text, err := json.Marshal(got)
			must(t, err)
			if want := "{" + test.want + `,"waited_ms":0}`; string(text) != want {
				t.Errorf("got %s, want %s", text, want)
			}
		})
	}
}

func TestWaitsForProcessesThatLiveOn(t *testing.T) {
	w := newWorld(t)
	env, box := w.inhabited(sandbox.ProcessInfo{PID: 7})
	got, err := w.WaitProcess(t.Context(), alice, waitFor(process(env, 7), 0))
	if err != nil || got.Ended {
		t.Errorf("a look gives %+v, %v", got, err)
	}
	got, err = w.WaitProcess(t.Context(), alice, waitFor(process(env, 7), 30))
	if err != nil || got.Ended || got.WaitedMS < 30 {
		t.Errorf("a wait gives %+v, %v", got, err)
	}
	_, err = w.WaitProcess(t.Context(), alice, waitFor(process(env, 7), -1))
	wantField(t, err, "wait_ms")
	_, err = w.WaitProcess(t.Context(), alice, waitFor(process(env, 8), 10))
	wantCode(t, err, core.CodeNotFound)

	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		eventually(w.t, "somebody waits", func() bool { return box.waiting() == 1 })
		cancel()
	}()
	if _, err = w.WaitProcess(ctx, alice, waitFor(process(env, 7), 45_000)); !errors.Is(err, context.Canceled) {
		t.Errorf("who went away is answered %v", err)
	}
}

func TestAWaitEndsWithTheBoxAndWithTheService(t *testing.T) {
	for name, end := range map[string]struct {
		does  func(*world, *fakeBox) error
		ended bool
	}{
		"the box":     {func(_ *world, box *fakeBox) error { return box.Close() }, true},
		"the service": {func(w *world, _ *fakeBox) error { return w.Close() }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			gate := make(chan struct{})
			env, box := w.inhabited(sandbox.ProcessInfo{PID: 7})
			w.host.mu.Lock()
			w.host.closing = func() {
				if !end.ended {
					<-gate // the wait is to end before its box does
				}
			}
			w.host.mu.Unlock()
			done := make(chan error, 1)
			go func() {
				eventually(w.t, "somebody waits", func() bool { return box.waiting() == 1 })
				done <- end.does(w, box)
			}()
			got, err := w.WaitProcess(t.Context(), alice, waitFor(process(env, 7), 45_000))
			close(gate)
			must(t, err)
			must(t, <-done)
			if got.WaitedMS >= 45_000 || got.Ended != end.ended || got.ExitCode != nil || got.Signal != "" {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestWhatIsUseOfProcesses(t *testing.T) {
	a := newAged(t)
	env, box := a.inhabited(sandbox.ProcessInfo{PID: 7})
	last := a.clock.time()
	compare := func(what string) {
		t.Helper()
		if got := a.environment(env).LastActivityAt; !got.Equal(last) {
			t.Errorf("%s: the last activity was %v, want %v", what, got, last)
		}
	}
	a.clock.pass(time.Minute)
	a.listed(env)
	compare("a list")
	_, err := a.SignalProcess(t.Context(), alice, signalOf(process(env, 8), "HUP"))
	wantCode(t, err, core.CodeNotFound)
	_, err = a.SignalProcess(t.Context(), bob, signalOf(process(env, 7), "HUP"))
	wantCode(t, err, core.CodeNotFound)
	_, err = a.WaitProcess(t.Context(), bob, waitFor(process(env, 7), 0))
	wantCode(t, err, core.CodeNotFound)
	compare("what was refused")

	last = a.clock.time()
	_, err = a.SignalProcess(t.Context(), alice, signalOf(process(env, 7), "HUP"))
	must(t, err)
	a.clock.pass(time.Minute)
	compare("a signal")

	waited := make(chan error, 1)
	go func() {
		_, err := a.WaitProcess(context.Background(), alice, waitFor(process(env, 7), 45_000))
		waited <- err
	}()
	eventually(t, "somebody waits", func() bool { return box.waiting() == 1 })
	a.clock.pass(time.Minute)
	last = a.clock.time()
	compare("a wait that goes on")
	box.end(7, sandbox.ProcessEnd{})
	must(t, <-waited)
	a.clock.pass(time.Minute)
	compare("a wait that has ended")
}
