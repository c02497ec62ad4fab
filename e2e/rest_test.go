package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// object is a JSON object.
type object = map[string]any

// routes are the contract's, by operation.
var routes = map[string]struct{ method, path string }{
	"create_environment":  {"POST", "/v1/environments"},
	"list_environments":   {"GET", "/v1/environments"},
	"get_environment":     {"GET", "/v1/environments/{environment_id}"},
	"update_environment":  {"PATCH", "/v1/environments/{environment_id}"},
	"reset_environment":   {"POST", "/v1/environments/{environment_id}/reset"},
	"delete_environment":  {"DELETE", "/v1/environments/{environment_id}"},
	"archive_environment": {"POST", "/v1/environments/{environment_id}/archive"},
	"restore_environment": {"POST", "/v1/environments/{environment_id}/restore"},
	"fork_environment":    {"POST", "/v1/environments/{environment_id}/fork"},
	"exec":                {"POST", "/v1/exec"},
	"list_commands":       {"GET", "/v1/commands"},
	"get_command":         {"GET", "/v1/commands/{command_id}"},
	"read_output":         {"GET", "/v1/commands/{command_id}/output"},
	"signal_command":      {"POST", "/v1/commands/{command_id}/signal"},
	"write_input":         {"POST", "/v1/commands/{command_id}/input"},
	"open_shell":          {"POST", "/v1/shells"},
	"list_shells":         {"GET", "/v1/shells"},
	"get_shell":           {"GET", "/v1/shells/{shell_id}"},
	"run_in_shell":        {"POST", "/v1/shells/{shell_id}/run"},
	"write_shell":         {"POST", "/v1/shells/{shell_id}/input"},
	"read_shell":          {"GET", "/v1/shells/{shell_id}/output"},
	"resize_shell":        {"POST", "/v1/shells/{shell_id}/resize"},
	"close_shell":         {"DELETE", "/v1/shells/{shell_id}"},
	"list_processes":      {"GET", processRoutes},
	"signal_process":      {"POST", processRoutes + "/{pid}/signal"},
	"wait_process":        {"GET", processRoutes + "/{pid}/wait"},
	"get_status":          {"GET", "/v1/status"},
	"list_files":          {"GET", fileRoutes},
	"stat_file":           {"GET", fileRoutes + "/stat"},
	"read_file":           {"GET", fileRoutes + "/text"},
	"write_file":          {"POST", fileRoutes + "/write"},
	"edit_file":           {"POST", fileRoutes + "/edit"},
	"apply_patch":         {"POST", fileRoutes + "/patch"},
	"search_files":        {"POST", fileRoutes + "/search"},
	"make_directory":      {"POST", fileRoutes + "/mkdir"},
	"delete_file":         {"DELETE", fileRoutes},
	"copy_file":           {"POST", fileRoutes + "/copy"},
	"move_file":           {"POST", fileRoutes + "/move"},
}

// processRoutes is what the routes of processes begin with.
const processRoutes = "/v1/environments/{environment_id}/processes"

// fileRoutes is what the routes of files begin with.
const fileRoutes = "/v1/environments/{environment_id}/files"

// locate gives the method, path and JSON body ("" for none) of a call.
func locate(operation string, in object) (method, path, body string) {
	route := routes[operation]
	path = route.path
	rest := object{}
	for name, value := range in {
		if mark := "{" + name + "}"; strings.Contains(path, mark) {
			path = strings.ReplaceAll(path, mark, fmt.Sprint(value))
		} else {
			rest[name] = value
		}
	}
	if route.method == http.MethodGet || route.method == http.MethodDelete {
		query := url.Values{}
		for name, value := range rest {
			query.Set(name, fmt.Sprint(value))
		}
		return route.method, path + "?" + query.Encode(), ""
	}
	data, _ := json.Marshal(rest) // of plain values: cannot fail
	return route.method, path, string(data)
}

// problem is an answer that something was not done.
type problem struct {
	Status int
	Code   string
	Detail string
	Limit  string
	Reason string
	// Of a limit, beside its name.
	Allowed, Used *int64
	// CommandID is the running command of a busy shell.
	CommandID string `json:"command_id"`
	// Of the files API.
	Field, File, Similar string
	ETag                 *string
	Hunk, Matches        any
}

func (p *problem) Error() string { return fmt.Sprintf("%d %s: %s", p.Status, p.Code, p.Detail) }

// rest calls the /v1 routes.
type rest struct{ base, token string }

// call makes one call. A refusal is a *problem. An answer's numbers are
// json.Number, so that none loses a digit.
func (r rest) call(ctx context.Context, operation string, in object) (object, error) {
	method, path, body := locate(operation, in)
	req, err := http.NewRequestWithContext(ctx, method, r.base+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+r.token)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	return decodeAnswer(resp.StatusCode, data)
}

// decodeAnswer reads a REST answer, which is an object or a problem.
func decodeAnswer(status int, data []byte) (object, error) {
	if status >= http.StatusBadRequest {
		p := &problem{}
		if err := json.Unmarshal(data, p); err != nil || p.Code == "" || p.Status != status {
			return nil, fmt.Errorf("status %d with no problem that fits: %s", status, data)
		}
		return nil, p
	}
	if status == http.StatusNoContent {
		return object{}, nil
	}
	return decodeObject(data)
}

func decodeObject(data []byte) (object, error) {
	answer := object{}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&answer); err != nil {
		return nil, fmt.Errorf("not a JSON object: %w: %s", err, data)
	}
	return answer, nil
}

