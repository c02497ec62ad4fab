package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	oracle "github.com/santhosh-tekuri/jsonschema/v6"

	"envapi/core"
)

// sample has a field of every type that inputs have.
type sample struct {
	ID     string            `json:"id" doc:"Which one." minlen:"1" maxlen:"8"`
	Kind   string            `json:"kind,omitempty" doc:"A kind." enum:"red,green" default:"red"`
	Wait   *int64            `json:"wait_ms,omitempty" doc:"A time." min:"0" max:"1000"`
	Count  int               `json:"count,omitempty" doc:"A count." min:"1"`
	Force  bool              `json:"force,omitempty" doc:"A switch." default:"false"`
	Argv   []string          `json:"argv,omitempty" doc:"A list."`
	Env    map[string]string `json:"env,omitempty" doc:"A map."`
	Limits *sampleLimits     `json:"limits,omitempty" doc:"An object."`
	At     *core.Time        `json:"at,omitempty" doc:"A moment."`
	samplePage
}

type sampleLimits struct {
	Shells *int `json:"shells,omitempty" doc:"A limit." min:"1"`
}

type samplePage struct {
	Cursor string `json:"cursor,omitempty" doc:"A position." minlen:"1"`
}

var sampleSchema = schemaOf[sample]()

func TestDecodeTakes(t *testing.T) {
	wait, shells := int64(1000), 2
	moment := core.At(time.Date(2026, 2, 3, 4, 5, 6, 789e6, time.UTC))
	for name, test := range map[string]struct {
		raw  string
		want sample
	}{
		"every field": {
			`{"id":"a","kind":"green","wait_ms":1000,"count":3,"force":true,"argv":["x",""],"env":{"A":"1"},"limits":{"shells":2},"at":"2026-02-03T05:05:06.789+01:00","cursor":"c"}`,
			sample{"a", "green", &wait, 3, true, []string{"x", ""}, map[string]string{"A": "1"}, &sampleLimits{&shells}, &moment, samplePage{"c"}},
		},
		"the required ones":                  {`{"id":"a"}`, sample{ID: "a"}},
		"null for an optional field":         {`{"id":"a","wait_ms":null,"kind":null,"argv":null,"env":null,"limits":{"shells":null}}`, sample{ID: "a", Limits: &sampleLimits{}}},
		"space around":                       {" \r\n{\t\"id\" : \"a\" }\n", sample{ID: "a"}},
		"a name written with escapes":        {`{"\u0069d":"a"}`, sample{ID: "a"}},
		"a length counted in characters":     {`{"id":"éééééééé"}`, sample{ID: "éééééééé"}},
		"a character beyond the first plane": {`{"id":"\ud83d\ude00"}`, sample{ID: "😀"}},
		"a backslash before a u":             {`{"id":"\\ud800"}`, sample{ID: `\ud800`}},
		"NUL in a string":                    {`{"id":"a\u0000b"}`, sample{ID: "a\x00b"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := decode[sample]([]byte(test.raw), sampleSchema, nil)
			if err != nil {
				t.Fatal(err)
			}
			if g, w := encoded(t, got), encoded(t, test.want); g != w {
				t.Errorf("got %s, want %s", g, w)
			}
		})
	}
}

