package tools_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	oracle "github.com/santhosh-tekuri/jsonschema/v6"

	"envapi/tools"
)

type fields = map[string]any

// story is one use of every operation, in an order that makes sense, with
// failures between. What a step makes is named ENV, CMD and SHELL in those after it.
var story = []struct {
	operation string
	input     fields
	code      string // of the failure, or ""
}{
	{"get_status", fields{}, ""},
	{"create_environment", fields{"name": "a", "labels": fields{"k": "v"}, "idempotency_key": "k"}, ""},
	{"create_environment", fields{"name": "b", "idempotency_key": "k"}, "idempotency_mismatch"},
	{"create_environment", fields{"nme": "a"}, "invalid_argument"},
	{"create_environment", fields{"network": true}, "network_refused"},
	{"list_environments", fields{"limit": 1}, ""},
	{"list_environments", fields{"limit": 0}, "invalid_argument"},
	{"list_environments", fields{"cursor": "nonsense"}, "invalid_argument"},
	{"get_environment", fields{"environment_id": "ENV"}, ""},
	{"get_environment", fields{"environment_id": "env_unknown"}, "not_found"},
	{"update_environment", fields{"environment_id": "ENV", "name": "c", "limits": fields{"running_commands": 1}}, ""},
	{"update_environment", fields{"environment_id": "ENV", "limits": fields{"memory_bytes": 1 << 27, "disk_bytes": 1 << 23, "files": 100}}, ""},
	{"update_environment", fields{"environment_id": "ENV", "limits": fields{"disk_bytes": 1 << 40}}, "invalid_argument"},
	{"update_environment", fields{"environment_id": "env_unknown", "name": "c"}, "not_found"},
	{"exec", fields{"environment_id": "ENV", "command": "hello <world> & \"all\""}, ""},
	{"exec", fields{"environment_id": "ENV", "command": "starve"}, ""},
	{"exec", fields{"environment_id": "ENV", "command": "x", "network": true}, "network_refused"},
	{"exec", fields{"environment_id": "ENV", "command": "wait", "wait_ms": 0}, ""},
	{"exec", fields{"environment_id": "ENV", "command": "wait", "wait_ms": 0}, "quota_exceeded"},
	{"exec", fields{"command": "x"}, "invalid_argument"},
	{"list_commands", fields{"environment_id": "ENV", "status": "running"}, ""},
	{"list_commands", fields{"status": "out_of_memory"}, ""},
	{"list_commands", fields{"status": "walking"}, "invalid_argument"},
	{"get_command", fields{"command_id": "CMD"}, ""},
	{"get_command", fields{"command_id": "cmd_unknown"}, "not_found"},
	{"signal_command", fields{"command_id": "CMD", "signal": "KILL"}, ""},
	{"signal_command", fields{"command_id": "CMD", "signal": "NONSENSE"}, "invalid_argument"},
	{"list_processes", fields{"environment_id": "ENV"}, ""},
	{"list_processes", fields{"environment_id": "ENV", "limit": 1}, ""},
	{"list_processes", fields{"environment_id": "ENV", "cursor": "nonsense"}, "invalid_argument"},
	{"list_processes", fields{"environment_id": "env_unknown"}, "not_found"},
	{"signal_process", fields{"environment_id": "ENV", "pid": 7, "signal": "SIGHUP", "tree": true, "started_at": "2026-01-02T03:04:05.670Z"}, ""},
	{"signal_process", fields{"environment_id": "ENV", "pid": 7, "started_at": "2026-01-02T03:04:05.680Z"}, "process_replaced"},
	{"signal_process", fields{"environment_id": "ENV", "pid": 8}, "not_found"},
	{"signal_process", fields{"environment_id": "ENV", "pid": "seven"}, "invalid_argument"},
	{"wait_process", fields{"environment_id": "ENV", "pid": 7, "wait_ms": 0}, ""},
	{"wait_process", fields{"environment_id": "ENV", "pid": 9, "wait_ms": 1000}, ""},
	{"wait_process", fields{"environment_id": "ENV", "pid": 7, "started_at": "yesterday"}, "invalid_argument"},
	{"wait_process", fields{"environment_id": "ENV", "pid": -1}, "not_found"},
	{"read_output", fields{"command_id": "CMD", "stream": "stdout", "offset": 0}, ""},
	{"read_output", fields{"command_id": "cmd_unknown"}, "not_found"},
	{"exec", fields{"environment_id": "ENV", "command": "wait", "stdin_open": true, "wait_ms": 0}, ""},
	{"write_input", fields{"command_id": "CMD", "data": "aGVsbG8=", "encoding": "base64", "eof": true}, ""},
	{"write_input", fields{"command_id": "CMD"}, "invalid_argument"},
	{"signal_command", fields{"command_id": "CMD", "signal": "KILL"}, ""},
	{"write_input", fields{"command_id": "CMD", "data": "x"}, "input_closed"},
	{"exec", fields{"environment_id": "ENV", "command": "x", "tty": fields{"cols": 0, "rows": 1}}, "invalid_argument"},
	{"open_shell", fields{"environment_id": "ENV", "name": "work", "cols": 100, "env": fields{"A": "1"}}, ""},
	{"open_shell", fields{"environment_id": "ENV"}, "quota_exceeded"},
	{"open_shell", fields{"environment_id": "ENV", "kind": "fish"}, "invalid_argument"},
	{"list_shells", fields{"environment_id": "ENV", "state": "open"}, ""},
	{"list_shells", fields{"environment_id": "env_unknown"}, "not_found"},
	{"get_shell", fields{"shell_id": "SHELL"}, ""},
	{"get_shell", fields{"shell_id": "sh_unknown"}, "not_found"},
	{"run_in_shell", fields{"shell_id": "SHELL", "command": "hello"}, ""},
	{"write_shell", fields{"shell_id": "SHELL", "data": "x"}, "input_closed"},
	{"run_in_shell", fields{"shell_id": "SHELL", "command": "wait", "wait_ms": 0}, ""},
	{"run_in_shell", fields{"shell_id": "SHELL", "command": "x"}, "shell_busy"},
	{"run_in_shell", fields{"shell_id": "SHELL", "command": "x", "queue": true}, "quota_exceeded"},
	{"list_commands", fields{"shell_id": "SHELL"}, ""},
	{"write_shell", fields{"shell_id": "SHELL", "data": "x", "keys": []any{"enter"}}, ""},
	{"read_shell", fields{"shell_id": "SHELL", "tail_bytes": 4}, ""},
	{"read_shell", fields{"shell_id": "sh_unknown"}, "not_found"},
	{"resize_shell", fields{"shell_id": "SHELL", "cols": 132, "rows": 50}, ""},
	{"resize_shell", fields{"shell_id": "SHELL", "cols": 132}, "invalid_argument"},
	{"close_shell", fields{"shell_id": "SHELL", "keep_background": false}, ""},
	{"close_shell", fields{"shell_id": "sh_unknown"}, "not_found"},
	{"run_in_shell", fields{"shell_id": "SHELL", "command": "x"}, "shell_closed"},
	{"write_file", fields{"environment_id": "ENV", "path": "src/a.txt", "content": "one\ntwo\n", "if_none_match": "*"}, ""},
	{"write_file", fields{"environment_id": "ENV", "path": "src/a.txt", "content": "x", "if_none_match": "*"}, "etag_mismatch"},
	{"write_file", fields{"environment_id": "ENV", "path": "src/a.txt", "content": "three\n", "append": true}, ""},
	{"write_file", fields{"environment_id": "ENV", "path": "../x", "content": ""}, "path_outside_workspace"},
	{"write_file", fields{"environment_id": "ENV", "path": "src", "content": ""}, "is_a_directory"},
	{"write_file", fields{"environment_id": "env_unknown", "path": "x", "content": ""}, "not_found"},
	{"read_file", fields{"environment_id": "ENV", "path": "src/a.txt", "start_line": 2}, ""},
	{"read_file", fields{"environment_id": "ENV", "path": "src/b.txt"}, "not_found"},
	{"list_files", fields{"environment_id": "ENV", "recursive": true}, ""},
	{"list_files", fields{"environment_id": "ENV", "path": "src/a.txt"}, "not_a_directory"},
	{"stat_file", fields{"environment_id": "ENV", "path": "/workspace/src/a.txt"}, ""},
	{"stat_file", fields{"environment_id": "ENV", "path": "no"}, "not_found"},
	{"search_files", fields{"environment_id": "ENV", "pattern": "^t", "glob": "*.txt"}, ""},
	{"search_files", fields{"environment_id": "ENV", "pattern": "("}, "invalid_argument"},
	{"edit_file", fields{"environment_id": "ENV", "path": "src/a.txt", "edits": []any{fields{"old": "two", "new": "2"}}}, ""},
	{"edit_file", fields{"environment_id": "ENV", "path": "src/a.txt", "edits": []any{fields{"old": "two", "new": "2"}}}, "edit_no_match"},
	{"edit_file", fields{"environment_id": "ENV", "path": "src/a.txt", "edits": []any{fields{"old": "e\n", "new": ""}}}, "edit_ambiguous"},
	{"apply_patch", fields{"environment_id": "ENV", "patch": "--- a/src/a.txt\n+++ b/src/a.txt\n@@ -1,2 +1,2 @@\n-one\n+1\n 2\n"}, ""},
	{"apply_patch", fields{"environment_id": "ENV", "patch": "--- a/src/a.txt\n+++ b/src/a.txt\n@@ -1,2 +1,2 @@\n-four\n+4\n 5\n"}, "patch_rejected"},
	{"make_directory", fields{"environment_id": "ENV", "path": "lib/x", "parents": true}, ""},
	{"make_directory", fields{"environment_id": "ENV", "path": "lib/x"}, "already_exists"},
	{"copy_file", fields{"environment_id": "ENV", "source": "src", "destination": "lib/src"}, ""},
	{"copy_file", fields{"environment_id": "ENV", "source": "src/a.txt", "destination": "lib/src/a.txt"}, "already_exists"},
	{"move_file", fields{"environment_id": "ENV", "source": "src/a.txt", "destination": "lib/src/a.txt", "overwrite": true}, ""},
	{"move_file", fields{"environment_id": "ENV", "source": "src/a.txt", "destination": "x"}, "not_found"},
	{"delete_file", fields{"environment_id": "ENV", "path": "lib"}, "not_empty"},
	{"delete_file", fields{"environment_id": "ENV", "path": "lib", "recursive": true}, ""},
	{"archive_environment", fields{"environment_id": "env_unknown"}, "not_found"},
	{"archive_environment", fields{"environment_id": "ENV"}, ""},
	{"list_environments", fields{"state": "archived"}, ""},
	{"exec", fields{"environment_id": "ENV", "command": "hello", "restore": false}, "environment_archived"},
	{"stat_file", fields{"environment_id": "ENV", "path": "src", "restore": false}, "environment_archived"},
	{"restore_environment", fields{"environment_id": "env_unknown"}, "not_found"},
	{"restore_environment", fields{"environment_id": "ENV"}, ""},
	{"fork_environment", fields{"environment_id": "ENV", "limits": fields{"shells": 100000}}, "invalid_argument"},
	{"fork_environment", fields{"environment_id": "ENV", "name": "fork", "idempotency_key": "k"}, ""},
	{"reset_environment", fields{"environment_id": "ENV"}, ""},
	{"reset_environment", fields{"environment_id": "env_unknown"}, "not_found"},
	{"delete_environment", fields{"environment_id": "ENV"}, ""},
	{"delete_environment", fields{"environment_id": "ENV"}, "not_found"},
}

