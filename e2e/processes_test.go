package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// living is a Process as callers see it.
type living struct {
	PID, PPID int
	State     string
	Command   string
	CommandID string `json:"command_id"`
	ShellID   string `json:"shell_id"`
	StartedAt string `json:"started_at"`
	Listening []struct {
		Protocol, Address string
		Port              int
	}
}

// lives lists the processes of the environment, page by page.
func (p place) lives(t *testing.T) (all []living) {
	t.Helper()
	in := p.in(object{"limit": 5})
	for {
		page := as[struct {
			Items []living
			Next  string `json:"next_cursor"`
		}](t, p.must(t, "list_processes", in))
		if all = append(all, page.Items...); page.Next == "" {
			return all
		}
		in["cursor"] = page.Next
	}
}

// finds waits for the process whose command line is this.
func (p place) finds(t *testing.T, command string) (found living) {
	t.Helper()
	err := eventually(func() error {
		all := p.lives(t)
		for _, l := range all {
			if l.Command == command {
				found = l
				return nil
			}
		}
		return fmt.Errorf("no process %q in %+v", command, all)
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// one is input for a process of the environment.
func (p place) one(l living, more object) object {
	all := p.in(object{"pid": l.PID})
	maps.Copy(all, more)
	return all
}

// struck is what signal_process answers.
type struck struct {
	Reached int
	Ended   bool
}

func (p place) strike(t *testing.T, l living, more object) struck {
	t.Helper()
	return as[struck](t, p.must(t, "signal_process", p.one(l, more)))
}

// processEnd is what wait_process answers.
type processEnd struct {
	Ended    bool
	ExitCode *int `json:"exit_code"`
	Signal   string
}

func (p place) await(t *testing.T, l living, wait int) processEnd {
	t.Helper()
	return as[processEnd](t, p.must(t, "wait_process", p.one(l, object{"wait_ms": wait})))
}

// hostPID gives the pid that the sleep with a mark has on the host.
func hostPID(t *testing.T, mark string) int {
	t.Helper()
	mustRun(t, mark, 1)
	for _, path := range processes() {
		args, err := os.ReadFile(filepath.Join(path, "cmdline"))
		if err == nil && bytes.HasSuffix(args, []byte("\x00"+mark+"\x00")) {
			pid, err := strconv.Atoi(filepath.Base(path))
			if err != nil {
				t.Fatal(err)
			}
			return pid
		}
	}
	t.Fatal("it has ended")
	return 0
}

func TestProcessesSayWhatTheyDescendFrom(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		p := s.place(t)
		if got := p.lives(t); len(got) != 0 {
			t.Errorf("a new environment has %+v", got)
		}
		runs, left, job, front := mark(), mark(), mark(), mark()
		running := p.background(t, "exec sleep "+runs)
		leaving := p.exec(t, object{"command": "nohup setsid sleep " + left + " >/dev/null 2>&1 &"})
		sh := p.open(t, nil)
		sh.run(t, "sleep "+job+" >/dev/null 2>&1 &", nil)
		inFront := sh.run(t, "sleep "+front, object{"wait_ms": 0})

		if got := p.finds(t, "sleep "+runs); got.CommandID != running.ID || got.ShellID != "" || got.State != "sleeping" {
			t.Errorf("what runs is %+v, want it of %s", got, running.ID)
		}
		if got := p.finds(t, "sleep "+left); got.CommandID != leaving.ID || got.ShellID != "" {
			t.Errorf("A23: what an ended command left is %+v, want it of %s", got, leaving.ID)
		}
		if got := p.finds(t, "sleep "+job); got.ShellID != sh.id || got.CommandID == inFront.ID {
			t.Errorf("a job of the shell's is %+v, want it of %s alone", got, sh.id)
		}
		if got := p.finds(t, "sleep "+front); got.ShellID != sh.id || got.CommandID != inFront.ID {
			t.Errorf("what a shell runs is %+v, want it of %s and %s", got, sh.id, inFront.ID)
		}
		bash := 0
		for _, l := range p.lives(t) {
			if l.ShellID == sh.id && l.CommandID == "" && strings.HasPrefix(l.Command, "bash") {
				bash++
			}
		}
		if bash != 1 {
			t.Errorf("the shell itself is there %d times: %+v", bash, p.lives(t))
		}
		p.must(t, "reset_environment", p.in(nil))
		if got := p.lives(t); len(got) != 0 {
			t.Errorf("after a reset there are %+v", got)
		}
	})
}

// In the weaker tiers there are no IP sockets.
func TestAServerShowsItsPort(t *testing.T) {
	t.Parallel()
	p := start(t, config{}).place(t)
	p.background(t, "python3 -m http.server -b 127.0.0.1 8000")
	err := eventually(func() error {
		got := p.finds(t, "python3 -m http.server -b 127.0.0.1 8000").Listening
		if len(got) != 1 || got[0].Protocol != "tcp" || got[0].Address != "127.0.0.1" || got[0].Port != 8000 {
			return fmt.Errorf("it listens at %v", got)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestProcessesAreSignalled(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		p, m, other := s.place(t), mark(), mark()
		p.background(t, "exec sleep "+other)
		tree := p.background(t, "bash -c 'sleep "+m+" & sleep "+m+" & wait'; true")
		mustRun(t, m, 2)
		top := p.finds(t, "bash -c sleep "+m+" & sleep "+m+" & wait")

		wrong := p.one(top, object{"signal": "KILL", "tree": true, "started_at": "2001-02-03T04:05:06.789Z"})
		if refused := p.refuse(t, "process_replaced", "signal_process", wrong); refused.Status != http.StatusConflict {
			t.Errorf("another start is refused with %v", refused)
		}
		p.refuse(t, "process_replaced", "wait_process", p.one(top, object{"started_at": "2001-02-03T04:05:06.789Z"}))
		if alive(m) != 2 {
			t.Error("the wrong process was signalled")
		}
		if got := p.strike(t, top, object{"signal": "STOP", "started_at": top.StartedAt}); got.Reached != 1 || got.Ended {
			t.Errorf("STOP gives %+v", got)
		}
		if got := p.finds(t, top.Command); got.State != "stopped" || got.StartedAt != top.StartedAt {
			t.Errorf("it is %+v, want it stopped", got)
		}
		if got := p.strike(t, top, object{"signal": "KILL", "tree": true, "started_at": top.StartedAt}); got.Reached != 3 || !got.Ended || alive(m) != 0 {
			t.Errorf("KILL of a tree gives %+v, and %d sleeps are left", got, alive(m))
		}
		if got := p.rest.get(t, tree.ID, longWait); got.Status != "exited" || got.exit() != 0 {
			t.Errorf("the command around it is %s", got.brief())
		}
		p.refuse(t, "not_found", "signal_process", p.one(top, nil))
		p.refuse(t, "not_found", "wait_process", p.one(top, nil))
		if alive(other) != 1 {
			t.Error("another process was hit")
		}
	})
}

func TestTheEndOfAProcessIsAwaited(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		p := s.place(t)
		p.sh(t, "mkfifo go")
		got, err := p.endsWhileAwaited(t)
		for again := 0; isNotFound(err) && again < 20; again++ {
			got, err = p.endsWhileAwaited(t) // it ended before the wait had come
		}
		if err != nil {
			t.Fatal(err)
		}
		if !got.Ended || got.Signal != "" || got.ExitCode != nil && *got.ExitCode != 7 || got.ExitCode == nil && tellsEnds(t) {
			t.Errorf("it ended with %+v", got)
		}

		m := mark()
		c := p.background(t, "exec sleep "+m)
		leader := p.finds(t, "sleep "+m)
		p.strike(t, leader, nil)
		if got := p.rest.get(t, c.ID, longWait); got.Status != "signaled" || got.Signal != "TERM" {
			t.Errorf("a command whose process was ended is %s", got.brief())
		}
	})
}

// endsWhileAwaited waits for a process that ends with 7 meanwhile.
func (p place) endsWhileAwaited(t *testing.T) (processEnd, error) {
	t.Helper()
	p.sh(t, `nohup bash -c 'read -r < go; exit 7' >/dev/null 2>&1 &`)
	it := p.finds(t, "bash -c read -r < go; exit 7")
	if got := p.await(t, it, 0); got.Ended {
		t.Errorf("it has ended already: %+v", got)
	}
	type outcome struct {
		answer object
		err    error
	}
	told := make(chan outcome, 1)
	go func() {
		answer, err := p.call(context.Background(), "wait_process", p.one(it, object{"wait_ms": longWait}))
		told <- outcome{answer, err}
	}()
	p.sh(t, "echo > go")
	got := <-told
	err := eventually(func() error { // until then it is a zombie
		answer, err := p.call(context.Background(), "wait_process", p.one(it, object{"started_at": it.StartedAt}))
		if !isNotFound(err) {
			return fmt.Errorf("afterwards a wait gives %v %w", answer, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return as[processEnd](t, got.answer), got.err
}

func isNotFound(err error) bool {
	var refused *problem
	return errors.As(err, &refused) && refused.Code == "not_found"
}

// tellsEnds says whether the kernel tells how a process ended that another waits for
// (PIDFD_GET_INFO with PIDFD_INFO_EXIT, Linux 6.15).
func tellsEnds(t *testing.T) bool {
	t.Helper()
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		t.Fatal(err)
	}
	var major, minor int
	if _, err := fmt.Sscanf(unix.ByteSliceToString(name.Release[:]), "%d.%d", &major, &minor); err != nil {
		t.Fatal(err)
	}
	return major > 6 || major == 6 && minor >= 15
}

func TestD14NoPIDOfAnothersIsReached(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		p, other, m := s.place(t), s.place(t), mark()
		p.background(t, "sleep "+mark())
		bystander := other.background(t, "exec sleep "+m)
		foreign := map[string]int{
			"the first process": 1, "the service": s.cmd.Process.Pid, "a process of another environment": hostPID(t, m),
			"no process": 0, "a group": -s.cmd.Process.Pid, "all": -1, "beyond all": 1 << 40,
		}
		for name, pid := range foreign {
			for _, in := range []object{{"signal": "KILL"}, {"signal": "KILL", "tree": true}} {
				p.refuse(t, "not_found", "signal_process", p.one(living{PID: pid}, in))
			}
			p.refuse(t, "not_found", "wait_process", p.one(living{PID: pid}, nil))
			for _, l := range p.lives(t) {
				if l.PID == pid {
					t.Errorf("%s is listed: %+v", name, l)
				}
			}
		}
		if got := other.rest.get(t, bystander.ID, 0); got.Status != "running" || alive(m) != 1 {
			t.Errorf("the command of another environment is %s", got.Status)
		}
	})
}

func TestD20ProcessesOfAnotherAccount(t *testing.T) {
	t.Parallel()
	k := startKeyring(t)
	s := start(t, config{keyring: true, env: map[string]string{"ENVAPI_KEYRING_URL": k.url}})
	alice, bob := rest{s.url, k.mint(t, object{"sub": "alice"})}, rest{s.url, k.mint(t, object{"sub": "bob"})}
	p := place{alice, as[struct{ ID string }](t, alice.must(t, "create_environment", object{})).ID}
	m := mark()
	p.background(t, "exec sleep "+m)
	it := p.finds(t, "sleep "+m)

	for _, operation := range []string{"list_processes", "signal_process", "wait_process"} {
		ask := func(id string) string {
			in := object{"environment_id": id}
			if operation != "list_processes" {
				in["pid"] = it.PID
			}
			return strings.ReplaceAll(bob.refuse(t, "not_found", operation, in).Error(), id, "ID")
		}
		if theirs, never := ask(p.id), ask("env_aaaaaaaaaaaaaaaaaaaaaaaaaa"); theirs != never {
			t.Errorf("%s: another's gives %q, what never was gives %q", operation, theirs, never)
		}
	}
	reader := place{rest{s.url, k.mint(t, object{"sub": "alice", "scope": "environments:read"})}, p.id}
	reader.finds(t, "sleep "+m)
	reader.refuse(t, "insufficient_scope", "signal_process", p.one(it, nil))
	if alive(m) != 1 {
		t.Error("it was reached")
	}
}
