package outputlog

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"testing"

	"pgregory.net/rapid"

	"envapi/core"
	"envapi/internal/random"
)

// model is a log that keeps all in memory, next to the real one.
type model struct {
	dir    string
	logs   *Logs
	log    core.OutputLog
	want   map[core.Stream][]byte
	killed []*Logs // services that were killed with their log in use
}

func (m *model) open(t *rapid.T) {
	var err error
	if m.logs, err = Open(m.dir, MinBytes); err != nil {
		t.Fatal(err)
	}
	if m.log, err = m.logs.Open(testEnv, testCmd); err != nil {
		t.Fatal(err)
	}
}

func (m *model) close() {
	m.log.Release()
	_ = m.logs.Close()
}

func (m *model) write(t *rapid.T) {
	s := rapid.SampledFrom(streams[:3]).Draw(t, "stream")
	n := rapid.OneOf(rapid.IntRange(1, 100), rapid.IntRange(1, 20_000)).Draw(t, "bytes")
	p := patterned(len(m.want[core.StreamAll])*7919, n)
	if k, err := m.log.Writer(s).Write(p); k != n || err != nil {
		t.Fatalf("Write gave %d, %v", k, err)
	}
	m.want[s] = append(m.want[s], p...)
	m.want[core.StreamAll] = append(m.want[core.StreamAll], p...)
}

// reopen is a restart of the service.
func (m *model) reopen(t *rapid.T) {
	m.close()
	m.open(t)
}

// kill is a restart after kill -9: nothing was released or closed.
func (m *model) kill(t *rapid.T) {
	m.killed = append(m.killed, m.logs)
	m.open(t)
}

func (m *model) read(t *rapid.T) {
	s := rapid.SampledFrom(streams).Draw(t, "stream")
	total := len(m.want[s])
	offset := rapid.IntRange(0, total).Draw(t, "offset")
	limit := rapid.IntRange(0, total+1).Draw(t, "limit")
	m.readAt(t, s, offset, limit)
}

// readAt reads, compares, and gives where to read on.
func (m *model) readAt(t *rapid.T, s core.Stream, offset, limit int) (next int, dropped bool) {
	want := m.want[s][offset:]
	want = want[:min(limit, len(want))]
	got, err := m.log.Read(s, int64(offset), int64(limit))
	if expired := new(core.ExpiredError); errors.As(err, &expired) {
		next := int(expired.NextOffset)
		if next <= offset || next > len(m.want[s]) {
			t.Fatalf("%s at %d of %d: the next offset is %d", s, offset, len(m.want[s]), next)
		}
		return next, true
	}
	if err != nil || !bytes.HasPrefix(want, got) || len(got) == 0 && len(want) > 0 {
		t.Fatalf("%s at %d: %d bytes, %v; want %d", s, offset, len(got), err, len(want))
	}
	if len(got) < len(want) { // only before a dropped part
		if _, dropped := m.readAt(t, s, offset+len(got), limit); !dropped {
			t.Fatalf("%s at %d: %d bytes were read of %d", s, offset, len(got), len(want))
		}
	}
	return offset + len(got), false
}

// check reads every stream as a whole and adds up what was dropped.
func (m *model) check(t *rapid.T) {
	for _, s := range streams {
		lost := 0
		for offset := 0; offset < len(m.want[s]); {
			next, dropped := m.readAt(t, s, offset, len(m.want[s]))
			if dropped {
				lost += next - offset
			}
			offset = next
		}
		total, dropped := m.log.Size(s)
		if total != int64(len(m.want[s])) || dropped != int64(lost) {
			t.Fatalf("the size of %s is %d, %d; want %d, %d", s, total, dropped, len(m.want[s]), lost)
		}
		m.checkExtents(t, s, dropped)
	}
	if lost, err := m.log.Read(core.StreamAll, int64(len(m.want[core.StreamAll])), 1); lost != nil || err != nil {
		t.Fatalf("at the end: %q, %v", lost, err)
	}
}

// checkExtents wants every run of kept bytes to be as long as it is said, and all
// else dropped.
func (m *model) checkExtents(t *rapid.T, s core.Stream, dropped int64) {
	total := int64(len(m.want[s]))
	kept, at := int64(0), int64(0)
	for at < total {
		e := m.log.Extent(s, at)
		if e.Total != total || e.Dropped != dropped || e.Start < at || e.End < e.Start || e.End > total {
			t.Fatalf("%s at %d of %d: %+v", s, at, total, e)
		}
		got, err := m.log.Read(s, e.Start, total)
		if err != nil || int64(len(got)) != e.End-e.Start {
			t.Fatalf("%s: %d bytes and %v at %+v", s, len(got), err, e)
		}
		kept, at = kept+e.End-e.Start, max(at+1, e.End)
	}
	if total-kept != dropped {
		t.Fatalf("%s: %d of %d bytes are kept, %d dropped", s, kept, total, dropped)
	}
	if e := m.log.Extent(s, total+9); e.Start != total || e.End != total {
		t.Fatalf("%s beyond its end of %d: %+v", s, total, e)
	}
}

// A log behaves as one in memory does, but for what its bound makes it drop,
// also over restarts, and its files never take more than they may.
func TestALogIsLikeOneInMemory(t *testing.T) {
	parent, n := t.TempDir(), 0
	random.Check(t, func(rt *rapid.T) {
		n++
		m := &model{dir: fmt.Sprintf("%s/%d", parent, n), want: map[core.Stream][]byte{}}
		m.open(rt)
		defer func() {
			m.close()
			for _, ls := range m.killed {
				_ = ls.Close()
			}
			_ = os.RemoveAll(m.dir)
		}()
		rt.Repeat(map[string]func(*rapid.T){
			"write": m.write, "write more": m.write, "write still more": m.write,
			"read": m.read, "reopen": m.reopen, "kill": m.kill,
			"": func(rt *rapid.T) {
				if used, _ := diskUse(t, m.dir); used > MinBytes+MinBytes/segmentsPerLog {
					rt.Fatalf("%d bytes are on disk", used)
				}
			},
		})
		m.check(rt)
	})
}
