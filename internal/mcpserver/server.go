package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"envapi/core"
	"envapi/tools"
)

// Config is what the server offers.
type Config struct {
	Operations []tools.Operation
	Service    *core.Service
	Version    string
	Log        *slog.Logger // nil discards
	// Pace says whether an account may send a message over HTTP now, or fails with
	// `rate_limited`; nil is that it may. Who is served over stdio is alone.
	Pace func(account string) error
}

// Server offers the operations as tools.
type Server struct {
	Config
	mcp *server.MCPServer
}

const instructions = "Isolated environments in which you run programs. Make one with create_environment, run commands in it with exec, follow long ones with get_command and read_output, and delete it when the task is over. Files in its workspace last from one command to the next: read, change and find them with read_file, edit_file, apply_patch, write_file and search_files rather than with cat and sed, since these tell what does not fit and lose nobody's changes. Where a directory, variables or functions must last too, use open_shell and run_in_shell. Answers say in next what to call next, where that is not plain."

// New makes the server. It panics where an operation cannot be described,
// which is a mistake in the program.
func New(c Config) *Server {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{Config: c, mcp: server.NewMCPServer("envapi", c.Version,
		server.WithToolCapabilities(false), server.WithInstructions(instructions))}
	for _, op := range tools.Offered(c.Operations) {
		s.mcp.AddTool(tool(op), s.handler(op))
	}
	return s
}

// tool describes an operation to assistants.
func tool(op tools.Operation) mcp.Tool {
	h := op.Hints
	t := mcp.Tool{
		Name:           op.Name,
		Title:          op.Title,
		Description:    op.Description,
		RawInputSchema: raw(op.ToolInput()),
		Annotations: mcp.ToolAnnotation{
			Title: op.Title, ReadOnlyHint: &h.ReadOnly, DestructiveHint: &h.Destructive,
			IdempotentHint: &h.Idempotent, OpenWorldHint: &h.OpenWorld,
		},
	}
	if op.Output != nil {
		t.RawOutputSchema = raw(resultSchema(op.Output))
	}
	return t
}

// resultSchema is the schema of structured content: the output, or a failure.
// Clients check both against it.
func resultSchema(output *jsonschema.Schema) *jsonschema.Schema {
	failure := &jsonschema.Schema{
		Type: "object", Required: []string{"code", "detail"},
		Description: "With isError: why it was not done.",
		Properties: map[string]*jsonschema.Schema{
			"code":   {Type: "string", Description: "The kind of failure."},
			"detail": {Type: "string", Description: "What failed, why, and what to do."},
		},
	}
	return &jsonschema.Schema{Type: "object", AnyOf: []*jsonschema.Schema{output, failure}}
}

func raw(schema *jsonschema.Schema) json.RawMessage {
	text, err := json.Marshal(schema)
	if err != nil {
		panic(fmt.Sprintf("mcpserver: cannot write a schema: %v", err))
	}
	return text
}

// handler gives what answers the calls of an operation's tool.
func (s *Server) handler(op tools.Operation) server.ToolHandlerFunc {
	return func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		start := time.Now()
		output, err := s.call(ctx, op)
		caller, _ := core.CallerFrom(ctx)
		s.Log.InfoContext(ctx, "tool call", "request_id", core.RequestIDFrom(ctx), "account", caller.Account,
			"operation", op.Name, "outcome", outcome(ctx, err), "duration_ms", time.Since(start).Milliseconds())
		if err != nil {
			return s.failure(ctx, err), nil
		}
		return success(output), nil
	}
}

// outcome says in one word how a call ended.
func outcome(ctx context.Context, err error) string {
	switch {
	case err == nil:
		return "ok"
	case ctx.Err() != nil:
		return "client_gone"
	default:
		return string(core.AsError(err).Code)
	}
}

// call performs an operation and gives its output as JSON. A panic is an error
// like any other that is not the caller's.
func (s *Server) call(ctx context.Context, op tools.Operation) (output []byte, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v\n%s", cause, debug.Stack())
		}
	}()
	if err := hurriedFrom(ctx); err != nil {
		return nil, err
	}
	caller, _ := core.CallerFrom(ctx)
	value, err := op.CallTool(ctx, s.Service, caller, argumentsFrom(ctx))
	if err != nil {
		return nil, err
	}
	return tools.Encode(value)
}
