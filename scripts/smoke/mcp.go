package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// mcpDoor calls the tools at /mcp. It speaks the few messages that it needs by
// hand, so that it shares no code with the server; real clients are tested
// elsewhere.
type mcpDoor struct {
	server
	session string // the Mcp-Session-Id, where the server gives one
	tools   []string
	last    int // the id of the last request
}

const protocolVersion = "2025-06-18"

func (d *mcpDoor) name() string { return "mcp" }

// openMCP greets the server and asks for its tools.
func openMCP(ctx context.Context, s server) (*mcpDoor, error) {
	d := &mcpDoor{server: s}
	hello := object{
		"protocolVersion": protocolVersion,
		"capabilities":    object{},
		"clientInfo":      object{"name": "envapi-smoke", "version": "1"},
	}
	if err := d.request(ctx, "initialize", hello, nil); err != nil {
		return nil, err
	}
	if _, err := d.post(ctx, object{"jsonrpc": "2.0", "method": "notifications/initialized"}); err != nil {
		return nil, err
	}
	var list struct{ Tools []struct{ Name string } }
	if err := d.request(ctx, "tools/list", object{}, &list); err != nil {
		return nil, err
	}
	for _, tool := range list.Tools {
		d.tools = append(d.tools, tool.Name)
	}
	return d, nil
}

func (d *mcpDoor) call(ctx context.Context, operation string, input object) (object, error) {
	var result struct {
		IsError           bool
		StructuredContent object
	}
	params := object{"name": operation, "arguments": input}
	if err := d.request(ctx, "tools/call", params, &result); err != nil {
		return nil, fmt.Errorf("%s: %w", operation, err)
	}
	if result.IsError {
		return nil, &refusal{text(result.StructuredContent, "code"), text(result.StructuredContent, "detail")}
	}
	return result.StructuredContent, nil
}

// request sends one JSON-RPC request and decodes its result.
func (d *mcpDoor) request(ctx context.Context, method string, params, result any) error {
	d.last++
	r, err := d.post(ctx, object{"jsonrpc": "2.0", "id": d.last, "method": method, "params": params})
	if err != nil {
		return err
	}
	if r.status != http.StatusOK {
		return fmt.Errorf("%s answered %d: %s", method, r.status, r.body)
	}
	data := r.body
	if strings.HasPrefix(r.header.Get("Content-Type"), "text/event-stream") {
		data = lastEvent(data)
	}
	var answer struct {
		ID     int
		Error  *struct{ Message string }
		Result json.RawMessage
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		return fmt.Errorf("cannot read the answer to %s: %w", method, err)
	}
	if answer.Error != nil {
		return errors.New(answer.Error.Message)
	}
	if answer.ID != d.last {
		return fmt.Errorf("the answer to %s has the id %d, not %d", method, answer.ID, d.last)
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(answer.Result, result)
}

func (d *mcpDoor) post(ctx context.Context, message object) (reply, error) {
	header := http.Header{
		"Accept":               {"application/json, text/event-stream"},
		"Mcp-Protocol-Version": {protocolVersion},
	}
	if d.session != "" {
		header.Set("Mcp-Session-Id", d.session)
	}
	r, err := d.send(ctx, http.MethodPost, "/mcp", message, header)
	if id := r.header.Get("Mcp-Session-Id"); id != "" {
		d.session = id
	}
	return r, err
}

// lastEvent gives the data of the last event of a stream: the answer follows
// any notifications.
func lastEvent(stream []byte) []byte {
	var last []byte
	lines := bufio.NewScanner(bytes.NewReader(stream))
	lines.Buffer(nil, maxAnswer)
	for lines.Scan() {
		if data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data:")); ok {
			last = bytes.Clone(data)
		}
	}
	return last
}
