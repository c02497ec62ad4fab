package vault

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// HoldFewNames makes the walk read directories again and again.
func HoldFewNames(t testing.TB) {
	most, fewest := mostNames, fewestNames
	mostNames, fewestNames = 32, 16
	t.Cleanup(func() { mostNames, fewestNames = most, fewest })
}

// TestALargeDirectoryIsReadFewTimes, also where those above it hold all names that may
// be held: reading it for a few names each time takes the square of its size.
func TestALargeDirectoryIsReadFewTimes(t *testing.T) {
	const many, most = 10_000, 20
	path := t.TempDir()
	for n := range many {
		if err := os.WriteFile(filepath.Join(path, fmt.Sprint(n)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	dir, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	w, l := walk{ctx: t.Context(), held: mostNames}, &level{dir: dir}
	seen, fills := 0, 0
	for ; !l.end; fills++ {
		w.held = mostNames
		if err := w.fill(l); err != nil {
			t.Fatal(err)
		}
		seen += len(l.names)
	}
	if seen != many || fills > most {
		t.Fatalf("%d names in %d reads", seen, fills)
	}
}

// TestShortPathsOfHardLinksAreBoundedToo: a map of them takes much more than they do.
func TestShortPathsOfHardLinksAreBoundedToo(t *testing.T) {
	const most = mostLinkPaths / 64
	p := &packer{paths: map[uint64]string{}, room: mostLinkPaths}
	for number := range uint64(2 * most) {
		p.remember(&entry{name: "a", number: number + 1})
	}
	if n := len(p.paths); n == 0 || n > most {
		t.Errorf("%d are kept", n)
	}
}

// Shallow makes trees of more than depth levels too deep.
func Shallow(t testing.TB, depth int) {
	before := mostDepth
	mostDepth = depth
	t.Cleanup(func() { mostDepth = before })
}

// Names of records, for archives that are made by hand.
const (
	RecordVersion = recordVersion
	RecordDepth   = recordDepth
	RecordLink    = recordLink
	RecordSize    = recordSize
	RecordMap     = recordMap
	RecordMore    = recordMore
	RecordEntries = recordEntries
)
