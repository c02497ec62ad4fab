package protocol_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"envapi/sandbox/protocol"
)

func frame(t testing.TB, message any, fds int) []byte {
	t.Helper()
	b, err := protocol.Encode(message, fds)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// raw is a frame whose header may lie.
func raw(length, fds uint32, body string) []byte {
	b := binary.LittleEndian.AppendUint32(nil, length)
	return append(binary.LittleEndian.AppendUint32(b, fds), body...)
}

func TestReportsAreReadBack(t *testing.T) {
	want := protocol.Report{Ended: &protocol.Ended{ID: 7, WaitStatus: 3 << 8, CPUMicroseconds: 5, PeakMemoryBytes: 6}}
	got, err := protocol.ReadReport(bytes.NewReader(frame(t, want, 0)))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestHostileReportsAreRefused(t *testing.T) {
	for name, input := range map[string][]byte{
		"D19 garbage":                 []byte(strings.Repeat("\xffgarbage", 100)),
		"D19 a huge length":           raw(1<<31, 0, "{}"),
		"a length over the bound":     raw(protocol.MaxReport+1, 0, strings.Repeat(" ", protocol.MaxReport+1)),
		"an empty body":               raw(0, 0, ""),
		"descriptors are announced":   raw(2, 1, "{}"),
		"half a header":               {1, 0},
		"half a body":                 raw(10, 0, `{"re`),
		"no member":                   raw(2, 0, `{}`),
		"two members":                 raw(24, 0, `{"ready":{},"failed":{}}`),
		"an unknown member":           raw(10, 0, `{"spam":1}`),
		"an unknown member inside":    raw(20, 0, `{"gone":{"id":1,"x":2}}`[:20]),
		"something behind the object": raw(14, 0, `{"ready":{}} 1`),
		"a number that is too large":  raw(36, 0, `{"gone":{"id":99999999999999999999}}`),
		"a negative id":               raw(18, 0, `{"gone":{"id":-1}}`),
		"an array":                    raw(4, 0, `[{}]`),
		"null":                        raw(4, 0, `null`),
		"a string where an object is": raw(14, 0, `{"ready":"yes"}`[:14]),
		"a number as a string":        raw(33, 0, `{"ended":{"id":1,"wait_status":""}}`[:33]),
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := protocol.ReadReport(bytes.NewReader(input)); err == nil {
				t.Errorf("accepted: %+v", got)
			}
		})
	}
}

func FuzzReadReport(f *testing.F) {
	f.Add(frame(f, protocol.Report{Ready: &protocol.Ready{}}, 0))
	f.Add(frame(f, protocol.Report{Failed: &protocol.Failed{Stage: "root", Errno: 1, Message: "x"}}, 0))
	f.Add(frame(f, protocol.Report{Ended: &protocol.Ended{ID: 1, WaitStatus: 9}}, 0))
	f.Add(raw(2, 0, "{}"))
	f.Fuzz(func(t *testing.T, input []byte) {
		report, err := protocol.ReadReport(bytes.NewReader(input))
		if err != nil {
			return
		}
		again, err := protocol.ReadReport(bytes.NewReader(frame(t, report, 0)))
		if err != nil || !reflect.DeepEqual(again, report) {
			t.Errorf("accepted %+v, which is not read back: %+v, %v", report, again, err)
		}
	})
}

// pair gives both ends of a stream socket.
func pair(t *testing.T) (ours, theirs int) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { protocol.CloseAll(fds[:]) })
	return fds[0], fds[1]
}

func send(t *testing.T, fd int, b []byte, fds ...int) {
	t.Helper()
	if err := unix.Sendmsg(fd, b, unix.UnixRights(fds...), nil, 0); err != nil {
		t.Fatal(err)
	}
}

func TestRequestsBringTheirDescriptors(t *testing.T) {
	ours, theirs := pair(t)
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	want := protocol.Request{Spawn: &protocol.Spawn{ID: 1, Argv: []string{"true"}, Env: []string{}, Merge: true}}
	send(t, ours, frame(t, want, 2), int(file.Fd()), int(file.Fd()))
	got, fds, err := protocol.ReadRequest(theirs)
	if err != nil || !reflect.DeepEqual(got, want) || len(fds) != want.Spawn.FDs() {
		t.Fatalf("got %+v %v, %v", got, fds, err)
	}
	defer protocol.CloseAll(fds)
	if flags, err := unix.FcntlInt(uintptr(fds[0]), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("a descriptor would be inherited: %v", err)
	}
}

