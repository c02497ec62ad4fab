package user_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"envapi/internal/require"
	"envapi/internal/testbin"
	"envapi/sandbox"
	"envapi/sandbox/cgroup"
	"envapi/sandbox/landlock"
	"envapi/sandbox/sandboxtest"
	"envapi/sandbox/supervisor"
	"envapi/sandbox/user"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testbin.Tests{M: m}) }

// The host uids of the boxes of these tests: nobody else's, nor those of the same
// tests in another process, since a box ends everything that has its uid.
var (
	testUID  = 10_000_000 + 2*os.Getpid()
	otherUID = testUID + 1
)

func asRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("the user tier is for a service that is root; root's pass runs this")
	}
}

func newHost(t *testing.T, abi int) *user.Host {
	t.Helper()
	return newHostIn(t, abi, nil)
}

func newHostIn(t *testing.T, abi int, groups *cgroup.Parent) *user.Host {
	t.Helper()
	sandboxtest.Leak(t)
	launcher, err := supervisor.NewLauncher(testbin.Init(t))
	if err != nil {
		t.Fatal(err)
	}
	h := user.New(user.Config{Launcher: launcher, Private: sandboxtest.Folder(t), Landlock: abi, Groups: groups, Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() {
		_ = h.Close()
		_ = launcher.Close()
	})
	return h
}

func open(t *testing.T, h *user.Host, uid int) sandbox.Box {
	t.Helper()
	box, err := h.Open(t.Context(), sandbox.Spec{
		ID: "test", Workspace: sandboxtest.Workspace(t, uid), UID: uid, Limits: sandbox.Limits{Processes: 512},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := box.Close(); err != nil {
			t.Error(err)
		}
	})
	return box
}

// say runs a script and gives what it wrote.
func say(t *testing.T, box sandbox.Box, script string) string {
	t.Helper()
	var out bytes.Buffer
	p, err := box.Start(t.Context(), sandbox.Command{Script: script, Stdout: &out})
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	return out.String()
}

func TestConformanceWithLandlock(t *testing.T) {
	asRoot(t)
	abi := landlock.ABI()
	if abi < landlock.ABIScopes {
		require.Feature(t, "landlock", "its ABI is below 6")
	}
	h := newHost(t, abi)
	sandboxtest.Conform(t, sandboxtest.Tier{Open: h.Open, WorkspacePath: h.WorkspacePath, UID: testUID, OtherUID: otherUID, Confined: true})
}

func TestConformanceWithoutLandlock(t *testing.T) {
	asRoot(t)
	h := newHost(t, 0)
	sandboxtest.Conform(t, sandboxtest.Tier{Open: h.Open, WorkspacePath: h.WorkspacePath, UID: testUID, OtherUID: otherUID})
}

func TestNoBoxWithoutAUIDOfItsOwn(t *testing.T) {
	h := newHost(t, 0)
	spec := sandbox.Spec{ID: "x", Workspace: t.TempDir()}
	want := "uid other than 0"
	if os.Geteuid() != 0 {
		spec.UID, want = testUID, "not root"
	}
	if _, err := h.Open(t.Context(), spec); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v", err)
	}
}

func TestCommandsAreTheUIDAndNothingMore(t *testing.T) {
	asRoot(t)
	before, err := syscall.Getgroups()
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setgroups([]int{4, 65531}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Setgroups(before); err != nil {
			t.Error(err)
		}
	}()
	got := say(t, open(t, newHost(t, 0), testUID), `grep -E '^(Uid|Gid|Groups|CapBnd|NoNewPrivs):' /proc/self/status | tr '\t' ' '; ulimit -u`)
	id := fmt.Sprintf("%[1]d %[1]d %[1]d %[1]d", testUID)
	want := "Uid: " + id + "\nGid: " + id + "\nGroups:  \nCapBnd: 0000000000000000\nNoNewPrivs: 1\n512\n"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Without Landlock it is the uid alone that keeps environments apart.
func TestEnvironmentsAreKeptApartByUID(t *testing.T) {
	asRoot(t)
	h := newHost(t, 0)
	one, two := open(t, h, testUID), open(t, h, otherUID)
	place := strings.TrimSpace(say(t, one, "echo secret >file; chmod 644 file; echo $PWD $TMPDIR; sleep 300 </dev/null >/dev/null 2>&1 & echo $! >pid"))
	dirs := strings.Fields(place)
	pid := strings.TrimSpace(say(t, one, "cat pid"))
	script := fmt.Sprintf("(cat %[1]s/file; ls %[1]s; ls %[2]s; kill -9 %[3]s; cat /proc/%[3]s/environ; echo done) 2>/dev/null", dirs[0], dirs[1], pid)
	if got := say(t, two, script); got != "done\n" {
		t.Errorf("another environment got %q", got)
	}
	if got := say(t, one, "kill -0 "+pid+" && echo lives"); got != "lives\n" {
		t.Errorf("its process does not live: %q", got)
	}
}

// alive counts the processes of a uid that have not ended.
func alive(t *testing.T, uid int) int {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*/status")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, name := range names {
		status, err := os.ReadFile(name)
		if err == nil && bytes.Contains(status, fmt.Appendf(nil, "\nUid:\t%d\t", uid)) && !bytes.Contains(status, []byte("\nState:\tZ")) {
			n++
		}
	}
	return n
}

