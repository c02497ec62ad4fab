package supervisor_test

import (
	"bufio"
	"os"
	"os/exec"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"envapi/sandbox/supervisor"
)

// In a container that may gain no privileges everything has no_new_privs, also what
// others start there and leave to its first process, which the service may be.
func TestWhatHasNoNewPrivilegesAloneComesOutOfNoBox(t *testing.T) {
	if os.Getenv("ENVAPI_TEST_STRANGER") != "" {
		_, _ = os.Stdout.WriteString("\n")
		_, _ = bufio.NewReader(os.Stdin).ReadByte()
		return
	}
	stranger := exec.Command("/proc/self/exe", "-test.run", "^"+t.Name()+"$")
	stranger.Env = append(os.Environ(), "ENVAPI_TEST_STRANGER=1")
	input, err := stranger.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := stranger.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: it cannot be undone
		err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
		if err == nil {
			err = stranger.Start()
		}
		started <- err
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(output).ReadByte(); err != nil {
		t.Fatal(err)
	}
	if supervisor.LockedDown(stranger.Process.Pid) {
		t.Error("it would be killed with what a box leaves")
	}
	_ = input.Close()
	_ = stranger.Wait()
}
