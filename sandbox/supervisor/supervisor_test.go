package supervisor_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"envapi/sandbox"
	"envapi/sandbox/protocol"
	"envapi/sandbox/supervisor"
)

// TestMain is also the init of the hostile boxes below: this test's own
// program, started by the launcher under the init's name.
func TestMain(m *testing.M) {
	if os.Args[0] == "envapi-init" {
		hostile()
		return
	}
	goleak.VerifyTestMain(m)
}

// hostile is an init that breaks the protocol in the way that its setup names.
func hostile() {
	request, fds, err := protocol.ReadRequest(protocol.ControlFD)
	if err != nil || request.Setup == nil {
		os.Exit(1)
	}
	protocol.CloseAll(fds)
	control := os.NewFile(protocol.ControlFD, "control")
	say := func(r protocol.Report) {
		frame, _ := protocol.Encode(r, 0)
		_, _ = control.Write(frame)
	}
	mode := request.Setup.Hostname
	if mode == "silent at setup" {
		select {}
	}
	if mode == "fails" {
		say(protocol.Report{Failed: &protocol.Failed{Stage: "root", Errno: unix.EPERM, Message: "cannot mount"}})
		return
	}
	if mode == "ends at setup" {
		return
	}
	say(protocol.Report{Ready: &protocol.Ready{}})
	next, fds, err := protocol.ReadRequest(protocol.ControlFD)
	if err != nil {
		return
	}
	var id uint64
	tell := func(...uint32) {}
	if next.Spawn != nil {
		id = next.Spawn.ID
		status := os.NewFile(uintptr(fds[0]), "status")
		tell = func(kinds ...uint32) {
			for _, kind := range kinds {
				b := make([]byte, protocol.StatusSize)
				binary.NativeEndian.PutUint32(b, kind)
				_, _ = status.Write(b)
			}
		}
		fds = fds[1:]
	}
	if next.List != nil {
		content, length := hostileListing(mode)
		_, _ = unix.Pwrite(fds[0], []byte(content), 0)
		say(protocol.Report{Listed: &protocol.Listed{Seq: next.List.Seq, Length: length}})
	}
	if next.Wait != nil {
		hostileWait(mode, next.Wait, say)
	}
	protocol.CloseAll(fds)
	const started, failed, ended = uint32(protocol.StatusStarted), uint32(protocol.StatusFailed), uint32(protocol.StatusEnded)
	switch mode {
	case "garbage":
		_, _ = control.WriteString(strings.Repeat("\xffgarbage", 1000))
	case "huge":
		_, _ = control.Write([]byte{0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0})
	case "endless":
		for {
			say(protocol.Report{Signaled: &protocol.Signaled{Seq: 1}})
		}
	case "endless statuses":
		for {
			tell(started)
		}
	case "half a frame":
		_, _ = control.Write([]byte{100, 0, 0, 0, 0, 0, 0, 0, '{'})
	case "another's end":
		tell(started)
		say(protocol.Report{Ended: &protocol.Ended{ID: id + 1}})
	case "two ends":
		tell(started, ended, ended)
	case "an end before a start":
		tell(ended)
	case "a start and a failure":
		tell(started, failed)
	case "a status of no kind":
		tell(7)
	case "gone while its reaper lives":
		tell(started)
		say(protocol.Report{Gone: &protocol.Gone{ID: id}})
	case "an answer that nobody asked for":
		say(protocol.Report{Signaled: &protocol.Signaled{Seq: 99}})
	case "ready twice":
		say(protocol.Report{Ready: &protocol.Ready{}})
		say(protocol.Report{Ready: &protocol.Ready{}})
	case "another answer":
		say(protocol.Report{Signaled: &protocol.Signaled{Seq: next.Count.Seq}})
	case "a negative reach":
		say(protocol.Report{Signaled: &protocol.Signaled{Seq: next.Strike.Seq, Reached: -1}})
	case "descriptors":
		frame, _ := protocol.Encode(protocol.Report{Refused: &protocol.Refused{ID: id}}, 1)
		_ = unix.Sendmsg(protocol.ControlFD, frame, unix.UnixRights(0), nil, 0)
	}
	_, _, _ = protocol.ReadRequest(protocol.ControlFD) // until it is ended
}

