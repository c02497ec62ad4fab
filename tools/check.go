package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"envapi/core"
)

// check reads raw once and refuses whatever does not fit schema: what is not
// one JSON object in valid Unicode, a member given twice, an unknown one, a
// missing one, a wrong type, a value out of range. An optional member that is
// null is taken as left out. It never goes deeper than the schema does. It
// gives the names of the members that were given.
func check(raw []byte, schema *jsonschema.Schema) ([]string, error) {
	if err := checkText(raw); err != nil {
		return nil, err
	}
	c := checker{json.NewDecoder(bytes.NewReader(raw))}
	c.in.UseNumber()
	if token, err := c.in.Token(); err != nil || token != json.Delim('{') {
		return nil, core.Errorf(core.CodeInvalidArgument, "cannot read the input: it must be one JSON object")
	}
	return c.members("", schema)
}

// checkText refuses what is no JSON text, and what the decoder would quietly
// replace: bytes that are not UTF-8 and halves of surrogate pairs.
func checkText(raw []byte) error {
	if !utf8.Valid(raw) || hasLoneSurrogate(raw) {
		return core.Errorf(core.CodeInvalidArgument,
			"cannot read the input: it is not valid Unicode text; send bytes that are not text in an encoded form")
	}
	if json.Valid(raw) {
		return nil
	}
	err := json.Unmarshal(raw, new(json.RawMessage))
	return core.Errorf(core.CodeInvalidArgument, "cannot read the input as JSON: %v", err)
}

// checker walks JSON that is known to be well formed along a schema.
type checker struct{ in *json.Decoder }

// next gives the next token of well-formed JSON.
func (c checker) next() json.Token {
	token, err := c.in.Token()
	if err != nil && !errors.Is(err, io.EOF) {
		panic(fmt.Sprintf("tools: well-formed JSON has no next token: %v", err))
	}
	return token
}

// members checks the members of an object whose brace was read.
func (c checker) members(at string, s *jsonschema.Schema) (given []string, err error) {
	var seen []string
	for c.in.More() {
		name := c.next().(string)
		field := join(at, name)
		if slices.Contains(seen, name) {
			return nil, invalid(field, "cannot take the field %s: it is given twice", quote(field))
		}
		seen = append(seen, name)
		member, known := s.Properties[name]
		if !known {
			return nil, unknown(at, name, s)
		}
		null, err := c.value(field, member, !slices.Contains(s.Required, name))
		if err != nil {
			return nil, err
		}
		if !null {
			given = append(given, name)
		}
	}
	c.next()
	for _, name := range s.Required {
		if !slices.Contains(given, name) {
			return nil, invalid(join(at, name), "cannot do without the field %s: %s", quote(join(at, name)), s.Properties[name].Description)
		}
	}
	return given, nil
}

// value checks one value, and says whether it is a null that means left out.
func (c checker) value(field string, s *jsonschema.Schema, optional bool) (null bool, err error) {
	switch token := c.next().(type) {
	case nil:
		if optional {
			return true, nil
		}
		return false, mistyped(field, s, "null")
	case bool:
		if typeOf(s) != "boolean" {
			return false, mistyped(field, s, "a boolean")
		}
		return false, nil
	case string:
		return false, checkString(field, s, token, optional)
	case json.Number:
		return false, checkInteger(field, s, token.String())
	case json.Delim:
		return false, c.nested(field, s, token)
	default:
		return false, fmt.Errorf("cannot check a token of type %T", token)
	}
}

// nested checks a list or an object whose first delimiter was read.
func (c checker) nested(field string, s *jsonschema.Schema, open json.Delim) error {
	switch {
	case open == '[' && typeOf(s) == "array":
		return c.items(field, s.Items)
	case open == '[':
		return mistyped(field, s, "a list")
	case typeOf(s) != "object":
		return mistyped(field, s, "an object")
	case s.Properties == nil:
		return c.entries(field, s.AdditionalProperties)
	default:
		_, err := c.members(field, s)
		return err
	}
}

// items checks the items of a list.
func (c checker) items(field string, s *jsonschema.Schema) error {
	for i := 0; c.in.More(); i++ {
		if _, err := c.value(fmt.Sprintf("%s[%d]", field, i), s, false); err != nil {
			return err
		}
	}
	c.next()
	return nil
}

// entries checks the entries of a map, which the caller names.
func (c checker) entries(field string, s *jsonschema.Schema) error {
	seen := map[string]bool{}
	for c.in.More() {
		name := c.next().(string)
		at := join(field, name)
		if seen[name] {
			return invalid(at, "cannot take the field %s: it is given twice", quote(at))
		}
		seen[name] = true
		if _, err := c.value(at, s, false); err != nil {
			return err
		}
	}
	c.next()
	return nil
}

func checkString(field string, s *jsonschema.Schema, value string, optional bool) error {
	if typeOf(s) != "string" {
		return mistyped(field, s, "a string")
	}
	if s.Enum != nil && !slices.Contains(s.Enum, any(value)) {
		return invalid(field, "cannot take %s for the field %s: it must be one of %s", quote(value), quote(field), list(s.Enum))
	}
	if s.Format == "date-time" && !isMoment(value) {
		return invalid(field, "cannot take %s for the field %s: write a moment as 2006-01-02T15:04:05.000Z", quote(value), quote(field))
	}
	if s.MinLength != nil && utf8.RuneCountInString(value) < *s.MinLength {
		advice := "it cannot be left out either"
		if optional {
			advice = "leave it out if there is none"
		}
		return invalid(field, "cannot take the field %s: it is shorter than %d characters; %s", quote(field), *s.MinLength, advice)
	}
	if s.MaxLength != nil && utf8.RuneCountInString(value) > *s.MaxLength {
		return invalid(field, "cannot take the field %s: it is longer than %d characters", quote(field), *s.MaxLength)
	}
	return nil
}

// moment is how a moment must be written: the library takes more.
var moment = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$`)

func isMoment(text string) bool {
	return moment.MatchString(text) && new(core.Time).UnmarshalText([]byte(text)) == nil
}

// plainInteger is how an integer must be written. A fraction or an exponent is
// refused even where its value is whole: such a number came from arithmetic
// that may have rounded it.
var plainInteger = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)

func checkInteger(field string, s *jsonschema.Schema, text string) error {
	if typeOf(s) != "integer" {
		return mistyped(field, s, "a number")
	}
	if !plainInteger.MatchString(text) {
		return invalid(field, "cannot take %s for the field %s: write an integer with digits only, such as 1000", quote(text), quote(field))
	}
	low, high := bounds(s)
	if n, err := strconv.ParseInt(text, 10, 64); err != nil || n < low || n > high {
		return invalid(field, "cannot take %s for the field %s: it must be %s", quote(text), quote(field), span(low, high))
	}
	return nil
}

func bounds(s *jsonschema.Schema) (low, high int64) {
	low, high = math.MinInt64, math.MaxInt64
	if s.Minimum != nil {
		low = int64(*s.Minimum)
	}
	if s.Maximum != nil {
		high = int64(*s.Maximum)
	}
	return low, high
}
