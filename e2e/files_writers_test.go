package e2e

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"envapi/internal/require"
)

// writers change the file f from a tag on, each in its way and by its door.
var writers = []struct {
	door, operation string
	in              func(round int) object
}{
	{"REST", "write_file", func(round int) object { return object{"path": "f", "content": fmt.Sprintf("REST %d\n", round)} }},
	{"MCP", "write_file", func(round int) object { return object{"path": "f", "content": fmt.Sprintf("MCP %d\n", round)} }},
	{"MCP", "edit_file", func(round int) object { return edits("\n", fmt.Sprintf(" edited %d\n", round)) }},
	{"REST", "copy_file", func(int) object { return object{"source": "source", "destination": "f", "overwrite": true} }},
}

func TestC24OneOfTwoWritersWins(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		doors := s.doors(t)
		f := s.place(t).folder(t, s.rest)
		for _, pair := range [][2]int{{0, 1}, {0, 2}, {3, 1}} {
			tag := f.write(t, "f", "beginning\n")
			for round := range require.Rounds(t, 100) / (1 + pair[1] + pair[0]) {
				f.write(t, "source", fmt.Sprintf("copied %d\n", round))
				var wg sync.WaitGroup
				tags, lost := [2]string{}, [2]*problem{}
				for i, at := range pair {
					wg.Go(func() {
						w := writers[at]
						answer, err := doors[w.door].call(t.Context(), w.operation, f.in(and(w.in(round), object{"if_match": tag})))
						if tags[i] = text(answer, "etag"); err != nil && !errors.As(err, &lost[i]) {
							t.Error(err)
						}
					})
				}
				wg.Wait()
				winner := 0
				if lost[0] != nil {
					winner = 1
				}
				if lost[winner] != nil || lost[1-winner] == nil {
					t.Fatalf("round %d of %v: the answers are %q and %q, %v and %v", round, pair, tags[0], tags[1], lost[0], lost[1])
				}
				if l := lost[1-winner]; l.Code != "etag_mismatch" || l.ETag == nil {
					t.Fatalf("round %d of %v: who lost got %+v", round, pair, l)
				}
				tag = f.tag(t, "f")
				if *lost[1-winner].ETag != tag || tags[winner] != "" && tags[winner] != tag {
					t.Fatalf("round %d of %v: the file has %s, who won got %s, who lost %s", round, pair, tag, tags[winner], *lost[1-winner].ETag)
				}
			}
		}
	})
}

func TestUploadsTogetherCannotPassALimit(t *testing.T) {
	t.Parallel()
	const size, most = 1 << 20, 10
	s := start(t, config{env: map[string]string{"ENVAPI_MAX_DISK_BYTES": fmt.Sprint(most*size + size/2)}})
	f := s.place(t).folder(t, s.rest)
	f.write(t, "old", "old\n")
	var n atomic.Int64
	var taken atomic.Value // the name of one that was taken
	done := together(t, 50, "disk_bytes", func() error {
		name := fmt.Sprint("f", n.Add(1))
		_, err := f.upload(t.Context(), name, noise(size), nil)
		if err == nil {
			taken.Store(name)
		}
		return err
	})
	if done == 0 || done > most {
		t.Errorf("%d uploads of %d bytes were taken with a limit of %d", done, size, most*size+size/2)
	}
	_, err := f.upload(t.Context(), "old", noise(most*size), nil)
	isProblem(t, "quota_exceeded", "an upload above the limit", nil, err)
	f.has(t, "old", "old\n")
	f.do(t, "delete_file", object{"path": taken.Load(), "recursive": true})
	if got := f.run(t, "ls | grep -vc '^f\\|^old$' || true"); got != "0" {
		t.Errorf("%s other files are left", got)
	}
}

func TestAnEndlessUploadIsRefusedAndLeavesNothing(t *testing.T) {
	t.Parallel()
	s := start(t, config{env: map[string]string{"ENVAPI_MAX_DISK_BYTES": fmt.Sprint(8 << 20)}})
	f := s.place(t).folder(t, s.rest)
	f.write(t, "f", "old\n")
	// Its body says no length: only while it streams is it too long.
	_, err := f.upload(t.Context(), "f", noise(32<<20), nil)
	var p *problem
	if errors.As(err, &p) && p.Code != "quota_exceeded" && p.Code != "too_large" {
		t.Errorf("the answer is %v", err)
	}
	if err == nil {
		t.Error("it was taken")
	}
	f.has(t, "f", "old\n")
	s.noStaging(t)
}