// TestBothDoorsAnswerTheSame tells the story over REST and over MCP, each to a
// service of its own, and compares every answer.
func TestBothDoorsAnswerTheSame(t *testing.T) {
	operations := map[string]tools.Operation{}
	for _, op := range tools.Offered(tools.Operations()) {
		operations[op.Name] = op
	}
	byREST, byMCP := teller{doors(t), fields{}, throughREST}, teller{doors(t), fields{}, throughMCP}
	succeeded, failed := map[string]bool{}, map[string]bool{}
	for i, step := range story {
		op := operations[step.operation]
		one, other := byREST.tell(t, op, step.input), byMCP.tell(t, op, step.input)
		if one != other {
			t.Errorf("step %d, %s: REST answers\n%s\nand MCP\n%s", i, op.Name, one, other)
		}
		if got := codeOf(one); got != step.code {
			t.Errorf("step %d, %s: got %s", i, op.Name, one)
		}
		succeeded[op.Name] = succeeded[op.Name] || step.code == ""
		failed[op.Name] = failed[op.Name] || step.code != ""
	}
	for name := range operations {
		if !succeeded[name] || !failed[name] && name != "get_status" {
			t.Errorf("%s does not both succeed and fail in the story: add steps", name)
		}
	}
}

// teller tells the story through one door.
type teller struct {
	handler http.Handler
	names   fields // what ENV, CMD and SHELL are
	call    func(*testing.T, http.Handler, tools.Operation, fields) []byte
}