func TestDecodeRefuses(t *testing.T) {
	for name, test := range map[string]struct{ raw, field, says string }{
		"no JSON":                     {`{"id":`, "", "as JSON"},
		"something after the object":  {`{"id":"a"} {}`, "", "as JSON"},
		"a trailing comma":            {`{"id":"a",}`, "", "as JSON"},
		"a list":                      {`["a"]`, "", "one JSON object"},
		"null":                        {`null`, "", "one JSON object"},
		"a string":                    {`"id"`, "", "one JSON object"},
		"invalid UTF-8":               {"{\"id\":\"\xff\"}", "", "Unicode"},
		"half a surrogate pair":       {`{"id":"\ud800"}`, "", "Unicode"},
		"two first halves":            {`{"id":"\ud800\ud800"}`, "", "Unicode"},
		"a second half alone":         {`{"id":"\udc00x"}`, "", "Unicode"},
		"half a pair in a name":       {`{"\ud800":1}`, "", "Unicode"},
		"an empty string":             {`{"id":"a","cursor":""}`, "cursor", "shorter than 1 characters; leave it out"},
		"an empty one that must be":   {`{"id":""}`, "id", "shorter than 1 characters; it cannot be left out"},
		"a missing field":             {`{}`, "id", `without the field "id"`},
		"null for a required field":   {`{"id":null}`, "id", "must be a string, not null"},
		"a field given twice":         {`{"id":"a","id":"a"}`, "id", "given twice"},
		"one given twice by escapes":  {`{"id":"a","\u0069d":"b"}`, "id", "given twice"},
		"an unknown field":            {`{"id":"a","wait":1}`, "wait", `did you mean "wait_ms"`},
		"a field in another case":     {`{"id":"a","Kind":"red"}`, "Kind", `did you mean "kind"`},
		"an unknown field, none near": {`{"id":"a","zzzzzz":1}`, "zzzzzz", "the fields are id, kind"},
		"the end of a field's name":   {`{"id":"a","ms":1}`, "ms", `did you mean "wait_ms"`},
		"a field's name, shortened":   {`{"id":"a","lmt":{}}`, "lmt", `did you mean "limits"`},
		"an unknown field inside":     {`{"id":"a","limits":{"shell":1}}`, "limits.shell", `did you mean "limits.shells"`},
		"a long unknown field":        {`{"id":"a","` + strings.Repeat("é", 500) + `":1}`, strings.Repeat("é", 40) + "…", "none of this name"},
		"a number for a string":       {`{"id":1}`, "id", "must be a string, not a number"},
		"a string for an integer":     {`{"id":"a","wait_ms":"10"}`, "wait_ms", "must be an integer, not a string"},
		"a fraction":                  {`{"id":"a","wait_ms":1.5}`, "wait_ms", "digits only"},
		"a whole fraction":            {`{"id":"a","wait_ms":1.0}`, "wait_ms", "digits only"},
		"an exponent":                 {`{"id":"a","wait_ms":1e2}`, "wait_ms", "digits only"},
		"beyond 64 bits":              {`{"id":"a","count":99999999999999999999}`, "count", "1 or more"},
		"below the range":             {`{"id":"a","wait_ms":-1}`, "wait_ms", "from 0 to 1000"},
		"above the range":             {`{"id":"a","wait_ms":1001}`, "wait_ms", "from 0 to 1000"},
		"zero where it is too few":    {`{"id":"a","count":0}`, "count", "1 or more"},
		"a string for a boolean":      {`{"id":"a","force":"true"}`, "force", "true or false, not a string"},
		"a number for a boolean":      {`{"id":"a","force":1}`, "force", "true or false, not a number"},
		"a boolean for a list":        {`{"id":"a","argv":true}`, "argv", "a list, not a boolean"},
		"a string for a list":         {`{"id":"a","argv":"ls"}`, "argv", "a list, not a string"},
		"an object for a list":        {`{"id":"a","argv":{}}`, "argv", "a list, not an object"},
		"a list for an object":        {`{"id":"a","limits":[]}`, "limits", "an object with shells, not a list"},
		"a list for a string":         {`{"id":["a"]}`, "id", "a string, not a list"},
		"an object for a string":      {`{"id":{}}`, "id", "a string, not an object"},
		"a number in a list":          {`{"id":"a","argv":["x",1]}`, "argv[1]", "a string, not a number"},
		"null in a list":              {`{"id":"a","argv":[null]}`, "argv[0]", "a string, not null"},
		"a number in a map":           {`{"id":"a","env":{"A":1}}`, "env.A", "a string, not a number"},
		"null in a map":               {`{"id":"a","env":{"A":null}}`, "env.A", "a string, not null"},
		"an entry given twice":        {`{"id":"a","env":{"A":"1","A":"2"}}`, "env.A", "given twice"},
		"a value that is no choice":   {`{"id":"a","kind":"blue"}`, "kind", "one of red, green"},
		"an empty choice":             {`{"id":"a","kind":""}`, "kind", "one of red, green"},
		"a day for a moment":          {`{"id":"a","at":"2026-02-03"}`, "at", "write a moment as 2006-01-02T15:04:05.000Z"},
		"a moment that never is":      {`{"id":"a","at":"2026-02-30T00:00:00Z"}`, "at", "write a moment"},
		"a moment without a zone":     {`{"id":"a","at":"2026-02-03T00:00:00"}`, "at", "write a moment"},
		"an hour of one digit":        {`{"id":"a","at":"2026-02-03T5:00:00Z"}`, "at", "write a moment"},
		"a comma in a moment":         {`{"id":"a","at":"2026-02-03T05:00:00,5Z"}`, "at", "write a moment"},
		"a number for a moment":       {`{"id":"a","at":1}`, "at", "a string, not a number"},
		"a string that is too long":   {`{"id":"123456789"}`, "id", "longer than 8"},
		"a value of another depth":    {`{"id":"a","argv":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`, "argv[0]", "a string, not a list"},
		"a depth beyond all bounds":   {strings.Repeat(`{"a":`, 20000) + "1" + strings.Repeat("}", 20000), "", "as JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := decode[sample]([]byte(test.raw), sampleSchema, nil)
			var e *core.Error
			if !errors.As(err, &e) || e.Code != core.CodeInvalidArgument {
				t.Fatalf("got %v, %v, want %s", got, err, core.CodeInvalidArgument)
			}
			if field, _ := e.Facts["field"].(string); field != test.field {
				t.Errorf("the field is %q, want %q", field, test.field)
			}
			if !strings.Contains(e.Detail, test.says) || !strings.HasPrefix(e.Detail, "cannot ") {
				t.Errorf("the detail is %q, want one that says %q", e.Detail, test.says)
			}
			if len(e.Detail) > 600 || strings.ContainsAny(e.Detail, "\n\x00") {
				t.Errorf("the detail is not one short line: %q", e.Detail)
			}
		})
	}
}

