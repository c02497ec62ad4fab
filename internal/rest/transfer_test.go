package rest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// file asks a route of files. Headers are given as name, value, name, value.
func (w *world) file(method, route string, query url.Values, body io.Reader, headers ...string) *http.Response {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.server.URL+"/v1/environments/"+w.env+"/files"+route+"?"+query.Encode(), body)
	must(w.t, err)
	r.Header.Set("Authorization", "Bearer good")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	must(w.t, err)
	w.t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

func bodyOf(t *testing.T, resp *http.Response) string {
	t.Helper()
	body, err := io.ReadAll(resp.Body)
	must(t, err)
	return string(body)
}

func TestDownloadsHaveConditionsAndRanges(t *testing.T) {
	w := newWorld(t, 1<<20)
	at := url.Values{"path": {`a "ä".txt`}}
	up := w.file("PUT", "/content", at, strings.NewReader("0123456789"), "If-None-Match", "*")
	tag := up.Header.Get("ETag")
	if up.StatusCode != http.StatusCreated || len(tag) != 34 {
		t.Fatalf("got %s, %q", up.Status, tag)
	}
	for name, c := range map[string]struct {
		method  string
		headers []string
		status  int
		body    string
		length  int64
	}{
		"all":                       {"GET", nil, 200, "0123456789", 10},
		"head":                      {"HEAD", nil, 200, "", 10},
		"head with a range":         {"HEAD", []string{"Range", "bytes=1-2"}, 200, "", 10},
		"range":                     {"GET", []string{"Range", "bytes=2-4"}, 206, "234", 3},
		"end":                       {"GET", []string{"Range", "bytes=-2"}, 206, "89", 2},
		"beyond":                    {"GET", []string{"Range", "bytes=10-"}, 416, "", 0},
		"known":                     {"GET", []string{"If-None-Match", `"x", ` + tag}, 304, "", 0},
		"weakly known":              {"GET", []string{"If-None-Match", "W/" + tag}, 304, "", 0},
		"another":                   {"GET", []string{"If-Match", `"x"`}, 412, "", 0},
		"weak":                      {"GET", []string{"If-Match", "W/" + tag}, 412, "", 0},
		"the same":                  {"GET", []string{"If-Match", tag}, 200, "0123456789", 10},
		"range of the same":         {"GET", []string{"If-Range", tag, "Range", "bytes=0-0"}, 206, "0", 1},
		"range of what was another": {"GET", []string{"If-Range", `"x"`, "Range", "bytes=0-0"}, 200, "0123456789", 10},
	} {
		resp := w.file(c.method, "/content", at, nil, c.headers...)
		body := bodyOf(t, resp)
		if resp.StatusCode != c.status || c.status < 300 && (body != c.body || resp.ContentLength != c.length || resp.Header.Get("ETag") != tag) {
			t.Errorf("%s: got %s, %q, %v", name, resp.Status, body, resp.Header)
		}
	}
	got := w.file("GET", "/content", at, nil).Header.Get("Content-Disposition")
	if want := `attachment; filename="a ___.txt"; filename*=UTF-8''a%20%22%C3%A4%22.txt`; got != want {
		t.Errorf("got %s", got)
	}
}

func TestUploadsAreJudgedBeforeTheirBodyIsRead(t *testing.T) {
	w := newWorld(t, 1<<20)
	at := url.Values{"path": {"x"}}
	_ = w.file("PUT", "/content", at, strings.NewReader("old"))
	if resp := w.file("PUT", "/content", at, strings.NewReader("new")); resp.StatusCode != http.StatusOK {
		t.Errorf("got %s", resp.Status)
	}
	body, sender := io.Pipe() // nobody ever writes
	defer sender.Close()
	resp := w.file("PUT", "/content", at, body, "If-Match", `"other"`, "Expect", "100-continue")
	if resp.StatusCode != http.StatusPreconditionFailed {
		t.Errorf("got %s", resp.Status)
	}
	if resp := w.file("PUT", "/content", at, strings.NewReader("x"), "Content-Encoding", "gzip"); resp.StatusCode != http.StatusUnsupportedMediaType {
		t.Errorf("got %s", resp.Status)
	}
	if got := bodyOf(t, w.file("GET", "/content", at, nil)); got != "new" {
		t.Errorf("it holds %q", got)
	}
}

// As most clients do, this one reads no answer before it has sent all.
func TestWhoSendsOnIsToldOfTheRefusal(t *testing.T) {
	w := newWorld(t, 1<<20)
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.server.URL, "http://"))
	must(t, err)
	defer conn.Close()
	const size = 16 << 20
	_, err = fmt.Fprintf(conn, "PUT /v1/environments/%s/files/content?path=x HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer good\r\nIf-Match: \"other\"\r\nContent-Length: %d\r\n\r\n", w.env, size)
	must(t, err)
	_, err = conn.Write(make([]byte, size))
	must(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	must(t, err)
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusPreconditionFailed {
		t.Errorf("got %s", resp.Status)
	}
}

