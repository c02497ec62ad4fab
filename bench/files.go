package main

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// fileOptions say how much to measure of files.
type fileOptions struct {
	large   int64  // bytes of the large file
	entries int    // of the directory that is listed
	source  string // what of the Go installation is searched, below its root
	small   int    // rounds of what takes less than a millisecond
	rounds  int    // rounds of the rest
}

// The names of what is measured of files.
const (
	getSmall   = "GET of 1 KB"
	getLarge   = "GET of 100 MB"
	plainSmall = "1 KB from a plain Go file server"
	plainLarge = "100 MB from a plain Go file server"
	putSmall   = "PUT of 4 KB, durable"
	putLarge   = "PUT of 100 MB, durable"
	ddSmall    = "dd conv=fsync of 4 KB"
	ddLarge    = "dd conv=fsync of 100 MB"
	listWide   = "list of 100 000 entries of one directory"
	findWide   = "find -printf of the same facts, one directory"
	listTree   = "list of 100 000 entries, recursive"
	findTree   = "find -printf of the same facts, recursive"
)

// fileBounds are those of files; what is not bounded depends on the disk, or on
// patterns that no index of bytes helps with.
var fileBounds = slices.Concat([]bound{
	{getSmall, plainSmall, 1.5},
	{getLarge, plainLarge, 1.5},
	{putSmall, ddSmall, 0},
	{putLarge, ddLarge, 0},
	{listWide, findWide, 2},
	{listTree, findTree, 2},
}, searchBounds())

// takeFiles measures files over HTTP, each beside what does the same without.
func (r *report) takeFiles(ctx context.Context, s *service, folder string, o fileOptions) error {
	id, err := s.create(ctx)
	if err != nil {
		return err
	}
	f := files{s, id}
	for _, take := range []func(context.Context, files, string, fileOptions) error{
		r.takeReads, r.takeWrites, r.takeLists, r.takeSearches,
	} {
		if err := take(ctx, f, folder, o); err != nil {
			return err
		}
	}
	return s.remove(ctx, id)
}

// line measures contenders and adds their samples.
func (r *report) line(ctx context.Context, warmup, rounds int, contenders ...contender) error {
	samples, err := measure(ctx, contenders, warmup, rounds)
	r.files = append(r.files, samples...)
	return err
}

// takeReads reads a small and a large file over HTTP.
func (r *report) takeReads(ctx context.Context, f files, folder string, o fileOptions) error {
	served := filepath.Join(folder, "served")
	if err := os.MkdirAll(served, 0o700); err != nil {
		return err
	}
	peer, err := startFileServer(ctx, served)
	if err != nil {
		return err
	}
	defer peer.stop()
	for _, c := range []struct {
		ours, plain string
		size        int64
		rounds      int
	}{{getSmall, plainSmall, 1 << 10, o.small}, {getLarge, plainLarge, o.large, o.rounds}} {
		name := fmt.Sprint("file", c.size)
		if err := os.WriteFile(filepath.Join(served, name), make([]byte, c.size), 0o600); err != nil {
			return err
		}
		if err := f.put(ctx, name, c.size); err != nil {
			return err
		}
		err := r.line(ctx, 3, c.rounds,
			contender{c.ours, func(ctx context.Context) (time.Duration, error) {
				return timed(func() error { return f.get(ctx, f.address("/content", name), c.size) })
			}},
			contender{c.plain, func(ctx context.Context) (time.Duration, error) {
				return timed(func() error { return f.get(ctx, peer.url+"/"+name, c.size) })
			}})
		if err != nil {
			return err
		}
	}
	return nil
}

// takeWrites writes durably; dd writes on the same file system.
func (r *report) takeWrites(ctx context.Context, f files, folder string, o fileOptions) error {
	for _, c := range []struct {
		ours, dd string
		size     int64
		block    string
		rounds   int
	}{{putSmall, ddSmall, 4 << 10, "4k", o.rounds * 5}, {putLarge, ddLarge, o.large, "1M", o.rounds}} {
		out := filepath.Join(folder, "dd")
		args := []string{"dd", "if=/dev/zero", "of=" + out, "bs=" + c.block, "iflag=count_bytes", "conv=fsync", "status=none", "count=" + strconv.FormatInt(c.size, 10)}
		err := r.line(ctx, 1, c.rounds,
			contender{c.ours, func(ctx context.Context) (time.Duration, error) {
				return timed(func() error { return f.put(ctx, "written", c.size) })
			}},
			contender{c.dd, func(ctx context.Context) (time.Duration, error) {
				defer os.RemoveAll(out)
				return timed(exec.CommandContext(ctx, args[0], args[1:]...).Run)
			}})
		if err != nil {
			return err
		}
	}
	return nil
}

