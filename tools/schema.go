package tools

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"envapi/core"
)

// schemaOf makes the schema of T from its fields and their tags:
//
//	doc      what the field means; every field has one
//	min, max bounds of an integer
//	minlen, maxlen  of a string, in characters
//	enum     the strings allowed, separated by commas
//	default  what leaving the field out means
//
// A field with omitempty may be left out and is never null in an output; a
// pointer without it may be null. Lists and maps are never null.
func schemaOf[T any]() *jsonschema.Schema {
	s, err := jsonschema.For[T](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[core.Time](): {Type: "string", Format: "date-time"},
	}})
	if err != nil {
		panic(fmt.Sprintf("tools: cannot make a schema: %v", err))
	}
	if s.Properties == nil {
		s.Properties = map[string]*jsonschema.Schema{}
	}
	annotate(reflect.TypeFor[T](), s)
	return s
}

// typeName gives the name of T for documents: Environment, EnvironmentPage.
func typeName[T any]() string {
	base, argument, generic := strings.Cut(reflect.TypeFor[T]().Name(), "[")
	if !generic {
		return base
	}
	return strings.TrimSuffix(argument[strings.LastIndex(argument, ".")+1:], "]") + base
}

// annotate completes the schema s of a t with what the tags say.
func annotate(t reflect.Type, s *jsonschema.Schema) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if s.Types != nil {
		s.Type, s.Types = typeOf(s), nil
	}
	switch {
	case t == reflect.TypeFor[core.Time]():
	case t.Kind() == reflect.Slice:
		annotate(t.Elem(), s.Items)
	case t.Kind() == reflect.Map:
		annotate(t.Elem(), s.AdditionalProperties)
	case t.Kind() == reflect.Struct:
		for _, f := range reflect.VisibleFields(t) {
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			if p := s.Properties[name]; p != nil && !f.Anonymous {
				annotate(f.Type, p)
				applyTags(f.Tag, p)
				if f.Type.Kind() == reflect.Pointer && options != "omitempty" {
					p.Types, p.Type = []string{p.Type, "null"}, ""
				}
			}
		}
	}
}

// applyTags sets what the tags of a field say about its schema.
func applyTags(tag reflect.StructTag, p *jsonschema.Schema) {
	p.Description = tag.Get("doc")
	if v, ok := tag.Lookup("min"); ok {
		p.Minimum = jsonschema.Ptr(float64(number(v)))
	}
	if v, ok := tag.Lookup("max"); ok {
		p.Maximum = jsonschema.Ptr(float64(number(v)))
	}
	if v, ok := tag.Lookup("minlen"); ok {
		p.MinLength = jsonschema.Ptr(number(v))
	}
	if v, ok := tag.Lookup("maxlen"); ok {
		p.MaxLength = jsonschema.Ptr(number(v))
	}
	if v, ok := tag.Lookup("enum"); ok {
		for value := range strings.SplitSeq(v, ",") {
			p.Enum = append(p.Enum, value)
		}
	}
	if v, ok := tag.Lookup("default"); ok {
		p.Default = json.RawMessage(v)
		if p.Type == "string" {
			p.Default = json.RawMessage(strconv.Quote(v))
		}
	}
}

func number(tag string) int {
	n, err := strconv.Atoi(tag)
	if err != nil {
		panic(fmt.Sprintf("tools: the tag %q is no number", tag))
	}
	return n
}

// typeOf gives the JSON type of what s describes, leaving null aside.
func typeOf(s *jsonschema.Schema) string {
	if s.Type != "" {
		return s.Type
	}
	i := slices.IndexFunc(s.Types, func(t string) bool { return t != "null" })
	return s.Types[i]
}
