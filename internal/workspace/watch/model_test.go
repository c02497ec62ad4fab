package watch_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/internal/require"
)

// model is what somebody who only reads events thinks is there.
type model map[string]bool

// lost is in a model that events were lost for.
const lost = "/lost"

// take believes an event. What is told twice, or of what is gone, is no fault: things
// change while they are looked at.
func (m model) take(e core.FileEvent) {
	below := func(dir string, do func(path string)) {
		for _, path := range slices.Collect(maps.Keys(m)) {
			if path == dir || strings.HasPrefix(path, dir+"/") {
				do(path)
			}
		}
	}
	switch e.Type {
	case core.FileCreated, core.FileModified:
		m[e.Path] = true
	case core.FileOverflow:
		m[lost] = true
	case core.FileDeleted:
		below(e.Path, func(path string) { delete(m, path) })
	case core.FileMoved:
		below(e.Path, func(path string) { delete(m, path) })
		below(e.From, func(path string) {
			delete(m, path)
			m[e.Path+strings.TrimPrefix(path, e.From)] = true
		})
		m[e.Path] = true
	}
}

// What the events say is what is there in the end, whatever was done.
func TestWhoeverFollowsTheEventsKnowsWhatIsThere(t *testing.T) {
	whole := require.Rounds(t, 5) // rounds in which nothing was told as lost, which depends on who is faster
	most := 8 * whole
	for round := 0; whole > 0; round++ {
		if round == most {
			t.Fatalf("events were lost in nearly all of %d rounds", round)
		}
		w := newWorld(t)
		seed := uint64(round)
		random := rand.New(rand.NewPCG(seed, seed))
		w.mkdir("a/b", "c")
		one := w.watch("", true)
		m := model{"a": true, "a/b": true, "c": true}
		w.do(func() error {
			for range 150 {
				w.something(random)
			}
			return nil
		})
		w.mkdir("end")
		for _, e := range until(t, one, event(core.FileCreated, "end", directory)) {
			m.take(e)
		}
		settledInto(t, one, m)
		there := model{}
		must(t, filepath.WalkDir(w.dir, func(path string, _ fs.DirEntry, err error) error {
			if rel := strings.TrimPrefix(path, w.dir+"/"); path != w.dir && rel != "end" {
				there[rel] = true
			}
			return err
		}))
		delete(m, "end")
		switch {
		case m[lost]: // he looks again
		case maps.Equal(m, there):
			whole--
		default:
			t.Fatalf("round %d: by the events there is %q; there is %q", round,
				slices.Sorted(maps.Keys(m)), slices.Sorted(maps.Keys(there)))
		}
		must(t, one.Close())
	}
}

// something does one thing; what cannot be done is not done.
func (w *world) something(random *rand.Rand) {
	name := func() string {
		parts := []string{"a", "b", "c", "d"}
		path := parts[random.IntN(4)]
		for range random.IntN(3) {
			path = filepath.Join(path, parts[random.IntN(4)])
		}
		return path
	}
	first, second := w.path(name()), w.path(name())
	aside := filepath.Join(w.aside, fmt.Sprint(random.IntN(4)))
	switch random.IntN(9) {
	case 0:
		_ = os.Mkdir(first, 0o700)
	case 1:
		_ = os.MkdirAll(first, 0o700)
	case 2:
		_ = os.WriteFile(first, []byte("x"), 0o600)
	case 3:
		_ = os.Rename(first, second)
	case 4:
		_ = unix.Renameat2(unix.AT_FDCWD, first, unix.AT_FDCWD, aside, unix.RENAME_NOREPLACE)
	case 5:
		_ = unix.Renameat2(unix.AT_FDCWD, aside, unix.AT_FDCWD, first, unix.RENAME_NOREPLACE)
	case 6:
		_ = os.RemoveAll(first)
	case 7:
		_ = exchange(aside, first)
	case 8:
		_ = exchange(first, second)
	}
}

// settledInto believes what comes until nothing does for a moment.
func settledInto(t *testing.T, one core.FileWatch, m model) {
	t.Helper()
	for {
		some, err := soon(t, one)
		for _, e := range some {
			m.take(e)
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
		must(t, err)
	}
}
