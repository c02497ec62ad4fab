package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"envapi/internal/require"
	"envapi/internal/testbin"
)

// client calls operations the way that one of the world's clients does. What
// the server refuses is a *problem.
type client interface {
	call(ctx context.Context, operation string, in object) (object, error)
}

// toolResult is the result of a tool call as MCP lays it down.
type toolResult struct {
	IsError           bool
	StructuredContent json.RawMessage
	Failed            string // drive.mjs: the SDK threw
	Content           []struct{ Type, Text string }
}

func (r toolResult) answer() (object, error) {
	if r.Failed != "" {
		return nil, errors.New(r.Failed)
	}
	if r.IsError {
		p := &problem{}
		if err := json.Unmarshal(r.StructuredContent, p); err != nil || p.Code == "" {
			return nil, fmt.Errorf("an error without a code: %s", r.StructuredContent)
		}
		return nil, p
	}
	if len(r.Content) == 0 || r.Content[0].Text == "" {
		return nil, errors.New("a result without text, which is all that some clients show")
	}
	return decodeObject(r.StructuredContent)
}

// goClient is the client of the official Go SDK.
type goClient struct{ session *mcp.ClientSession }

func connectGo(t *testing.T, transport mcp.Transport) client {
	t.Helper()
	c := mcp.NewClient(&mcp.Implementation{Name: "envapi-e2e", Version: "1"}, nil)
	session, err := c.Connect(context.Background(), transport, nil)
	if err != nil {
		t.Fatalf("cannot connect: %v", err)
	}
	t.Cleanup(func() {
		if err := session.Close(); err != nil {
			t.Errorf("cannot close the session: %v", err)
		}
	})
	return goClient{session}
}

func (c goClient) call(ctx context.Context, operation string, in object) (object, error) {
	result, err := c.session.CallTool(ctx, &mcp.CallToolParams{Name: operation, Arguments: in})
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(result)
	if err != nil {
		return nil, err
	}
	var r toolResult
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, err
	}
	return r.answer()
}

// bearer puts the token on every request.
type bearer struct{ token string }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return http.DefaultTransport.RoundTrip(r)
}

// nodeClient is the client of the official TypeScript SDK, in node.
type nodeClient struct {
	in  io.Writer
	out *bufio.Reader
}

func connectNode(t *testing.T, env []string, args ...string) client {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		require.Feature(t, "node", err.Error())
	}
	if _, err := os.Stat(filepath.Join("node", "node_modules")); err != nil {
		require.Feature(t, "node", "the SDK is not installed: scripts/node-modules")
	}
	cmd := exec.Command("node", append([]string{"drive.mjs"}, args...)...)
	cmd.Dir, cmd.Env, cmd.Stderr = "node", env, &buffer{}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil || t.Failed() {
			t.Errorf("node ended with %v\n%s", err, cmd.Stderr)
		}
	})
	c := nodeClient{in, bufio.NewReader(out)}
	if line, err := c.out.ReadBytes('\n'); err != nil || !bytes.Contains(line, []byte(`"exec"`)) {
		t.Fatalf("the tools are %q %v\n%s", line, err, cmd.Stderr)
	}
	return c
}

func (c nodeClient) call(_ context.Context, operation string, in object) (object, error) {
	data, err := json.Marshal(object{"name": operation, "arguments": in})
	if err != nil {
		return nil, err
	}
	if _, err := c.in.Write(append(data, '\n')); err != nil {
		return nil, err
	}
	line, err := c.out.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	var r toolResult
	if err := json.Unmarshal(line, &r); err != nil {
		return nil, fmt.Errorf("%w: %s", err, line)
	}
	return r.answer()
}

// curlClient is the curl program on the REST routes.
type curlClient struct{ base, token string }

