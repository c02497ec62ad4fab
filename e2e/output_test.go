package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"envapi/internal/require"
)

// numbers is what `seq 1 n` prints.
func numbers(n int) []byte {
	var b bytes.Buffer
	for i := 1; i <= n; i++ {
		fmt.Fprintln(&b, i)
	}
	return b.Bytes()
}

func TestB9B11LongOutputIsCountedAndReadable(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		p := s.place(t)
		want := numbers(500_000) // 3.3 MB
		for exit := range 2 {
			c := p.exec(t, object{"command": fmt.Sprintf("seq 1 500000; exit %d", exit), "wait_ms": 45000})
			if c.exit() != exit || c.Stdout.Total != int64(len(want)) || !c.Stdout.Truncated {
				t.Fatalf("exit %d: %d of %d bytes, truncated %v", c.exit(), c.Stdout.Total, len(want), c.Stdout.Truncated)
			}
			if c.Stdout.Omitted <= 0 || c.Stdout.Omitted >= c.Stdout.Total || !strings.Contains(c.Next, "read_output") {
				t.Errorf("omitted %d, next %q", c.Stdout.Omitted, c.Next)
			}
			if !strings.HasPrefix(c.Stdout.Text, "1\n2\n") || !strings.HasSuffix(c.Stdout.Text, "\n500000\n") {
				t.Error("the excerpt lacks the beginning or the end")
			}
			if !bytes.Equal(p.whole(t, c.ID, "stdout"), want) {
				t.Error("read_output gave other bytes")
			}
			middle := p.output(t, c.ID, object{"stream": "stdout", "offset": 1 << 20, "limit_bytes": 100})
			if middle.Data != string(want[1<<20:1<<20+100]) {
				t.Errorf("100 bytes from 1 MiB on are %q", middle.Data)
			}
			tail := p.output(t, c.ID, object{"stream": "stdout", "tail_bytes": 7})
			if tail.Data != "500000\n" || !tail.EOF {
				t.Errorf("the tail is %+v", tail)
			}
		}
	})
}

func TestB5B6OutputWaitsForItsReader(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		p := s.place(t)
		c := p.background(t, "for i in $(seq 20); do echo $i; sleep .1; done; echo err >&2")
		p.rest.get(t, c.ID, 20000)
		if got := p.whole(t, c.ID, "stdout"); !bytes.Equal(got, numbers(20)) {
			t.Errorf("from 0 there is %q", got)
		}
		if got := p.output(t, c.ID, object{"stream": "stdout", "offset": 40}); got.Data != string(numbers(20)[40:]) {
			t.Errorf("from 40 there is %q", got.Data)
		}
		if got := p.whole(t, c.ID, "all"); !bytes.Equal(got, append(numbers(20), "err\n"...)) {
			t.Errorf("both streams are %q", got)
		}
	})
}

func TestA29EveryByteComesBack(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		p := s.place(t)
		p.sh(t, "head -c 300000 /dev/urandom > bytes")
		c := p.exec(t, object{"command": "cat bytes"})
		sum := strings.Fields(p.sh(t, "sha256sum bytes"))[0]
		back := p.whole(t, c.ID, "stdout")
		check := p.exec(t, object{"command": "base64 -d | sha256sum", "stdin": encode(back)})
		if got := strings.Fields(check.Stdout.Text); len(got) == 0 || got[0] != sum {
			t.Errorf("%d bytes came back with the sum %v, want %s", len(back), got, sum)
		}
	})
}

func TestA28EndlessOutputIsBoundedCountedAndCanBeKilled(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		p := s.place(t)
		p.sh(t, "true")
		before := resident(t, s.cmd.Process.Pid)

		const size = 1 << 30
		c := p.exec(t, object{"command": fmt.Sprintf("head -c %d /dev/zero", size), "wait_ms": 45000})
		if c.Status == "running" {
			c = p.rest.get(t, c.ID, 45000)
		}
		end := p.output(t, c.ID, object{"stream": "stdout", "tail_bytes": 1})
		if c.exit() != 0 || end.Total != size || end.Dropped <= 0 {
			t.Errorf("%s %d: %d bytes, %d dropped", c.Status, c.exit(), end.Total, end.Dropped)
		}
		expired := p.refuse(t, "output_expired", "read_output", object{"command_id": c.ID, "stream": "stdout", "offset": size / 2})
		if expired.Status != 410 {
			t.Errorf("reading what was dropped gave %v", expired)
		}

		yes := p.background(t, "yes")
		if got := p.output(t, yes.ID, object{"stream": "stdout", "wait_ms": 10000}); got.Total == 0 {
			t.Error("yes writes nothing")
		}
		if got := p.signal(t, yes.ID, "KILL"); got.Status != "killed" {
			t.Errorf("yes is %s", got.Status)
		}
		if grown := resident(t, s.cmd.Process.Pid) - before; grown > 96<<20 {
			t.Errorf("the service's memory has grown by %d bytes", grown)
		}
		if disk := folderSize(t, filepath.Join(s.data, "logs")); disk > 2*72<<20 {
			t.Errorf("two logs take %d bytes", disk)
		}
	})
}

// keptOpen is how many descriptors a box keeps for its next commands where it has
// cgroups: those of eight, eight each. How many there are after some commands is
// by chance.
const keptOpen = 8 * 8

func TestB13ManyCommandsLeaveNothing(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		p := s.place(t)
		pid := s.cmd.Process.Pid
		run := func(n int) {
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() {
					for range n / 4 {
						answer, err := p.call(context.Background(), "exec", p.in(object{"argv": []string{"true"}}))
						if err != nil || fmt.Sprint(answer["exit_code"]) != "0" {
							t.Errorf("true gave %v %v", answer, err)
							return
						}
					}
				})
			}
			wg.Wait()
		}
		run(400)
		memory, tasks, files := resident(t, pid), threads(t, pid), descriptors(pid)
		run(require.Rounds(t, 3000))
		if n := resident(t, pid); n > memory+32<<20 {
			t.Errorf("memory went from %d to %d bytes", memory, n)
		}
		if n := threads(t, pid); n > tasks+8 {
			t.Errorf("threads went from %d to %d", tasks, n)
		}
		if n := descriptors(pid); n > files+keptOpen+8 {
			t.Errorf("descriptors went from %d to %d", files, n)
		}
		if n := p.sh(t, "ls /proc | grep -c '^[0-9]'"); s.tier == "namespace" && len(strings.TrimSpace(n)) > 1 {
			t.Errorf("%s processes are in the box", strings.TrimSpace(n))
		}
	})
}

// descriptors counts those of a process; 0 where only root may look.
func descriptors(pid int) int {
	entries, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return len(entries)
}
