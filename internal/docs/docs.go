// Package docs writes the reference pages from the operations table and from
// the tables of codes, so that they say what the program does. It protects
// nothing.
package docs

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"

	"envapi/internal/openapi"
	"envapi/tools"
)

// Pages gives the reference pages for the folder docs/, by file name, and with
// them the OpenAPI document, which is also the record of every public schema.
func Pages(ops []tools.Operation) map[string][]byte {
	document, err := openapi.Document(ops, "source")
	if err != nil {
		panic(fmt.Sprintf("docs: %v", err))
	}
	return map[string][]byte{
		"api.md":       api(ops),
		"tools.md":     toolsPage(ops),
		"openapi.json": append(document, '\n'),
	}
}

// page is a page that is being written.
type page struct {
	bytes.Buffer
	types map[string]string // the names of the output types, by schema
}

const notice = "<!-- Written by `make generate` from the operations table. Change the table, not this page. -->\n"

func newPage(ops []tools.Operation) *page {
	p := &page{types: map[string]string{}}
	for _, op := range ops {
		if op.Output != nil {
			p.types[text(op.Output)] = op.OutputName
		}
	}
	return p
}

// line writes one line.
func (p *page) line(format string, args ...any) {
	fmt.Fprintf(p, format+"\n", args...)
}

// text writes a schema as JSON; equal schemas have equal texts.
func text(s *jsonschema.Schema) string {
	raw, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("docs: cannot write a schema: %v", err))
	}
	return string(raw)
}
