package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const module = "envapi"

// source is one Go file of the module.
type source struct {
	name    string // from the root of the module
	room    string // its package's folder, "core"
	test    bool
	imports []string // of our own packages without the module's name: "./core"
	file    *ast.File
	lines   int
}

// sources gives every Go file of the module.
func sources(t *testing.T) []source {
	t.Helper()
	root := filepath.Join("..", "..")
	var all []source
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if skipped(entry.Name()) && name != root {
				return filepath.SkipDir
			}
			return nil
		}
		if strings.HasSuffix(name, ".go") {
			all = append(all, parse(t, root, name))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 100 {
		t.Fatalf("only %d files were found: this is not the module", len(all))
	}
	return all
}

// skipped says whether a folder holds no code of ours.
func skipped(folder string) bool {
	return folder == "testdata" || folder == "node_modules" || strings.HasPrefix(folder, ".") && folder != ".."
}

func parse(t *testing.T, root, name string) source {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	relative, err := filepath.Rel(root, name)
	if err != nil {
		t.Fatal(err)
	}
	s := source{name: filepath.ToSlash(relative), test: strings.HasSuffix(name, "_test.go"), file: file}
	s.lines = set.File(file.Pos()).LineCount()
	s.room = path.Dir(s.name)
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		if own, ok := strings.CutPrefix(imported, module+"/"); ok {
			imported = "./" + own
		}
		s.imports = append(s.imports, imported)
	}
	return s
}

// within says whether a path is one of trees or below it.
func within(path string, trees ...string) bool {
	for _, tree := range trees {
		if path == tree || strings.HasPrefix(path, tree+"/") {
			return true
		}
	}
	return false
}

// forTests are the rooms that only tests and developers use.
var forTests = []string{"bench", "e2e", "scripts", "soak", "internal/archtest", "internal/random", "internal/require", "internal/testbin", "sandbox/sandboxtest", "sandbox/mutation"}
