package boxinit

import (
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"envapi/sandbox/proctree"
	"envapi/sandbox/protocol"
)

const (
	header  = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode"
	listens = "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0000000000000000 100 0 0 10 0"
	sixth   = "   1: 00000000000000000000000001000000:0050 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4712 1"
)

func TestSocketsThatListenAreTold(t *testing.T) {
	for _, c := range []struct{ name, table, line, want string }{
		{"TCP", "tcp", listens, "127.0.0.1:8080"},
		{"TCP of version 6", "tcp6", sixth, "[::1]:80"},
		{"a connection", "tcp", strings.Replace(listens, " 0A ", " 01 ", 1), ""},
		{"a closed one", "tcp", strings.Replace(listens, " 0A ", " 07 ", 1), ""},
		{"UDP", "udp", strings.Replace(listens, " 0A ", " 07 ", 1), "127.0.0.1:8080"},
		{"UDP that is connected", "udp", strings.Replace(listens, "00000000:0000 0A", "0100007F:0035 01", 1), ""},
		{"UDP that is not bound", "udp", strings.Replace(strings.Replace(listens, " 0A ", " 07 ", 1), ":1F90", ":0000", 1), ""},
		{"one that is nobody's", "tcp", strings.Replace(listens, " 4711 ", " 0 ", 1), ""},
		{"the header", "tcp", header, ""},
		{"half a line", "tcp", listens[:40], ""},
		{"nothing", "tcp", "", ""},
		{"an address of three words", "tcp6", strings.Replace(sixth, "0000000000000000000000000100", "00000000000000000100", 1), ""},
		{"no number", "tcp", strings.Replace(listens, "0100007F", "0100007G", 1), ""},
		{"a large port", "tcp", strings.Replace(listens, ":1F90", ":11F90", 1), ""},
	} {
		inode, at, ok := parseSocket(c.table, []byte(c.line))
		if ok != (c.want != "") || ok && (at.String() != c.want || !strings.HasPrefix(inode, "471")) {
			t.Errorf("%s: got %v %v %v, want %q", c.name, inode, at, ok, c.want)
		}
	}
}

func FuzzParseSocket(f *testing.F) {
	f.Add("tcp", listens)
	f.Add("udp6", strings.Replace(sixth, " 0A ", " 07 ", 1))
	f.Add("tcp", header)
	f.Fuzz(func(t *testing.T, table, line string) {
		_, at, ok := parseSocket(table, []byte(line))
		if ok && (at.Port() == 0 || at.Addr() == netip.Addr{}) {
			t.Errorf("%q is taken for %v", line, at)
		}
	})
}

