package app

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"envapi/internal/testbin"
)

func TestADoctorThatIsInterruptedSaysSoAndCleansUp(t *testing.T) {
	tmp := t.TempDir()
	cmd := exec.Command(testbin.Path(t, "envapi-http"), "doctor", "--attack")
	cmd.Dir, cmd.Env = tmp, []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + tmp}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		if at, _ := filepath.Glob(filepath.Join(tmp, "envapi-doctor-*", "bait")); len(at) > 0 || time.Now().After(end) {
			break // the attacks begin
		}
	}
	_ = cmd.Process.Signal(syscall.SIGINT)
	<-ended
	if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(stderr.String(), errInterrupted.Error()) || stdout.Len() > 0 {
		t.Errorf("%v\n%s\n%s", cmd.ProcessState, stderr.String(), stdout.String())
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("it left %v, %v", left, err)
	}
}
