package sandboxtest

import (
	"strconv"
	"strings"
	"sync"
	"testing"

	"envapi/sandbox"
)

func itoa(i int) string { return strconv.Itoa(i) }

// streams: every byte arrives, in its stream, and nobody waits for more.
func streams(t *testing.T, tier Tier) {
	f := tier.box(t)
	t.Run("A30 A45 bytes are exact", func(t *testing.T) {
		if got := f.script(`printf 'a\0b\n\xff\xfe\r'`); got.stdout != "a\x00b\n\xff\xfe\r" {
			t.Errorf("got %q", got.stdout)
		}
	})
	t.Run("A49 merged output keeps its order", func(t *testing.T) {
		var out capture
		p, err := f.box.Start(t.Context(), sandbox.Command{Script: "for i in 1 2 3; do echo o$i; echo e$i >&2; done", Stdout: &out})
		if err != nil {
			t.Fatal(err)
		}
		await(t, p.Done(), "it did not end")
		if out.String() != "o1\ne1\no2\ne2\no3\ne3\n" {
			t.Errorf("got %q", out.String())
		}
	})
	t.Run("three MiB arrive before the end is told", func(t *testing.T) {
		if got := f.script("head -c 3145728 /dev/zero"); len(got.stdout) != 3<<20 {
			t.Errorf("got %d bytes", len(got.stdout))
		}
	})
	t.Run("input is passed on, to its end", func(t *testing.T) {
		text := strings.Repeat("0123456789", 100_000)
		if got := f.run(sandbox.Command{Script: "cat; echo .", Stdin: input(text)}); got.stdout != text+".\n" {
			t.Errorf("got %d bytes", len(got.stdout))
		}
	})
	t.Run("streams can be opened again by name", func(t *testing.T) {
		for name, stdin := range map[string]string{"short input": "abc", "long input": strings.Repeat("abc", 10_000)} {
			got := f.run(sandbox.Command{Script: "cat /dev/stdin >/dev/stdout; echo e >/dev/stderr", Stdin: input(stdin)})
			if got.stdout != stdin || got.stderr != "e\n" {
				t.Errorf("%s: got %d bytes and %q", name, len(got.stdout), got.stderr)
			}
		}
	})
	t.Run("B21 input that nobody reads", func(t *testing.T) { unreadInput(t, f) })
	t.Run("A22 late bytes come after the end", func(t *testing.T) { lateBytes(t, f) })
	t.Run("a silent child keeps no stream open", func(t *testing.T) {
		p, _, _ := f.start(sandbox.Command{Script: "sleep 300 >/dev/null 2>&1 &"})
		await(t, p.Quiet(), "the streams are kept open")
		kill(t, p)
	})
	t.Run("A22 a child that writes for ever holds nothing up", func(t *testing.T) {
		p, _, _ := f.start(sandbox.Command{Script: "yes & echo fg"})
		await(t, p.Done(), "the end was held up")
		if err := p.Kill(t.Context()); err != nil {
			t.Error(err)
		}
		await(t, p.Quiet(), "it writes on")
	})
}

func unreadInput(t *testing.T, f fixture) {
	text := strings.Repeat("x", 1<<20)
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			p, err := f.box.Start(t.Context(), sandbox.Command{Script: "false", Stdin: input(text), Stdout: &capture{}})
			if err != nil {
				t.Error(err)
				return
			}
			<-p.Done()
			if r := p.Result(); r.ExitCode != 1 {
				t.Errorf("got %+v", r)
			}
		})
	}
	all.Wait()
}

// lateBytes: a child writes when the test says so, by a file.
func lateBytes(t *testing.T, f fixture) {
	p, stdout, _ := f.start(sandbox.Command{Script: "(until [ -e go ]; do sleep 0.01; done; echo late) & echo early"})
	await(t, p.Done(), "the end was held up")
	if stdout.String() != "early\n" {
		t.Errorf("at the end: %q", stdout.String())
	}
	select {
	case <-p.Quiet():
		t.Error("it is said to be quiet while a child can write")
	default:
	}
	f.script(": >go")
	await(t, p.Quiet(), "it did not become quiet")
	if stdout.String() != "early\nlate\n" {
		t.Errorf("after it: %q", stdout.String())
	}
}
