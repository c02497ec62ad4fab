package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// fileSteps drive what is about files.
var fileSteps = []step{
	{"write_file", (*session).writeFile},
	{"read_file", (*session).readFile},
	{"edit_file", (*session).editFile},
	{"apply_patch", (*session).applyPatch},
	{"search_files", (*session).searchFiles},
	{"make_directory", (*session).makeDirectory},
	{"list_files", (*session).listFiles},
	{"upload", (*session).carry},
	{"delete_file", (*session).deleteFile},
}

func (s *session) writeFile() (string, error) {
	input := s.here(object{"path": "src/a.txt", "content": "one\ntwo\n", "if_none_match": "*"})
	if _, err := s.call("write_file", input); err != nil {
		return "", err
	}
	_, err := s.call("write_file", input)
	return "written once; a second one was refused", wantRefusal(err, "etag_mismatch")
}

func (s *session) readFile() (string, error) {
	a, err := s.call("read_file", s.here(object{"path": "src/a.txt", "start_line": 2}))
	if err != nil {
		return "", err
	}
	return "its second line", want("text", text(a, "text"), "two\n")
}

func (s *session) editFile() (string, error) {
	a, err := s.call("edit_file", s.here(object{"path": "src/a.txt", "edits": []any{object{"old": "two", "new": "2"}}}))
	if err != nil {
		return "", err
	}
	return "one place replaced", want("replacements", text(a, "replacements"), "1")
}

func (s *session) applyPatch() (string, error) {
	_, err := s.call("apply_patch", s.here(object{"patch": "--- a/src/a.txt\n+++ b/src/a.txt\n@@ -1,2 +1,2 @@\n-one\n+1\n 2\n"}))
	return "a line changed", err
}

func (s *session) searchFiles() (string, error) {
	a, err := s.call("search_files", s.here(object{"pattern": "^[12]$", "glob": "*.txt"}))
	if err != nil {
		return "", err
	}
	return "both lines found", want("total_matches", text(a, "total_matches"), "2")
}

func (s *session) makeDirectory() (string, error) {
	if _, err := s.call("make_directory", s.here(object{"path": "lib"})); err != nil {
		return "", err
	}
	_, err := s.call("copy_file", s.here(object{"source": "src", "destination": "lib/src"}))
	if err != nil {
		return "", err
	}
	_, err = s.call("move_file", s.here(object{"source": "lib/src/a.txt", "destination": "b.txt"}))
	return "a copy of src moved out of it", err
}

func (s *session) listFiles() (string, error) {
	a, err := s.call("list_files", s.here(object{"glob": "*.txt"}))
	if err != nil {
		return "", err
	}
	items, _ := a["items"].([]any)
	if _, err := s.call("stat_file", s.here(object{"path": "b.txt"})); err != nil {
		return "", err
	}
	return "two files by name", want("entries", fmt.Sprint(len(items)), "2")
}

func (s *session) deleteFile() (string, error) {
	_, err := s.call("delete_file", s.here(object{"path": "lib", "recursive": true}))
	return "a directory is gone", err
}

// carrier is a door that carries bytes and events.
type carrier interface {
	carry(ctx context.Context, environment string) error
}

func (s *session) carry() (string, error) {
	door, ok := s.door.(carrier)
	if !ok {
		return "routes alone, no tools", nil
	}
	for _, name := range []string{"upload", "download", "export_files", "import_files", "watch_files"} {
		s.driven[name] = true
	}
	return "a file and an archive went both ways, and a change was told", door.carry(s.ctx, s.environment)
}

func (d *restDoor) carry(ctx context.Context, environment string) error {
	events, err := d.open(ctx, environment, "watch_files", nil, nil)
	if err != nil {
		return err
	}
	defer events.Close()
	if _, err := d.take(ctx, environment, "upload", url.Values{"path": {"up.bin"}}, strings.NewReader("\x00bytes")); err != nil {
		return err
	}
	got, err := d.take(ctx, environment, "download", url.Values{"path": {"up.bin"}}, nil)
	if err != nil {
		return err
	}
	archive, err := d.take(ctx, environment, "export_files", url.Values{"path": {"src"}}, nil)
	if err != nil {
		return err
	}
	if _, err := d.take(ctx, environment, "import_files", url.Values{"path": {"again"}}, strings.NewReader(archive)); err != nil {
		return err
	}
	told := make([]byte, 0, 4096)
	for !strings.Contains(string(told), "up.bin") {
		part := make([]byte, 1024)
		n, err := events.Read(part)
		if err != nil {
			return errors.Join(errors.New("the change was not told"), err)
		}
		told = append(told, part[:n]...)
	}
	return want("the file", got, "\x00bytes")
}

// take gives the whole answer of a route that carries bytes.
func (d *restDoor) take(ctx context.Context, environment, operation string, query url.Values, body io.Reader) (string, error) {
	answer, err := d.open(ctx, environment, operation, query, body)
	if err != nil {
		return "", err
	}
	defer answer.Close()
	content, err := io.ReadAll(answer)
	return string(content), err
}

func (d *restDoor) open(ctx context.Context, environment, operation string, query url.Values, body io.Reader) (io.ReadCloser, error) {
	r := d.contract[operation]
	target := d.url + strings.ReplaceAll(r.path, "{environment_id}", url.PathEscape(environment)) + "?" + query.Encode()
	request, err := http.NewRequestWithContext(ctx, r.method, target, body)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+d.token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= http.StatusBadRequest {
		defer response.Body.Close()
		return nil, fmt.Errorf("%s answered %s", operation, response.Status)
	}
	return response.Body, nil
}
