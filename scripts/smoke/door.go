package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// object is a JSON object.
type object = map[string]any

// door is one way to call the operations: each by its name, with one flat
// input. What the server refuses comes as *refusal.
type door interface {
	name() string
	call(ctx context.Context, operation string, input object) (object, error)
}

// refusal is an error that the server answered.
type refusal struct {
	code, detail string
}

func (r *refusal) Error() string { return r.code + ": " + r.detail }

// server is where to send requests, and as whom.
type server struct{ url, token string }

// reply is an HTTP answer, read whole.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// maxAnswer bounds what is read of one answer.
const maxAnswer = 16 << 20

// send makes one request with an optional JSON body and reads the answer.
func (s server) send(ctx context.Context, method, path string, body any, header http.Header) (reply, error) {
	var content io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return reply{}, err
		}
		content = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, content)
	if err != nil {
		return reply{}, err
	}
	for name, values := range header {
		req.Header[name] = values
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return reply{}, fmt.Errorf("cannot reach the server: %w", err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return reply{}, fmt.Errorf("cannot read the answer to %s %s: %w", method, path, err)
	}
	return reply{resp.StatusCode, resp.Header, data}, nil
}
