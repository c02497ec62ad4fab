package docs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// field is one row of a table of fields.
type field struct {
	name, place, kind, rule, meaning string
}

// The words for a field that is not optional.
const (
	inInputs  = "required"
	inOutputs = "always"
)

// fields gives the rows for the members of s, and for those of the objects in
// it that are no type of their own, under names with dots. must is the word for
// a member that is not optional.
func (p *page) fields(s *jsonschema.Schema, prefix, must string, place func(name string) string) []field {
	var rows []field
	for _, name := range s.PropertyOrder {
		member := s.Properties[name]
		rows = append(rows, field{
			name:    prefix + name,
			place:   place(name),
			kind:    p.kind(member),
			rule:    rule(member, slices.Contains(s.Required, name), must),
			meaning: member.Description,
		})
		in := func(string) string { return place(name) }
		switch {
		case member.Properties != nil && p.types[bare(member)] == "":
			rows = append(rows, p.fields(member, prefix+name+".", must, in)...)
		case member.Items != nil && member.Items.Properties != nil && p.types[bare(member.Items)] == "":
			rows = append(rows, p.fields(member.Items, prefix+name+"[].", must, in)...)
		}
	}
	return rows
}

// bare is the text of a schema without what its field says about it.
func bare(s *jsonschema.Schema) string {
	plain := *s
	plain.Description = ""
	return text(&plain)
}

// kind names the type of a value.
func (p *page) kind(s *jsonschema.Schema) string {
	if name := p.types[bare(s)]; name != "" {
		return typeLink(name)
	}
	switch {
	case s.Types != nil:
		return strings.Join(s.Types, " or ")
	case s.Type == "array":
		return "list of " + p.kind(s.Items)
	case s.Type == "object" && s.Properties == nil:
		return "object of " + p.kind(s.AdditionalProperties)
	case s.Format != "":
		return s.Format
	default:
		return s.Type
	}
}

func typeLink(name string) string {
	return fmt.Sprintf("[%s](api.md#%s)", name, strings.ToLower(name))
}

// rule says what holds for a value, and what leaving it out means.
func rule(s *jsonschema.Schema, required bool, must string) string {
	var parts []string
	if required {
		parts = append(parts, must)
	}
	switch {
	case s.Minimum != nil && s.Maximum != nil:
		parts = append(parts, fmt.Sprintf("%.0f to %.0f", *s.Minimum, *s.Maximum))
	case s.Minimum != nil:
		parts = append(parts, fmt.Sprintf("%.0f or more", *s.Minimum))
	}
	switch {
	case s.MinLength != nil && s.MaxLength != nil:
		parts = append(parts, fmt.Sprintf("%d to %d characters", *s.MinLength, *s.MaxLength))
	case s.MaxLength != nil:
		parts = append(parts, fmt.Sprintf("at most %d characters", *s.MaxLength))
	}
	if s.Enum != nil {
		var values []string
		for _, value := range s.Enum {
			values = append(values, fmt.Sprintf("`%v`", value))
		}
		parts = append(parts, "one of "+strings.Join(values, ", "))
	}
	if s.Default != nil {
		parts = append(parts, fmt.Sprintf("default `%s`", s.Default))
	}
	return strings.Join(parts, "; ")
}

// table writes rows, with a column for the place where any has one.
func (p *page) table(rows []field) {
	placed := slices.ContainsFunc(rows, func(f field) bool { return f.place != "" })
	header, rulerLine := "| field |", "|---|"
	if placed {
		header, rulerLine = header+" in |", rulerLine+"---|"
	}
	p.line("%s type | rule | meaning |", header)
	p.line("%s---|---|---|", rulerLine)
	for _, f := range rows {
		place := ""
		if placed {
			place = " " + f.place + " |"
		}
		p.line("| `%s` |%s %s | %s | %s |", f.name, place, f.kind, f.rule, strings.ReplaceAll(f.meaning, "|", "\\|"))
	}
	p.line("")
}

func nowhere(string) string { return "" }
