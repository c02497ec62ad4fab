package find_test

import (
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"envapi/core"
)

// lease has this program hold a file as one inside might: who opens it is kept waiting
// by the kernel, or told to come again, for fs.lease-break-time (45 s); then he may read
// it.
func (f *folder) lease(name string) {
	f.t.Helper()
	file, err := os.OpenFile(f.dir+"/"+name, os.O_RDWR, 0)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = file.Close() })
	if _, err := unix.FcntlInt(file.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		f.t.Fatal(err)
	}
}

func TestD15ALeaseHoldsUpNeitherASearchNorAList(t *testing.T) {
	f := newFolder(t)
	f.holds(map[string]string{"held": "needle", "free": "needle", "dir/.gitignore": "free", "dir/free": "needle"})
	f.lease("held")
	f.lease("dir/.gitignore")
	got := f.search(core.SearchQuery{Pattern: "needle", Literal: true})
	if found(got) != "dir/free:1:1:needle|free:1:1:needle" || len(got.Unreadable) != 2 {
		t.Errorf("got %s, unreadable %q", found(got), got.Unreadable)
	}
	page := f.list(core.ListQuery{})
	if !slices.Contains(page.Unreadable, "dir/.gitignore") {
		t.Errorf("unreadable: %q", page.Unreadable)
	}
}
