package docs

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"envapi/tools"
)

func TestGeneratedPagesAreCurrent(t *testing.T) {
	for name, want := range Pages(tools.Operations()) {
		got, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
		if err != nil {
			t.Errorf("cannot read the page: %v: run make generate", err)
		} else if !bytes.Equal(got, want) {
			t.Errorf("docs/%s is not what the generator makes: run make generate", name)
		}
	}
}

func TestPagesNameEveryOperationAndField(t *testing.T) {
	pages := Pages(tools.Operations())
	for _, op := range tools.Operations() {
		documents := []string{"api.md", "tools.md"}
		if op.NoTool != "" {
			documents = []string{"api.md"}
			if bytes.Contains(pages["tools.md"], []byte("### "+op.Name+"\n")) {
				t.Errorf("tools.md has %s, which is no tool", op.Name)
			}
		}
		for _, name := range documents {
			page := pages[name]
			if !bytes.Contains(page, []byte("### "+op.Name+"\n")) {
				t.Errorf("%s has no section for %s", name, op.Name)
			}
			for _, field := range op.Input.PropertyOrder {
				if !bytes.Contains(page, []byte("| `"+field+"` |")) {
					t.Errorf("%s does not have the field %s of %s", name, field, op.Name)
				}
			}
		}
	}
}
