package sandboxtest

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"envapi/internal/require"
	"envapi/sandbox"
)

// processes: what runs in a box is seen, each with what it descends from, and ruled;
// and nothing else is.
func processes(t *testing.T, tier Tier) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, fixture)
	}{
		{"what runs is listed, and what it is", listed},
		{"what descends from a command is its, whatever it did", descendants},
		{"what a shell has is its, and what its command has", listedShell},
		{"nothing runs", func(t *testing.T, f fixture) { f.sees(t, 0) }},
		{"what is used is measured", measured},
		{"a stop, a zombie, threads", states},
		{"when it began stays the same", began},
		{"many are listed", many},
		{"many lists at a time", manyLists},
		{"names and arguments may be anything", hostileNames},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, tier.box(t)) })
	}
	t.Run("ruled", func(t *testing.T) { processesRuled(t, tier) })
	t.Run("ports", func(t *testing.T) { ports(t, tier) })
	t.Run("a closed box has none", func(t *testing.T) { processesOfClosed(t, tier) })
}

// list lists the processes of the box.
func (f fixture) list(t *testing.T) []sandbox.ProcessInfo {
	t.Helper()
	found, err := f.box.Processes(t.Context())
	if err != nil {
		t.Fatalf("cannot list: %v", err)
	}
	return found
}

// sees waits until there are so many processes, and gives them.
func (f fixture) sees(t *testing.T, n int) (found []sandbox.ProcessInfo) {
	t.Helper()
	eventually(t, fmt.Sprintf("there are %d processes", n), func() bool {
		found = f.list(t)
		return len(found) == n
	})
	return found
}

// asleep waits until there are so many and all sleep, and gives them. On a busy machine
// one may have said something long before it does.
func (f fixture) asleep(t *testing.T, n int) (found []sandbox.ProcessInfo) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d processes sleep", n), func() bool {
		found = f.list(t)
		return len(found) == n && !slices.ContainsFunc(found, func(p sandbox.ProcessInfo) bool { return p.State != sandbox.ProcessSleeping })
	})
	return found
}

// find waits for the process with these arguments.
func (f fixture) find(t *testing.T, command string) sandbox.ProcessInfo {
	t.Helper()
	return f.findThat(t, "it is "+command, func(p sandbox.ProcessInfo) bool { return p.Command == command })
}

// findThat waits for a process that is something.
func (f fixture) findThat(t *testing.T, what string, is func(sandbox.ProcessInfo) bool) (found sandbox.ProcessInfo) {
	t.Helper()
	eventually(t, "there is a process, and "+what, func() bool {
		all := f.list(t)
		i := slices.IndexFunc(all, is)
		if i >= 0 {
			found = all[i]
		}
		return i >= 0
	})
	return found
}

// leaderOf gives the process whose parent is none of them. Its pid need not be the
// lowest: where they are the host's they begin anew now and then.
func leaderOf(found []sandbox.ProcessInfo) sandbox.ProcessInfo {
	i := slices.IndexFunc(found, func(p sandbox.ProcessInfo) bool { return !slices.Contains(pids(found), p.PPID) })
	return found[max(i, 0)]
}

// pids gives their pids.
func pids(found []sandbox.ProcessInfo) (all []int) {
	for _, p := range found {
		all = append(all, p.PID)
	}
	return all
}

