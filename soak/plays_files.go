package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// filePlays are about files. Each has a folder of its own that it removes.
var filePlays = []play{
	{"files", inFolder(playFiles)},
	{"conditions", inFolder(playConditions)},
	{"bytes", inFolder(playBytes)},
	{"tar", inFolder(playTar)},
	{"watch", inFolder(playWatch)},
}

// inFolder makes a play of one that has a folder.
func inFolder(do func(ctx context.Context, c *client, folder string) error) func(context.Context, *client) error {
	return func(ctx context.Context, c *client) error {
		folder := "f-" + c.nonce()
		if _, err := c.call(ctx, "make_directory", c.here(object{"path": folder})); err != nil {
			return err
		}
		err := do(ctx, c, folder)
		_, gone := c.call(ctx, "delete_file", c.here(object{"path": folder, "recursive": true}))
		return errors.Join(err, gone)
	}
}

// playFiles writes, edits, patches, finds, lists, copies and moves.
func playFiles(ctx context.Context, c *client, folder string) error {
	nonce, path := c.nonce(), folder+"/a.txt"
	steps := []struct {
		operation string
		input     object
		check     func(object) error
	}{
		{"write_file", object{"path": path, "content": "line 1\n" + nonce + "\nthree\n"}, nil},
		{"edit_file", object{"path": path, "edits": []any{object{"old": "line 1", "new": "1"}}}, func(a object) error {
			return want("replacements", text(a, "replacements"), "1")
		}},
		{"apply_patch", object{"cwd": folder, "patch": "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n 1\n " + nonce + "\n-three\n+3\n"}, nil},
		{"read_file", object{"path": path}, func(a object) error {
			return want("content", text(a, "text"), "1\n"+nonce+"\n3\n")
		}},
		{"search_files", object{"path": folder, "literal": nonce}, func(a object) error {
			return want("total_matches", text(a, "total_matches"), "1")
		}},
		{"copy_file", object{"source": path, "destination": folder + "/sub/b.txt", "parents": true}, nil},
		{"move_file", object{"source": folder + "/sub/b.txt", "destination": folder + "/c.txt"}, nil},
		{"list_files", object{"path": folder, "glob": "*.txt"}, func(a object) error {
			return want("entries", strconv.Itoa(len(items(a))), "2")
		}},
		{"stat_file", object{"path": folder + "/c.txt"}, func(a object) error {
			return want("size", text(a, "size_bytes"), strconv.Itoa(len("1\n"+nonce+"\n3\n")))
		}},
	}
	for _, step := range steps {
		a, err := c.call(ctx, step.operation, c.here(step.input))
		if err == nil && step.check != nil {
			err = step.check(a)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", step.operation, err)
		}
	}
	return nil
}

// playConditions sees that a change is refused to who has read something older.
func playConditions(ctx context.Context, c *client, folder string) error {
	path := folder + "/x"
	first, err := c.call(ctx, "write_file", c.here(object{"path": path, "content": c.nonce(), "if_none_match": "*"}))
	if err != nil {
		return err
	}
	content := c.nonce()
	if _, err := c.call(ctx, "write_file", c.here(object{"path": path, "content": content, "if_match": text(first, "etag")})); err != nil {
		return err
	}
	_, err = c.call(ctx, "write_file", c.here(object{"path": path, "content": "lost", "if_match": text(first, "etag")}))
	if err := refused(err, "etag_mismatch"); err != nil {
		return err
	}
	_, err = c.call(ctx, "read_file", c.here(object{"path": "../../etc/passwd"}))
	if err := refused(err, "path_outside_workspace"); err != nil {
		return err
	}
	a, err := c.call(ctx, "read_file", c.here(object{"path": path}))
	return errors.Join(err, want("content", text(a, "text"), content))
}

// playBytes carries a file there and back.
func playBytes(ctx context.Context, c *client, folder string) error {
	content := make([]byte, 1+c.rand.IntN(512<<10))
	for i := range content {
		content[i] = byte(c.rand.IntN(256)) //nolint:gosec // it is below 256
	}
	where := object{"path": folder + "/up.bin"}
	if _, err := c.carry(ctx, "upload", where, content); err != nil {
		return err
	}
	back, err := c.carry(ctx, "download", where, nil)
	if err == nil && !bytes.Equal(back, content) {
		err = fmt.Errorf("download gave %d bytes that are not the %d of the upload", len(back), len(content))
	}
	return err
}

// playTar takes a folder out as a tar and lays it out again elsewhere.
func playTar(ctx context.Context, c *client, folder string) error {
	nonce := c.nonce()
	if _, err := c.call(ctx, "write_file", c.here(object{"path": folder + "/src/deep/file", "content": nonce})); err != nil {
		return err
	}
	archive, err := c.carry(ctx, "export_files", object{"path": folder + "/src", "compression": "zstd"}, nil)
	if err != nil {
		return err
	}
	if _, err := c.carry(ctx, "import_files", object{"path": folder + "/again"}, archive); err != nil {
		return err
	}
	a, err := c.call(ctx, "read_file", c.here(object{"path": folder + "/again/deep/file"}))
	return errors.Join(err, want("what came back", text(a, "text"), nonce))
}

// playWatch sees a change told.
func playWatch(ctx context.Context, c *client, folder string) error {
	name := "w-" + c.nonce()
	return c.noted(ctx, kind{"rest", "watch_files"}, func(ctx context.Context) error {
		resp, err := c.open(ctx, "watch_files", object{"path": folder}, nil)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		part := make([]byte, 4096)
		if _, err := resp.Body.Read(part); err != nil { // it has begun
			return err
		}
		if _, err := c.call(ctx, "write_file", c.here(object{"path": folder + "/" + name, "content": "x"})); err != nil {
			return err
		}
		var told strings.Builder
		for !strings.Contains(told.String(), name) {
			n, err := resp.Body.Read(part)
			told.Write(part[:n])
			if err != nil {
				return fmt.Errorf("the change was not told: %w", err)
			}
		}
		return nil
	})
}

// carry is a call that carries bytes, there or back.
func (c *client) carry(ctx context.Context, operation string, where object, content []byte) ([]byte, error) {
	var back []byte
	err := c.noted(ctx, kind{"rest", operation}, func(ctx context.Context) error {
		var body io.Reader
		if content != nil {
			body = bytes.NewReader(content)
		}
		resp, err := c.open(ctx, operation, where, body)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		back, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
		return err
	})
	if err != nil {
		err = fmt.Errorf("%s: %w", operation, err)
	}
	return back, err
}

// open begins a call on the client's environment whose answer is no JSON.
func (c *client) open(ctx context.Context, operation string, input object, body io.Reader) (*http.Response, error) {
	r := c.contract[operation]
	path, left := r.address(c.here(input))
	return c.send(ctx, r.method, path+query(left), body, nil)
}