func TestRequestsWithOtherDescriptorsThanTheySayAreRefused(t *testing.T) {
	before := openFiles(t)
	t.Cleanup(func() { // after the sockets are closed
		if after := openFiles(t); after > before {
			t.Errorf("%d descriptors were open before, %d after", before, after)
		}
	})
	ours, theirs := pair(t)
	null, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(null)
	count := protocol.Request{Count: &protocol.Count{Seq: 1}}
	for name, c := range map[string]struct {
		says int
		fds  []int
	}{
		"one more":      {0, []int{null}},
		"one less":      {1, nil},
		"over the most": {protocol.MaxFDs + 1, nil},
		"more than fit": {protocol.MaxFDs, slices.Repeat([]int{null}, 2*protocol.MaxFDs)},
	} {
		send(t, ours, frame(t, count, c.says), c.fds...)
		if _, _, err := protocol.ReadRequest(theirs); err == nil {
			t.Errorf("%s: accepted", name)
		}
		ours, theirs = pair(t) // what is left of the frame is in the old one
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func TestTheEndOfTheSocketIsTold(t *testing.T) {
	ours, theirs := pair(t)
	if err := unix.Shutdown(ours, unix.SHUT_WR); err != nil {
		t.Fatal(err)
	}
	if _, _, err := protocol.ReadRequest(theirs); !errors.Is(err, io.EOF) {
		t.Errorf("got %v", err)
	}
}

// statusBytes is a status as a reaper writes it.
func statusBytes(kind, value uint32, cpu, memory int64) []byte {
	b := binary.NativeEndian.AppendUint32(nil, kind)
	b = binary.NativeEndian.AppendUint32(b, value)
	b = binary.NativeEndian.AppendUint64(b, uint64(cpu))
	return binary.NativeEndian.AppendUint64(b, uint64(memory))
}

func TestStatusesAreReadStrictly(t *testing.T) {
	for name, c := range map[string]struct {
		input []byte
		want  protocol.Status // the zero value: refused
	}{
		"a start":                 {statusBytes(1, 0, 0, 0), protocol.Status{Kind: protocol.StatusStarted}},
		"a failure":               {statusBytes(2, 11, 0, 0), protocol.Status{Kind: protocol.StatusFailed, Value: 11}},
		"an exit":                 {statusBytes(3, 7<<8, 1, 2), protocol.Status{Kind: protocol.StatusEnded, Value: 7 << 8, CPUMicroseconds: 1, PeakMemoryBytes: 2}},
		"a death by signal":       {statusBytes(3, 9, 0, 0), protocol.Status{Kind: protocol.StatusEnded, Value: 9}},
		"no kind":                 {statusBytes(0, 0, 0, 0), protocol.Status{}},
		"an unknown kind":         {statusBytes(4, 0, 0, 0), protocol.Status{}},
		"negative usage":          {statusBytes(3, 0, -1, 0), protocol.Status{}},
		"stopped is no end":       {statusBytes(3, 0x137f, 0, 0), protocol.Status{}},
		"half a status":           {statusBytes(3, 0, 0, 0)[:20], protocol.Status{}},
		"D19 garbage of its size": {bytes.Repeat([]byte{0xff}, protocol.StatusSize), protocol.Status{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := protocol.ReadStatus(bytes.NewReader(c.input))
			if got != c.want || (err == nil) != (c.want.Kind != 0) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
	if _, err := protocol.ReadStatus(bytes.NewReader(nil)); !errors.Is(err, io.EOF) {
		t.Errorf("the end: %v", err)
	}
}

func FuzzReadStatus(f *testing.F) {
	f.Add(statusBytes(1, 0, 0, 0))
	f.Add(statusBytes(3, 9, 1<<40, 1<<40))
	f.Fuzz(func(t *testing.T, input []byte) {
		s, err := protocol.ReadStatus(bytes.NewReader(input))
		if err != nil {
			return
		}
		if again := statusBytes(uint32(s.Kind), s.Value, s.CPUMicroseconds, s.PeakMemoryBytes); !bytes.Equal(again, input[:protocol.StatusSize]) {
			t.Errorf("accepted %x as %+v", input, s)
		}
	})
}