// must makes a call that has to succeed.
func (r rest) must(t *testing.T, operation string, in object) object {
	t.Helper()
	answer, err := r.call(context.Background(), operation, in)
	if err != nil {
		t.Fatalf("%s %v: %v", operation, brief(in), err)
	}
	return answer
}

// refuse makes a call that has to be refused with the code.
func (r rest) refuse(t *testing.T, code, operation string, in object) *problem {
	t.Helper()
	answer, err := r.call(context.Background(), operation, in)
	var p *problem
	if !errors.As(err, &p) || p.Code != code {
		t.Fatalf("%s %v gave %v %v, want %s", operation, brief(in), brief(answer), err, code)
	}
	return p
}

// brief is an object for messages.
func brief(o object) string {
	text := fmt.Sprint(o)
	if len(text) > 500 {
		text = text[:500] + "…"
	}
	return text
}

// command is a Command as callers see it.
type command struct {
	ID          string
	ShellID     string `json:"shell_id"`
	Status      string
	ExitCode    *int `json:"exit_code"`
	Signal      string
	Reason      string
	ShellClosed bool `json:"shell_closed"`
	Cwd         string
	Waiting     *bool `json:"waiting_for_input"`
	Stdout      excerpt
	Stderr      excerpt
	Next        string
	DurationMS  int64            `json:"duration_ms"`
	WaitedMS    *int64           `json:"waited_ms"`
	Late        map[string]int64 `json:"late_from_offset"`
}

type excerpt struct {
	Text, Encoding string
	Total          int64 `json:"total_bytes"`
	Truncated      bool
	Omitted        int64 `json:"omitted_bytes"`
}

// brief is a command for messages.
func (c *command) brief() string {
	if c == nil {
		return "nothing"
	}
	return fmt.Sprintf("%s %d %s %s, stdout %q, stderr %q, next %q", c.Status, c.exit(), c.Signal, c.Reason, c.Stdout.Text, c.Stderr.Text, c.Next)
}

// exit is the exit code, -1 where there is none.
func (c command) exit() int {
	if c.ExitCode == nil {
		return -1
	}
	return *c.ExitCode
}

// as decodes an answer into what a test wants of it.
func as[T any](t *testing.T, answer object) T {
	t.Helper()
	var value T
	data, err := json.Marshal(answer)
	if err == nil {
		err = json.Unmarshal(data, &value)
	}
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// place is one environment of a service.
type place struct {
	rest
	id string
}

func (s *service) place(t *testing.T) place {
	t.Helper()
	return place{s.rest, as[struct{ ID string }](t, s.must(t, "create_environment", object{})).ID}
}

// in is input for the environment.
func (p place) in(more object) object {
	all := object{"environment_id": p.id}
	maps.Copy(all, more)
	return all
}

// exec runs a command and gives the answer of the one call, which waits for as
// long as it may unless in has wait_ms.
func (p place) exec(t *testing.T, in object) command {
	t.Helper()
	all := p.in(object{"wait_ms": 45000})
	maps.Copy(all, in)
	return as[command](t, p.must(t, "exec", all))
}

// sh runs a script and gives its standard output; it must exit with 0.
func (p place) sh(t *testing.T, script string) string {
	t.Helper()
	c := p.exec(t, object{"command": script})
	if c.Status != "exited" || c.exit() != 0 {
		t.Fatalf("%q: %s %d: %s%s", script, c.Status, c.exit(), c.Stdout.Text, c.Stderr.Text)
	}
	return c.Stdout.Text
}

// background starts a command and does not wait for it.
func (p place) background(t *testing.T, script string) command {
	t.Helper()
	return p.exec(t, object{"command": script, "wait_ms": 0})
}

func (r rest) get(t *testing.T, id string, wait int) command {
	t.Helper()
	return as[command](t, r.must(t, "get_command", object{"command_id": id, "wait_ms": wait}))
}

func (r rest) signal(t *testing.T, id, signal string) command {
	t.Helper()
	return as[command](t, r.must(t, "signal_command", object{"command_id": id, "signal": signal}))
}

// page is an answer of read_output.
type page struct {
	Data, Encoding string
	Offset         int64
	Next           int64 `json:"next_offset"`
	Total          int64 `json:"total_bytes"`
	Dropped        int64 `json:"dropped_bytes"`
	EOF            bool
}

func (p page) bytes(t *testing.T) []byte {
	t.Helper()
	if p.Encoding == "utf-8" {
		return []byte(p.Data)
	}
	data, err := base64.StdEncoding.DecodeString(p.Data)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func (r rest) output(t *testing.T, id string, in object) page {
	t.Helper()
	all := object{"command_id": id}
	maps.Copy(all, in)
	return as[page](t, r.must(t, "read_output", all))
}

// whole reads a stream of an ended command from offset 0 to its end.
func (r rest) whole(t *testing.T, id, stream string) []byte {
	t.Helper()
	var all []byte
	for {
		p := r.output(t, id, object{"stream": stream, "offset": len(all), "limit_bytes": 1 << 20})
		all = append(all, p.bytes(t)...)
		if p.Next != int64(len(all)) {
			t.Fatalf("next_offset is %d after %d bytes", p.Next, len(all))
		}
		if p.EOF {
			return all
		}
		if len(p.Data) == 0 {
			t.Fatalf("no bytes and no end at %d of %d", len(all), p.Total)
		}
	}
}

func encode(data []byte) string { return base64.StdEncoding.EncodeToString(data) }
