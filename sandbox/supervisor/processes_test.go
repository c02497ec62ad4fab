package supervisor_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"envapi/sandbox"
	"envapi/sandbox/protocol"
	"envapi/sandbox/supervisor"
)

// hostileListing is what an init writes that breaks the protocol, and how long it
// says that is.
func hostileListing(mode string) (content string, length int) {
	switch mode {
	case "a listing that is none":
		return "garbage", 7
	case "a listing of another order":
		content = `{"processes":[{"pid":3,"state":"S"},{"pid":2,"state":"S"}]}`
	case "a listing that is too long":
		return "{}", protocol.MaxListing + 1
	case "a listing of no length":
		return "{}", -1
	}
	return content, len(content)
}

// hostileWait answers a wait in the way that the mode says.
func hostileWait(mode string, wait *protocol.Wait, say func(protocol.Report)) {
	if mode == "a wait that is counted for a process" {
		say(protocol.Report{Counted: &protocol.Counted{Seq: wait.Seq}})
		return
	}
	say(protocol.Report{Found: &protocol.Found{Seq: wait.Seq}})
	switch mode {
	case "an end that is none":
		say(protocol.Report{Waited: &protocol.Waited{End: wait.End, Ended: true, Known: true, WaitStatus: 0x137f}})
	case "a wait that is given up":
		say(protocol.Report{Waited: &protocol.Waited{End: wait.End}})
	case "an end that is told twice":
		say(protocol.Report{Waited: &protocol.Waited{End: wait.End, Ended: true}})
		say(protocol.Report{Waited: &protocol.Waited{End: wait.End, Ended: true}})
	case "an end by another report":
		say(protocol.Report{Counted: &protocol.Counted{Seq: wait.End}})
	}
}

func TestD19AHostileListOrWaitEndsTheBoxOnly(t *testing.T) {
	list := func(box *supervisor.Box) error {
		found, err := box.Processes(t.Context())
		if len(found) != 0 {
			t.Errorf("it was taken: %+v", found)
		}
		return err
	}
	wait := func(box *supervisor.Box) error {
		_, err := box.WaitProcess(t.Context(), sandbox.ProcessRef{PID: 7})
		return err
	}
	strike := func(box *supervisor.Box) error {
		_, err := box.SignalProcess(t.Context(), sandbox.ProcessRef{PID: 7}, "TERM", false)
		return err
	}
	for mode, ask := range map[string]func(*supervisor.Box) error{
		"a listing that is none":               list,
		"a listing of another order":           list,
		"a listing that is too long":           list,
		"a listing of no length":               list,
		"a wait that is counted for a process": wait,
		"an end that is none":                  wait,
		"a wait that is given up":              wait,
		"an end that is told twice":            nil,
		"an end by another report":             nil,
		"a negative reach":                     strike,
	} {
		t.Run(mode, func(t *testing.T) {
			box, err := launch(t, mode)
			if err != nil {
				t.Fatal(err)
			}
			if ask == nil {
				_ = wait(box)
			} else if err := ask(box); err == nil {
				t.Error("it was taken")
			}
			await(t, box.Done(), "a hostile box lives on")
		})
	}
}

func TestAListIsWrittenNoLongerThanItsFile(t *testing.T) {
	f, err := supervisor.ListingFile()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte("x"), protocol.MaxListing); !errors.Is(err, unix.EPERM) {
		t.Errorf("behind its end: got %v", err)
	}
	for _, size := range []int64{0, protocol.MaxListing + 1} {
		if err := f.Truncate(size); !errors.Is(err, unix.EPERM) {
			t.Errorf("to %d: got %v", size, err)
		}
	}
	if _, err := f.WriteAt([]byte(strings.Repeat("x", protocol.MaxListing)), 0); err != nil {
		t.Errorf("as long as it is: %v", err)
	}
	if flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("it would be inherited: %v", err)
	}
}

func TestTimesOfProcessesGoBothWays(t *testing.T) {
	for _, birth := range []uint64{1, 99, 123_456_789, 10_000_000_000} {
		at := supervisor.StartedAt(birth)
		if at.Nanosecond()%int(time.Millisecond) != 0 {
			t.Errorf("%v is no whole number of milliseconds", at)
		}
		told, err := time.Parse("2006-01-02T15:04:05.000Z", at.UTC().Format("2006-01-02T15:04:05.000Z"))
		if err != nil || supervisor.BirthOf(told) != birth || !supervisor.StartedAt(birth).Equal(at) {
			t.Errorf("%d: got %d, %v", birth, supervisor.BirthOf(told), err)
		}
		if supervisor.BirthOf(at.Add(10*time.Millisecond)) != birth+1 {
			t.Errorf("%d: the next tick is %d", birth, supervisor.BirthOf(at.Add(10*time.Millisecond)))
		}
	}
	for _, at := range []time.Time{supervisor.StartedAt(0), time.Unix(0, 0), time.Unix(-1<<40, 0)} {
		if got := supervisor.BirthOf(at); got != math.MaxUint64 {
			t.Errorf("%v: got %d", at, got)
		}
	}
}
