package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// waits are the cases of waiting in a shell.
var waits = []shellCase{
	{name: "B1 a long wait answers at the end", play: play{run("echo x", with(object{"wait_ms": 45000}), prints("x\n"))}},
	{name: "B2 a wait is honoured", play: play{run("sleep 1; echo x", with(object{"wait_ms": 30000}), prints("x\n")), tookFrom(1000, 5000)}},
	{name: "B2 a short wait", play: play{run("sleep 300", with(object{"wait_ms": 300}), runsOn()), saysInNext("get_command"), waited(300, 5000), closes(nil)}},
	{name: "B2 no wait", play: play{run("sleep .5; echo x", with(object{"wait_ms": 0}), statusRunning()), waited(0, 3000), ends(prints("x\n"))}},
	{name: "B5 B6 output waits for its reader", play: play{
		run("for i in $(seq 20); do echo $i; sleep .02; done", with(object{"wait_ms": 0}), statusRunning()), ends(prints(string(numbers(20)))), run("true"),
		found("seq 20", string(numbers(20))),
	}},
	{name: "B8 ticks and a timeout", play: play{
		run("while :; do echo tick; sleep .2; done", with(object{"timeout_ms": 1000}), timesOut(), printing("tick\ntick\n")), run("echo ok", prints("ok\n")),
	}},
	{name: "B15 a kill of what has just ended", play: play{
		run("sleep .2", with(object{"wait_ms": 0}), statusRunning()), killedTwice(), run("echo ok", prints("ok\n")),
	}},
}

func TestCasesOfWaits(t *testing.T) { playEach(t, waits) }

// waited bounds what the latest answer says that its call waited.
func waited(least, most int64) step {
	return func(t *testing.T, s *stage) {
		t.Helper()
		if w := s.last.WaitedMS; w == nil && least > 0 || w != nil && (*w < least || *w > most) {
			t.Errorf("it waited %v ms", w)
		}
	}
}

// found looks a command up in the list of its shell's, and reads it from 0.
func found(script, want string) step {
	return func(t *testing.T, s *stage) {
		t.Helper()
		list := as[struct {
			Items []struct{ ID, Command string }
		}](t, s.must(t, "list_commands", s.in(object{"shell_id": s.id}))).Items
		for _, c := range list {
			if strings.Contains(c.Command, script) {
				if got := s.whole(t, c.ID, "stdout"); string(got) != want {
					t.Errorf("its output is %q", got)
				}
				return
			}
		}
		t.Errorf("it is not in %+v", list)
	}
}

// killedTwice kills the latest command from two sides while it ends.
func killedTwice() step {
	return func(t *testing.T, s *stage) {
		t.Helper()
		var wg sync.WaitGroup
		answers := make([]object, 2)
		for i := range answers {
			wg.Go(func() {
				answers[i], _ = s.call(context.Background(), "signal_command", object{"command_id": s.last.ID, "signal": "KILL"})
			})
		}
		wg.Wait()
		end := s.get(t, s.last.ID, longWait)
		for _, a := range answers {
			if got := as[command](t, a); got.Status != end.Status || got.exit() != end.exit() {
				t.Errorf("a kill answered %s %d, the command says %s %d", got.Status, got.exit(), end.Status, end.exit())
			}
		}
	}
}

func TestB3AShellsCommandOutlivesItsClient(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		st := s.place(t).stage(t, nil)
		ctx, giveUp := context.WithTimeout(context.Background(), 500*time.Millisecond)
		defer giveUp()
		script := "echo one; until [ -e go ]; do sleep .05; done; echo two"
		if _, err := st.call(ctx, "run_in_shell", st.ref(object{"command": script, "wait_ms": longWait})); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("the client did not give up: %v", err)
		}
		elsewhere("touch go")(t, st)
		list := as[struct{ Items []command }](t, st.must(t, "list_commands", st.in(object{"shell_id": st.id}))).Items
		if len(list) != 1 {
			t.Fatalf("the list is %+v", list)
		}
		if c := st.get(t, list[0].ID, longWait); c.exit() != 0 || c.Stdout.Text != "one\ntwo\n" {
			t.Errorf("it came to %+v", c)
		}
	})
}