func (c curlClient) call(ctx context.Context, operation string, in object) (object, error) {
	method, path, body := locate(operation, in)
	args := []string{
		"--silent", "--show-error", "--request", method, "--header", "Authorization: Bearer " + c.token,
		"--write-out", "\n%{http_code}", c.base + path,
	}
	if body != "" {
		args = append(args, "--header", "Content-Type: application/json", "--data-binary", "@-")
	}
	cmd := exec.CommandContext(ctx, "curl", args...)
	cmd.Stdin = bytes.NewReader([]byte(body))
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("curl: %w", err)
	}
	end := bytes.LastIndexByte(out, '\n')
	status, err := strconv.Atoi(string(out[end+1:]))
	if err != nil {
		return nil, err
	}
	return decodeAnswer(status, out[:end])
}

// local is the environment of an envapi-mcp with a data folder of its own.
func local(t *testing.T, tier string) []string {
	t.Helper()
	return settings(config{tier: tier, data: filepath.Join(t.TempDir(), "data")}, map[string]string{"ENVAPI_UID_RANGE": testbin.UIDRange()})
}

// clients are those that the first session is played with.
var clients = []struct {
	name    string
	connect func(t *testing.T, tier string) client
}{
	{"Go SDK over HTTP", func(t *testing.T, tier string) client {
		s := start(t, config{tier: tier})
		return connectGo(t, &mcp.StreamableClientTransport{
			Endpoint: s.url + "/mcp", HTTPClient: &http.Client{Transport: bearer{s.token}},
		})
	}},
	{"Go SDK over stdio", func(t *testing.T, tier string) client {
		cmd := exec.Command(testbin.Path(t, "envapi-mcp"))
		cmd.Env, cmd.Dir = local(t, tier), t.TempDir()
		return connectGo(t, &mcp.CommandTransport{Command: cmd})
	}},
	{"TypeScript SDK over HTTP", func(t *testing.T, tier string) client {
		s := start(t, config{tier: tier})
		return connectNode(t, os.Environ(), "http", s.url+"/mcp", s.token)
	}},
	{"TypeScript SDK over stdio", func(t *testing.T, tier string) client {
		return connectNode(t, local(t, tier), "stdio", testbin.Path(t, "envapi-mcp"))
	}},
	{"curl", func(t *testing.T, tier string) client {
		if _, err := exec.LookPath("curl"); err != nil {
			require.Feature(t, "curl", err.Error())
		}
		s := start(t, config{tier: tier})
		return curlClient{s.url, s.token}
	}},
}

func TestFirstSession(t *testing.T) {
	for _, c := range clients {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			playFirstSession(t, c.connect(t, "namespace"))
		})
	}
}

func TestFirstSessionInTheDirectoryTier(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("as root there is no directory tier")
	}
	t.Parallel()
	playFirstSession(t, clients[0].connect(t, "directory"))
}

func TestB16ACancelledToolCallEndsTheWaitAndNotTheCommand(t *testing.T) {
	for _, c := range clients[:2] { // the Go SDK's, which tell the server
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := player{t, c.connect(t, "namespace")}
			id := p.call("create_environment", object{})["id"]
			running := func() []command {
				return as[struct{ Items []command }](t, p.call("list_commands", object{"environment_id": id, "status": "running"})).Items
			}
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			ended := make(chan error, 1)
			go func() {
				in := object{"environment_id": id, "command": "until [ -e go ]; do sleep .05; done; echo went on", "wait_ms": 45000}
				answer, err := p.c.call(ctx, "exec", in)
				if err == nil {
					t.Errorf("the call was not cancelled: %v", answer)
				}
				ended <- err
			}()
			if err := eventually(func() error {
				if len(running()) == 0 {
					return errors.New("nothing runs")
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			cancel()
			<-ended
			list := running()
			if len(list) != 1 {
				t.Fatalf("what runs is %+v", list)
			}
			p.run(object{"environment_id": id, "command": "touch go"})
			got := as[command](t, p.call("get_command", object{"command_id": list[0].ID, "wait_ms": 45000}))
			if got.exit() != 0 || got.Stdout.Text != "went on\n" {
				t.Errorf("it came to %+v", got)
			}
		})
	}
}