// tell performs one step and gives its answer without what is new each time.
func (s teller) tell(t *testing.T, op tools.Operation, input fields) string {
	t.Helper()
	actual := fields{}
	for name, value := range input {
		if s.names[fmt.Sprint(value)] != nil {
			value = s.names[fmt.Sprint(value)]
		}
		actual[name] = value
	}
	answer := s.call(t, s.handler, op, actual)
	var made struct {
		ID string `json:"id"`
	}
	must(t, json.Unmarshal(answer, &made))
	switch {
	case strings.HasPrefix(made.ID, "env_"):
		s.names["ENV"] = made.ID
	case strings.HasPrefix(made.ID, "cmd_"):
		s.names["CMD"] = made.ID
	case strings.HasPrefix(made.ID, "sh_"):
		s.names["SHELL"] = made.ID
	}
	if codeOf(string(answer)) == "" && op.Output != nil {
		fits(t, op, answer)
	}
	return alike(t, answer)
}

// throughREST asks over REST, with each field where its place is. An answer
// without content is an empty object.
func throughREST(t *testing.T, h http.Handler, op tools.Operation, input fields) []byte {
	t.Helper()
	path, rest := op.Path, fields{}
	for name, value := range input {
		if hole := "{" + name + "}"; strings.Contains(path, hole) {
			path = strings.Replace(path, hole, url.PathEscape(fmt.Sprint(value)), 1)
		} else {
			rest[name] = value
		}
	}
	var body []byte
	if op.Method == http.MethodGet || op.Method == http.MethodDelete {
		query := url.Values{}
		for name, value := range rest {
			query.Set(name, fmt.Sprint(value))
		}
		path += "?" + query.Encode()
	} else {
		body = encode(t, rest)
	}
	answer := send(t, h, op.Method, path, body)
	if len(answer) == 0 {
		return []byte("{}")
	}
	return answer
}

