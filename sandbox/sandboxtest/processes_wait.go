package sandboxtest

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"envapi/sandbox"
)

func waited(t *testing.T, f fixture) {
	for _, c := range []struct {
		name, script, command string
		parent                bool // the one that has started it is waited for
		signal                string
		want                  sandbox.ProcessEnd
	}{
		{"killed", "sleep 461 & wait; sleep 462", "sleep 461", false, "KILL", killedByUs},
		{"terminated", "sleep 461 & wait; sleep 462", "sleep 461", false, "TERM", sandbox.ProcessEnd{Known: true, Signal: "TERM"}},
		{"exited", "(sleep 461; exit 5) & wait; sleep 462", "sleep 461", true, "TERM", exited(5)},
		{"an orphan", "(setsid sh -c 'sleep 461; exit 6' &); sleep 462", "sleep 461", true, "TERM", exited(6)},
		{"a leader", "sleep 461; exit 7", "sleep 461", true, "TERM", exited(7)},
		{"a killed leader", "exec sleep 461", "sleep 461", false, "KILL", killedByUs},
	} {
		t.Run(c.name, func(t *testing.T) {
			eventually(t, "it was waited for before it ended", func() bool {
				p, _, _ := f.start(sandbox.Command{Script: c.script})
				defer kill(t, p)
				sleep := f.find(t, c.command)
				r := ref(sleep)
				if c.parent {
					r = sandbox.ProcessRef{PID: sleep.PPID}
				}
				end, err := f.waitWhile(t, r, func() { f.signal(t, ref(sleep), c.signal, false, 1) })
				if err == nil && end != c.want {
					t.Errorf("got %+v, want %+v", end, c.want)
				}
				return err == nil
			})
		})
	}
}

// waitWhile waits for an end while something is done to bring it. Where that came
// first, it fails with sandbox.ErrNoProcess.
func (f fixture) waitWhile(t *testing.T, r sandbox.ProcessRef, do func()) (sandbox.ProcessEnd, error) {
	t.Helper()
	type result struct {
		end sandbox.ProcessEnd
		err error
	}
	results, begun := make(chan result, 1), make(chan struct{})
	go func() {
		close(begun)
		end, err := f.box.WaitProcess(t.Context(), r)
		results <- result{end, err}
	}()
	<-begun
	do()
	select {
	case got := <-results:
		if got.err != nil && !errors.Is(got.err, sandbox.ErrNoProcess) && !errors.Is(got.err, sandbox.ErrBoxClosed) {
			t.Fatalf("cannot wait: %v", got.err)
		}
		return got.end, got.err
	case <-time.After(patience):
		t.Fatal("the end is not told")
		panic("unreachable")
	}
}

func waitedZombie(t *testing.T, f fixture) {
	f.needsPython(t)
	p, _, _ := f.start(sandbox.Command{Argv: []string{"python3", "-c", `
import os, time
if os.fork() == 0: os._exit(9)
time.sleep(471)`}})
	var zombie sandbox.ProcessInfo
	eventually(t, "there is a zombie", func() bool {
		all := f.list(t)
		i := slices.IndexFunc(all, func(p sandbox.ProcessInfo) bool { return p.State == sandbox.ProcessZombie })
		if i >= 0 {
			zombie = all[i]
		}
		return i >= 0
	})
	f.wait(t, ref(zombie), exited(9))
	f.signal(t, ref(zombie), "KILL", false, 0)
	f.signal(t, ref(zombie), "KILL", true, 0)
	kill(t, p)
}

// oneThreadLives is a process of a thread alone that is not its first.
const oneThreadLives = `
import ctypes, os, threading, time
def run():
    print(threading.get_native_id(), flush=True)
    while not os.path.exists("go"): time.sleep(0.01)
    os._exit(11)
threading.Thread(target=run).start()
ctypes.CDLL(None).pthread_exit(None)`

