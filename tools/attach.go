package tools

import (
	"context"

	"envapi/core"
)

// DefineAttach completes a row whose route is a WebSocket, as Define does others.
// It has no tool: an answer of the Model Context Protocol is one message.
func DefineAttach[In any](op Operation, implementation func(*core.Service, context.Context, core.Caller, In) (*core.Attachment, error)) Operation {
	op.Input = schemaOf[In]()
	op.Success = Success{Kind: Attached}
	input := op.Input
	op.attach = func(ctx context.Context, s *core.Service, c core.Caller, raw []byte) (*core.Attachment, error) {
		in, err := decode[In](raw, input, nil)
		if err != nil {
			return nil, err
		}
		return implementation(s, ctx, c, in)
	}
	op.call = func(_ context.Context, _ *core.Service, _ core.Caller, raw []byte, _ map[string]any) (any, error) {
		if _, err := decode[In](raw, input, nil); err != nil {
			return nil, err
		}
		return nil, core.Errorf(core.CodeInvalidArgument, "cannot answer %s with one message: open its route as a WebSocket", op.Name)
	}
	return op
}

// Attach opens what a row of DefineAttach is about, for the same input as Call, and
// fails as that does. The caller must close it.
func (op Operation) Attach(ctx context.Context, s *core.Service, c core.Caller, raw []byte) (*core.Attachment, error) {
	if err := c.Require(op.Scope); err != nil {
		return nil, err
	}
	return op.attach(ctx, s, c, raw)
}

// Offered gives the operations that assistants are offered as tools.
func Offered(all []Operation) []Operation {
	var offered []Operation
	for _, op := range all {
		if op.NoTool == "" {
			offered = append(offered, op)
		}
	}
	return offered
}