// launch makes a box of the hostile init. A test binary with cgo (-race) will
// do: it locks nothing down.
func launch(t *testing.T, mode string) (*supervisor.Box, error) {
	t.Helper()
	launcher, err := supervisor.NewLauncher("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = launcher.Close() })
	box, err := supervisor.Launch(t.Context(), launcher, supervisor.Options{
		ID:    "hostile",
		Setup: protocol.Setup{Hostname: mode},
		Log:   slog.New(slog.DiscardHandler),
	})
	if err == nil {
		t.Cleanup(func() { _ = box.Close() })
	}
	return box, err
}

func await(t *testing.T, done <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal(what)
	}
}

func TestD19AHostileInitEndsItsBoxOnly(t *testing.T) {
	for _, mode := range []string{
		"garbage", "huge", "endless", "endless statuses", "half a frame", "another's end", "two ends",
		"an end before a start", "a start and a failure", "a status of no kind", "gone while its reaper lives",
		"an answer that nobody asked for", "ready twice", "descriptors",
	} {
		t.Run(mode, func(t *testing.T) {
			box, err := launch(t, mode)
			if err != nil {
				t.Fatal(err)
			}
			if mode == "half a frame" || mode == "gone while its reaper lives" { // nothing follows: it is ended from here
				time.AfterFunc(50*time.Millisecond, func() { _ = box.Close() })
			}
			p, err := box.Start(t.Context(), sandbox.Command{Script: "true", Stdout: &bytes.Buffer{}})
			if err == nil {
				await(t, p.Done(), "a command of a hostile box runs for ever")
			}
			await(t, box.Done(), "a hostile box lives on")
		})
	}
}

func TestAnotherAnswerThanToTheQuestionEndsTheBox(t *testing.T) {
	box, err := launch(t, "another answer")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := box.Usage(t.Context()); err == nil {
		t.Errorf("it was taken: %+v", n)
	}
	await(t, box.Done(), "a hostile box lives on")
}

func TestASetupThatFailsIsTold(t *testing.T) {
	if _, err := launch(t, "fails"); err == nil || !strings.Contains(err.Error(), "stage root: cannot mount") {
		t.Errorf("got %v", err)
	}
	if _, err := launch(t, "ends at setup"); err == nil {
		t.Error("a box without an init was made")
	}
}

func TestALaunchThatIsCancelledLeavesNothing(t *testing.T) {
	launcher, err := supervisor.NewLauncher("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer launcher.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err = supervisor.Launch(ctx, launcher, supervisor.Options{
		ID: "silent", Log: slog.New(slog.DiscardHandler), Setup: protocol.Setup{Hostname: "silent at setup"},
	})
	if err == nil {
		t.Fatal("it was made")
	}
	if _, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); !errors.Is(err, syscall.ECHILD) {
		t.Errorf("its init is left: %v", err)
	}
}

func TestTheLauncherNeedsItsProgram(t *testing.T) {
	if _, err := supervisor.NewLauncher(t.TempDir() + "/nothing"); err == nil {
		t.Error("it was made")
	}
}

func TestSealedFilesCannotBeChanged(t *testing.T) {
	program, err := supervisor.Seal(strings.NewReader("program"))
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	script, err := supervisor.ScriptFile("script")
	if err != nil {
		t.Fatal(err)
	}
	defer script.Close()
	for _, f := range []*os.File{program, script} {
		if _, err := f.WriteAt([]byte("x"), 0); !errors.Is(err, unix.EPERM) {
			t.Errorf("%s: writing: got %v", f.Name(), err)
		}
		if err := f.Truncate(0); !errors.Is(err, unix.EPERM) {
			t.Errorf("%s: truncating: got %v", f.Name(), err)
		}
		if err := f.Truncate(1 << 20); !errors.Is(err, unix.EPERM) {
			t.Errorf("%s: growing: got %v", f.Name(), err)
		}
	}
}
