package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"path"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// folder is a directory of its own in an environment. Its tools are called
// through one of the doors; what a program inside sees and does is through exec.
type folder struct {
	place
	door client
	dir  string
}

// fileCase is a case of the list, played in a folder of its own.
type fileCase struct {
	name string
	play func(t *testing.T, f folder)
}

// doors are the two ways to the tools of a service.
func (s *service) doors(t *testing.T) map[string]client {
	t.Helper()
	return map[string]client{"REST": s.rest, "MCP": s.mcp(t)}
}

func (s *service) mcp(t *testing.T) client {
	t.Helper()
	return connectGo(t, &mcp.StreamableClientTransport{
		Endpoint: s.url + "/mcp", HTTPClient: &http.Client{Transport: bearer{s.token}},
	})
}

// playFiles plays cases on each tier and through each door.
func playFiles(t *testing.T, cases []fileCase) {
	t.Helper()
	onEachTier(t, func(t *testing.T, s *service) {
		for name, door := range s.doors(t) {
			t.Run(name, func(t *testing.T) {
				p := s.place(t)
				for _, c := range cases {
					t.Run(c.name, func(t *testing.T) { c.play(t, p.folder(t, door)) })
				}
			})
		}
	})
}

func (p place) folder(t *testing.T, door client) folder {
	t.Helper()
	f := folder{p, door, "case-" + mark()}
	p.sh(t, "mkdir "+f.dir)
	return f
}

// in is input for the environment, its paths those of the folder. What begins
// with a slash or is for the whole workspace stays as it is.
func (f folder) in(more object) object {
	all := f.place.in(more)
	for _, name := range []string{"path", "source", "destination", "cwd"} {
		if p, ok := all[name].(string); ok && !strings.HasPrefix(p, "/") {
			all[name] = f.at(p)
		}
	}
	return all
}

// at is a path of the folder as the workspace has it. It is not made shorter:
// the dots in it are for the service to judge.
func (f folder) at(name string) string {
	if name == "" {
		return f.dir
	}
	return f.dir + "/" + name
}

// do makes a call that has to succeed.
func (f folder) do(t *testing.T, operation string, in object) object {
	t.Helper()
	answer, err := f.door.call(t.Context(), operation, f.in(in))
	if err != nil {
		t.Fatalf("%s %v: %v", operation, brief(in), err)
	}
	return answer
}

// fails makes a call that has to be refused with one of the codes, which a bar
// parts.
func (f folder) fails(t *testing.T, codes, operation string, in object) *problem {
	t.Helper()
	answer, err := f.door.call(t.Context(), operation, f.in(in))
	return isProblem(t, codes, fmt.Sprintf("%s %v", operation, brief(in)), answer, err)
}

func isProblem(t *testing.T, codes, what string, answer any, err error) *problem {
	t.Helper()
	var p *problem
	if !errors.As(err, &p) || !strings.Contains("|"+codes+"|", "|"+p.Code+"|") {
		t.Fatalf("%s gave %.500v %v, want %s", what, answer, err, codes)
	}
	return p
}

// holds makes a file inside, with the directories on the way.
func (f folder) holds(t *testing.T, name, content string) {
	t.Helper()
	c := f.exec(t, object{
		"command": `mkdir -p -- "$(dirname -- "./$F")" && base64 -d > "./$F"`,
		"env":     object{"F": name}, "cwd": f.dir, "stdin": base64.StdEncoding.EncodeToString([]byte(content)),
	})
	if c.exit() != 0 {
		t.Fatalf("cannot make %q: %s", name, c.Stderr.Text)
	}
}

// bytes reads a file inside.
func (f folder) bytes(t *testing.T, name string) string {
	t.Helper()
	c := f.exec(t, object{"command": `cat < "./$F"`, "env": object{"F": name}, "cwd": f.dir})
	if c.exit() != 0 {
		t.Fatalf("cannot read %q: %s", name, c.Stderr.Text)
	}
	return string(f.whole(t, c.ID, "stdout"))
}

// has compares a file inside, byte for byte.
func (f folder) has(t *testing.T, name, want string) {
	t.Helper()
	if got := f.bytes(t, name); got != want {
		t.Errorf("%q holds %.300q, want %.300q", name, got, want)
	}
}

// run runs a script in the folder, which must exit with 0, and gives its output
// without the last newline.
func (f folder) run(t *testing.T, script string) string {
	t.Helper()
	c := f.exec(t, object{"command": script, "cwd": f.dir})
	if c.Status != "exited" || c.exit() != 0 {
		t.Fatalf("%q: %s %d: %s%s", script, c.Status, c.exit(), c.Stdout.Text, c.Stderr.Text)
	}
	return strings.TrimSuffix(c.Stdout.Text, "\n")
}

