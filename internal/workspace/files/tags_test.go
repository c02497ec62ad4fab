package files_test

import (
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/internal/workspace/files"
)

// old makes a file's times old. Its ctime cannot be set: that must pass.
func rested(t *testing.T, path string) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for {
		st := statOf(t, path)
		if time.Since(time.Unix(st.Ctim.Unix())) > files.Restful {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the clock stands still")
		}
		<-time.After(time.Millisecond)
	}
}

func TestATagIsKnownAsLongAsTheFileIsUnchanged(t *testing.T) {
	k := newKit(t)
	k.put("file", "text", 0o644)
	path := k.path + "/file"
	st := statOf(t, path)
	if k.store.Known(&st) != "" {
		t.Error("a tag is known of a file that was never read")
	}
	rested(t, path)
	tag := k.tag("file")
	if got := k.store.Known(&st); got != tag {
		t.Errorf("got %q, want %q", got, tag)
	}
	info, err := k.tree.Stat(t.Context(), "file", false)
	if err != nil || info.ETag != tag {
		t.Errorf("got %+v, %v", info, err)
	}
	must(t, os.WriteFile(path, []byte("TEXT"), 0o600))
	if st = statOf(t, path); k.store.Known(&st) != "" {
		t.Error("the tag of the old content is known for the new")
	}
	info, err = k.tree.Stat(t.Context(), "file", true)
	if err != nil || info.ETag == tag || info.ETag == "" {
		t.Errorf("got %+v, %v", info, err)
	}
}

// The time of a write may be that of the one before it: what was just written is not
// remembered.
func TestATagOfWhatWasJustWrittenIsNotKept(t *testing.T) {
	k := newKit(t)
	k.put("file", "text", 0o644)
	st := statOf(t, k.path+"/file")
	st.Ctim = unix.NsecToTimespec(time.Now().UnixNano())
	k.store.KeepTag(&st, "tag")
	if k.store.Known(&st) != "" {
		t.Error("it is kept")
	}
}

// A condition reads the file, whatever is known.
func TestAConditionBelievesNoTagThatIsKept(t *testing.T) {
	k := newKit(t)
	k.put("file", "text", 0o644)
	st := statOf(t, k.path+"/file")
	rested(t, k.path+"/file")
	k.store.KeepTag(&st, "forged")
	if k.store.Known(&st) != "forged" {
		t.Fatal("it is not kept")
	}
	_, err := k.commit(core.Change{Path: "file", If: core.Condition{Match: []string{"forged"}}}, "new")
	wantCode(t, err, core.CodeETagMismatch)
}

func TestTheTagsThatAreKeptAreBounded(t *testing.T) {
	k := newKit(t)
	st := unix.Stat_t{Mode: unix.S_IFREG}
	for i := range uint64(files.MostTags + 100) {
		st.Ino = i
		k.store.KeepTag(&st, "tag")
	}
	if n := k.store.Tags(); n != files.MostTags {
		t.Errorf("%d are kept", n)
	}
	if st.Ino = 0; k.store.Known(&st) != "" {
		t.Error("the oldest is kept")
	}
}