func TestA52ShellsTakeOneCommandAtATime(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		sh := s.place(t).open(t, nil)
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				want := strings.Repeat(fmt.Sprintf("line of %d\n", i), 50)
				c, err := sh.tryRun(fmt.Sprintf("for i in {1..50}; do echo line of %d; done", i), object{"queue": true})
				if err != nil || c.Status != "exited" || c.Stdout.Text != want {
					t.Errorf("%d: %s %q %v", i, c.Status, c.Stdout.Text, err)
				}
			})
		}
		wg.Wait()
	})
}

func TestB18AFrozenFollowerCostsNothing(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		p := s.place(t)
		c := p.exec(t, object{"command": "until [ -e go ]; do sleep .05; done; seq 1400000", "wait_ms": 0}) // 10 MB
		frozen, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer frozen.Close()
		_ = frozen.(*net.TCPConn).SetReadBuffer(4096)
		fmt.Fprintf(frozen, "GET /v1/commands/%s/output?stream=stdout HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nAccept: text/event-stream\r\n\r\n",
			c.ID, strings.TrimPrefix(s.url, "http://"), s.token)
		first := make([]byte, 12)
		if _, err := io.ReadFull(frozen, first); err != nil || string(first) != "HTTP/1.1 200" {
			t.Fatalf("the other follower was answered %q %v", first, err)
		}
		f := p.mustFollow(t.Context(), t, c.ID, "stream=stdout", "")
		before := resident(t, s.cmd.Process.Pid)
		p.sh(t, "touch go")
		end := f.collect(t, -1)
		if !bytes.Equal(f.text, numbers(1_400_000)) || end.exit() != 0 {
			t.Errorf("%d bytes came, exit %d", len(f.text), end.exit())
		}
		if grown := resident(t, s.cmd.Process.Pid) - before; grown > 64<<20 {
			t.Errorf("the service's memory has grown by %d bytes", grown)
		}
	})
}

func TestB19AFollowerGoesOnWhereItWas(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		p := s.place(t)
		c := p.exec(t, object{"command": "for i in $(seq 2000); do echo $i; [ $((i % 100)) = 0 ] && sleep .02; done", "wait_ms": 0})
		var text []byte
		after := ""
		var end *command
		for round := 0; end == nil; round++ {
			ctx, stop := context.WithCancel(t.Context())
			f := p.mustFollow(ctx, t, c.ID, "stream=stdout", after)
			want := 500
			if round > 5 {
				want = -1
			}
			end = f.collect(t, want)
			text, after = append(text, f.text...), f.last
			stop()
			f.close()
		}
		if !bytes.Equal(text, numbers(2000)) || end.Status != "exited" {
			t.Errorf("%d bytes came of %d, %s", len(text), len(numbers(2000)), end.Status)
		}
	})
}

func TestB19AnExpiredPlaceIsSaidSo(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		p := s.place(t)
		c := p.exec(t, object{"command": "head -c 100M /dev/zero | tr '\\0' x"})
		if c.exit() != 0 {
			t.Fatalf("it came to %+v", c)
		}
		f := p.mustFollow(t.Context(), t, c.ID, "stream=stdout", fmt.Sprint(50<<20))
		e, err := f.next()
		var said struct {
			Next int64 `json:"next_offset"`
		}
		if err == nil {
			err = json.Unmarshal([]byte(e.data), &said)
		}
		if err != nil || e.name != "expired" || said.Next <= 50<<20 {
			t.Fatalf("the first event is %q, next_offset %d, %v", e.name, said.Next, err)
		}
		if f.collect(t, -1) == nil || int64(len(f.text)) != 100<<20-said.Next {
			t.Errorf("%d bytes came from %d on", len(f.text), said.Next)
		}
	})
}

func TestB20EveryStreamHasAnEnd(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		p := s.place(t)
		var wg sync.WaitGroup
		for worker := range 4 {
			wg.Go(func() {
				for n := range 250 {
					if err := p.streamedExec(t.Context()); err != nil {
						t.Errorf("%d of worker %d: %v", n, worker, err)
						return
					}
				}
			})
		}
		wg.Wait()
	})
}

// streamedExec starts a command, follows it and sees its end.
func (p place) streamedExec(ctx context.Context) error {
	answer, err := p.call(ctx, "exec", p.in(object{"argv": []string{"true"}, "wait_ms": 0}))
	if err != nil {
		return err
	}
	f, err := p.follow(ctx, fmt.Sprint(answer["id"]), "", "")
	if err != nil {
		return err
	}
	defer f.close()
	status, err := f.ended()
	if err == nil && status != "exited" {
		err = errors.New("the end says " + status)
	}
	return err
}