func listed(t *testing.T, f fixture) {
	before := time.Now().Add(-time.Second)
	p, stdout, _ := f.start(sandbox.Command{ID: "cmd_1", Script: "echo $$; sleep 311; :"})
	eventually(t, "it runs", func() bool { return stdout.String() != "" })
	f.find(t, "sleep 311")
	found := f.asleep(t, 2)
	leader := leaderOf(found)
	sleep := found[1-slices.Index(pids(found), leader.PID)]
	if pid := strings.TrimSpace(stdout.String()); strconv.Itoa(leader.PID) != pid || sleep.PPID != leader.PID {
		t.Errorf("got %+v, want pid %s and its child", found, pid)
	}
	if leader.Command != "bash -c -- echo $$; sleep 311; :" || sleep.Command != "sleep 311" {
		t.Errorf("got %q and %q", leader.Command, sleep.Command)
	}
	for _, p := range found {
		if p.Of != "cmd_1" || p.Current || p.Threads != 1 || p.MemoryBytes < 64<<10 || len(p.Listens) != 0 {
			t.Errorf("got %+v", p)
		}
		if p.StartedAt.Before(before) || p.StartedAt.After(time.Now().Add(time.Second)) {
			t.Errorf("it began at %v", p.StartedAt)
		}
	}
	kill(t, p)
	f.sees(t, 0)
}

func descendants(t *testing.T, f fixture) {
	f.run(sandbox.Command{ID: "cmd_1", Script: hiding[:strings.Index(hiding, "echo")] + "sleep 0.1; (setsid sh -c 'sleep 304 & ' &)"})
	p, _, _ := f.start(sandbox.Command{ID: "cmd_2", Script: "sleep 305"})
	f.find(t, "sleep 305")
	found := f.sees(t, 5+2*5+1+1)
	for _, p := range found {
		want := "cmd_1"
		if p.Command == "sleep 305" {
			want = "cmd_2"
		}
		if p.Of != want {
			t.Errorf("%d %q is said to be of %q", p.PID, p.Command, p.Of)
		}
	}
	kill(t, p)
}

func listedShell(t *testing.T, f fixture) {
	sh := f.shell(sandbox.ShellSpec{ID: "sh_1"})
	current := func(command string, want bool) {
		t.Helper()
		if p := f.find(t, command); p.Of != "sh_1" || p.Current != want {
			t.Errorf("%s: want current %v, got %+v", command, want, p)
		}
	}
	const bash = "bash --noprofile --norc --noediting -i"
	current(bash, false)
	sh.run("sleep 321 & (sleep 0.1; exec sleep 322) & disown")
	current("sleep 321", true) // of the one that ran last
	current("sleep 322", true)
	p, stdout, _ := sh.start(sandbox.ShellCommand{Script: "sleep 323 & echo; (setsid sleep 324 &); sleep 325"})
	eventually(t, "it runs", func() bool { return stdout.String() != "" })
	for _, command := range []string{"sleep 323", "sleep 324", "sleep 325"} {
		current(command, true)
	}
	for _, command := range []string{"sleep 321", "sleep 322", bash} {
		current(command, false)
	}
	kill(t, p)
	people, err := f.box.OpenShell(t.Context(), sandbox.ShellSpec{ID: "sh_2", Interactive: true, Size: sandbox.Size{Cols: 80, Rows: 24}})
	if err != nil {
		t.Fatal(err)
	}
	if p := f.find(t, "bash -i"); p.Of != "sh_2" || p.Current {
		t.Errorf("got %+v", p)
	}
	kill(t, people)
	kill(t, sh)
}

func measured(t *testing.T, f fixture) {
	p, _, _ := f.start(sandbox.Command{Script: "exec bash -c 'while :; do :; done'"})
	idle, _, _ := f.start(sandbox.Command{Script: "exec sleep 331"})
	const loop = "bash -c while :; do :; done"
	eventually(t, "it uses a processor", func() bool {
		b := f.find(t, loop)
		return b.CPUPercent > 5 && b.CPUPercent < 200 && b.CPU > 0 && b.State == sandbox.ProcessRunning
	})
	eventually(t, "what sleeps uses nothing", func() bool {
		s := f.find(t, "sleep 331")
		return s.CPUPercent < 5 && s.CPU < time.Second
	})
	first := f.find(t, loop).CPU
	eventually(t, "it has used more", func() bool { return f.find(t, loop).CPU > first })
	kill(t, p)
	kill(t, idle)
}

