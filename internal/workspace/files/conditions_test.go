package files_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/internal/workspace/files"
)

func TestConditions(t *testing.T) {
	k := newKit(t)
	k.put("file", "old", 0o644)
	k.put("dir/x", "", 0o644)
	tag := k.tag("file")
	if len(tag) != 32 {
		t.Errorf("the tag is %q", tag)
	}
	whichever, other := []string{"*"}, []string{"other"}
	for _, c := range []struct {
		path   string
		cond   core.Condition
		code   core.Code
		etag   any
		isThis string
	}{
		{"none", core.Condition{Match: whichever}, core.CodeETagMismatch, nil, "no file, any"},
		{"none", core.Condition{Match: other}, core.CodeETagMismatch, nil, "no file, a tag"},
		{"file", core.Condition{Match: other}, core.CodeETagMismatch, tag, "another tag"},
		{"file", core.Condition{Match: []string{}}, core.CodeETagMismatch, tag, "no tag at all"},
		{"file", core.Condition{Absent: true}, core.CodeETagMismatch, tag, "there is a file"},
		{"dir", core.Condition{Absent: true}, core.CodeETagMismatch, nil, "there is a directory"},
		{"dir", core.Condition{Match: other}, core.CodeIsADirectory, nil, "a directory has no tag"},
		{"file", core.Condition{Match: whichever}, "", nil, "any"},
		{"file", core.Condition{Match: []string{"x", tag}}, "", nil, "one of several"},
		{"new", core.Condition{Absent: true}, "", nil, "nothing is there"},
	} {
		_, err := k.commit(core.Change{Path: c.path, If: c.cond}, "old")
		if code(err) != c.code {
			t.Errorf("%s: got %v", c.isThis, err)
		}
		var e *core.Error
		if errors.As(err, &e) && e.Code == core.CodeETagMismatch && e.Facts["etag"] != c.etag {
			t.Errorf("%s: the tag is %v", c.isThis, e.Facts["etag"])
		}
	}
	_, err := k.tree.Commit(t.Context(), []core.Change{{Path: "file", If: core.Condition{Match: other}}})
	wantCode(t, err, core.CodeETagMismatch)
	k.want("file", "old")
	k.wantClean()
}

func TestC24OfTwoWritersWithOneTagExactlyOneWins(t *testing.T) {
	k := newKit(t)
	k.put("file", "0", 0o644)
	k.link("file", "alias")
	for round := range 100 {
		tag := k.tag("file")
		var won atomic.Int32
		var all sync.WaitGroup
		for i, path := range []string{"file", "/workspace/alias"} {
			all.Go(func() {
				put, err := k.tree.Stage(t.Context(), strings.NewReader(fmt.Sprintf("%d.%d", round, i)), -1)
				if err != nil {
					t.Error(err)
					return
				}
				_, err = k.tree.Commit(t.Context(), []core.Change{{Path: path, Put: put, If: core.Condition{Match: []string{tag}}}})
				if err == nil {
					won.Add(1)
					return
				}
				wantCode(t, err, core.CodeETagMismatch)
				var e *core.Error
				if errors.As(err, &e) && e.Facts["etag"] != k.tag("file") {
					t.Errorf("the loser is told %v", e.Facts["etag"])
				}
			})
		}
		all.Wait()
		if won.Load() != 1 {
			t.Fatalf("round %d: %d have won", round, won.Load())
		}
	}
	k.wantClean()
}

// intrude does something just before the nth rename of a change.
func intrude(t *testing.T, do func(n int)) {
	n := 0
	t.Cleanup(files.SetRenameat2(func(from int, name string, to int, target string, flags uint) error {
		n++
		do(n)
		return unix.Renameat2(from, name, to, target, flags)
	}))
}

func TestAWriteInsideJustBeforeTheChangeIsSeen(t *testing.T) {
	for what, write := range map[string]func(path string) error{
		"in place": func(path string) error { return os.WriteFile(path, []byte("theirs"), 0o600) },
		"replaced": func(path string) error {
			return errors.Join(os.WriteFile(path+".new", []byte("theirs"), 0o600), os.Rename(path+".new", path))
		},
		"gone": os.Remove,
	} {
		t.Run(what, func(t *testing.T) {
			k := newKit(t)
			k.put("file", "old", 0o644)
			tag := k.tag("file")
			intrude(t, func(n int) {
				if n == 1 {
					k.inside(func() error { return write(k.path + "/file") })
				}
			})
			_, err := k.commit(core.Change{Path: "file", If: core.Condition{Match: []string{tag}}}, "ours")
			wantCode(t, err, core.CodeETagMismatch)
			if what == "gone" {
				k.wantNone("file")
			} else {
				k.want("file", "theirs")
			}
			k.wantClean()
		})
	}
}

func TestWhatAppearsInsideJustBeforeIsNotOverwrittenUnseen(t *testing.T) {
	k := newKit(t)
	intrude(t, func(n int) {
		if n == 1 {
			k.put("file", "theirs", 0o600)
			k.put("dir/theirs", "theirs", 0o600)
		}
	})
	_, err := k.commit(core.Change{Path: "file", If: core.Condition{Absent: true}}, "ours")
	wantCode(t, err, core.CodeETagMismatch)
	k.want("file", "theirs")
	// Without a condition it is replaced, and keeps its mode.
	must(t, k.write("file", "ours"))
	k.want("file", "ours")
	if mode := statOf(t, k.path+"/file").Mode & 0o777; mode != 0o600 {
		t.Errorf("the mode is %o", mode)
	}
}

// A directory that appears where parents are to be made is used.
func TestParentsThatAppearMeanwhile(t *testing.T) {
	k := newKit(t)
	intrude(t, func(n int) {
		if n == 3 { // into the transaction, below the chain, to its place
			k.put("dir/sub/theirs", "theirs", 0o644)
		}
	})
	_, err := k.commit(core.Change{Path: "dir/sub/deep/file", Parents: true}, "ours")
	must(t, err)
	k.want("dir/sub/deep/file", "ours")
	k.want("dir/sub/theirs", "theirs")
	k.wantClean()
}

func TestAFileThatChangesAllTheTimeIsUnavailable(t *testing.T) {
	k := newKit(t)
	k.put("file", "old", 0o644)
	tag := k.tag("file")
	at := time.Now()
	intrude(t, func(int) {
		// The same content with another time: the condition holds each time it is judged.
		at = at.Add(time.Hour)
		k.inside(func() error { return os.Chtimes(k.path+"/file", at, at) })
	})
	_, err := k.commit(core.Change{Path: "file", If: core.Condition{Match: []string{tag}}}, "ours")
	wantCode(t, err, core.CodeUnavailable)
	k.want("file", "old")
	k.wantClean()
}
