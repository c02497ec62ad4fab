package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// beforeTheEnd is what a service had when it ended.
type beforeTheEnd struct {
	command, terminal      shell
	ended, running, queued command
	alone                  command // of no shell
	typed                  page    // of the terminal
}

// busy has everything that can be under way, with sleeps of the mark.
func busy(t *testing.T, p place, m string) beforeTheEnd {
	t.Helper()
	b := beforeTheEnd{command: p.open(t, object{"name": "work"}), terminal: p.open(t, object{"kind": "terminal"})}
	b.ended = b.command.run(t, "echo first; (exit 3)", nil)
	b.running = b.command.run(t, fmt.Sprintf("echo began; nohup setsid sleep %[1]s & sleep %[1]s", m), object{"wait_ms": 0})
	b.queued = b.command.run(t, "echo never", object{"wait_ms": 0, "queue": true})
	b.alone = p.background(t, "echo alone; exec sleep "+m)
	b.terminal.types(t, object{"data": "echo $((6*7))x; sleep " + m + "\n"})
	mustRun(t, m, 4)
	p.hasWritten(t, b.running.ID, "began\n")
	p.hasWritten(t, b.alone.ID, "alone\n")
	b.typed = b.terminal.hasShown(t, "42x")
	return b
}

// hasWritten waits until a command has written so.
func (r rest) hasWritten(t *testing.T, id, text string) {
	t.Helper()
	err := eventually(func() error {
		if got := r.get(t, id, 0).Stdout.Text; got != text {
			return fmt.Errorf("it has written %q, want %q", got, text)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// hasShown waits until the text was written to the terminal, and gives all of it.
func (s shell) hasShown(t *testing.T, text string) page {
	t.Helper()
	var got page
	err := eventually(func() error {
		got = as[page](t, s.must(t, "read_shell", s.ref(nil)))
		if !strings.Contains(string(got.bytes(t)), text) {
			return fmt.Errorf("the terminal has %q, want %q in it", got.Data, text)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// check looks at what the next service says of all that.
func (b beforeTheEnd) check(t *testing.T, r rest) {
	t.Helper()
	for _, c := range []struct {
		what    string
		before  command
		status  string
		reason  string
		exit    int
		written string
	}{
		{"what had ended", b.ended, "exited", "", 3, "first\n"},
		{"what ran in a shell", b.running, "lost", "service_stopped", -1, "began\n"},
		{"what waited for the shell", b.queued, "lost", "service_stopped", -1, ""},
		{"what ran without a shell", b.alone, "lost", "service_stopped", -1, "alone\n"},
	} {
		got := r.get(t, c.before.ID, 0)
		if got.Status != c.status || got.Reason != c.reason || got.exit() != c.exit || got.ShellID != c.before.ShellID {
			t.Errorf("%s is %+v", c.what, got)
		}
		if lost := c.status == "lost"; got.ShellClosed != (lost && got.ShellID != "") || lost != (got.Next != "") {
			t.Errorf("%s is %+v", c.what, got)
		}
		if whole := r.output(t, got.ID, object{"stream": "stdout"}); string(whole.bytes(t)) != c.written || !whole.EOF {
			t.Errorf("%s has written %+v, want %q", c.what, whole, c.written)
		}
	}
	for _, sh := range []shell{b.command, b.terminal} {
		sh.rest = r
		if got := sh.record(t); got.State != "closed" || got.CloseReason != "service_restarted" || got.ExitCode != nil {
			t.Errorf("the shell is %+v", got)
		}
		calls := map[string]object{"run_in_shell": {"command": "true"}, "write_shell": {"data": "x"}, "resize_shell": {"cols": 80, "rows": 24}}
		for operation, in := range calls {
			if p := sh.refuse(t, "shell_closed", operation, sh.ref(in)); p.Status != 410 || !strings.Contains(p.Error(), "service_restarted") {
				t.Errorf("%s gave %v", operation, p)
			}
		}
	}
	b.terminal.rest = r
	if got := as[page](t, b.terminal.must(t, "read_shell", b.terminal.ref(nil))); !strings.HasPrefix(string(got.bytes(t)), string(b.typed.bytes(t))) || !got.EOF {
		t.Errorf("the terminal had %q, and now %+v", b.typed.Data, got)
	}
}

// TestShellsAndCommandsAfterAnEndOfTheService: whether it was killed in the middle
// of everything, or stopped in good order.
func TestShellsAndCommandsAfterAnEndOfTheService(t *testing.T) {
	for _, end := range []struct {
		name string
		end  func(t *testing.T, s *service)
		says []string // by the next one
	}{
		{"killed", func(_ *testing.T, s *service) { s.kill() }, []string{"are lost\" count=3", "are closed\" count=2"}},
		{"stopped", func(t *testing.T, s *service) { s.stop(t) }, nil},
	} {
		t.Run(end.name, func(t *testing.T) {
			onEachTier(t, func(t *testing.T, s *service) {
				p, m := s.place(t), mark()
				b := busy(t, p, m)
				end.end(t, s)
				err := within(time.Second, func() error {
					if n := alive(m); n != 0 {
						return fmt.Errorf("%d processes are left a second after the service", n)
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
				again := s.restart(t)
				b.check(t, again.rest)
				for _, line := range end.says {
					if !strings.Contains(again.output.String(), line) {
						t.Errorf("the next start does not say %q:\n%s", line, again.output)
					}
				}
				nothingIsLeftIn(t, filepath.Join(s.data, "private"))
				p.rest = again.rest
				if c := p.open(t, nil).run(t, "echo usable", nil); c.Stdout.Text != "usable\n" {
					t.Errorf("the environment is of no use: %+v", c)
				}
			})
		})
	}
}

// nothingIsLeftIn fails where a folder of the service's own has files, which are of
// a box that is gone: the next has opened none yet.
func nothingIsLeftIn(t *testing.T, folder string) {
	t.Helper()
	err := eventually(func() error {
		var left []string
		err := filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				left = append(left, path)
			}
			return nil
		})
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("%v are left", left)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