func TestDefaultsForAssistantsFillWhatIsLeftOut(t *testing.T) {
	defaults := map[string]any{"wait_ms": 7}
	for raw, want := range map[string]int64{
		`{"id":"a"}`:                7,
		`{"id":"a","wait_ms":null}`: 7,
		`{"id":"a","wait_ms":0}`:    0,
		`{"id":"a","wait_ms":9}`:    9,
	} {
		got, err := decode[sample]([]byte(raw), sampleSchema, defaults)
		if err != nil || got.Wait == nil || *got.Wait != want {
			t.Errorf("%s: got %v, %v, want %d", raw, got.Wait, err, want)
		}
	}
}

func TestADefaultForAssistantsMayBeAnyJSON(t *testing.T) {
	for raw, want := range map[string]string{`{"id":"a"}`: "green", `{"id":"a","kind":"red"}`: "red"} {
		got, err := decode[sample]([]byte(raw), sampleSchema, map[string]any{"kind": "green", "force": true})
		if err != nil || got.Kind != want || !got.Force {
			t.Errorf("%s: got %+v, %v, want %s", raw, got, err, want)
		}
	}
}

// FuzzDecode holds the decoder against another implementation of JSON schema:
// whatever bytes come, it does not panic, what it takes the schema takes, and
// so is what it makes of it.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"id":"a","kind":"green","wait_ms":10,"argv":["x"],"env":{"A":"1"},"limits":{"shells":2}}`,
		`{"id":"\ud83d\ude00","force":true,"count":1}`, `{"id":"a","id":"b"}`, `{"id":"a","at":"2026-02-03T05:05:06.789+01:00"}`, `[]`, `{"id":null}`, `{"id":"a","wait_ms":1e2}`,
	} {
		f.Add([]byte(seed))
	}
	schema := compiled(f, sampleSchema)
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := decode[sample](raw, sampleSchema, nil)
		if err != nil {
			var e *core.Error
			if !errors.As(err, &e) || e.Code != core.CodeInvalidArgument {
				t.Fatalf("%q: got %v, want %s", raw, err, core.CodeInvalidArgument)
			}
			return
		}
		for what, text := range map[string][]byte{"the input": withoutNulls(t, raw), "the value": []byte(encoded(t, got))} {
			value, err := oracle.UnmarshalJSON(bytes.NewReader(text))
			if err != nil {
				t.Fatalf("%s %q: %v", what, text, err)
			}
			if err := schema.Validate(value); err != nil {
				t.Fatalf("%s %q does not have the schema: %v", what, text, err)
			}
		}
	})
}

// withoutNulls drops the members that are null: they are left out.
func withoutNulls(t *testing.T, raw []byte) []byte {
	t.Helper()
	if len(raw) == 0 {
		return []byte("{}")
	}
	var value map[string]any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		t.Fatal(err)
	}
	dropNulls(value)
	return []byte(encoded(t, value))
}

func dropNulls(object map[string]any) {
	for name, member := range object {
		switch member := member.(type) {
		case nil:
			delete(object, name)
		case map[string]any:
			dropNulls(member)
		}
	}
}

func encoded(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// compiled gives a schema as the other implementation reads it.
func compiled(t testing.TB, schema *jsonschema.Schema) *oracle.Schema {
	t.Helper()
	raw, err := json.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	value, err := oracle.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	compiler := oracle.NewCompiler()
	if err := compiler.AddResource("schema.json", value); err != nil {
		t.Fatal(err)
	}
	s, err := compiler.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}
