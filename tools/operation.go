package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"envapi/core"
)

// MaxInputBytes bounds one input as it arrives: above the 8 MiB of standard
// input that exec takes, with room for its escapes.
const MaxInputBytes = 16 << 20

// Operation is one thing that callers can ask for: a row of the table.
type Operation struct {
	Name        string // of the MCP tool, and the operationId
	Title       string // for people
	Description string // for assistants: what it does and when to use it
	Noun        string // the thing that it is about; groups the documents

	Method string     // of the REST route
	Path   string     // of the REST route; {name} is the input field of that name
	Scope  core.Scope // what the token must permit

	Hints   Hints
	NoTool  string  // why it is a route and no tool; "" is both
	Toolset string  // "" is offered to every assistant; a name may be left out
	Success Success // what success looks like to a REST client
	// Errors are the codes that this operation may fail with beside
	// CommonErrors.
	Errors []core.Code
	// ToolDefaults are defaults that differ where an assistant calls, whose
	// context is small: by field, what stands in JSON for it.
	ToolDefaults map[string]any

	Input      *jsonschema.Schema
	Output     *jsonschema.Schema // nil where success has no content
	OutputName string             // the name of Output's type, for the documents
	RawBody    bool               // the body is bytes, and the fields stand in the query; see DefineUpload
	Forms      []Form             // what REST answers instead where it is asked to; see Streamed

	transfer Transfer
	attach   func(ctx context.Context, s *core.Service, c core.Caller, raw []byte) (*core.Attachment, error)
	open     func(ctx context.Context, s *core.Service, c core.Caller, raw []byte) (*core.OutputStream, error)
	call     func(ctx context.Context, s *core.Service, c core.Caller, raw []byte, defaults map[string]any) (any, error)
}

// Hints tell an assistant's client how careful it must be. All four are
// stated for every operation.
type Hints struct {
	ReadOnly    bool // changes nothing
	Destructive bool // may destroy what was there
	Idempotent  bool // the same call again changes nothing more
	OpenWorld   bool // may touch what is outside this service
}

// CommonErrors are the codes that any operation may fail with.
var CommonErrors = []core.Code{
	core.CodeInvalidArgument, core.CodeUnauthenticated, core.CodeInsufficientScope,
	core.CodeOriginRefused, core.CodeRateLimited, core.CodeInternal, core.CodeUnavailable,
}

// Define completes a row: it makes the schemas of In and Out, and the function
// that decodes an In and calls the implementation. It panics where a type has
// no schema, which is a mistake in the program.
func Define[In, Out any](op Operation, implementation func(*core.Service, context.Context, core.Caller, In) (Out, error)) Operation {
	op.Input = schemaOf[In]()
	if op.Success.Kind != NoContent {
		op.Output, op.OutputName = schemaOf[Out](), typeName[Out]()
	}
	input := op.Input
	op.call = func(ctx context.Context, s *core.Service, c core.Caller, raw []byte, defaults map[string]any) (any, error) {
		in, err := decode[In](raw, input, defaults)
		if err != nil {
			return nil, err
		}
		return implementation(s, ctx, c, in)
	}
	return op
}

// Call performs the operation for a caller. raw is the input, a JSON object;
// empty means no fields. It fails with `insufficient_scope` before it looks at
// raw, with `invalid_argument` where raw does not fit Input, and as the
// implementation does.
func (op Operation) Call(ctx context.Context, s *core.Service, c core.Caller, raw []byte) (any, error) {
	return op.perform(ctx, s, c, raw, nil)
}

// CallTool is Call with the defaults for assistants.
func (op Operation) CallTool(ctx context.Context, s *core.Service, c core.Caller, raw []byte) (any, error) {
	return op.perform(ctx, s, c, raw, op.ToolDefaults)
}

func (op Operation) perform(ctx context.Context, s *core.Service, c core.Caller, raw []byte, defaults map[string]any) (any, error) {
	if err := c.Require(op.Scope); err != nil {
		return nil, err
	}
	return op.call(ctx, s, c, raw, defaults)
}

// ToolInput is Input with the defaults for assistants.
func (op Operation) ToolInput() *jsonschema.Schema {
	schema := op.Input.CloneSchemas()
	for name, value := range op.ToolDefaults {
		schema.Properties[name].Default = literal(value)
	}
	return schema
}

// literal writes a default as JSON. It panics where it is none, which is a
// mistake in the program.
func literal(value any) json.RawMessage {
	text, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("tools: the default %v is no JSON: %v", value, err))
	}
	return text
}

// Encode writes an output as the one JSON that every transport answers.
func Encode(output any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(output); err != nil {
		return nil, fmt.Errorf("cannot encode an output: %w", err)
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

// decode reads an input that fits schema; see check for what is refused.
func decode[In any](raw []byte, schema *jsonschema.Schema, defaults map[string]any) (In, error) {
	var in In
	if len(raw) == 0 {
		raw = []byte("{}")
	}
	given, err := check(raw, schema)
	if err != nil {
		return in, err
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return in, fmt.Errorf("cannot decode an input that fits its schema: %w", err)
	}
	for name, value := range defaults {
		if slices.Contains(given, name) {
			continue
		}
		if err := json.Unmarshal(fmt.Appendf(nil, "{%q:%s}", name, literal(value)), &in); err != nil {
			return in, fmt.Errorf("cannot apply the default of %s: %w", name, err)
		}
	}
	return in, nil
}
