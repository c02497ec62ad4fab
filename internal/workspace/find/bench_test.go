package find_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"envapi/core"
)

// The benchmarks say how this compares with a user's tools over Go's own source, each
// by itself; make bench does it over HTTP.

func BenchmarkSearch(b *testing.B) {
	source := filepath.Join(runtime.GOROOT(), "src")
	f := openFolder(b, source)
	for _, c := range []struct {
		name string
		q    core.SearchQuery
		rg   []string
	}{
		{"literal", core.SearchQuery{Pattern: "ErrUnexpectedEOF", Literal: true}, []string{"-F", "ErrUnexpectedEOF"}},
		{"rare", core.SearchQuery{Pattern: "TestGobMapInterfaceEncode", Literal: true}, []string{"-F", "TestGobMapInterfaceEncode"}},
		{"common", core.SearchQuery{Pattern: "return", Literal: true}, []string{"-F", "return"}},
		{"required", core.SearchQuery{Pattern: `func \(\w+ \*?\w+\) UnmarshalJSON\(`}, []string{`func \(\w+ \*?\w+\) UnmarshalJSON\(`}},
		{"required often", core.SearchQuery{Pattern: `func \w+Reader\(`}, []string{`func \w+Reader\(`}},
		{"fold", core.SearchQuery{Pattern: "errunexpectedeof", Literal: true, Fold: true}, []string{"-F", "-i", "errunexpectedeof"}},
		{"plain", core.SearchQuery{Pattern: `\b[a-f]{4}[0-9]{4}\b`}, []string{`\b[a-f]{4}[0-9]{4}\b`}},
		{"names", core.SearchQuery{Globs: []string{"*_windows_test.go"}}, []string{"--files", "-g", "*_windows_test.go"}},
	} {
		c.q.Limit, c.q.MaxBytes = 100, 1<<16
		b.Run(c.name+"/ours", func(b *testing.B) {
			for b.Loop() {
				f.search(c.q)
			}
		})
		b.Run(c.name+"/rg", func(b *testing.B) { tool(b, "rg", append(c.rg, "--no-heading", "-n", source)...) })
	}
}

func tool(b *testing.B, name string, args ...string) {
	if _, err := exec.LookPath(name); err != nil {
		b.Skip("it is not on this host")
	}
	for b.Loop() {
		_ = exec.Command(name, args...).Run()
	}
}

func BenchmarkList(b *testing.B) {
	f := newFolder(b)
	for i := range 100_000 {
		if err := os.WriteFile(filepath.Join(f.dir, fmt.Sprintf("file-%06d.txt", i*7919%100_000)), nil, 0o644); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("page", func(b *testing.B) {
		for b.Loop() {
			f.list(core.ListQuery{})
		}
	})
	b.Run("all pages", func(b *testing.B) {
		for b.Loop() {
			for q := (core.ListQuery{Limit: 1000}); ; {
				if q.After = f.list(q).Next; q.After == "" {
					break
				}
			}
		}
	})
	b.Run("find", func(b *testing.B) { tool(b, "find", f.dir, "-printf", "%p %s %m %T@\n") })
	b.Run("find names", func(b *testing.B) { tool(b, "find", f.dir) })
}
