package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// contract is what the server's OpenAPI document says of its operations.
type contract map[string]route

// route is how one operation is called.
type route struct {
	method, path string
	statuses     []string // that mean success
}

// names gives the operations in a stable order.
func (c contract) names() []string {
	names := make([]string, 0, len(c))
	for name := range c {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// fetchContract reads /openapi.json.
func fetchContract(ctx context.Context, s server) (contract, error) {
	r, err := s.send(ctx, http.MethodGet, "/openapi.json", nil, nil)
	if err != nil {
		return nil, err
	}
	if r.status != http.StatusOK {
		return nil, fmt.Errorf("cannot get /openapi.json: status %d", r.status)
	}
	return parseContract(r.body)
}

// prefix is below which the operations are; the other routes are the service's
// own.
const prefix = "/v1/"

// parseContract takes the operations of the document.
func parseContract(data []byte) (contract, error) {
	var doc struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("cannot read /openapi.json: %w", err)
	}
	found := contract{}
	for path, methods := range doc.Paths {
		if !strings.HasPrefix(path, prefix) {
			continue
		}
		for method, raw := range methods {
			var operation struct {
				OperationID string
				Responses   map[string]json.RawMessage
			}
			if json.Unmarshal(raw, &operation) != nil || operation.OperationID == "" {
				continue
			}
			r := route{method: strings.ToUpper(method), path: path}
			for status := range operation.Responses {
				if strings.HasPrefix(status, "2") {
					r.statuses = append(r.statuses, status)
				}
			}
			found[operation.OperationID] = r
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("/openapi.json names no operation")
	}
	return found, nil
}

// restDoor calls the /v1 routes as the contract describes them.
type restDoor struct {
	server
	contract contract
}

func (d *restDoor) name() string { return "rest" }

func (d *restDoor) call(ctx context.Context, operation string, input object) (object, error) {
	route, known := d.contract[operation]
	if !known {
		return nil, fmt.Errorf("/openapi.json has no operation %s", operation)
	}
	path, body := route.fill(input)
	r, err := d.send(ctx, route.method, path, body, nil)
	if err != nil {
		return nil, err
	}
	return route.read(operation, r)
}

// fill puts the input where the contract wants it: into the path, then into
// the query for GET and DELETE and into the body for the rest.
func (r route) fill(input object) (path string, body any) {
	path = r.path
	rest := object{}
	for name, value := range input {
		if mark := "{" + name + "}"; strings.Contains(path, mark) {
			path = strings.ReplaceAll(path, mark, url.PathEscape(fmt.Sprint(value)))
		} else {
			rest[name] = value
		}
	}
	if r.method != http.MethodGet && r.method != http.MethodDelete {
		return path, rest
	}
	query := url.Values{}
	for name, value := range rest {
		query.Set(name, fmt.Sprint(value))
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return path, nil
}

// read gives the answer's object, or its problem as a refusal.
func (r route) read(operation string, got reply) (object, error) {
	answer := object{}
	if len(got.body) > 0 {
		if err := json.Unmarshal(got.body, &answer); err != nil {
			return nil, fmt.Errorf("%s answered %d with something that is not a JSON object: %w", operation, got.status, err)
		}
	}
	if got.status >= http.StatusBadRequest {
		if t := got.header.Get("Content-Type"); t != "application/problem+json" {
			return nil, fmt.Errorf("%s answered %d as %q, not as a problem", operation, got.status, t)
		}
		return nil, &refusal{text(answer, "code"), text(answer, "detail")}
	}
	if !slices.Contains(r.statuses, strconv.Itoa(got.status)) {
		return nil, fmt.Errorf("%s answered %d, the document says %v", operation, got.status, r.statuses)
	}
	return answer, nil
}

// checkProbes asks the routes that need no token.
func checkProbes(ctx context.Context, out io.Writer, s server) error {
	s.token = ""
	for _, path := range []string{"/healthz", "/ready"} {
		r, err := s.send(ctx, http.MethodGet, path, nil, nil)
		if err != nil {
			return err
		}
		if r.status != http.StatusOK {
			return fmt.Errorf("%s answered %d: %s", path, r.status, r.body)
		}
		fmt.Fprintf(out, "ok   %s: %d\n", path, r.status)
	}
	return nil
}