func threadsAreNone(t *testing.T, f fixture) {
	f.needsPython(t)
	eventually(t, "it was waited for before it ended", func() bool {
		f.script("rm -f go")
		p, stdout, _ := f.start(sandbox.Command{Argv: []string{"python3", "-c", oneThreadLives}})
		eventually(t, "it runs", func() bool { return strings.HasSuffix(stdout.String(), "\n") })
		tid, err := strconv.Atoi(strings.TrimSpace(stdout.String()))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.box.SignalProcess(t.Context(), sandbox.ProcessRef{PID: tid}, "KILL", false); !errors.Is(err, sandbox.ErrNoProcess) {
			t.Errorf("a thread: got %v", err)
		}
		end, err := f.waitWhile(t, ref(f.sees(t, 1)[0]), func() { f.script(": >go") })
		if err == nil && end != exited(11) {
			t.Errorf("got %+v", end)
		}
		await(t, p.Done(), "it did not end")
		return err == nil
	})
}

func waitCancelled(t *testing.T, f fixture) {
	p, _, _ := f.start(sandbox.Command{Script: "exec sleep 481"})
	sleep := f.find(t, "sleep 481")
	// More of them than can wait at one time.
	for i := range 200 {
		ctx, cancel := context.WithCancel(t.Context())
		if i%2 == 0 {
			cancel() // one that only looks
		} else {
			time.AfterFunc(time.Millisecond, cancel)
		}
		if _, err := f.box.WaitProcess(ctx, ref(sleep)); !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v", err)
		}
		cancel()
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.box.WaitProcess(ctx, sandbox.ProcessRef{PID: 1 << 21}); !errors.Is(err, sandbox.ErrNoProcess) {
		t.Errorf("a look at nothing: got %v", err)
	}
	kill(t, p)
}

func manyWaits(t *testing.T, f fixture) {
	p, _, _ := f.start(sandbox.Command{Script: "exec sleep 491"})
	sleep := f.find(t, "sleep 491")
	const n = 200
	results := make(chan error, n)
	for range n {
		go func() {
			_, err := f.box.WaitProcess(t.Context(), ref(sleep))
			results <- err
		}()
	}
	for range n - 128 { // the others wait
		select {
		case err := <-results:
			if !errors.Is(err, sandbox.ErrTooManyWaits) {
				t.Errorf("got %v", err)
			}
		case <-time.After(patience / 4): // a run of package mutation, which gets here, has a minute
			t.Fatal("more wait than may")
		}
	}
	kill(t, p)
	for range 128 {
		if err := <-results; err != nil && !errors.Is(err, sandbox.ErrNoProcess) { // it may just have begun
			t.Errorf("got %v", err)
		}
	}
	if _, err := f.box.WaitProcess(t.Context(), ref(sleep)); !errors.Is(err, sandbox.ErrNoProcess) {
		t.Errorf("afterwards: got %v", err)
	}
}

func waitedForBox(t *testing.T, tier Tier) {
	f := tier.box(t)
	f.start(sandbox.Command{Script: "exec sleep 511"})
	sleep := f.find(t, "sleep 511")
	end, err := f.waitWhile(t, ref(sleep), func() {
		f.count()
		if err := f.box.Close(); err != nil {
			t.Fatal(err)
		}
	})
	// It may have been closed before it was known that the process was there.
	if err != nil && !errors.Is(err, sandbox.ErrBoxClosed) || end.ExitCode != 0 || end.Known && end.Signal != "KILL" {
		t.Errorf("got %+v, %v", end, err)
	}
	if _, err := f.box.WaitProcess(t.Context(), ref(sleep)); !errors.Is(err, sandbox.ErrBoxClosed) {
		t.Errorf("wait: got %v", err)
	}
	if _, err := f.box.SignalProcess(t.Context(), ref(sleep), "KILL", true); !errors.Is(err, sandbox.ErrBoxClosed) {
		t.Errorf("signal: got %v", err)
	}
}
