package find_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/internal/workspace/find"
	"envapi/internal/workspace/inside"
)

func TestListIsInTheOrderOfPaths(t *testing.T) {
	f := newFolder(t)
	f.holds(map[string]string{"a/x": "", "a.b": "", "a-": "", "a/x.y/z": "", "b": "12345"})
	if got := paths(f.list(core.ListQuery{})); got != "a a/x a/x.y a/x.y/z a- a.b b" {
		t.Errorf("got %s", got)
	}
	if got := paths(f.list(core.ListQuery{Depth: 1})); got != "a a- a.b b" {
		t.Errorf("one level: got %s", got)
	}
	if got := paths(f.list(core.ListQuery{Path: "/workspace/a", Depth: 2})); got != "a/x a/x.y a/x.y/z" {
		t.Errorf("below a: got %s", got)
	}
	if e := f.list(core.ListQuery{}).Entries[6]; e.Type != core.TypeFile || e.Size != 5 || e.Mode != 0o644 || time.Since(e.ModifiedAt) > time.Hour {
		t.Errorf("got %+v", e)
	}
}

// TestPagesAreOneList: of any size, with names of any kind, and whatever is skipped.
func TestPagesAreOneList(t *testing.T) {
	f := newFolder(t)
	files := map[string]string{".gitignore": "skip*\n", "skip/x": "", ".h/y": "", ".h1": "", "z/skip": ""}
	for i := range 300 {
		files[fmt.Sprintf("d%d/e%d/f%d", i%3, i%7, i)] = ""
		files[fmt.Sprintf("d%d/e%d.%d", i%3, i%7, i)] = ""
	}
	f.holds(files)
	for _, q := range []core.ListQuery{{}, {Hidden: true}, {Ignored: true}, {Globs: []string{"*1"}}, {Path: "d1"}, {Depth: 2}} {
		q.Limit = 10_000
		whole := f.list(q)
		for _, limit := range []int{1, 7, 100} {
			q.Limit, q.After = limit, ""
			var all core.Listing
			for {
				page := f.list(q)
				if len(page.Entries) > limit {
					t.Fatalf("a page has %d entries", len(page.Entries))
				}
				all.Entries = append(all.Entries, page.Entries...)
				all.SkippedHidden += page.SkippedHidden
				all.SkippedIgnored += page.SkippedIgnored
				if q.After = page.Next; q.After == "" {
					break
				}
			}
			if paths(all) != paths(whole) || all.SkippedHidden != whole.SkippedHidden || all.SkippedIgnored != whole.SkippedIgnored {
				t.Errorf("%+v by %d: got %d (%d, %d), want %d (%d, %d)", q, limit, len(all.Entries), all.SkippedHidden, all.SkippedIgnored,
					len(whole.Entries), whole.SkippedHidden, whole.SkippedIgnored)
			}
		}
	}
}

// TestAPageGoesOnWhateverChanged is C27's "stable".
func TestAPageGoesOnWhateverChanged(t *testing.T) {
	f := newFolder(t)
	for i := range 3000 {
		f.holds(map[string]string{fmt.Sprintf("f%04d", i): ""})
	}
	var all []string
	added := 0
	for i, q := 0, (core.ListQuery{Limit: 100}); ; i++ {
		page := f.list(q)
		for _, e := range page.Entries {
			all = append(all, e.Path)
		}
		if q.After = page.Next; q.After == "" {
			break
		}
		// The last one goes, one comes before it and one behind it.
		if err := os.Remove(filepath.Join(f.dir, page.Next)); err != nil {
			t.Fatal(err)
		}
		f.holds(map[string]string{fmt.Sprintf("e%04d", i): "", page.Next + "+": ""})
		added++
	}
	if len(all) != 3000+added || !slices.IsSorted(all) {
		t.Errorf("got %d entries", len(all))
	}
}