// A body may take longer than all of one may, but not stand still for so long.
func TestAnUploadThatStandsStillIsGivenUp(t *testing.T) {
	w := newWorld(t, 1<<20, func(h *handler) { h.bodyTime = 200 * time.Millisecond })
	body, sender := io.Pipe()
	defer sender.Close()
	go func() { _, _ = sender.Write([]byte("half")) }()
	resp := w.file("PUT", "/content", url.Values{"path": {"x"}}, body)
	if resp.StatusCode != http.StatusBadRequest {
		t.Errorf("got %s", resp.Status)
	}
	if resp := w.file("GET", "/content", url.Values{"path": {"x"}}, nil); resp.StatusCode != http.StatusNotFound {
		t.Errorf("half of it is there: %s", resp.Status)
	}
}

func TestLargeFilesGoBothWays(t *testing.T) {
	w := newWorld(t, 1<<20)
	content := bytes.Repeat([]byte("0123456789abcdef"), 640<<10) // 10 MiB: several chunks
	at := url.Values{"path": {"x"}}
	_ = w.file("PUT", "/content", at, bytes.NewReader(content))
	if got := bodyOf(t, w.file("GET", "/content", at, nil)); got != string(content) {
		t.Errorf("%d bytes came back, others than were sent", len(got))
	}
}

func TestArchivesSayWhatTheyLeaveOut(t *testing.T) {
	w := newWorld(t, 1<<20)
	_ = w.file("PUT", "/content", url.Values{"path": {"d/x"}}, strings.NewReader("1"))
	resp := w.file("GET", "/archive", url.Values{"path": {"d"}, "compression": {"none"}}, nil)
	archive := bodyOf(t, resp)
	var skipped []string
	if err := json.Unmarshal([]byte(resp.Trailer.Get(trailerSkipped)), &skipped); err != nil || len(skipped) != 0 || resp.Header.Get("Content-Type") != "application/x-tar" {
		t.Errorf("got %v, %v, %v", resp.Trailer, resp.Header, err)
	}
	if got := resp.Header.Get("Content-Disposition"); got != `attachment; filename="d.tar"` {
		t.Errorf("it is to be saved as %s", got)
	}
	resp = w.file("HEAD", "/archive", url.Values{}, nil)
	if got := resp.Header.Get("Content-Disposition"); resp.StatusCode != http.StatusOK || got != `attachment; filename="workspace.tar.gz"` {
		t.Errorf("HEAD got %s, to be saved as %s", resp.Status, got)
	}
	if resp := w.file("GET", "/archive", url.Values{"path": {"no"}}, nil); resp.StatusCode != http.StatusNotFound {
		t.Errorf("got %s", resp.Status)
	}
	if resp := w.file("PUT", "/archive", url.Values{"path": {"e"}}, strings.NewReader(archive)); resp.StatusCode != http.StatusOK {
		t.Errorf("got %s: %s", resp.Status, bodyOf(t, resp))
	}
	if resp := w.file("PUT", "/archive", url.Values{"path": {"f"}}, strings.NewReader("no archive")); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("got %s", resp.Status)
	}
	if got := bodyOf(t, w.file("GET", "/content", url.Values{"path": {"e/x"}}, nil)); got != "1" {
		t.Errorf("got %q", got)
	}
}

func TestTrailersAreBoundedAndPlain(t *testing.T) {
	if got := trailer([]string{"ä\n😀"}); got != `["\u00e4\n\ud83d\ude00"]` {
		t.Errorf("got %s", got)
	}
	if got := trailer(strings.Split(strings.Repeat("name ", 4000), " ")); len(got) > maxTrailer || !json.Valid([]byte(got)) {
		t.Errorf("it has %d bytes", len(got))
	}
}

// What is half sent when the service ends is refused at once: it would hold up the end,
// and could not be put into place any more.
func TestAnUploadThatIsHalfSentEndsWithTheService(t *testing.T) {
	w := newWorld(t, 1<<20)
	body, sender := io.Pipe()
	defer sender.Close()
	half := make(chan struct{})
	go func() {
		_, _ = sender.Write([]byte("half"))
		close(half)
		eventually(t, func() bool { left, _ := w.service.Draining(); return left.Calls == 1 })
		_ = w.service.Close()
	}()
	resp := w.file("PUT", "/content", url.Values{"path": {"x"}}, body)
	<-half
	if text := bodyOf(t, resp); resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" || !strings.Contains(text, "stopping") {
		t.Errorf("got %s: %s", resp.Status, text)
	}
}

func TestAFeedTellsChangesAndEndsWithTheService(t *testing.T) {
	w := newWorld(t, 1<<20, func(h *handler) { h.pingTime = 50 * time.Millisecond })
	resp := w.file("GET", "/watch", nil, nil)
	lines := bufio.NewScanner(resp.Body)
	await := func(prefix string) {
		t.Helper()
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), prefix) {
				return
			}
		}
		t.Fatalf("never: %s", prefix)
	}
	await(": ping")
	_ = w.file("PUT", "/content", url.Values{"path": {"x"}}, strings.NewReader("1"))
	await("event: created")
	await(`data: {"type":"created","path":"x"`)
	go func() { _ = w.service.Close() }()
	await("event: problem")
}