func states(t *testing.T, f fixture) {
	f.needsPython(t)
	p, _, _ := f.start(sandbox.Command{Script: `
		sleep 341 & until grep -q sleep /proc/$!/comm; do :; done; kill -STOP $!
		python3 -c '
import os, threading, time
if os.fork() == 0: os._exit(3)
for i in range(4): threading.Thread(target=time.sleep, args=(342,)).start()
' python threads &
		exec sleep 343`})
	eventually(t, "it is stopped", func() bool { return f.find(t, "sleep 341").State == sandbox.ProcessStopped })
	eventually(t, "there is a zombie, and five threads", func() bool {
		zombie, threads := false, false
		for _, p := range f.list(t) {
			zombie = zombie || p.State == sandbox.ProcessZombie && strings.HasPrefix(p.Command, "[python3")
			threads = threads || p.Threads == 5 && strings.HasSuffix(p.Command, "python threads")
		}
		return zombie && threads
	})
	kill(t, p)
	q, _, _ := f.start(sandbox.Command{Argv: []string{"python3", "-c", `
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(344,)).start()
ctypes.CDLL(None).pthread_exit(None)`}})
	eventually(t, "its first thread alone has ended", func() bool {
		all := f.list(t)
		return len(all) == 1 && all[0].State == sandbox.ProcessSleeping && all[0].Command == "[python3]"
	})
	kill(t, q)
}

func began(t *testing.T, f fixture) {
	p, _, _ := f.start(sandbox.Command{Script: "exec sleep 351"})
	first := f.find(t, "sleep 351").StartedAt
	for range 3 {
		if again := f.find(t, "sleep 351").StartedAt; !again.Equal(first) {
			t.Errorf("it began at %v, and at %v", first, again)
		}
	}
	if first.Nanosecond()%int(time.Millisecond) != 0 {
		t.Errorf("callers are told of milliseconds, and it began at %v", first)
	}
	kill(t, p)
}

func many(t *testing.T, f fixture) {
	p, _, _ := f.start(sandbox.Command{ID: "cmd_1", Script: "for i in {1..400}; do sleep 361 & done; exec sleep 361"})
	var found []sandbox.ProcessInfo
	eventually(t, "all are there", func() bool {
		found = f.list(t)
		return len(found) == 401 && !slices.ContainsFunc(found, func(p sandbox.ProcessInfo) bool { return p.Command != "sleep 361" })
	})
	if all := pids(found); !slices.IsSorted(all) {
		t.Error("they are not in the order of their pids")
	}
	for _, p := range found {
		if p.Of != "cmd_1" {
			t.Fatalf("got %+v", p)
		}
	}
	kill(t, p)
}

func manyLists(t *testing.T, f fixture) {
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			command := "sleep 37" + itoa(i)
			p, err := f.box.Start(t.Context(), sandbox.Command{Argv: strings.Fields(command), Stdout: &capture{}})
			if err != nil {
				t.Error(err)
				return
			}
			// What was there when a list was asked for is in it.
			eventually(t, "it is listed", func() bool {
				found, err := f.box.Processes(t.Context())
				return err == nil && slices.ContainsFunc(found, func(p sandbox.ProcessInfo) bool { return p.Command == command })
			})
			for range 3 {
				found, err := f.box.Processes(t.Context())
				if err != nil || !slices.ContainsFunc(found, func(p sandbox.ProcessInfo) bool { return p.Command == command }) {
					t.Errorf("%s is not listed: %v", command, err)
				}
			}
			kill(t, p)
			found, err := f.box.Processes(t.Context())
			if err != nil || slices.ContainsFunc(found, func(p sandbox.ProcessInfo) bool { return p.Command == command }) {
				t.Errorf("%s is listed after its end: %v", command, err)
			}
		})
	}
	all.Wait()
}

