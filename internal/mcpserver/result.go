package mcpserver

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"envapi/core"
	"envapi/tools"
)

// success gives an output as structured content and, for clients that know
// only text, as the same JSON.
func success(output []byte) *mcp.CallToolResult {
	return &mcp.CallToolResult{
		Content:              []mcp.Content{mcp.NewTextContent(string(output))},
		RawStructuredContent: output,
	}
}

// failure gives an error as text and as structured content. What is not a
// core.Error is `internal`; its cause goes into the log and nowhere else.
func (s *Server) failure(ctx context.Context, err error) *mcp.CallToolResult {
	e := core.AsError(err)
	id := core.RequestIDFrom(ctx)
	if (e.Code == core.CodeInternal || core.OutOfFiles(err)) && ctx.Err() == nil {
		s.Log.ErrorContext(ctx, "internal error", "request_id", id, "cause", err.Error())
	}
	facts := maps.Clone(e.Facts)
	if facts == nil {
		facts = map[string]any{}
	}
	facts["request_id"] = id
	text := fmt.Sprintf("%s: %s (%s)", e.Code, e.Detail, sentence(facts))
	facts["code"], facts["detail"] = e.Code, e.Detail
	return &mcp.CallToolResult{
		Content:           []mcp.Content{mcp.NewTextContent(text)},
		StructuredContent: facts,
		IsError:           true,
	}
}

// sentence lists facts by name: a word as it is, all else as the JSON that it is in the
// structured content.
func sentence(facts map[string]any) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(facts)) {
		parts = append(parts, name+": "+shown(facts[name]))
	}
	return strings.Join(parts, ", ")
}

func shown(fact any) string {
	if word, ok := fact.(string); ok {
		return word
	}
	text, err := tools.Encode(fact)
	if err != nil { // a mistake in the program; the structured content says it too
		return fmt.Sprint(fact)
	}
	return string(text)
}
