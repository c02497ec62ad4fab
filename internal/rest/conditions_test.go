package rest

import (
	"bufio"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// A header that would have a change not made, or made in part, is heeded or refused.
func TestNoConditionOfAChangeIsPassedOver(t *testing.T) {
	w := newWorld(t, 1<<20)
	at := url.Values{"path": {"x"}}
	_ = w.file("PUT", "/content", at, strings.NewReader("old"))
	asJSON := []string{"Content-Type", "application/json"}
	for name, c := range map[string]struct {
		method, route string
		query         url.Values
		body          string
		headers       []string
	}{
		"a part of a file":    {"PUT", "/content", at, "w", []string{"Content-Range", "bytes 2-2/3"}},
		"a part of a tar":     {"PUT", "/archive", nil, "w", []string{"Content-Range", "bytes 2-2/3"}},
		"a part of JSON":      {"POST", "/write", nil, `{"path":"x","content":"new"}`, append(asJSON, "Content-Range", "bytes 2-2/3")},
		"a date of an upload": {"PUT", "/content", at, "new", []string{"If-Unmodified-Since", "Thu, 01 Jan 1970 00:00:00 GMT"}},
		"absence to an edit":  {"POST", "/edit", nil, `{"path":"x","edits":[{"old":"old","new":"new"}]}`, append(asJSON, "If-None-Match", "*")},
		"a tag to a patch":    {"POST", "/patch", nil, `{"patch":"*** Begin Patch\n*** Delete File: x\n*** End Patch"}`, append(asJSON, "If-Match", `"y"`)},
		"a tag to a mkdir":    {"POST", "/mkdir", nil, `{"path":"d"}`, append(asJSON, "If-Match", `"y"`)},
		"a date of a delete":  {"DELETE", "", at, "", []string{"If-Modified-Since", "Thu, 01 Jan 1970 00:00:00 GMT"}},
	} {
		resp := w.file(c.method, c.route, c.query, strings.NewReader(c.body), c.headers...)
		if said := bodyOf(t, resp); resp.StatusCode != http.StatusBadRequest || !strings.Contains(said, c.headers[len(c.headers)-2]) {
			t.Errorf("%s: got %s, %s", name, resp.Status, said)
		}
	}
	if got := bodyOf(t, w.file("GET", "/content", at, nil)); got != "old" {
		t.Errorf("it holds %q", got)
	}
	if resp := w.file("GET", "/stat", url.Values{"path": {"d"}}, nil); resp.StatusCode != http.StatusNotFound {
		t.Errorf("the directory was made: %s", resp.Status)
	}
}

// Who waits for 100 Continue gets the refusal instead, and need not send anything.
func TestARefusalDoesNotWaitForTheBody(t *testing.T) {
	w := newWorld(t, 1<<20)
	conn := dial(t, w.server.Config.Handler)
	_, err := fmt.Fprintf(conn, "PUT /v1/environments/%s/files/content?path=..%%2fx HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer good\r\nContent-Length: 100000\r\nExpect: 100-continue\r\n\r\n", w.env)
	must(t, err)
	must(t, conn.SetReadDeadline(time.Now().Add(discardTime/2)))
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || !strings.Contains(line, " 403 ") {
		t.Errorf("got %q, %v", line, err)
	}
}

// A file that is too large to have its ETag shown by itself has one where it is asked
// for by that.
func TestALargeFileIsKnownByItsTag(t *testing.T) {
	w := newWorld(t, 1<<20)
	w.service.Limits.ETagBytes = 4
	at := url.Values{"path": {"x"}}
	tag := w.file("PUT", "/content", at, strings.NewReader("0123456789")).Header.Get("ETag")
	for name, c := range map[string]struct {
		headers []string
		status  int
	}{
		"nothing":         {nil, 200},
		"any":             {[]string{"If-Match", "*"}, 200},
		"the same":        {[]string{"If-Match", tag}, 200},
		"another":         {[]string{"If-Match", `"x"`}, 412},
		"known":           {[]string{"If-None-Match", tag}, 304},
		"a range of it":   {[]string{"If-Range", tag, "Range", "bytes=1-2"}, 206},
		"of what it was":  {[]string{"If-Range", `"x"`, "Range", "bytes=1-2"}, 200},
		"a range, always": {[]string{"Range", "bytes=1-2"}, 206},
	} {
		if resp := w.file("GET", "/content", at, nil, c.headers...); resp.StatusCode != c.status {
			t.Errorf("%s: got %s", name, resp.Status)
		}
	}
}

func TestTokensAreWrittenAsRFC6750Says(t *testing.T) {
	for text, want := range map[string]bool{
		"aZ09._~+/-": true, "a==": true, "": false, "==": false, "a=b": false, "a b": false, "a@": false, "a[": false, "a`": false, "a{": false, "é": false, "a\n": false,
	} {
		if isToken68(text) != want {
			t.Errorf("%q: got %v", text, !want)
		}
	}
}
