package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
)

// tagOf is the tag that the contract gives a content.
func tagOf(content []byte) string {
	sum := sha256.Sum256(content)
	return base64.RawURLEncoding.EncodeToString(sum[:24])
}

// noise is n bytes that no packing makes smaller, the same each time.
func noise(n int64) io.Reader { return io.LimitReader(rand.NewChaCha8([32]byte{1}), n) }

func TestFilesOverHTTP(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		p := s.place(t)
		for _, c := range httpCases {
			t.Run(c.name, func(t *testing.T) { c.play(t, p.folder(t, s.rest)) })
		}
	})
}

var httpCases = []fileCase{
	{"headers of a download", func(t *testing.T, f folder) {
		content := []byte("0123456789")
		f.holds(t, `a "b" é.html`, string(content))
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			resp, body, err := f.raw(t.Context(), method, "/content", `a "b" é.html`, nil, nil)
			if err != nil || resp.StatusCode != http.StatusOK || resp.ContentLength != 10 {
				t.Fatalf("%s: %v %v", method, resp, err)
			}
			if method == http.MethodGet && !bytes.Equal(body, content) || method == http.MethodHead && len(body) != 0 {
				t.Errorf("%s: the body is %q", method, body)
			}
			h := resp.Header
			if h.Get("ETag") != `"`+tagOf(content)+`"` || h.Get("Accept-Ranges") != "bytes" || h.Get("Content-Type") != "application/octet-stream" ||
				h.Get("X-Content-Type-Options") != "nosniff" || !strings.HasPrefix(h.Get("Content-Disposition"), "attachment") {
				t.Errorf("%s: the header is %v", method, h)
			}
		}
	}},
	{"conditions and ranges", func(t *testing.T, f folder) {
		f.holds(t, "f", "0123456789")
		tag := `"` + tagOf([]byte("0123456789")) + `"`
		other := `"` + strings.Repeat("A", 32) + `"`
		for _, c := range []struct {
			name, value string
			status      int
			body        string
		}{
			{"If-None-Match", tag, 304, ""},
			{"If-None-Match", other + ", " + tag, 304, ""},
			{"If-None-Match", other, 200, "0123456789"},
			{"If-None-Match", "*", 304, ""},
			{"If-Match", other, 412, ""},
			{"If-Match", tag, 200, "0123456789"},
			{"Range", "bytes=2-4", 206, "234"},
			{"Range", "bytes=7-", 206, "789"},
			{"Range", "bytes=-2", 206, "89"},
			{"Range", "bytes=9-100", 206, "9"},
			{"Range", "bytes=10-", 416, ""},
			{"Range", "lines=1-2", 200, "0123456789"},
		} {
			resp, body, err := f.raw(t.Context(), http.MethodGet, "/content", "f", nil, http.Header{c.name: {c.value}})
			if err != nil || resp.StatusCode != c.status || c.status < 300 && string(body) != c.body {
				t.Errorf("%s: %s: %v %q %v", c.name, c.value, resp.Status, body, err)
			}
			if c.status == 206 && !strings.HasSuffix(resp.Header.Get("Content-Range"), "/10") {
				t.Errorf("%s: %v", c.value, resp.Header)
			}
		}
	}},
	{"conditions of an upload", func(t *testing.T, f folder) {
		ctx := t.Context()
		up := func(content string, header ...string) (*http.Response, error) {
			h := http.Header{}
			for i := 0; i < len(header); i += 2 {
				h.Set(header[i], header[i+1])
			}
			return f.upload(ctx, "f", strings.NewReader(content), h)
		}
		resp, err := up("one", "If-None-Match", "*")
		if err != nil || resp.StatusCode != http.StatusCreated || resp.Header.Get("ETag") != `"`+tagOf([]byte("one"))+`"` {
			t.Fatalf("the first gives %v %v", resp, err)
		}
		_, err = up("two", "If-None-Match", "*")
		if p := isProblem(t, "etag_mismatch", "a second first", nil, err); p.ETag == nil || *p.ETag != tagOf([]byte("one")) || p.Status != 412 {
			t.Errorf("it gives %+v", p)
		}
		resp, err = up("two", "If-Match", `"`+tagOf([]byte("one"))+`"`)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("the second gives %v %v", resp, err)
		}
		_, err = up("three", "If-Match", `W/"`+tagOf([]byte("two"))+`"`)
		isProblem(t, "etag_mismatch|invalid_argument", "a weak tag", nil, err)
		f.has(t, "f", "two")
	}},
	{"C59 writes of all sizes", func(t *testing.T, f folder) {
		for _, size := range []int64{0, 1, 128 << 10, 1 << 20, 32 << 20, 100 << 20} {
			f.arrives(t, size)
		}
		for _, size := range []int{128 << 10, 1 << 20} {
			content := strings.Repeat("é\r\n", size/4)
			if tag := f.write(t, "f", content); tag != tagOf([]byte(content)) {
				t.Errorf("write_file of %d bytes gives the tag %s", size, tag)
			}
		}
	}},
	{"C21 a sparse file of 4 GiB", func(t *testing.T, f folder) {
		f.py(t, "f = open('f', 'wb'); f.truncate(4 << 30); f.seek((4 << 30) - 4); f.write(b'end\\n')")
		resp, body, err := f.download(t.Context(), "f", http.Header{"Range": {"bytes=4294967288-"}})
		if err != nil || resp.StatusCode != http.StatusPartialContent || string(body) != "\x00\x00\x00\x00end\n" || resp.Header.Get("ETag") != "" {
			t.Errorf("the range is %q %v %v", body, resp, err)
		}
		got := f.do(t, "read_file", object{"path": "f", "offset": 4294967292})
		if text(got, "text") != "end\n" || text(got, "etag") != "" || number(t, got, "size_bytes") != 4<<30 {
			t.Errorf("it reads as %v", brief(got))
		}
	}},
}

