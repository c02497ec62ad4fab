package archtest

import (
	"go/ast"
	"path"
	"slices"
	"strings"
	"testing"
)

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	documented := map[string]bool{}
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		documented[s.room] = documented[s.room] || s.file.Doc != nil
	}
	for room, ok := range documented {
		if !ok {
			t.Errorf("%s has no package comment", room)
		}
	}
}

func TestPackageCommentsNameTheirPackage(t *testing.T) {
	for _, s := range sources(t) {
		if s.test || s.file.Doc == nil {
			continue
		}
		want := "Package " + s.file.Name.Name + " "
		if s.file.Name.Name == "main" {
			want = "Command " + path.Base(s.room) + " "
		}
		if !strings.HasPrefix(s.file.Doc.Text(), want) {
			t.Errorf("%s: the package comment does not begin with %q", s.name, want)
		}
	}
}

// vague are names that say nothing about what a package is for.
var vague = []string{"util", "utils", "common", "helper", "helpers", "misc", "types", "manager", "shared", "lib"}

func TestPackagesAreNouns(t *testing.T) {
	for _, s := range sources(t) {
		if slices.Contains(vague, path.Base(s.room)) {
			t.Errorf("%s is in a package whose name says nothing", s.name)
		}
	}
}

// maxLines is how long a file may be before it is about more than one noun.
const maxLines = 400

func TestFilesAreShort(t *testing.T) {
	for _, s := range sources(t) {
		if s.test || ast.IsGenerated(s.file) {
			continue
		}
		if s.lines > maxLines {
			t.Errorf("%s has %d lines: is it about one noun?", s.name, s.lines)
		}
	}
}

// TestNoPackageHasAnInit: what happens at the start is seen in main.
func TestNoPackageHasAnInit(t *testing.T) {
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s has an init function", s.name)
			}
		}
	}
}
