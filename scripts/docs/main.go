// Command docs writes the generated pages of docs/ and .env.example anew. It is
// run from the root of the repository, by make generate.
package main

import (
	"log"
	"os"
	"path/filepath"

	"envapi/internal/config"
	"envapi/internal/docs"
	"envapi/tools"
)

func main() {
	for name, page := range docs.Pages(tools.Operations()) {
		write(filepath.Join("docs", name), page)
	}
	write(".env.example", []byte(config.Example()))
	page, err := os.ReadFile("docs/operations.md")
	if err != nil {
		log.Fatalf("cannot read a page: %v", err)
	}
	write("docs/operations.md", []byte(config.WithTable(string(page))))
}

func write(path string, page []byte) {
	if err := os.WriteFile(path, page, 0o644); err != nil { //nolint:gosec // a page for everybody to read
		log.Fatalf("cannot write a page: %v", err)
	}
}
