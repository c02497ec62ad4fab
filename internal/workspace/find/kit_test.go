package find_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"envapi/core"
	"envapi/internal/workspace/find"
	"envapi/internal/workspace/inside"
)

// somebody is the environment's user where the tests are root.
const somebody = 64321

// folder is a workspace.
type folder struct {
	t      testing.TB
	dir    string
	finder *find.Finder
}

func newFolder(t testing.TB) *folder {
	t.Helper()
	f := openFolder(t, t.TempDir())
	if err := os.Chmod(f.dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return f
}

func openFolder(t testing.TB, dir string) *folder {
	t.Helper()
	opened, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	uid := 0
	if os.Geteuid() == 0 {
		uid = somebody
	}
	root := inside.NewRoot(opened, uid, "/workspace")
	t.Cleanup(func() {
		if err := root.Close(); err != nil {
			t.Error(err)
		}
	})
	return &folder{t: t, dir: dir, finder: find.New(root, nil)}
}

// holds makes files; a name that ends in a slash is a directory.
func (f *folder) holds(files map[string]string) {
	f.t.Helper()
	for name, text := range files {
		full := filepath.Join(f.dir, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			f.t.Fatal(err)
		}
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(full, 0o755); err != nil {
				f.t.Fatal(err)
			}
		} else if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
			f.t.Fatal(err)
		}
	}
}

func (f *folder) list(q core.ListQuery) core.Listing {
	f.t.Helper()
	if q.Limit == 0 {
		q.Limit = 1000
	}
	page, err := f.finder.List(context.Background(), q)
	if err != nil {
		f.t.Fatal(err)
	}
	return page
}

func (f *folder) search(q core.SearchQuery) core.SearchResult {
	f.t.Helper()
	if q.Limit == 0 {
		q.Limit = 1000
	}
	if q.MaxBytes == 0 {
		q.MaxBytes = 1 << 20
	}
	found, err := f.finder.Search(context.Background(), q)
	if err != nil {
		f.t.Fatal(err)
	}
	return found
}

func paths(page core.Listing) string {
	var all []string
	for _, e := range page.Entries {
		all = append(all, e.Path)
	}
	return strings.Join(all, " ")
}

// found gives what was found as path:line:column:text.
func found(r core.SearchResult) string {
	var all []string
	for _, m := range r.Matches {
		all = append(all, fmt.Sprintf("%s:%d:%d:%s", m.Path, m.Line, m.Column, m.Text))
	}
	return strings.Join(all, "|")
}
