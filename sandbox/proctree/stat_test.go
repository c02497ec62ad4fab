package proctree_test

import (
	"os"
	"strings"
	"testing"

	"envapi/sandbox/proctree"
)

// statLine is a /proc/PID/stat of a process with this name, state and number of
// threads.
func statLine(name, state, threads string) string {
	return "7 (" + name + ") " + state + " 6 7 7 0 -1 4194304 1 2 3 4 15 16 0 0 20 0 " + threads +
		" 0 12345 1000 250 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 2304\n"
}

func TestTheFieldsBehindAnyName(t *testing.T) {
	for _, name := range []string{"bash", "a) Z 1 (b", "", "\n\x1b[31m\xff", "1 (x) S 3"} {
		got, err := proctree.ParseStat([]byte(statLine(name, "S", "3")))
		want := proctree.Stat{Name: name, State: 'S', Parent: 6, Birth: 12345, Ticks: 31, Threads: 3, Pages: 250, Exit: 9 << 8}
		if err != nil || got != want {
			t.Errorf("%q: got %+v, %v", name, got, err)
		}
	}
	for _, broken := range []string{"", "7 (x", "7 (x) S 6", strings.Replace(statLine("x", "S", "1"), " 12345 ", " soon ", 1), ") (" + statLine("x", "S", "1")[5:10]} {
		if got, err := proctree.ParseStat([]byte(broken)); err == nil {
			t.Errorf("%q is taken for %+v", broken, got)
		}
	}
	if own, err := proctree.StatOf(os.Getpid()); err != nil || own.Parent != os.Getppid() || own.Threads < 1 || own.Pages < 1 {
		t.Errorf("got %+v, %v", own, err)
	}
}

// One whose first thread has ended is shown as a zombie, and runs on.
func TestAProcessHasEndedWithItsLastThread(t *testing.T) {
	for _, c := range []struct {
		state, threads string
		ended          bool
	}{{"S", "1", false}, {"T", "1", false}, {"Z", "1", true}, {"Z", "0", true}, {"X", "0", true}, {"Z", "2", false}} {
		if s, err := proctree.ParseStat([]byte(statLine("x", c.state, c.threads))); err != nil || s.Ended() != c.ended {
			t.Errorf("%s with %s threads: got %v, %v", c.state, c.threads, s.Ended(), err)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte(statLine("bash", "S", "1")))
	f.Add([]byte(statLine("a) Z 1 (b", "Z", "2")))
	f.Fuzz(func(t *testing.T, content []byte) {
		s, err := proctree.ParseStat(content)
		if err == nil && !strings.Contains(string(content), "("+s.Name+")") {
			t.Errorf("%q has the name %q", content, s.Name)
		}
	})
}