func TestArgumentsBecomeOneText(t *testing.T) {
	for in, want := range map[string]string{
		"sleep\x0030\x00": "sleep 30", "": "", "\x00\x00": "", " \x00": "", "a\x00\x00b\x00": "a  b", "a\nb\x1b[m\x00": "a\nb\x1b[m", "\xff\x00x": "\ufffd x",
		strings.Repeat("é", 600): strings.Repeat("é", 512), "x" + strings.Repeat("é", 600): "x" + strings.Repeat("é", 511),
	} {
		if got := joined([]byte(in)); got != want || len(got) > protocol.MaxCommand || !utf8.ValidString(got) {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// However much there is, there is room for all of it.
func TestAListingFits(t *testing.T) {
	l := protocol.Listing{}
	for i := range protocol.MaxEntries {
		l.Processes = append(l.Processes, protocol.Entity{
			PID: 1<<22 - protocol.MaxEntries + i, Parent: 1 << 22, Birth: 1 << 38, State: "S", Command: strings.Repeat("\x01", protocol.MaxCommand),
			CPU: 1 << 60, Percent: 12345.6, Memory: 1 << 45, Threads: 1 << 15, Of: 1 << 60, Marks: 1 << 60,
		})
	}
	for i := range protocol.MaxListeners {
		at := netip.AddrPortFrom(netip.MustParseAddr("1234:1234:1234:1234:1234:1234:1234:1234"), uint16(i+1))
		l.Processes[i/8].Listens = append(l.Processes[i/8].Listens, protocol.Listen{Protocol: "tcp6", At: at})
	}
	content, err := encodeListing(l)
	if err != nil || len(content) > protocol.MaxListing {
		t.Fatalf("%d bytes: %v", len(content), err)
	}
	got, err := protocol.DecodeListing(content)
	if err != nil || len(got.Processes) != protocol.MaxEntries || got.Processes[0].Command == "" {
		t.Errorf("got %d, %v", len(got.Processes), err)
	}
}

func TestWhatIsStuckIsGivenUp(t *testing.T) {
	s := &server{slow: make(chan struct{}, maxStuck)}
	stuck := make(chan struct{})
	for range maxStuck {
		if _, ok := patiently(s, func() int { <-stuck; return 1 }); ok {
			t.Error("it was waited for")
		}
	}
	if _, ok := patiently(s, func() int { return 1 }); ok {
		t.Error("one more was begun")
	}
	close(stuck)
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		if n, ok := patiently(s, func() int { return 1 }); ok && n == 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("nothing is begun any more")
		}
	}
}

func TestWhatAProcessUsesOfACore(t *testing.T) {
	at := time.Now()
	before := sight{Stat: proctree.Stat{Birth: 7}, at: at, used: time.Second}
	now := sight{Stat: proctree.Stat{Birth: 7}, at: at.Add(200 * time.Millisecond), used: time.Second + 50*time.Millisecond}
	if got := percentOf(before, true, now); got != 25 {
		t.Errorf("got %v", got)
	}
	now.used = 0 // a clock that goes back
	if got := percentOf(before, true, now); got != 0 {
		t.Errorf("got %v", got)
	}
	now.Birth, now.used = proctree.Now(), time.Millisecond // another one, which has just begun
	if got := percentOf(before, true, now); got <= 0 || got > 10 {
		t.Errorf("got %v", got)
	}
}

func TestAProcessDescendsFromItsAncestorsAlone(t *testing.T) {
	child, other := exec.Command("sleep", "300"), exec.Command("sleep", "300")
	for _, cmd := range []*exec.Cmd{child, other} {
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
	}
	stat, err := proctree.StatOf(child.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	for _, top := range []int{os.Getpid(), os.Getppid()} {
		if birth, err := descends(child.Process.Pid, top); err != nil || birth != stat.Birth {
			t.Errorf("from %d: got %d, %v", top, birth, err)
		}
	}
	for name, pair := range map[string][2]int{
		"itself":    {child.Process.Pid, child.Process.Pid},
		"a sibling": {child.Process.Pid, other.Process.Pid},
		"a child":   {os.Getpid(), child.Process.Pid},
		"nobody":    {1<<22 - 1, os.Getpid()},
	} {
		if _, err := descends(pair[0], pair[1]); !errors.Is(err, protocol.NoProcess) {
			t.Errorf("from %s: got %v", name, err)
		}
	}
	if holds([]kin{{child.Process.Pid, os.Getpid(), stat.Birth + 1}}) || holds([]kin{{child.Process.Pid, 1, stat.Birth}}) {
		t.Error("a line holds that is another now")
	}
	s := &server{pids: map[int]*command{}}
	if _, err := s.claim(protocol.Aim{PID: os.Getpid()}); !errors.Is(err, protocol.NoProcess) {
		t.Errorf("the init: got %v", err)
	}
	s.pids[child.Process.Pid] = &command{reaper: child.Process.Pid}
	if _, err := s.claim(protocol.Aim{PID: child.Process.Pid}); !errors.Is(err, protocol.NoProcess) {
		t.Errorf("a reaper: got %v", err)
	}
	held, err := s.claim(protocol.Aim{PID: other.Process.Pid})
	if err != nil {
		t.Fatal(err)
	}
	_ = unix.Close(held.Handle)
}

func TestMarksTellWhenAProcessCame(t *testing.T) {
	c := &command{marks: 1}
	c.remember(map[int]uint64{5: 50})
	c.remember(map[int]uint64{5: 50, 6: 60})
	c.remember(map[int]uint64{5: 51, 6: 60}) // 5 is another one
	if c.came[5].marks != 3 || c.came[6].marks != 2 || c.marks != 4 {
		t.Errorf("got %+v, %d", c.came, c.marks)
	}
}
