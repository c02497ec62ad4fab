package datalock

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// holdVariable makes this test binary the second process of a test: it takes
// the lock of the folder that the variable names, says so, and holds it until
// its input ends.
const holdVariable = "DATALOCK_TEST_HOLD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(holdVariable); dir != "" {
		hold(dir)
	}
	goleak.VerifyTestMain(m)
}

func hold(dir string) {
	l, err := Acquire(dir, Holder{PID: os.Getpid(), Program: "the-other", Started: time.Now(), Address: "127.0.0.1:7"})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("held")
	_, _ = os.Stdin.Read(make([]byte, 1))
	_ = l.Close()
	os.Exit(0)
}

// startHolder starts a process that holds the lock of a folder.
func startHolder(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), holdVariable+"="+dir)
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "held\n" {
		t.Fatalf("the other process says %q, %v", line, err)
	}
	return cmd
}

func me() Holder {
	return Holder{PID: os.Getpid(), Program: "me", Started: time.Now().Truncate(time.Second)}
}

func TestASecondProcessIsToldWhoHasTheFolder(t *testing.T) {
	dir := t.TempDir()
	other := startHolder(t, dir)
	_, err := Acquire(dir, me())
	var held *HeldError
	if !errors.As(err, &held) || held.Holder == nil || held.Holder.PID != other.Process.Pid {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{dir, "the-other", fmt.Sprint(other.Process.Pid), "127.0.0.1:7", "ENVAPI_DATA_DIR"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not said in: %v", want, err)
		}
	}
}

func TestTheLockEndsWithItsProcessHoweverThatEnds(t *testing.T) {
	dir := t.TempDir()
	other := startHolder(t, dir)
	if err := other.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = other.Wait()
	l, err := Acquire(dir, me())
	if err != nil {
		t.Fatalf("after kill -9: %v", err)
	}
	if got := holderIn(t, dir); got.Program != "me" {
		t.Errorf("the file names %+v", got)
	}
	_ = l.Close()
}

func TestALockThatWasClosedIsFree(t *testing.T) {
	dir := t.TempDir()
	for range 3 {
		l, err := Acquire(dir, me())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Acquire(dir, me()); err == nil {
			t.Error("a second lock in the same process was given")
		}
		_ = l.Close()
	}
}

func TestDescribeReplacesWhatStoodThere(t *testing.T) {
	dir := t.TempDir()
	long := me()
	long.Address = strings.Repeat("x", 300)
	l, err := Acquire(dir, long)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	short := me()
	short.Address = "127.0.0.1:1"
	if err := l.Describe(short); err != nil {
		t.Fatal(err)
	}
	if got := holderIn(t, dir); got == nil || got.Address != short.Address || !got.Started.Equal(short.Started) {
		t.Errorf("got %+v, want %+v", got, short)
	}
}

func TestAFileThatSaysNothingStillLocks(t *testing.T) {
	for _, text := range []string{"", "garbage", "{}", `{"pid":0,"program":"x"}`, strings.Repeat("x", 1<<20)} {
		dir := t.TempDir()
		startHolder(t, dir)
		if err := os.WriteFile(filepath.Join(dir, fileName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Acquire(dir, me())
		var held *HeldError
		if !errors.As(err, &held) || held.Holder != nil || !strings.Contains(err.Error(), "another service has it") {
			t.Errorf("with %.10q: %v", text, err)
		}
	}
}

func TestTheFileIsForItsOwnerAloneAndNoLink(t *testing.T) {
	dir := t.TempDir()
	l, err := Acquire(dir, me())
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	if info, err := os.Stat(filepath.Join(dir, fileName)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	linked := t.TempDir()
	victim := filepath.Join(t.TempDir(), "victim")
	if err := errors.Join(os.WriteFile(victim, []byte("precious"), 0o600), os.Symlink(victim, filepath.Join(linked, fileName))); err != nil {
		t.Fatal(err)
	}
	if _, err := Acquire(linked, me()); err == nil {
		t.Error("a link was followed")
	}
	if text, _ := os.ReadFile(victim); string(text) != "precious" {
		t.Errorf("the link's target became %q", text)
	}
}

func holderIn(t *testing.T, dir string) *Holder {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, fileName))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	return readHolder(f)
}
