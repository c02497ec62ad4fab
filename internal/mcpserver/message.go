package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"
)

// maxEnvelopeBytes bounds a message without the arguments of its tool: what
// clients put there beside names is small, and mcp-go reads it many times.
const maxEnvelopeBytes = 64 << 10

// message is a JSON-RPC message as a client sent it, read by exact names.
type message struct {
	id        json.RawMessage // nil in a notification and in a response
	method    string          // "" in a response
	params    json.RawMessage // without the arguments of a tool
	arguments json.RawMessage // of tools/call
}

// wireError is a JSON-RPC error: a message that cannot be served.
type wireError struct {
	code int
	text string
}

func (e *wireError) Error() string { return e.text }

// readMessage reads a client's message. It fails with a *wireError, and then
// gives as much of the message as names it.
func readMessage(raw []byte) (message, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return message{}, &wireError{mcp.PARSE_ERROR, "cannot read the message as JSON: " + syntax.Error()}
		}
		return message{}, &wireError{mcp.INVALID_REQUEST, "cannot read the message: it must be one JSON object"}
	}
	if name, twice := repeated(raw); twice {
		return message{}, &wireError{mcp.INVALID_REQUEST, fmt.Sprintf("cannot read the message: its member %q is given twice", name)}
	}
	m := message{params: members["params"]}
	if method := members["method"]; method != nil && json.Unmarshal(method, &m.method) != nil {
		return m, &wireError{mcp.INVALID_REQUEST, "cannot read the message: its method must be a string"}
	}
	if err := m.setID(members["id"]); err != nil {
		return m, err
	}
	if string(members["jsonrpc"]) != `"2.0"` {
		return m, &wireError{mcp.INVALID_REQUEST, `cannot read the message: its jsonrpc must be "2.0"`}
	}
	if m.method == "" && members["result"] == nil && members["error"] == nil {
		return m, &wireError{mcp.INVALID_REQUEST, "cannot read the message: it has no method"}
	}
	if m.method == string(mcp.MethodToolsCall) {
		if err := m.setArgumentsAside(); err != nil {
			return m, err
		}
	}
	if len(m.id)+len(m.method)+len(m.params) > maxEnvelopeBytes {
		return m, &wireError{mcp.INVALID_REQUEST, fmt.Sprintf(
			"cannot take the message: beside a tool's arguments it is larger than %d bytes", maxEnvelopeBytes)}
	}
	if m.isRequest() {
		return m, m.checkParams()
	}
	return m, nil
}

// checkParams refuses params that mcp-go cannot read: it would say so in words
// of its own inside.
func (m message) checkParams() error {
	body, err := m.canonical()
	if err != nil {
		return err
	}
	var list mcp.ListToolsRequest
	switch mcp.MCPMethod(m.method) {
	case mcp.MethodInitialize:
		err = json.Unmarshal(body, new(mcp.InitializeRequest))
	case mcp.MethodPing:
		err = json.Unmarshal(body, new(mcp.PingRequest))
	case mcp.MethodServerDiscover:
		err = json.Unmarshal(body, new(mcp.DiscoverRequest))
	case mcp.MethodSubscriptionsListen:
		err = json.Unmarshal(body, new(mcp.SubscriptionsListenRequest))
	case mcp.MethodToolsList:
		err = json.Unmarshal(body, &list)
	case mcp.MethodToolsCall:
		err = json.Unmarshal(body, new(mcp.CallToolRequest))
	}
	var mistyped *json.UnmarshalTypeError
	switch {
	case errors.As(err, &mistyped):
		return &wireError{mcp.INVALID_PARAMS, fmt.Sprintf("cannot take the params of %s: %s cannot be of type %s",
			m.method, mistyped.Field, strings.Fields(mistyped.Value)[0])}
	case err != nil:
		return &wireError{mcp.INVALID_PARAMS, fmt.Sprintf("cannot take the params of %s: one of them is malformed", m.method)}
	case list.Params.Cursor != "":
		return &wireError{mcp.INVALID_PARAMS, "cannot take the cursor: the list of tools is one page; leave it out"}
	}
	return nil
}

