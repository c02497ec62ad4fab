package pack_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"envapi/core"
	"envapi/internal/workspace/pack"
)

// For each directory that is there a descriptor is held.
func TestWhatIsUnpackedOverIsBounded(t *testing.T) {
	k := newKit(t)
	defer pack.SetMostMerged(64)()
	var entries []entry
	for n := range 70 {
		name := fmt.Sprintf("d/%d/f", n)
		entries = append(entries, file(name, "x"))
		k.put(filepath.Dir(name)+"/there", "")
	}
	before := k.tree("")
	e := wantCode(t, second(k.unpack("", tarOf(t, entries...), generous)), core.CodeInvalidArgument)
	if !strings.Contains(e.Detail, "64") {
		t.Errorf("it says %q", e.Detail)
	}
	k.untouched(before)
	must(t, second(k.unpack("new", tarOf(t, entries...), generous)))
}

// Each name is a step of one transaction: memory, locks and a journal.
func TestTheNamesThatAreBroughtToADirectoryAreBounded(t *testing.T) {
	k := newKit(t)
	defer pack.SetMostPut(20)()
	var entries []entry
	for n := range 21 {
		entries = append(entries, symlink(fmt.Sprint(n), "x"))
	}
	e := wantCode(t, second(k.unpack("", tarOf(t, entries...), generous)), core.CodeInvalidArgument)
	if !strings.Contains(e.Detail, "more than 20 names") {
		t.Errorf("it says %q", e.Detail)
	}
	k.untouched(map[string]string{})
	must(t, second(k.unpack("new", tarOf(t, entries...), generous)))
	must(t, second(k.unpack("", tarOf(t, entries[1:]...), generous)))
}
