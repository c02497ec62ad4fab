package pack_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"envapi/core"
)

// frozen is who takes one piece of an archive, looks, and takes no more.
type frozen struct{ look func() }

func (f frozen) Write([]byte) (int, error) {
	f.look()
	return 0, errors.New("gone")
}

// Many may read nothing of their archives at one time.
func TestAnExportHoldsFewFilesOpen(t *testing.T) {
	k := newKit(t)
	for n := range 200 {
		k.put(fmt.Sprintf("d/%03d", n), strings.Repeat("x", 4096))
	}
	most := 0
	_, err := k.Export(t.Context(), "d", frozen{func() { most = max(most, openBelow(t, k.dir+"/d")) }}, core.CompressNone)
	if err == nil || most == 0 {
		t.Fatalf("got %v, with %d files open", err, most)
	}
	if most > 12 {
		t.Errorf("%d files are open", most)
	}
}

// openBelow counts what this program has open of a directory.
func openBelow(t *testing.T, dir string) (n int) {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	for _, e := range all {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(to, dir) {
			n++
		}
	}
	return n
}
