package tools

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"envapi/core"
	"envapi/internal/levenshtein"
)

// maxQuoted bounds, in bytes, how much of a caller's text an error repeats.
const maxQuoted = 80

// invalid makes an `invalid_argument` for one field.
func invalid(field, format string, args ...any) error {
	return core.Errorf(core.CodeInvalidArgument, format, args...).With("field", cut(field))
}

func mistyped(field string, s *jsonschema.Schema, got string) error {
	want := map[string]string{
		"string": "a string", "integer": "an integer", "boolean": "true or false",
		"array": "a list", "object": "an object",
	}[typeOf(s)]
	if len(s.PropertyOrder) > 0 {
		want += " with " + strings.Join(s.PropertyOrder, ", ")
	}
	return invalid(field, "cannot take the field %s: it must be %s, not %s", quote(field), want, got)
}

// unknown refuses a member that the object at a path does not have, and names
// the one that was probably meant.
func unknown(at, name string, s *jsonschema.Schema) error {
	field := join(at, name)
	advice := "this object has no fields"
	if len(s.PropertyOrder) > 0 {
		advice = "the fields are " + strings.Join(s.PropertyOrder, ", ")
	}
	if near := nearest(name, s.PropertyOrder); near != "" {
		advice = "did you mean " + quote(join(at, near)) + "?"
	}
	return invalid(field, "cannot take the field %s: there is none of this name; %s", quote(field), advice)
}

// nearest gives the name that begins with what was written, or else ends with it
// (id of shell_id), or is shortened by it (cmd of command), or is the fewest edits
// away, or "" where none is near.
func nearest(written string, names []string) string {
	if len(written) < 2 || len(written) > maxQuoted {
		return ""
	}
	written = strings.ToLower(written)
	for _, near := range []func(name string) bool{
		func(name string) bool { return strings.HasPrefix(name, written) },
		func(name string) bool { return strings.HasSuffix(name, "_"+written) },
		func(name string) bool { return shortens(written, name) },
	} {
		if i := slices.IndexFunc(names, near); i >= 0 {
			return names[i]
		}
	}
	best, limit := "", max(2, len(written)/3)
	for _, name := range names {
		if d := levenshtein.Distance(written, name); d <= limit {
			best, limit = name, d-1
		}
	}
	return best
}

// shortens says whether short is the first letter of a word and some of the
// others, in their order.
func shortens(short, word string) bool {
	if short[0] != word[0] {
		return false
	}
	for i := range len(word) {
		if short != "" && short[0] == word[i] {
			short = short[1:]
		}
	}
	return short == ""
}

// span says in words which integers are allowed.
func span(low, high int64) string {
	switch {
	case high == math.MaxInt64 && low == math.MinInt64:
		return "an integer of 64 bits"
	case high == math.MaxInt64:
		return fmt.Sprintf("%d or more", low)
	default:
		return fmt.Sprintf("from %d to %d", low, high)
	}
}

func list(values []any) string {
	var names []string
	for _, v := range values {
		names = append(names, fmt.Sprint(v))
	}
	return strings.Join(names, ", ")
}

// join gives the path of a member of the object at a path.
func join(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
}

// quote shows a caller's text on one line, cut where it is long.
func quote(s string) string { return strconv.Quote(cut(s)) }

func cut(s string) string {
	if len(s) <= maxQuoted {
		return s
	}
	end := maxQuoted
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}
