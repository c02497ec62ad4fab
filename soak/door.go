package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// object is a JSON object.
type object = map[string]any

// refusal is an error that the service answered in the words of its contract.
type refusal struct{ code, detail string }

func (r *refusal) Error() string { return r.code + ": " + r.detail }

// callWithin is how long one call may take. It is far beyond what any call may wait,
// so that what comes to it hangs.
const callWithin = 3 * time.Minute

// maxAnswer bounds what is read of one answer.
const maxAnswer = 64 << 20

// door calls operations, as one account, over connections of its own.
type door struct {
	url, token string
	http       *http.Client
	contract   contract
	tools      map[string]bool // what /mcp offers
	session    string          // the Mcp-Session-Id, where the service gives one
	last       int             // the id of the last message
}

// contract says how each operation is called over REST, as /openapi.json has it.
type contract map[string]route

type route struct{ method, path string }

// readContract takes the operations of the service's own document.
func readContract(ctx context.Context, url string) (contract, error) {
	data, err := get(ctx, url+"/openapi.json")
	if err != nil {
		return nil, err
	}
	var doc struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, err
	}
	c := contract{}
	for path, methods := range doc.Paths {
		for method, raw := range methods {
			var operation struct{ OperationID string }
			if strings.HasPrefix(path, "/v1/") && json.Unmarshal(raw, &operation) == nil && operation.OperationID != "" {
				c[operation.OperationID] = route{strings.ToUpper(method), path}
			}
		}
	}
	if len(c) == 0 {
		return nil, errors.New("/openapi.json names no operation")
	}
	return c, nil
}

// address gives where an operation is, with the input that stands in its path; what
// does not is left.
func (r route) address(input object) (path string, left object) {
	path, left = r.path, object{}
	for name, value := range input {
		if mark := "{" + name + "}"; strings.Contains(path, mark) {
			path = strings.ReplaceAll(path, mark, url.PathEscape(plain(value)))
		} else {
			left[name] = value
		}
	}
	return path, left
}

// query is input as a query, with its question mark.
func query(input object) string {
	values := url.Values{}
	for name, value := range input {
		values.Set(name, plain(value))
	}
	if len(values) == 0 {
		return ""
	}
	return "?" + values.Encode()
}

// rest calls an operation whose answer is JSON over its route.
func (d *door) rest(ctx context.Context, operation string, input object) (object, error) {
	r, known := d.contract[operation]
	if !known {
		return nil, fmt.Errorf("/openapi.json has no operation %s", operation)
	}
	path, left := r.address(input)
	var body io.Reader
	if r.method == http.MethodGet || r.method == http.MethodDelete {
		path += query(left)
	} else {
		data, err := json.Marshal(left)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(data)
	}
	resp, err := d.send(ctx, r.method, path, body, http.Header{"Content-Type": {"application/json"}})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer := object{}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil || len(data) == 0 {
		return answer, err
	}
	return answer, json.Unmarshal(data, &answer)
}

// send makes one request. An answer above 399 comes as an error: as a refusal where it
// is a problem document.
func (d *door) send(ctx context.Context, method, path string, body io.Reader, header http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, d.url+path, body)
	if err != nil {
		return nil, err
	}
	for name, values := range header {
		req.Header[name] = values
	}
	if d.token != "" {
		req.Header.Set("Authorization", "Bearer "+d.token)
	}
	resp, err := d.http.Do(req)
	if err != nil || resp.StatusCode < http.StatusBadRequest {
		return resp, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	var problem struct{ Code, Detail string }
	if err == nil && resp.StatusCode >= http.StatusInternalServerError && json.Unmarshal(data, &problem) != nil {
		return nil, &refusal{"internal", fmt.Sprintf("%s without a code: %.200s", resp.Status, data)}
	}
	if err != nil || json.Unmarshal(data, &problem) != nil || problem.Code == "" {
		return nil, fmt.Errorf("%s answered %s without a code: %.200s", method, resp.Status, data)
	}
	return nil, &refusal{problem.Code, problem.Detail}
}

// greet begins a conversation over /mcp and notes what it offers.
func (d *door) greet(ctx context.Context) error {
	hello := object{"protocolVersion": protocolVersion, "capabilities": object{}, "clientInfo": object{"name": "envapi-soak", "version": "1"}}
	if err := d.message(ctx, "initialize", hello, nil); err != nil {
		return err
	}
	var list struct{ Tools []struct{ Name string } }
	if err := d.message(ctx, "tools/list", object{}, &list); err != nil {
		return err
	}
	d.tools = map[string]bool{}
	for _, tool := range list.Tools {
		d.tools[tool.Name] = true
	}
	return nil
}

const protocolVersion = "2025-06-18"

// tool calls an operation over /mcp.
func (d *door) tool(ctx context.Context, operation string, input object) (object, error) {
	var result struct {
		IsError           bool
		StructuredContent object
	}
	if err := d.message(ctx, "tools/call", object{"name": operation, "arguments": input}, &result); err != nil {
		return nil, err
	}
	if result.IsError {
		return nil, &refusal{text(result.StructuredContent, "code"), text(result.StructuredContent, "detail")}
	}
	return result.StructuredContent, nil
}

// message sends one request of JSON-RPC and decodes its result.
func (d *door) message(ctx context.Context, method string, params, result any) error {
	d.last++
	data, err := json.Marshal(object{"jsonrpc": "2.0", "id": d.last, "method": method, "params": params})
	if err != nil {
		return err
	}
	header := http.Header{
		"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Mcp-Protocol-Version": {protocolVersion},
	}
	if d.session != "" {
		header.Set("Mcp-Session-Id", d.session)
	}
	resp, err := d.send(ctx, http.MethodPost, "/mcp", bytes.NewReader(data), header)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
		d.session = id
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return err
	}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		raw = lastEvent(raw)
	}
	var answer struct {
		ID     int
		Error  *struct{ Message string }
		Result json.RawMessage
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return fmt.Errorf("cannot read the answer to %s: %w: %.200s", method, err, raw)
	}
	switch {
	case answer.Error != nil:
		return errors.New(answer.Error.Message)
	case answer.ID != d.last:
		return fmt.Errorf("the answer to %s has the id %d, not %d", method, answer.ID, d.last)
	case result == nil:
		return nil
	}
	return json.Unmarshal(answer.Result, result)
}

// lastEvent gives the data of the last event of a stream: the answer follows any
// notifications.
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

// text gives a value of an answer, found by names from the outside in, as text; "" where
// there is none.
func text(answer object, names ...string) string {
	var value any = answer
	for _, name := range names {
		inner, _ := value.(object)
		value = inner[name]
	}
	if value == nil {
		return ""
	}
	return plain(value)
}

// plain gives a value as text, a number without an exponent.
func plain(value any) string {
	if number, ok := value.(float64); ok {
		return strconv.FormatFloat(number, 'f', -1, 64)
	}
	return fmt.Sprint(value)
}

// items gives what a page lists.
func items(page object) []object {
	list, _ := page["items"].([]any)
	found := make([]object, 0, len(list))
	for _, item := range list {
		if o, ok := item.(object); ok {
			found = append(found, o)
		}
	}
	return found
}