func hostileNames(t *testing.T, f fixture) {
	f.needsPython(t)
	const names = `
import ctypes, os, sys, time
name, how = sys.argv[1].encode(), sys.argv[2]
libc = ctypes.CDLL(None)
if how == "name": libc.prctl(15, name)
maps = [l for l in open("/proc/self/maps") if "[stack]" in l]
stat = open("/proc/self/stat", "rb").read().rsplit(b")", 1)[1].split()
begin, end = int(stat[45]), int(stat[46])
text = {"name": b"", "empty": b"", "args": b"(z) Z 1 1\n\x1b[31m\xff\xfe" + "é".encode() * 600, "spaces": b" \0 \0"}[how]
ctypes.memmove(begin, (text + b"\0" * (end - begin))[:end - begin], end - begin)
print("ready", flush=True)
time.sleep(381)
` // begin is arg_start, end is arg_end
	for how, want := range map[string]string{
		"name":   "[a) Z 1\n\x1b[2J�]",
		"empty":  "[python3]",
		"spaces": "[python3]",
		"args":   ("(z) Z 1 1\n\x1b[31m�" + strings.Repeat("é", 600))[:1024],
	} {
		p, stdout, stderr := f.start(sandbox.Command{ID: "cmd_" + how, Argv: []string{"python3", "-c", names, "a) Z 1\n\x1b[2J\xff", how, strings.Repeat("x", 1500)}})
		eventually(t, "it is ready", func() bool { return stdout.String() != "" || stderr.String() != "" })
		if found := f.asleep(t, 1); found[0].Command != want || found[0].Of != "cmd_"+how {
			t.Errorf("%s: got %+v (%s), want %q", how, found, stderr.String(), want)
		}
		kill(t, p)
	}
}

// needsPython is for a test whose programs are of Python.
func (f fixture) needsPython(t *testing.T) {
	t.Helper()
	if f.script("command -v python3").ExitCode != 0 {
		require.Feature(t, "python3", "commands do not find it")
	}
}

func ports(t *testing.T, tier Tier) {
	f := tier.box(t)
	f.needsPython(t)
	const listens = `
import socket, sys, time
held = []
for family, kind, address in [(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 8123)), (socket.AF_INET6, socket.SOCK_STREAM, ("::1", 8124)), (socket.AF_INET, socket.SOCK_DGRAM, ("0.0.0.0", 8125)), (socket.AF_INET6, socket.SOCK_DGRAM, ("::", 8126))]:
    try:
        s = socket.socket(family, kind)
        s.bind(address)
        if kind == socket.SOCK_STREAM: s.listen()
        held.append(s)
    except OSError as e: print(e, file=sys.stderr)
if held:
    c = socket.create_connection(("127.0.0.1", 8123))
    u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    u.connect(("127.0.0.1", 8125))
print("ready", flush=True)
time.sleep(391)`
	p, stdout, _ := f.start(sandbox.Command{Argv: []string{"python3", "-c", listens}})
	eventually(t, "it listens", func() bool { return stdout.String() != "" })
	var want []sandbox.Listener
	if tier.Namespaces {
		want = []sandbox.Listener{{Protocol: "tcp", Address: "127.0.0.1", Port: 8123}, {Protocol: "tcp6", Address: "::1", Port: 8124}, {Protocol: "udp", Address: "0.0.0.0", Port: 8125}, {Protocol: "udp6", Address: "::", Port: 8126}}
		if _, err := os.Stat("/proc/net/tcp6"); err != nil {
			want = []sandbox.Listener{want[0], want[2]}
		}
	}
	// On a busy machine a list may leave out what takes too long to be read.
	eventually(t, fmt.Sprintf("it is told to listen at %+v", want), func() bool { return slices.Equal(f.sees(t, 1)[0].Listens, want) })
	kill(t, p)
}

func processesOfClosed(t *testing.T, tier Tier) {
	f := tier.box(t)
	if err := f.box.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.box.Processes(t.Context()); !errors.Is(err, sandbox.ErrBoxClosed) {
		t.Errorf("list: got %v", err)
	}
}
