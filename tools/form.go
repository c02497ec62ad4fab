package tools

import (
	"context"

	"envapi/core"
)

// The media types of the forms in which REST gives output beside JSON.
const (
	EventStream = "text/event-stream"
	RawBytes    = "application/octet-stream"
	Tar         = "application/x-tar"
	Gzip        = "application/gzip"
	Zstd        = "application/zstd"
)

// Form is another form in which REST answers an operation, for a request that
// accepts its media type. There is none over MCP, whose answers are whole.
type Form struct {
	MediaType   string
	Description string
	// Headers are those of a request that this form understands, with what each
	// does.
	Headers map[string]string
	Errors  []core.Code // that it may fail with beside those of the operation
}

// streamForms are the forms of what is read from a log.
var streamForms = []Form{
	{
		MediaType:   EventStream,
		Description: "Server-sent events, live: `output` (its id is the next offset, its data the same as the answer in JSON), `expired` (data `{\"next_offset\": …}`: what lies before that offset was dropped, and the stream goes on there), at the end `end` (data what then became of it), or `problem` (data a problem document) where the stream must end before, because the token has expired or the service stops. Comments are sent in silence. After a break it goes on exactly where it was. wait_ms means nothing here.",
		Headers: map[string]string{
			"Last-Event-ID": "The id of the last event that was received; it goes before offset and tail_bytes.",
		},
	},
	{
		MediaType:   RawBytes,
		Description: "The bytes of the stream as they are, from its beginning: all that there is now, or a range of it. Where bytes in the middle were dropped, a range ends before them, one that begins in them fails with output_expired, and so does a request without a range. offset, limit_bytes, tail_bytes and ansi mean nothing here.",
		Headers: map[string]string{
			"Range":         "One range of bytes: from-to, from- or -length. Several are answered as none.",
			"If-Range":      "An ETag; the range is ignored where the stream has another by now.",
			"If-None-Match": "An ETag; the answer is 304 where the stream still has it.",
		},
		Errors: []core.Code{core.CodeRangeUnsatisfiable},
	},
}

// Streamed completes a row that was defined: REST gives what it reads also in
// the forms of a stream, which open opens.
func Streamed[In any](op Operation, open func(*core.Service, context.Context, core.Caller, In) (*core.OutputStream, error)) Operation {
	input := op.Input
	op.Forms = streamForms
	op.open = func(ctx context.Context, s *core.Service, c core.Caller, raw []byte) (*core.OutputStream, error) {
		in, err := decode[In](raw, input, nil)
		if err != nil {
			return nil, err
		}
		return open(s, ctx, c, in)
	}
	return op
}

// Open opens what a row with Forms reads, for the same input as Call, and fails
// as that does. The caller must close it.
func (op Operation) Open(ctx context.Context, s *core.Service, c core.Caller, raw []byte) (*core.OutputStream, error) {
	if err := c.Require(op.Scope); err != nil {
		return nil, err
	}
	return op.open(ctx, s, c, raw)
}