// throughMCP asks over MCP. The text of an answer is a function of its
// structured content.
func throughMCP(t *testing.T, h http.Handler, op tools.Operation, input fields) []byte {
	t.Helper()
	answer := send(t, h, http.MethodPost, "/mcp", encode(t, fields{
		"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": fields{"name": op.Name, "arguments": input},
	}))
	var message struct {
		Result struct {
			IsError           bool
			StructuredContent json.RawMessage
			Content           []struct{ Text string }
		}
	}
	must(t, json.Unmarshal(answer, &message))
	content := message.Result.StructuredContent
	if len(message.Result.Content) != 1 || message.Result.IsError != (codeOf(string(content)) != "") {
		t.Fatalf("%s: this is no result: %s", op.Name, answer)
	}
	if text := message.Result.Content[0].Text; !message.Result.IsError && alike(t, []byte(text)) != alike(t, content) {
		t.Errorf("%s: the text %s is not the content %s", op.Name, text, content)
	}
	return content
}

func send(t *testing.T, h http.Handler, method, target string, body []byte) []byte {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, target, bytes.NewReader(body))
	r.Header.Set("Authorization", "Bearer x")
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Body.Bytes()
}

var (
	newEachTime = regexp.MustCompile(`(env|cmd|sh|req)_[A-Za-z0-9]{20,}|\d{4}-\d\d-\d\dT[0-9:.]+Z`)
	measured    = regexp.MustCompile(`"(duration_ms|waited_ms|cpu_ms|peak_memory_bytes|archive_bytes)":\d+`)
	hidden      = []string{"type", "title", "status", "instance", "request_id"} // of failures: each door's own
)

// alike gives an answer without what differs from one telling to the next, and
// for failures without what is a door's own.
func alike(t *testing.T, answer []byte) string {
	t.Helper()
	var content fields
	must(t, json.Unmarshal(answer, &content))
	if content["code"] != nil {
		for _, name := range hidden {
			delete(content, name)
		}
	}
	items, _ := content["items"].([]any)
	for _, item := range items {
		delete(item.(map[string]any), "etag") // a list has it of files whose tag is known by then
	}
	text := newEachTime.ReplaceAllString(string(encode(t, content)), "NEW")
	return measured.ReplaceAllString(text, `"$1":0`)
}

func codeOf(answer string) string {
	var failure struct {
		Code string `json:"code"`
	}
	_ = json.Unmarshal([]byte(answer), &failure)
	return failure.Code
}

// fits checks an output against the schema that callers are told.
func fits(t *testing.T, op tools.Operation, answer []byte) {
	t.Helper()
	schema, err := oracle.UnmarshalJSON(bytes.NewReader(encode(t, op.Output)))
	must(t, err)
	value, err := oracle.UnmarshalJSON(bytes.NewReader(answer))
	must(t, err)
	compiler := oracle.NewCompiler()
	compiler.AssertFormat()
	must(t, compiler.AddResource("output.json", schema))
	compiled, err := compiler.Compile("output.json")
	must(t, err)
	if err := compiled.Validate(value); err != nil {
		t.Errorf("%s answers %s: %v", op.Name, answer, err)
	}
}

func encode(t *testing.T, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	must(t, err)
	return text
}