// TestWhatIsRememberedIsWhatIsThere: the names of a large directory are remembered
// between pages, and a change is seen by the next.
func TestWhatIsRememberedIsWhatIsThere(t *testing.T) {
	f := newFolder(t)
	for i := range 2000 {
		f.holds(map[string]string{fmt.Sprintf("f%04d", i): ""})
	}
	q := core.ListQuery{Limit: 10, After: "f0999"}
	deadline := time.Now().Add(20 * time.Second)
	for !find.Remembers(f.dir) {
		if f.list(q); time.Now().After(deadline) {
			t.Fatal("it never is")
		}
	}
	for i := range 200 {
		name := fmt.Sprintf("f0999-%d", i)
		f.holds(map[string]string{name: ""})
		if got := f.list(q).Entries[0].Path; got != name {
			t.Fatalf("round %d: got %s", i, got)
		}
		if err := os.Remove(filepath.Join(f.dir, name)); err != nil {
			t.Fatal(err)
		}
		if got := f.list(q).Entries[0].Path; got != "f1000" {
			t.Fatalf("round %d, removed: got %s", i, got)
		}
	}
}

// TestLinksAreListedAndNotFollowed is C19.
func TestLinksAreListedAndNotFollowed(t *testing.T) {
	f := newFolder(t)
	f.holds(map[string]string{"d/file": "needle"})
	for name, to := range map[string]string{"l": ".", "x": "x", "up": "..", "etc": "/etc"} {
		if err := os.Symlink(to, filepath.Join(f.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	page := f.list(core.ListQuery{})
	if got := paths(page); got != "d d/file etc l up x" {
		t.Errorf("got %s", got)
	}
	if e := page.Entries[2]; e.Type != core.TypeSymlink || e.LinkTarget != "/etc" {
		t.Errorf("got %+v", e)
	}
	if got := f.search(core.SearchQuery{Pattern: "needle"}); found(got) != "d/file:1:1:needle" || got.FilesSearched != 1 {
		t.Errorf("got %+v", got)
	}
	if got := paths(f.list(core.ListQuery{Path: "l/d"})); got != "l/d/file" {
		t.Errorf("by a link: got %s", got)
	}
	if got := paths(f.list(core.ListQuery{Path: "l/d/../d"})); got != "d/file" {
		t.Errorf("up: got %s", got)
	}
	for path, code := range map[string]core.Code{"x": core.CodeSymlinkLoop, "up": core.CodePathOutside, "etc": core.CodePathOutside, "d/file": core.CodeNotADirectory, "no": core.CodeNotFound} {
		var wrong *core.Error
		if _, err := f.finder.List(context.Background(), core.ListQuery{Path: path, Limit: 1}); !errors.As(err, &wrong) || wrong.Code != code {
			t.Errorf("%s: got %v", path, err)
		}
	}
}

// TestWhatIsNoFileIsListedAndNotOpened is C20.
func TestWhatIsNoFileIsListedAndNotOpened(t *testing.T) {
	f := newFolder(t)
	f.holds(map[string]string{"file": "needle"})
	if err := unix.Mkfifo(filepath.Join(f.dir, "fifo"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(f.dir, ".gitignore"), 0o666); err != nil {
		t.Fatal(err)
	}
	// What opened it would wait for a writer, and never end.
	page := f.list(core.ListQuery{})
	if got := paths(page); got != "fifo file" || page.Entries[0].Type != core.TypeFIFO {
		t.Errorf("got %s", got)
	}
	if got := f.search(core.SearchQuery{Pattern: "needle"}); found(got) != "file:1:1:needle" {
		t.Errorf("got %+v", got)
	}
	var wrong *core.Error
	if _, err := f.finder.Search(context.Background(), core.SearchQuery{Path: "fifo", Pattern: "x", Limit: 1}); !errors.As(err, &wrong) || wrong.Code != core.CodeNotRegular {
		t.Errorf("got %v", err)
	}
}

// TestNamesOfAnyKind is C30.
func TestNamesOfAnyKind(t *testing.T) {
	f := newFolder(t)
	names := []string{"a\nb", "-rf", "a b", `q"'`, strings.Repeat("n", 255), "%41", "?", "#", "\xff\xfe", "\\"}
	for _, name := range names {
		f.holds(map[string]string{name: "needle"})
	}
	slices.Sort(names)
	if got := paths(f.list(core.ListQuery{})); got != strings.Join(names, " ") {
		t.Errorf("got %q", got)
	}
	for i, m := range f.search(core.SearchQuery{Pattern: "needle"}).Matches {
		if m.Path != names[i] {
			t.Errorf("got %q, want %q", m.Path, names[i])
		}
	}
}

func TestRulesOfAllLevelsHold(t *testing.T) {
	f := newFolder(t)
	f.holds(map[string]string{
		".gitignore": "*.log\n/build/\n", "a.log": "", "build/x": "", "src/build/y": "", "src/.gitignore": "!keep.log\nz\n",
		"src/keep.log": "", "src/b.log": "", "src/z": "", "src/deep/c.log": "", ".git/config": "", "sub/.git": "",
	})
	page := f.list(core.ListQuery{})
	if got := paths(page); got != "src src/build src/build/y src/deep src/keep.log sub" || page.SkippedIgnored != 5 || page.SkippedHidden != 4 {
		t.Errorf("got %s, %d, %d", got, page.SkippedIgnored, page.SkippedHidden)
	}
	if got := paths(f.list(core.ListQuery{Path: "src"})); got != "src/build src/build/y src/deep src/keep.log" {
		t.Errorf("asked below: got %s", got)
	}
	if got := paths(f.list(core.ListQuery{Path: "build"})); got != "build/x" {
		t.Errorf("asked for what is ignored: got %s", got)
	}
	if got := paths(f.list(core.ListQuery{Hidden: true, Path: "sub"})); got != "" {
		t.Errorf(".git: got %s", got)
	}
	if got := paths(f.list(core.ListQuery{Globs: []string{"*.log"}, Ignored: true})); got != "a.log src/b.log src/deep/c.log src/keep.log" {
		t.Errorf("all: got %s", got)
	}
}

// TestRulesThatAreTooManyAreSaid: a hostile file of rules, or a link to one.
func TestRulesThatAreTooManyAreSaid(t *testing.T) {
	f := newFolder(t)
	f.holds(map[string]string{"a/.gitignore": "x\n" + strings.Repeat("#\n", 1<<20), "a/x": "", "a/y": "", "b/x": "", "c/.gitignore/": "", "c/x": "", "rules": "x"})
	if err := os.Symlink("../rules", filepath.Join(f.dir, "b/.gitignore")); err != nil {
		t.Fatal(err)
	}
	page := f.list(core.ListQuery{})
	if got := paths(page); got != "a a/y b b/x c c/x rules" || strings.Join(page.Unreadable, " ") != "a/.gitignore" {
		t.Errorf("got %s, unreadable %v", got, page.Unreadable)
	}
}

func TestWhatCannotBeReadIsSaid(t *testing.T) {
	f := newFolder(t)
	f.holds(map[string]string{"shut/x": "needle", "secret": "needle", "open": "needle"})
	for _, name := range []string{"shut", "secret"} {
		if err := os.Chmod(filepath.Join(f.dir, name), 0); err != nil {
			t.Fatal(err)
		}
	}
	defer os.Chmod(filepath.Join(f.dir, "shut"), 0o755)
	page := f.list(core.ListQuery{})
	if got := paths(page); got != "open secret shut" || strings.Join(page.Unreadable, " ") != "shut" {
		t.Errorf("got %s, %v", got, page.Unreadable)
	}
	got := f.search(core.SearchQuery{Pattern: "needle"})
	slices.Sort(got.Unreadable)
	if found(got) != "open:1:1:needle" || strings.Join(got.Unreadable, " ") != "secret shut" {
		t.Errorf("got %+v", got)
	}
}

func TestDeepTreesEnd(t *testing.T) {
	f := newFolder(t)
	f.holds(map[string]string{strings.Repeat("d/", 400) + "file": "needle"})
	page := f.list(core.ListQuery{})
	if len(page.Entries) != 256 || len(page.Unreadable) != 1 {
		t.Errorf("got %d entries, unreadable %d", len(page.Entries), len(page.Unreadable))
	}
	if got := f.search(core.SearchQuery{Pattern: "needle"}); len(got.Unreadable) != 1 || got.FilesSearched != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestWrongQuestions(t *testing.T) {
	f := newFolder(t)
	f.holds(map[string]string{"a/b": ""})
	ctx := context.Background()
	_, glob := f.finder.List(ctx, core.ListQuery{Globs: []string{"["}, Limit: 1})
	_, cursor := f.finder.List(ctx, core.ListQuery{Path: "a", After: "c/d", Limit: 1})
	_, regexp := f.finder.Search(ctx, core.SearchQuery{Pattern: `a\nb`, Limit: 1})
	_, literal := f.finder.Search(ctx, core.SearchQuery{Pattern: "\xff", Literal: true, Limit: 1})
	for field, err := range map[string]error{"glob": glob, "cursor": cursor, "pattern": regexp, "literal": literal} {
		var wrong *core.Error
		if !errors.As(err, &wrong) || wrong.Code != core.CodeInvalidArgument || wrong.Facts["field"] != field {
			t.Errorf("%s: got %v", field, err)
		}
	}
}

// TestAListWhoseTimeIsUpGoesOn: it gives what it has, and where to go on.
func TestAListWhoseTimeIsUpGoesOn(t *testing.T) {
	f := newFolder(t)
	want := 0
	for i := range 500 {
		f.holds(map[string]string{fmt.Sprintf("d%03d/f", i): ""})
		want += 2
	}
	got, ends := 0, 0
	for q := (core.ListQuery{Limit: 10_000}); ; {
		ctx := &brief{Context: context.Background(), left: 200}
		page, err := f.finder.List(ctx, q)
		if err != nil {
			t.Fatal(err)
		}
		got += len(page.Entries)
		if q.After = page.Next; q.After == "" {
			break
		}
		ends++
	}
	if got != want || ends < 4 {
		t.Errorf("got %d entries in %d pages, want %d", got, ends+1, want)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := f.finder.List(ctx, core.ListQuery{Limit: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
}

// brief is a context whose time is up after it was asked so often.
type brief struct {
	context.Context
	left int
}

func (b *brief) Err() error {
	if b.left--; b.left < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

func TestKnownTagsAreGiven(t *testing.T) {
	f := newFolder(t)
	f.holds(map[string]string{"a": "", "b": "xyz", "d/": ""})
	dir, err := os.Open(f.dir)
	if err != nil {
		t.Fatal(err)
	}
	root := inside.NewRoot(dir, 0, "/workspace")
	defer root.Close()
	finder := find.New(root, func(st *unix.Stat_t) string {
		if st.Size == 3 {
			return "tag"
		}
		return ""
	})
	page, err := finder.List(context.Background(), core.ListQuery{Limit: 10})
	if err != nil || len(page.Entries) != 3 || page.Entries[0].ETag != "" || page.Entries[1].ETag != "tag" {
		t.Errorf("got %+v, %v", page, err)
	}
}

// TestOfALargeDirectoryLittleIsHeld is C27's "flat memory".
func TestOfALargeDirectoryLittleIsHeld(t *testing.T) {
	f := newFolder(t)
	f.holds(map[string]string{"f00000": ""})
	for i := range 19_999 {
		if err := os.Link(f.dir+"/f00000", fmt.Sprintf("%s/f%05d", f.dir, (i+1)*7919%20_000)); err != nil {
			t.Fatal(err)
		}
	}
	if n := testing.AllocsPerRun(1, func() {
		page := f.list(core.ListQuery{Limit: 100})
		if len(page.Entries) != 100 || page.Entries[99].Path != "f00099" {
			t.Errorf("got %s", paths(page))
		}
	}); n > 3000 {
		t.Errorf("a page of 100 entries makes %.0f allocations", n)
	}
}