// py runs a Python script in the folder.
func (f folder) py(t *testing.T, script string) string {
	t.Helper()
	c := f.exec(t, object{"argv": []string{"python3", "-c", script}, "cwd": f.dir})
	if c.exit() != 0 {
		t.Fatalf("%q: %s", script, c.Stderr.Text)
	}
	return strings.TrimSuffix(c.Stdout.Text, "\n")
}

// write writes a file through the door and gives its tag.
func (f folder) write(t *testing.T, name, content string) string {
	t.Helper()
	return text(f.do(t, "write_file", object{"path": name, "content": content}), "etag")
}

// tag is the tag of a file.
func (f folder) tag(t *testing.T, name string) string {
	t.Helper()
	return text(f.do(t, "stat_file", object{"path": name, "etag": true}), "etag")
}

func text(o object, name string) string {
	s, _ := o[name].(string)
	return s
}

// number is a member of an answer, whose numbers are written out.
func number(t *testing.T, o object, name string) int64 {
	t.Helper()
	if o[name] == nil {
		return 0
	}
	n, err := o[name].(interface{ Int64() (int64, error) }).Int64()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// entry is a FileEntry as callers see it.
type entry struct {
	Path, Type, Mode, ETag string
	PathBase64             string `json:"path_base64"`
	Size                   int64  `json:"size_bytes"`
	Target                 string `json:"link_target"`
}

// fileList is a page of entries.
type fileList struct {
	Items   []entry
	Next    string `json:"next_cursor"`
	Hidden  int    `json:"skipped_hidden"`
	Ignored int    `json:"skipped_ignored"`
}

func (f folder) list(t *testing.T, in object) fileList {
	t.Helper()
	return as[fileList](t, f.do(t, "list_files", and(object{"path": ""}, in)))
}

// names are the paths of entries below the folder.
func (f folder) names(l fileList) string {
	var names []string
	for _, e := range l.Items {
		names = append(names, strings.TrimPrefix(e.Path, f.dir+"/"))
	}
	return strings.Join(names, " ")
}

// and is both objects in one; the second wins.
func and(o, more object) object {
	all := maps.Clone(o)
	maps.Copy(all, more)
	return all
}

// foundLines is an answer of search_files.
type foundLines struct {
	Matches []struct {
		Path, Text   string
		Line, Column int
		Cut          bool
	}
	Total     int `json:"total_matches"`
	Truncated string
	Ignored   int `json:"skipped_ignored"`
	Binary    int `json:"skipped_binary"`
	Next      string
}

func (f folder) search(t *testing.T, in object) foundLines {
	t.Helper()
	return as[foundLines](t, f.do(t, "search_files", and(object{"path": ""}, in)))
}

// raw makes a request of the routes of bytes, which only REST has. The answer's
// body is read.
func (f folder) raw(ctx context.Context, method, route, name string, body io.Reader, header http.Header) (*http.Response, []byte, error) {
	if !path.IsAbs(name) {
		name = f.at(name)
	}
	address := f.base + strings.ReplaceAll(fileRoutes, "{environment_id}", f.id) + route + "?" + url.Values{"path": {name}}.Encode()
	req, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return nil, nil, err
	}
	maps.Copy(req.Header, header)
	req.Header.Set("Authorization", "Bearer "+f.token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return resp, data, err
}

// upload puts a file, and download gets one; what is refused is a *problem.
func (f folder) upload(ctx context.Context, name string, body io.Reader, header http.Header) (*http.Response, error) {
	resp, data, err := f.raw(ctx, http.MethodPut, "/content", name, body, header)
	if err == nil {
		_, err = decodeAnswer(resp.StatusCode, data)
	}
	return resp, err
}

func (f folder) download(ctx context.Context, name string, header http.Header) (*http.Response, []byte, error) {
	resp, data, err := f.raw(ctx, http.MethodGet, "/content", name, nil, header)
	if err == nil && resp.StatusCode >= http.StatusBadRequest {
		_, err = decodeAnswer(resp.StatusCode, data)
	}
	return resp, data, err
}

// mustUpload uploads bytes.
func (f folder) mustUpload(t *testing.T, name string, content []byte) {
	t.Helper()
	if _, err := f.upload(t.Context(), name, bytes.NewReader(content), nil); err != nil {
		t.Fatalf("upload of %q: %v", name, err)
	}
}

// mustDownload downloads a file.
func (f folder) mustDownload(t *testing.T, name string) []byte {
	t.Helper()
	_, data, err := f.download(t.Context(), name, nil)
	if err != nil {
		t.Fatalf("download of %q: %v", name, err)
	}
	return data
}
