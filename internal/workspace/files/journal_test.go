package files_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/internal/workspace/files"
)

// At recovery a descriptor is held for each directory of a journal, and there are fewer
// of them than steps may be.
func TestAJournalHasEachDirectoryOnce(t *testing.T) {
	k := newKit(t)
	k.put("dir/there", "", 0o644)
	var journal struct{ Directories, Steps []json.RawMessage }
	k.store.SetPoint(func(at string) {
		found, err := filepath.Glob(k.dir + "/staging/" + testID + "/t.*/.journal")
		if at != "journal" || err != nil || len(found) != 1 {
			return
		}
		text, err := os.ReadFile(found[0])
		must(t, err)
		must(t, json.Unmarshal(text, &journal))
	})
	var changes []core.Change
	for n := range 10 {
		changes = append(changes,
			core.Change{Path: fmt.Sprint(n), Put: k.stage("x")},
			core.Change{Path: fmt.Sprint("dir/", n), Put: k.stage("x")})
	}
	_, err := k.tree.Commit(t.Context(), changes)
	must(t, err)
	if len(journal.Steps) != 20 || len(journal.Directories) != 2 {
		t.Errorf("%d steps in %d directories", len(journal.Steps), len(journal.Directories))
	}
}

// A start with too few descriptors, or without memory, must not take what it cannot
// look for as gone: it keeps the journal for the next one.
func TestRecoveryThatCannotLookKeepsTheJournal(t *testing.T) {
	before := prepareCrash(t)
	dieAt(t, before.dir, "step 5")
	var limit unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	defer func() { must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)) }()
	live, trash := before.open("workspaces"), before.open("trash")
	defer live.Close()
	defer trash.Close()
	for few := range uint64(10) {
		must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(trash.Fd()) + 1 + few, Max: limit.Max}))
		store, err := files.Open(before.dir, live, trash, func(string, string) {})
		must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit))
		if err == nil {
			must(t, store.Close())
		}
	}
	wantOld(openKit(t, before.dir))
}
