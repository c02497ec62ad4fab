package tools

import (
	"context"
	"io"

	"envapi/core"
)

// Transfer is how a route carries bytes or events beside its one JSON answer. None of
// them has a tool: an answer of the Model Context Protocol is one message.
type Transfer struct {
	download func(ctx context.Context, s *core.Service, c core.Caller, raw []byte) (*core.Download, error)
	upload   func(ctx context.Context, s *core.Service, c core.Caller, raw []byte, body io.Reader, size int64) (any, error)
	archive  func(ctx context.Context, s *core.Service, c core.Caller, raw []byte, to io.Writer) ([]string, error)
	feed     func(ctx context.Context, s *core.Service, c core.Caller, raw []byte) (core.FileWatch, error)
}

// DefineDownload completes a row whose answer is a file as it is.
func DefineDownload[In any](op Operation, implementation func(*core.Service, context.Context, core.Caller, In) (*core.Download, error)) Operation {
	op = bare[In](op, Success{Kind: Content})
	input := op.Input
	op.transfer.download = func(ctx context.Context, s *core.Service, c core.Caller, raw []byte) (*core.Download, error) {
		in, err := decode[In](raw, input, nil)
		if err != nil {
			return nil, err
		}
		return implementation(s, ctx, c, in)
	}
	return op
}

// DefineUpload completes a row whose request has a body that is no JSON; its fields
// stand in the query. Created says of an output whether there is something new.
func DefineUpload[In, Out any](op Operation, created func(Out) bool, implementation func(*core.Service, context.Context, core.Caller, In, io.Reader, int64) (Out, error)) Operation {
	op = bare[In](op, Success{Kind: Done})
	if created != nil {
		op.Success = Success{Kind: DoneOrMade, made: func(output any) bool { return created(output.(Out)) }}
	}
	op.RawBody = true
	op.Output, op.OutputName = schemaOf[Out](), typeName[Out]()
	input := op.Input
	op.transfer.upload = func(ctx context.Context, s *core.Service, c core.Caller, raw []byte, body io.Reader, size int64) (any, error) {
		in, err := decode[In](raw, input, nil)
		if err != nil {
			return nil, err
		}
		return implementation(s, ctx, c, in, body, size)
	}
	return op
}

// DefineArchive completes a row whose answer is written as it is made.
func DefineArchive[In any](op Operation, implementation func(*core.Service, context.Context, core.Caller, In, io.Writer) ([]string, error)) Operation {
	op = bare[In](op, Success{Kind: Archive})
	input := op.Input
	op.transfer.archive = func(ctx context.Context, s *core.Service, c core.Caller, raw []byte, to io.Writer) ([]string, error) {
		in, err := decode[In](raw, input, nil)
		if err != nil {
			return nil, err
		}
		return implementation(s, ctx, c, in, to)
	}
	return op
}

// DefineFeed completes a row whose answer is server-sent events.
func DefineFeed[In any](op Operation, implementation func(*core.Service, context.Context, core.Caller, In) (core.FileWatch, error)) Operation {
	op = bare[In](op, Success{Kind: Feed})
	input := op.Input
	op.transfer.feed = func(ctx context.Context, s *core.Service, c core.Caller, raw []byte) (core.FileWatch, error) {
		in, err := decode[In](raw, input, nil)
		if err != nil {
			return nil, err
		}
		return implementation(s, ctx, c, in)
	}
	return op
}

// bare completes what such rows have in common.
func bare[In any](op Operation, s Success) Operation {
	op.Input, op.Success = schemaOf[In](), s
	input := op.Input
	op.call = func(_ context.Context, _ *core.Service, _ core.Caller, raw []byte, _ map[string]any) (any, error) {
		if _, err := decode[In](raw, input, nil); err != nil {
			return nil, err
		}
		return nil, core.Errorf(core.CodeInvalidArgument, "cannot answer %s with one message: use its route", op.Name)
	}
	return op
}

// Download opens what a row of DefineDownload gives. The caller must close it. It
// fails as Call does.
func (op Operation) Download(ctx context.Context, s *core.Service, c core.Caller, raw []byte) (*core.Download, error) {
	if err := c.Require(op.Scope); err != nil {
		return nil, err
	}
	return op.transfer.download(ctx, s, c, raw)
}

// Upload performs a row of DefineUpload. Size is that of the body, or less than 0
// where it is not known.
func (op Operation) Upload(ctx context.Context, s *core.Service, c core.Caller, raw []byte, body io.Reader, size int64) (any, error) {
	if err := c.Require(op.Scope); err != nil {
		return nil, err
	}
	return op.transfer.upload(ctx, s, c, raw, body, size)
}

// Archive writes what a row of DefineArchive gives, and says what was left out.
func (op Operation) Archive(ctx context.Context, s *core.Service, c core.Caller, raw []byte, to io.Writer) ([]string, error) {
	if err := c.Require(op.Scope); err != nil {
		return nil, err
	}
	return op.transfer.archive(ctx, s, c, raw, to)
}

// Feed opens the events of a row of DefineFeed. The caller must close them.
func (op Operation) Feed(ctx context.Context, s *core.Service, c core.Caller, raw []byte) (core.FileWatch, error) {
	if err := c.Require(op.Scope); err != nil {
		return nil, err
	}
	return op.transfer.feed(ctx, s, c, raw)
}