// arrives uploads so many bytes, and sees them inside and downloads them.
func (f folder) arrives(t *testing.T, size int64) {
	t.Helper()
	sum := sha256.New()
	resp, err := f.upload(t.Context(), "f", io.TeeReader(noise(size), sum), nil)
	if err != nil {
		t.Fatalf("%d bytes: %v", size, err)
	}
	want := fmt.Sprintf("%x", sum.Sum(nil))
	if tag := `"` + base64.RawURLEncoding.EncodeToString(sum.Sum(nil)[:24]) + `"`; resp.Header.Get("ETag") != tag {
		t.Errorf("%d bytes: the tag is %s, want %s", size, resp.Header.Get("ETag"), tag)
	}
	if got := f.run(t, "sha256sum < f | cut -c1-64"); got != want {
		t.Errorf("%d bytes: others are inside", size)
	}
	if data := f.mustDownload(t, "f"); fmt.Sprintf("%x", sha256.Sum256(data)) != want {
		t.Errorf("%d bytes: others are downloaded, %d", size, len(data))
	}
}

func TestC21C59LargeFilesTakeNoMemory(t *testing.T) {
	t.Parallel()
	s := start(t, config{})
	f := s.place(t).folder(t, s.rest)
	before := resident(t, s.cmd.Process.Pid)
	if _, err := f.upload(t.Context(), "f", noise(256<<20), nil); err != nil {
		t.Fatal(err)
	}
	f.mustDownload(t, "f")
	f.do(t, "copy_file", object{"source": "f", "destination": "g"})
	if grown := resident(t, s.cmd.Process.Pid) - before; grown > 64<<20 {
		t.Errorf("the service has grown by %d bytes", grown)
	}
	f.do(t, "delete_file", object{"path": "f", "if_match": tagOfReader(t, noise(256<<20))})
}

func tagOfReader(t *testing.T, r io.Reader) string {
	t.Helper()
	sum := sha256.New()
	if _, err := io.Copy(sum, r); err != nil {
		t.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString(sum.Sum(nil)[:24])
}