// makeEntries makes files in a directory of the box and, so that find sees the same,
// of the host: in one, or in a hundred below it.
const makeEntries = `import os, sys
root, n, dirs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
os.makedirs(root)
for d in range(dirs):
    at = root if dirs == 1 else f"{root}/d{d:03}"
    os.makedirs(at, exist_ok=True)
    for i in range(n // dirs): open(f"{at}/file{i:06}.txt", "w").close()
`

// takeLists lists many entries, page by page to the end.
func (r *report) takeLists(ctx context.Context, f files, folder string, o fileOptions) error {
	for _, c := range []struct {
		ours, find, name string
		dirs             int
	}{{listWide, findWide, "wide", 1}, {listTree, findTree, "tree", 100}} {
		there := filepath.Join(folder, c.name)
		args := func(at string) []string {
			return []string{"python3", "-c", makeEntries, at, strconv.Itoa(o.entries), strconv.Itoa(c.dirs)}
		}
		made := args(there)
		if err := exec.CommandContext(ctx, made[0], made[1:]...).Run(); err != nil {
			return fmt.Errorf("cannot make what is listed: %w", err)
		}
		if err := f.s.run(ctx, map[string]any{"environment_id": f.id, "argv": args(c.name), "wait_ms": 45_000}); err != nil {
			return err
		}
		err := r.line(ctx, 1, o.rounds,
			contender{c.ours, func(ctx context.Context) (time.Duration, error) {
				return timed(func() error { return f.list(ctx, c.name, o.entries) })
			}},
			contender{c.find, func(ctx context.Context) (time.Duration, error) {
				return timed(func() error {
					_, err := lines(ctx, "find", there, "-printf", `%P %y %s %m %T@ %l\n`)
					return err
				})
			}})
		if err != nil {
			return err
		}
		if err := os.RemoveAll(there); err != nil {
			return err
		}
	}
	return nil
}

// files are those of one environment.
type files struct {
	s  *service
	id string
}

// address is that of a route for a path.
func (f files) address(route, path string) string {
	return f.s.url + "/v1/environments/" + f.id + "/files" + route + "?" + url.Values{"path": {path}}.Encode()
}

// do makes a request and gives the answer's body.
func (f files) do(ctx context.Context, method, address string, body io.Reader) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+f.s.token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		defer resp.Body.Close()
		said, _ := io.ReadAll(io.LimitReader(resp.Body, 1000)) // for the message only
		return nil, fmt.Errorf("%s %s: %s: %s", method, address, resp.Status, said)
	}
	return resp.Body, nil
}

// get reads an address away; it must have so many bytes.
func (f files) get(ctx context.Context, address string, want int64) error {
	body, err := f.do(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	defer body.Close()
	got, err := io.Copy(io.Discard, body)
	if err == nil && got != want {
		err = fmt.Errorf("%d bytes came, not %d", got, want)
	}
	return err
}

// put uploads zeros.
func (f files) put(ctx context.Context, name string, size int64) error {
	return f.send(ctx, f.address("/content", name), io.LimitReader(zeros{}, size))
}

func (f files) send(ctx context.Context, address string, content io.Reader) error {
	body, err := f.do(ctx, http.MethodPut, address, content)
	if err != nil {
		return err
	}
	defer body.Close()
	_, err = io.Copy(io.Discard, body)
	return err
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// list reads all pages. They are not decoded: that would be the client's time.
func (f files) list(ctx context.Context, name string, want int) error {
	got, cursor := 0, ""
	for {
		body, err := f.do(ctx, http.MethodGet, f.address("", name)+"&recursive=true&limit=1000"+cursor, nil)
		if err != nil {
			return err
		}
		page, err := io.ReadAll(body)
		_ = body.Close()
		if err != nil {
			return err
		}
		got += strings.Count(string(page), `.txt"`)
		_, rest, more := strings.Cut(string(page), `"next_cursor":"`)
		if !more {
			break
		}
		cursor, _, _ = strings.Cut(rest, `"`)
		cursor = "&cursor=" + url.QueryEscape(cursor)
	}
	if got != want {
		return fmt.Errorf("%d entries were listed, not %d", got, want)
	}
	return nil
}

// bring imports a directory of the host.
func (f files) bring(ctx context.Context, dir, name string) error {
	r, w := io.Pipe()
	go func() {
		t := tar.NewWriter(w)
		w.CloseWithError(errors.Join(t.AddFS(os.DirFS(dir)), t.Close()))
	}()
	defer func() { _ = r.Close() }()
	return f.send(ctx, f.address("/archive", name), r)
}

// goSource is a part of the source of the Go that built this program.
func goSource(ctx context.Context, part string) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("cannot find the source of %s: %w", runtime.Version(), err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), part), nil
}