// killer kills its init, and with it the ties of the rest: a reaper of a command
// is the init's child. What it started hides and is deaf.
const killer = `
for i in 1 2 3; do setsid env -i bash -c 'trap "" TERM HUP INT; while :; do sleep 300 & wait; done' & done
while read -r key value; do [ "$key" = PPid: ] && init=$value; done </proc/$PPID/status
sleep 0.05; kill -9 "$init"; sleep 300`

func TestNothingOutlivesAnInitThatItsCommandKills(t *testing.T) {
	asRoot(t)
	h := newHost(t, 0)
	for range 5 {
		box := open(t, h, testUID)
		p, err := box.Start(t.Context(), sandbox.Command{Script: killer, Stdout: &bytes.Buffer{}})
		if err != nil {
			t.Fatal(err)
		}
		select {
		case <-box.Done():
		case <-time.After(30 * time.Second):
			t.Fatal("the box lives on without its init")
		}
		if n := alive(t, testUID); n != 0 {
			t.Fatalf("%d processes of it live on", n)
		}
		<-p.Done()
		if !p.Result().Lost && p.Result().Signal != "KILL" {
			t.Errorf("got %+v", p.Result())
		}
	}
}

func TestWithLandlockACommandCannotKillItsInitByPid(t *testing.T) {
	asRoot(t)
	abi := landlock.ABI()
	if abi < landlock.ABIScopes {
		require.Feature(t, "landlock", "its ABI is below 6")
	}
	box := open(t, newHost(t, abi), testUID)
	got := say(t, box, `while read -r key value; do [ "$key" = PPid: ] && init=$value; done </proc/$PPID/status; kill -9 $init 2>/dev/null || echo refused; kill -9 -1`)
	if got != "refused\n" || say(t, box, "echo usable") != "usable\n" {
		t.Errorf("got %q", got)
	}
}

// stray starts a process with a uid that is nobody's box, deaf to all but KILL.
func stray(t *testing.T, uid int) {
	t.Helper()
	attr := &os.ProcAttr{Sys: &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}, Setsid: true}}
	p, err := os.StartProcess("/bin/bash", []string{"bash", "-c", `trap "" TERM HUP INT; f() { sleep 300 & [ $1 = 0 ] || f $(($1 - 1)); wait; }; f 20`}, attr)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = p.Wait()
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-p.Pid, syscall.SIGKILL) // with all that it started, which are of its group
		<-ended
	})
	for deadline := time.Now().Add(30 * time.Second); alive(t, uid) < 20; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not run")
		}
	}
}

func TestABoxHasItsUIDForItself(t *testing.T) {
	asRoot(t)
	h := newHost(t, 0)
	stray(t, testUID)
	stray(t, otherUID)
	box := open(t, h, testUID)
	if n := alive(t, testUID); n != 1 {
		t.Errorf("%d processes have the uid of a fresh box, not its init alone", n)
	}
	if got := say(t, box, "echo usable"); got != "usable\n" {
		t.Errorf("got %q", got)
	}
	if n := alive(t, otherUID); n < 20 {
		t.Errorf("another uid's processes were killed: %d are left", n)
	}
}

func TestABoxEndsTheOneBeforeItThatHasItsUID(t *testing.T) {
	asRoot(t)
	h := newHost(t, 0)
	before := open(t, h, testUID)
	for range 20 { // what ends one must not reach the next
		if _, err := before.Start(t.Context(), sandbox.Command{Script: "sleep 300", Stdout: &bytes.Buffer{}}); err != nil {
			t.Fatal(err)
		}
		next := open(t, h, testUID)
		select {
		case <-before.Done():
		default:
			t.Error("two boxes have one uid")
		}
		if got := say(t, next, "sleep 0.01; echo usable"); got != "usable\n" {
			t.Errorf("got %q", got)
		}
		before = next
	}
}

func TestLeftoversOfARangeAreEnded(t *testing.T) {
	asRoot(t)
	h := newHost(t, 0)
	stray(t, testUID)
	stray(t, otherUID)
	if err := h.EndLeftovers(t.Context(), testUID, testUID+1); err != nil {
		t.Fatal(err)
	}
	if n := alive(t, testUID); n != 0 {
		t.Errorf("%d processes are left", n)
	}
	if n := alive(t, otherUID); n < 20 {
		t.Errorf("a uid outside the range was touched: %d are left", n)
	}
}

func TestTheTemporaryFolderEndsWithTheBox(t *testing.T) {
	asRoot(t)
	box := open(t, newHost(t, 0), testUID)
	dir := strings.TrimSpace(say(t, box, "mkdir -p $TMPDIR/a/b; chmod 0 $TMPDIR/a; echo $TMPDIR"))
	if _, err := os.Stat(dir); dir == "" || err != nil {
		t.Fatalf("%q: %v", dir, err)
	}
	if err := box.Close(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(dir); os.IsNotExist(err) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("it is still there")
		}
	}
}
