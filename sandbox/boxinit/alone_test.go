package boxinit

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestWhoHasAUIDAndCanStillRun(t *testing.T) {
	const lives = "Name:\tx\nUmask:\t0022\nState:\tS (sleeping)\nUid:\t70\t71\t72\t73\nGid:\t9\t9\t9\t9\nThreads:\t1\n"
	ended := strings.Replace(lives, "S (sleeping)", "Z (zombie)", 1)
	for name, c := range map[string]struct {
		status string
		uid    int
		has    bool
	}{
		"its real uid":       {lives, 70, true},
		"its effective uid":  {lives, 71, true},
		"its saved uid":      {lives, 72, true},
		"another's":          {lives, 7, false},
		"a gid":              {lives, 9, false},
		"a zombie":           {ended, 70, false},
		"its first thread":   {strings.Replace(ended, "Threads:\t1", "Threads:\t2", 1), 70, true},
		"one that is gone":   {strings.Replace(lives, "S (sleeping)", "X (dead)", 1), 70, false},
		"a forged name":      {"Name:\tx\\nUid:\t5\t5\n" + strings.TrimPrefix(lives, "Name:\tx\n"), 5, false},
		"nothing to be read": {"", 0, false},
	} {
		if got := hasUID([]byte(c.status), c.uid); got != c.has {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestWhatHasEndedDoesNotCount(t *testing.T) {
	uid := os.Getuid()
	if uid == 0 {
		t.Skip("much has uid 0; the user's pass runs this")
	}
	child := exec.Command("sleep", "300")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	before, err := countOf(uid)
	if err != nil || before < 2 {
		t.Errorf("it and its child are %d, %v", before, err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		if after, err := countOf(uid); err == nil && after < before {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("a child that has ended counts")
		}
	}
}

// TestWhoKeepsRootsCapabilitiesKillsNobody does it in a pid namespace, all of which
// it would kill.
func TestWhoKeepsRootsCapabilitiesKillsNobody(t *testing.T) {
	if os.Getenv("ENVAPI_TEST_ALONE") != "" {
		killWithCapabilities(t)
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("only root takes uids; root's pass runs this")
	}
	inside := exec.Command("/proc/self/exe", "-test.run", "^"+t.Name()+"$")
	inside.Env = append(os.Environ(), "ENVAPI_TEST_ALONE=1")
	inside.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID}
	if out, err := inside.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func killWithCapabilities(t *testing.T) {
	if os.Getpid() != 1 {
		t.Fatal("this is no pid namespace of its own")
	}
	const nobodys, noSetuidFixup = 1999999999, 1 << 2
	other := exec.Command("sleep", "300")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread() // for good: the thread is not used again
	if err := unix.Prctl(unix.PR_SET_SECUREBITS, noSetuidFixup, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	if err := killAllOf(nobodys); err == nil {
		t.Error("it was done")
	}
	if pid, err := syscall.Wait4(other.Process.Pid, nil, syscall.WNOHANG, nil); pid != 0 || err != nil {
		t.Errorf("a process of root's was killed: %d, %v", pid, err)
	}
	_ = other.Process.Kill()
}
