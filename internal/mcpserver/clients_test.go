package mcpserver

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	oracle "github.com/santhosh-tekuri/jsonschema/v6"

	"envapi/core"
)

// pipes joins a client to a server on stdio; the function waits for its end.
func (b *bench) pipes(t *testing.T) (fromServer io.ReadCloser, toServer io.WriteCloser, wait func() error) {
	t.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := b.ServeStdio(t.Context(), in, out, alice)
		_ = in.Close()
		_ = out.Close()
		ended <- err
	}()
	return fromServer, toServer, func() error { return <-ended }
}

// transports are both doors, as the official SDK opens them.
var transports = map[string]func(*testing.T, *bench) sdk.Transport{
	"http": func(t *testing.T, b *bench) sdk.Transport {
		server := b.serve(t)
		return &sdk.StreamableClientTransport{Endpoint: server.URL, HTTPClient: server.Client(), MaxRetries: -1}
	},
	"stdio": func(t *testing.T, b *bench) sdk.Transport {
		r, w, _ := b.pipes(t)
		return &sdk.IOTransport{Reader: r, Writer: w}
	},
}

// eras are the protocol versions before and after sessions were removed.
var eras = []string{"2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"}

func TestTheOfficialClientWorksInEveryEra(t *testing.T) {
	for door, open := range transports {
		for _, era := range eras {
			t.Run(door+"/"+era, func(t *testing.T) {
				b := newBench(t)
				c := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
				session, err := c.Connect(t.Context(), open(t, b), &sdk.ClientSessionOptions{ProtocolVersion: era})
				if err != nil {
					t.Fatal(err)
				}
				defer session.Close()
				if got := session.InitializeResult().ProtocolVersion; got != era {
					t.Errorf("the version is %s", got)
				}
				checkTools(t, session)
				checkCalls(t, session)
			})
		}
	}
}

func checkTools(t *testing.T, session *sdk.ClientSession) {
	t.Helper()
	list, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Tools) != 5 || list.NextCursor != "" {
		t.Fatalf("got %d tools", len(list.Tools))
	}
	for _, tool := range list.Tools {
		a := tool.Annotations
		if tool.Title != tool.Name || a == nil || a.ReadOnlyHint || a.DestructiveHint == nil || !*a.DestructiveHint || a.OpenWorldHint == nil || *a.OpenWorldHint {
			t.Errorf("%s: the title or a hint is not the row's: %+v", tool.Name, a)
		}
		schema, ok := tool.InputSchema.(map[string]any)
		if !ok || schema["type"] != "object" || schema["additionalProperties"] != false {
			t.Errorf("%s: the input schema is %v", tool.Name, tool.InputSchema)
		}
		if tool.Name == "echo" {
			text, _ := json.Marshal(schema)
			if !strings.Contains(string(text), `"default":8192`) {
				t.Errorf("the input schema does not show the default for assistants: %s", text)
			}
		}
	}
}

func checkCalls(t *testing.T, session *sdk.ClientSession) {
	t.Helper()
	call := func(name string, arguments any) *sdk.CallToolResult {
		result, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: arguments})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return result
	}
	result := call("echo", map[string]any{"name": "a<b"})
	if text := textOf(result); text != `{"account":"alice","name":"a<b","output_bytes":8192}` || result.IsError {
		t.Errorf("the text is %s", text)
	}
	if got, _ := result.StructuredContent.(map[string]any); got["name"] != "a<b" || got["output_bytes"] != 8192.0 {
		t.Errorf("the structured content is %v", result.StructuredContent)
	}
	for name, arguments := range map[string]any{"echo": map[string]any{"nme": "x"}, "refuse": nil, "break": nil, "panic": nil} {
		result := call(name, arguments)
		got, _ := result.StructuredContent.(map[string]any)
		want := map[string]string{"echo": "invalid_argument", "refuse": "quota_exceeded", "break": "internal", "panic": "internal"}[name]
		if !result.IsError || got["code"] != want || got["detail"] == "" || got["request_id"] == "" {
			t.Errorf("%s: got %v, want %s", name, got, want)
		}
		if text := textOf(result); !strings.HasPrefix(text, want+": ") || strings.Contains(text, "the inside") {
			t.Errorf("%s: the text is %s", name, text)
		}
	}
	if got := textOf(call("refuse", nil)); !strings.Contains(got, "quota_exceeded: there are too many (limit: shells, request_id: req_") || !strings.Contains(got, "used: 3") {
		t.Errorf("the facts are not in the text: %s", got)
	}
	if _, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "nothing"}); err == nil {
		t.Error("a tool that does not exist was called")
	}
}

