package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"envapi/core"
	"envapi/tools"
)

// headerFields are the input fields that stand in a header.
var headerFields = map[string]string{
	"idempotency_key": "Idempotency-Key", "if_match": "If-Match", "if_none_match": "If-None-Match",
}

// readInput makes one JSON object of what a request says in its path, its
// headers, and its query or its body. A field that is named in two places
// stands in the object twice, and is refused as such where it is decoded.
func readInput(w http.ResponseWriter, r *http.Request, op tools.Operation) ([]byte, error) {
	members, err := outside(r, op)
	if err != nil {
		return nil, err
	}
	body, err := readBody(w, r)
	if err != nil {
		return nil, err
	}
	if body == nil {
		return object(members, []byte("{}")), nil
	}
	if inQuery(op) {
		return nil, core.Errorf(core.CodeInvalidArgument, "cannot take a body with %s: fields go into the query", op.Method)
	}
	if body[0] != '{' {
		return nil, core.Errorf(core.CodeInvalidArgument, "cannot read the body: it must be one JSON object")
	}
	return object(members, body), nil
}

// inQuery says whether the fields of an operation stand in the query, not in a
// body.
func inQuery(op tools.Operation) bool {
	return op.Method == http.MethodGet || op.Method == http.MethodDelete || op.RawBody
}

// outside gives the members that stand outside the body, each as JSON.
func outside(r *http.Request, op tools.Operation) ([][]byte, error) {
	var members [][]byte
	add := func(name, text string) error {
		member, err := member(name, text, op.Input.Properties[name])
		members = append(members, member)
		return err
	}
	for _, name := range pathFields(op.Path) {
		if err := add(name, r.PathValue(name)); err != nil {
			return nil, err
		}
	}
	for name, header := range headerFields {
		values := r.Header.Values(header)
		if op.Input.Properties[name] == nil || len(values) == 0 {
			continue
		}
		if len(values) > 1 && name == "idempotency_key" {
			return nil, invalid(name, "cannot take the header %s: it is given twice", header)
		}
		if op.Input.Properties[name].Type != "string" {
			return nil, invalid(name, "cannot take the header %s here: give the field %s", header, name)
		}
		if err := add(name, strings.Join(values, ",")); err != nil {
			return nil, err
		}
	}
	if err := checkConditions(r, op); err != nil {
		return nil, err
	}
	query, err := readQuery(r, op)
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if err := add(name, query.Get(name)); err != nil {
			return nil, err
		}
	}
	return members, err
}

// checkConditions refuses, of what changes something, the headers that say when it may
// be changed or which part of it, where nothing heeds them: it would be changed all the
// same, and a part would be taken for the whole (RFC 9110, 14.5).
func checkConditions(r *http.Request, op tools.Operation) error {
	if op.Method == http.MethodGet {
		return nil // nothing is changed, and its own route has those of reading
	}
	if r.Header.Get("Content-Range") != "" {
		return invalid("Content-Range", "cannot take a part of a body (the header Content-Range): send it whole")
	}
	for _, header := range []string{"If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since"} {
		field := strings.ToLower(strings.ReplaceAll(header, "-", "_"))
		if len(r.Header.Values(header)) > 0 && op.Input.Properties[field] == nil {
			return invalid(header, "cannot heed the header %s here: leave it out; %s", header, conditionsOf(op))
		}
	}
	return nil
}

// conditionsOf says which conditions there are instead.
func conditionsOf(op tools.Operation) string {
	var known []string
	for _, field := range []string{"if_match", "if_none_match"} {
		if op.Input.Properties[field] != nil {
			known = append(known, headerFields[field])
		}
	}
	if known == nil {
		return op.Name + " has no conditions"
	}
	return op.Name + " has " + strings.Join(known, " and ")
}

// readQuery gives the query, in which every parameter stands once.
func readQuery(r *http.Request, op tools.Operation) (url.Values, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, core.Errorf(core.CodeInvalidArgument, "cannot read the query: it is not encoded as a URL query")
	}
	for name, values := range query {
		switch {
		case !inQuery(op):
			return nil, invalid(name, "cannot take the field %q from the query: with %s, fields go into the JSON body", name, op.Method)
		case len(values) > 1:
			return nil, invalid(name, "cannot take the field %q: it is given twice", name)
		}
	}
	return query, nil
}

// member gives a JSON member whose value is what text means to a schema. Text
// that does not mean anything to it stays a string, for the decoder to refuse.
func member(name, text string, s *jsonschema.Schema) ([]byte, error) {
	if !utf8.ValidString(text) || !utf8.ValidString(name) {
		return nil, invalid(strings.ToValidUTF8(name, "?"), "cannot take a field that is not valid UTF-8")
	}
	key, err := json.Marshal(name)
	if err != nil {
		return nil, err
	}
	value := []byte(text)
	if s == nil || s.Type == "string" || !isLiteral(text) {
		if value, err = json.Marshal(text); err != nil {
			return nil, err
		}
	}
	return append(append(key, ':'), value...), nil
}

// isLiteral says whether text is a JSON number, true or false.
func isLiteral(text string) bool {
	var value any
	if json.Unmarshal([]byte(text), &value) != nil {
		return false
	}
	switch value.(type) {
	case bool, float64:
		return true
	}
	return false
}

// object puts members before those of a JSON object.
func object(members [][]byte, body []byte) []byte {
	if len(members) == 0 {
		return body
	}
	rest := body[1:]
	if trimmed := bytes.TrimLeft(rest, " \t\r\n"); len(trimmed) > 0 && trimmed[0] != '}' {
		members = append(members, nil) // for a comma before what follows
	}
	return slices.Concat([]byte{'{'}, bytes.Join(members, []byte{','}), rest)
}

// readBody gives the body without the space around it, or nil where there is
// none.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	var body []byte
	var err error = &http.MaxBytesError{Limit: tools.MaxInputBytes}
	if r.ContentLength <= tools.MaxInputBytes { // else it need not be sent to be refused
		body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, tools.MaxInputBytes))
	}
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, core.Errorf(core.CodeTooLarge, "cannot take the body: it is larger than %d bytes", tools.MaxInputBytes).
			With("allowed_bytes", tools.MaxInputBytes)
	case err != nil:
		return nil, core.Errorf(core.CodeInvalidArgument, "cannot read the body: it ended early").Because(err)
	}
	if body = bytes.Trim(body, " \t\r\n"); len(body) == 0 {
		return nil, nil
	}
	return body, checkMediaType(r.Header)
}

// checkMediaType refuses a body that is not plain JSON in UTF-8.
func checkMediaType(header http.Header) error {
	media, params, err := mime.ParseMediaType(header.Get("Content-Type"))
	charset := params["charset"]
	if err != nil || media != "application/json" || charset != "" && !strings.EqualFold(charset, "utf-8") {
		return core.Errorf(core.CodeUnsupportedEncoding, "cannot read the body: send it with Content-Type application/json")
	}
	if header.Get("Content-Encoding") != "" {
		return core.Errorf(core.CodeUnsupportedEncoding, "cannot read the body: send it without a Content-Encoding")
	}
	return nil
}

// pathFields gives the names in the braces of a path.
func pathFields(path string) []string {
	var names []string
	for part := range strings.SplitSeq(path, "/") {
		if strings.HasPrefix(part, "{") {
			names = append(names, strings.Trim(part, "{}"))
		}
	}
	return names
}

func invalid(field, format string, args ...any) error {
	return core.Errorf(core.CodeInvalidArgument, format, args...).With("field", field)
}