// repeated gives a member that stands twice in an object: whoever looked at the
// message before may have read the other one. raw is well-formed JSON.
func repeated(raw []byte) (string, bool) {
	in := json.NewDecoder(bytes.NewReader(raw))
	seen := map[string]bool{}
	var value json.RawMessage
	for _, err := in.Token(); err == nil && in.More(); err = in.Decode(&value) {
		token, err := in.Token()
		name, isName := token.(string)
		if err != nil || !isName {
			return "", false
		}
		if seen[name] {
			return name, true
		}
		seen[name] = true
	}
	return "", false
}

// setID takes the id of a message. A null is none, which notifications alone
// may have: a request without an id would never be answered.
func (m *message) setID(id json.RawMessage) error {
	switch {
	case id == nil || bytes.Equal(id, []byte("null")) && (m.method == "" || strings.HasPrefix(m.method, "notifications/")):
		return nil
	case !isID(id):
		return &wireError{mcp.INVALID_REQUEST, "cannot read the message: its id must be a string or a number"}
	}
	m.id = id
	if !isExact(id) {
		return &wireError{
			mcp.INVALID_REQUEST,
			"cannot read the message: its id would not come back as it is; use valid Unicode text or an integer of at most 53 bits",
		}
	}
	return nil
}

// isID says whether raw is a JSON string or number.
func isID(raw json.RawMessage) bool {
	return raw[0] == '"' || raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9'
}

// isExact says whether an id survives mcp-go, which keeps numbers in 64 bits of
// floating point and text without what is not Unicode. An answer by another id
// would never reach who waits for it.
func isExact(id json.RawMessage) bool {
	var text string
	if json.Unmarshal(id, &text) == nil {
		return !strings.ContainsRune(text, utf8.RuneError)
	}
	const exact = 1 << 53 // up to here every integer is a float64
	number, err := strconv.ParseFloat(string(id), 64)
	return err == nil && math.Abs(number) < exact
}

// setArgumentsAside takes the arguments out of the params of tools/call.
func (m *message) setArgumentsAside() error {
	var params struct {
		Name string          `json:"name"`
		Meta json.RawMessage `json:"_meta,omitempty"`
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(m.params, &members) != nil || json.Unmarshal(members["name"], &params.Name) != nil {
		return &wireError{mcp.INVALID_PARAMS, "cannot call a tool: params must be an object that has its name"}
	}
	if name, twice := repeated(m.params); twice {
		return &wireError{mcp.INVALID_PARAMS, fmt.Sprintf("cannot call a tool: %q is given twice in its params", name)}
	}
	m.arguments, params.Meta = members["arguments"], members["_meta"]
	if bytes.Equal(m.arguments, []byte("null")) {
		m.arguments = nil
	}
	var err error
	m.params, err = json.Marshal(params)
	return err
}

// isRequest says whether the message wants an answer.
func (m message) isRequest() bool { return m.id != nil && m.method != "" }

// canonical writes the message with exactly the members of a request, so that
// mcp-go, which ignores the case of names, reads what was read here.
func (m message) canonical() (json.RawMessage, error) {
	return json.Marshal(struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Method  string          `json:"method"`
		Params  json.RawMessage `json:"params,omitempty"`
	}{mcp.JSONRPC_VERSION, m.id, m.method, m.params})
}

// refusal writes the JSON-RPC error for a message that was not served.
func (m message) refusal(err error) []byte {
	wire := &wireError{mcp.INTERNAL_ERROR, "cannot serve the message"}
	errors.As(err, &wire)
	id := m.id
	if id == nil {
		id = json.RawMessage("null")
	}
	text, err := json.Marshal(map[string]any{
		"jsonrpc": mcp.JSONRPC_VERSION, "id": id,
		"error": map[string]any{"code": wire.code, "message": wire.text},
	})
	if err != nil {
		panic(fmt.Sprintf("mcpserver: cannot write an error: %v", err))
	}
	return text
}

type argumentsKey struct{}

func withArguments(ctx context.Context, arguments json.RawMessage) context.Context {
	return context.WithValue(ctx, argumentsKey{}, arguments)
}

func argumentsFrom(ctx context.Context) json.RawMessage {
	arguments, _ := ctx.Value(argumentsKey{}).(json.RawMessage)
	return arguments
}