func textOf(result *sdk.CallToolResult) string {
	text, _ := result.Content[0].(*sdk.TextContent)
	return text.Text
}

func TestTheClientOfTheLibraryWorksInBothEras(t *testing.T) {
	doors := map[string]func(*testing.T, *bench) transport.Interface{
		"http": func(t *testing.T, b *bench) transport.Interface {
			server := b.serve(t)
			door, err := transport.NewStreamableHTTP(server.URL, transport.WithHTTPBasicClient(server.Client()))
			if err != nil {
				t.Fatal(err)
			}
			return door
		},
		"stdio": func(t *testing.T, b *bench) transport.Interface {
			r, w, _ := b.pipes(t)
			return transport.NewIO(r, w, io.NopCloser(strings.NewReader("")))
		},
	}
	for door, open := range doors {
		for era, options := range map[string][]client.ClientOption{"legacy": {client.WithLegacyProtocolOnly()}, "newest": nil} {
			t.Run(door+"/"+era, func(t *testing.T) {
				c := client.NewClient(open(t, newBench(t)), options...)
				defer c.Close()
				if err := c.Start(t.Context()); err != nil {
					t.Fatal(err)
				}
				if _, err := c.Initialize(t.Context(), mcp.InitializeRequest{Params: mcp.InitializeParams{
					ProtocolVersion: mcp.LATEST_PROTOCOL_VERSION, ClientInfo: mcp.Implementation{Name: "test", Version: "1"},
				}}); err != nil {
					t.Fatal(err)
				}
				list, err := c.ListTools(t.Context(), mcp.ListToolsRequest{})
				if err != nil || len(list.Tools) != 5 {
					t.Fatalf("got %v, %v", list, err)
				}
				result, err := c.CallTool(t.Context(), mcp.CallToolRequest{Params: mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"name": "x"}}})
				if err != nil || result.IsError {
					t.Fatalf("got %v, %v", result, err)
				}
			})
		}
	}
}

// TestFailuresHaveTheOutputSchema: clients check the structured content of a
// failure against it too.
func TestFailuresHaveTheOutputSchema(t *testing.T) {
	b := newBench(t)
	ctx := core.WithCaller(t.Context(), alice)
	for _, op := range b.Operations {
		if op.Name == "echo" || op.Name == "wait" {
			continue // these do not fail
		}
		value, err := oracle.UnmarshalJSON(strings.NewReader(string(tool(op).RawOutputSchema)))
		if err != nil {
			t.Fatal(err)
		}
		compiler := oracle.NewCompiler()
		if err := compiler.AddResource("s.json", value); err != nil {
			t.Fatal(err)
		}
		schema := compiler.MustCompile("s.json")
		_, failed := b.call(ctx, op)
		text, err := json.Marshal(b.failure(ctx, failed).StructuredContent)
		if err != nil {
			t.Fatal(err)
		}
		content, err := oracle.UnmarshalJSON(strings.NewReader(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(content); err != nil {
			t.Errorf("%s: %s: %v", op.Name, text, err)
		}
		if schema.Validate(map[string]any{"name": "x"}) == nil {
			t.Errorf("%s: the schema takes anything", op.Name)
		}
	}
}

func TestAScopeTooFewIsSaid(t *testing.T) {
	b := newBench(t)
	ctx := core.WithCaller(t.Context(), core.Caller{Scopes: []core.Scope{core.ScopeEnvironmentsRead}})
	for _, op := range b.Operations {
		_, err := b.call(ctx, op)
		if e := core.AsError(err); e.Code != core.CodeInsufficientScope {
			t.Errorf("%s: got %v", op.Name, err)
		}
	}
	for _, op := range b.Operations {
		if _, err := b.call(context.Background(), op); core.AsError(err).Code != core.CodeInsufficientScope {
			t.Errorf("%s: done for nobody: %v", op.Name, err)
		}
	}
}
