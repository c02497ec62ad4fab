package openapi

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	oracle "github.com/santhosh-tekuri/jsonschema/v6"

	"envapi/core"
	"envapi/tools"
)

// described is the document as a reader of it sees it.
type described struct {
	OpenAPI string
	Tags    []struct{ Name, Description string }
	Paths   map[string]map[string]struct {
		OperationID, Summary string
		Tags                 []string
		Security             []map[string][]core.Scope
		Parameters           []struct {
			Name, In, Description string
			Required              bool
			Schema                any
		}
		RequestBody *struct {
			Content map[string]struct{ Schema any }
		}
		Responses map[string]struct {
			Description string
			Content     map[string]struct{ Schema any }
		}
	}
	Components struct{ Schemas map[string]any }
}

func document(t *testing.T) (described, any) {
	t.Helper()
	text, err := Document(tools.Operations(), "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	var d described
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	value, err := oracle.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return d, value
}

func TestEveryReferenceAndSchemaIsGood(t *testing.T) {
	d, value := document(t)
	compiler := oracle.NewCompiler()
	if err := compiler.AddResource("openapi.json", value); err != nil {
		t.Fatal(err)
	}
	for name := range d.Components.Schemas {
		if _, err := compiler.Compile("openapi.json#/components/schemas/" + name); err != nil {
			t.Errorf("%s is no schema: %v", name, err)
		}
	}
	references := 0
	walk(value, func(object map[string]any) {
		reference, ok := object["$ref"].(string)
		if !ok {
			return
		}
		references++
		name, ok := strings.CutPrefix(reference, "#/components/schemas/")
		if !ok || d.Components.Schemas[name] == nil {
			t.Errorf("%s leads nowhere", reference)
		}
	})
	if references < 50 {
		t.Errorf("only %d references were found", references)
	}
}

func walk(value any, visit func(map[string]any)) {
	switch value := value.(type) {
	case map[string]any:
		visit(value)
		for _, member := range value {
			walk(member, visit)
		}
	case []any:
		for _, item := range value {
			walk(item, visit)
		}
	}
}

func TestEveryOperationIsDescribed(t *testing.T) {
	d, _ := document(t)
	if d.OpenAPI != "3.1.0" {
		t.Errorf("the version is %s", d.OpenAPI)
	}
	for _, op := range tools.Operations() {
		got, ok := d.Paths[op.Path][strings.ToLower(op.Method)]
		if !ok || got.OperationID != op.Name || !slices.Equal(got.Tags, []string{op.Noun}) {
			t.Errorf("%s %s is described as %+v", op.Method, op.Path, got)
			continue
		}
		if !slices.Equal(got.Security[0]["bearer"], []core.Scope{op.Scope}) {
			t.Errorf("%s needs %v", op.Name, got.Security)
		}
		for _, form := range op.Forms {
			if got.Responses["200"].Content[form.MediaType].Schema == nil {
				t.Errorf("%s does not describe the form %s", op.Name, form.MediaType)
			}
		}
		var fields []string
		for _, p := range got.Parameters {
			if p.In == "header" && (ofForm(op, p.Name) || Headers(op)[p.Name] != "") {
				continue
			}
			fields = append(fields, strings.ReplaceAll(strings.ToLower(p.Name), "-", "_"))
			if p.Description == "" || p.Schema == nil || p.Required != (p.In != "header" && slices.Contains(op.Input.Required, p.Name)) {
				t.Errorf("%s: the parameter %+v is not in order", op.Name, p)
			}
		}
		if got.RequestBody != nil {
			body, _ := got.RequestBody.Content["application/json"].Schema.(map[string]any)
			properties, _ := body["properties"].(map[string]any)
			for name := range properties {
				fields = append(fields, name)
			}
		}
		slices.Sort(fields)
		want := slices.Sorted(slices.Values(op.Input.PropertyOrder))
		if got := slices.Compact(fields); !slices.Equal(got, want) {
			t.Errorf("%s has the fields %v, want %v", op.Name, got, want)
		}
		for _, status := range []string{"400", "401", "403", "500", "503"} {
			if got.Responses[status].Content["application/problem+json"].Schema == nil {
				t.Errorf("%s does not describe %s", op.Name, status)
			}
		}
	}
}

// ofForm says whether a header is one that a form understands.
func ofForm(op tools.Operation, header string) bool {
	for _, form := range op.Forms {
		if form.Headers[header] != "" {
			return true
		}
	}
	return false
}

func TestTagsAreExplained(t *testing.T) {
	d, _ := document(t)
	for _, tag := range d.Tags {
		if tag.Name == "" || tag.Description == "" {
			t.Errorf("the tag %+v is not explained", tag)
		}
	}
}
