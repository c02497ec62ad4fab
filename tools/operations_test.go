package tools

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"envapi/core"
)

var (
	snakeCase = regexp.MustCompile(`^[a-z]+(_[a-z0-9]+)*$`)
	inBraces  = regexp.MustCompile(`\{([^}]*)\}`)
)

func TestRows(t *testing.T) {
	for _, op := range Operations() {
		t.Run(op.Name, func(t *testing.T) {
			if !snakeCase.MatchString(op.Name) || op.Title == "" || Nouns[op.Noun] == "" {
				t.Errorf("the name %q, title %q or noun %q is not in order", op.Name, op.Title, op.Noun)
			}
			if len(op.Description) < 40 || !strings.HasSuffix(op.Description, ".") {
				t.Errorf("the description does not say when to use it: %q", op.Description)
			}
			if !slices.Contains(core.AllScopes, op.Scope) {
				t.Errorf("the scope %q does not exist", op.Scope)
			}
			if op.NoTool == "" && op.Hints.ReadOnly != (op.Method == http.MethodGet || op.Name == "search_files") {
				t.Error("GET and the read-only hint do not agree")
			}
			if op.Hints.ReadOnly && (op.Hints.Destructive || !op.Hints.Idempotent || op.Hints.OpenWorld) {
				t.Error("what changes nothing destroys nothing, can be repeated and stays inside")
			}
			if op.Method != http.MethodGet && op.Scope == core.ScopeEnvironmentsRead {
				t.Errorf("%s is enough, which is for those who only look", op.Scope)
			}
			if !op.Hints.ReadOnly && op.Noun == files && op.Scope != core.ScopeFilesWrite {
				t.Errorf("what changes files needs %s, not %s", core.ScopeFilesWrite, op.Scope)
			}
			if op.Method != http.MethodGet && (op.Noun == commands || op.Noun == shells || op.Noun == processes) && op.Scope != core.ScopeExec {
				t.Errorf("what runs, signals or types needs %s, not %s", core.ScopeExec, op.Scope)
			}
			reads := core.ScopeEnvironmentsRead
			if op.Noun == files {
				reads = core.ScopeFilesRead
			}
			if op.Hints.ReadOnly && op.Scope != reads {
				t.Errorf("reading needs %s, not %s", reads, op.Scope)
			}
			for _, code := range op.Errors {
				if slices.Contains(CommonErrors, code) {
					t.Errorf("%s is a common error", code)
				}
			}
			for name := range op.ToolDefaults {
				if op.Input.Properties[name] == nil {
					t.Errorf("the default of %s is for no field", name)
				}
			}
		})
	}
}

func TestRowsHaveFieldsForTheirPaths(t *testing.T) {
	for _, op := range Operations() {
		for _, match := range inBraces.FindAllStringSubmatch(op.Path, -1) {
			if name := match[1]; !slices.Contains(op.Input.Required, name) {
				t.Errorf("%s: the field %s of the path is not required", op.Name, name)
			}
		}
		if op.Method != http.MethodGet && op.Method != http.MethodDelete {
			continue
		}
		for name, s := range op.Input.Properties {
			if s.Type == "array" || s.Type == "object" {
				t.Errorf("%s: the field %s cannot stand in a query", op.Name, name)
			}
		}
	}
}

func TestRowsAreDistinct(t *testing.T) {
	names, routes := map[string]bool{}, map[string]bool{}
	for _, op := range Operations() {
		route := op.Method + " " + op.Path
		if names[op.Name] || routes[route] {
			t.Errorf("%s or %s is there twice", op.Name, route)
		}
		names[op.Name], routes[route] = true, true
	}
}

func TestEveryFieldIsExplained(t *testing.T) {
	for _, op := range Operations() {
		for _, s := range []*jsonschema.Schema{op.Input, op.Output} {
			explained(t, op.Name, s)
		}
	}
}

func explained(t *testing.T, at string, s *jsonschema.Schema) {
	t.Helper()
	if s == nil {
		return
	}
	for name, member := range s.Properties {
		if !snakeCase.MatchString(name) || !strings.HasSuffix(member.Description, ".") {
			t.Errorf("%s.%s has no name or description in order: %q", at, name, member.Description)
		}
		explained(t, at+"."+name, member)
		explained(t, at+"."+name, member.Items)
	}
	if s.Properties != nil && s.AdditionalProperties == nil {
		t.Errorf("%s takes fields that it does not know", at)
	}
}

func TestSchemasAreSchemas(t *testing.T) {
	for _, op := range Operations() {
		compiled(t, op.Input)
		compiled(t, op.ToolInput())
		if op.Output != nil {
			compiled(t, op.Output)
		}
	}
}

func TestACallNeedsTheScopeBeforeItsInputIsRead(t *testing.T) {
	for _, op := range Operations() {
		var others core.Caller
		for _, scope := range core.AllScopes {
			if scope != op.Scope {
				others.Scopes = append(others.Scopes, scope)
			}
		}
		_, err := op.Call(t.Context(), nil, others, []byte("no JSON"))
		if e := core.AsError(err); e.Code != core.CodeInsufficientScope || e.Facts["scope"] != string(op.Scope) {
			t.Errorf("%s: got %v, want insufficient_scope for %s", op.Name, err, op.Scope)
		}
		_, err = op.Call(t.Context(), nil, core.Caller{Scopes: []core.Scope{op.Scope}}, []byte("no JSON"))
		if e := core.AsError(err); e.Code != core.CodeInvalidArgument {
			t.Errorf("%s: got %v, want invalid_argument", op.Name, err)
		}
	}
}

// toolDefaults are what assistants get where they say nothing, as JSON.
var toolDefaults = map[string]string{"output_bytes": "8192", "ansi": `"strip"`}

func TestToolInputShowsTheDefaultsForAssistants(t *testing.T) {
	for _, op := range Operations() {
		input := op.ToolInput()
		for name, s := range op.Input.Properties {
			want := string(s.Default)
			if value, ok := op.ToolDefaults[name]; ok {
				want = toolDefaults[name]
				if text, err := json.Marshal(value); err != nil || string(text) != want {
					t.Errorf("%s: the default of %s is %v, want %s", op.Name, name, value, want)
				}
			}
			if got := string(input.Properties[name].Default); got != want {
				t.Errorf("%s: the default of %s is %s, want %s", op.Name, name, got, want)
			}
		}
	}
}

func TestSuccess(t *testing.T) {
	at := created(func(e core.Environment) string { return "/e/" + e.ID })
	if got := at.Location(core.Environment{ID: "x"}); got != "/e/x" {
		t.Errorf("the location is %q", got)
	}
	running := doneOrGoesOn(func(c core.Command) bool { return c.Status == core.CommandRunning })
	if !running.GoesOn(core.Command{Status: core.CommandRunning}) || running.GoesOn(core.Command{Status: core.CommandExited}) {
		t.Error("what goes on and what has ended are mixed up")
	}
	if done().Location(nil) != "" || noContent().GoesOn(nil) {
		t.Error("a plain success has no place and does not go on")
	}
}

func TestEncodeKeepsCharacters(t *testing.T) {
	got, err := Encode(map[string]string{"text": "a < b && c\u2028"})
	if want := `{"text":"a < b && c\u2028"}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}
