package rest

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

const acceptRaw = "application/octet-stream"

func (w *world) raw(id, query string, headers ...string) (*http.Response, string) {
	w.t.Helper()
	resp := w.get(id, query, append(headers, "Accept", acceptRaw)...)
	body, err := io.ReadAll(resp.Body)
	must(w.t, err)
	return resp, string(body)
}

func TestRangesOfRawOutput(t *testing.T) {
	w := newWorld(t, 1<<20)
	id := w.said("0123456789")
	for header, c := range map[string]struct {
		status  int
		content string // the Content-Range
		body    string
	}{
		"":                    {200, "", "0123456789"},
		"bytes=0-":            {206, "bytes 0-9/10", "0123456789"},
		"bytes=0-0":           {206, "bytes 0-0/10", "0"},
		"bytes=3-5":           {206, "bytes 3-5/10", "345"},
		"bytes=9-9":           {206, "bytes 9-9/10", "9"},
		"bytes=7-99":          {206, "bytes 7-9/10", "789"},
		"bytes=7-" + huge:     {206, "bytes 7-9/10", "789"},
		"bytes=-3":            {206, "bytes 7-9/10", "789"},
		"bytes=-99":           {206, "bytes 0-9/10", "0123456789"},
		"Bytes= 3-5 ":         {206, "bytes 3-5/10", "345"},
		"bytes=10-":           {416, "bytes */10", ""},
		"bytes=10-20":         {416, "bytes */10", ""},
		"bytes=" + huge + "-": {416, "bytes */10", ""},
		"bytes=-0":            {416, "bytes */10", ""},
		"bytes=5-3":           {200, "", "0123456789"},
		"bytes=0-1,3-4":       {200, "", "0123456789"},
		"bytes=a-":            {200, "", "0123456789"},
		"bytes=+1-":           {200, "", "0123456789"},
		"bytes=-":             {200, "", "0123456789"},
		"bytes=5":             {200, "", "0123456789"},
		"lines=0-1":           {200, "", "0123456789"},
		"bytes 0-1":           {200, "", "0123456789"},
	} {
		t.Run(header, func(t *testing.T) {
			resp, body := w.raw(id, "", "Range", header)
			if resp.StatusCode != c.status || resp.Header.Get("Content-Range") != c.content {
				t.Fatalf("got %s, %q, want %+v", resp.Status, resp.Header.Get("Content-Range"), c)
			}
			if c.status == 416 {
				if !strings.Contains(body, `"range_not_satisfiable"`) || resp.Header.Get("ETag") != "" {
					t.Fatalf("got %s, %v", body, resp.Header)
				}
			} else if body != c.body || resp.ContentLength != int64(len(c.body)) || resp.Header.Get("Accept-Ranges") != "bytes" || resp.Header.Get("Content-Type") != acceptRaw {
				t.Fatalf("got %q, %v", body, resp.Header)
			}
			// Only for GET there are ranges.
			head := w.send("HEAD", id, "", "Accept", acceptRaw, "Range", header)
			if head.StatusCode != http.StatusOK || head.ContentLength != 10 || head.Header.Get("Content-Range") != "" {
				t.Fatalf("HEAD: got %s, %v", head.Status, head.Header)
			}
		})
	}
}

const huge = "99999999999999999999999999"

// A29, A30: the bytes are as they were written, of one stream or of all.
func TestRawOutputIsWhatWasWritten(t *testing.T) {
	w := newWorld(t, 1<<20)
	id, p := w.start()
	bytes := "\x00\xff\xfe\x1b[0m\r\n€"
	p.print(bytes)
	_, err := io.WriteString(p.command.Stderr, "err")
	must(t, err)
	p.end()
	w.await(id)
	for query, want := range map[string]string{
		"": bytes + "err", "?stream=stdout": bytes, "?stream=stderr": "err", "?stream=tty": "",
		"?stream=stdout&ansi=strip&offset=3&limit_bytes=1": bytes,
	} {
		if resp, body := w.raw(id, query); resp.StatusCode != http.StatusOK || body != want {
			t.Errorf("%q: got %s %q, want %q", query, resp.Status, body, want)
		}
	}
}

// A tag names bytes: while there are the same, and no longer.
func TestRawOutputHasATag(t *testing.T) {
	w := newWorld(t, 1<<20)
	id, p := w.start()
	p.print("one")
	resp, body := w.raw(id, "")
	tag := resp.Header.Get("ETag")
	if body != "one" || !strings.HasPrefix(tag, `"`) {
		t.Fatalf("got %q, %q", body, tag)
	}
	if resp, _ := w.raw(id, "?stream=stdout"); resp.Header.Get("ETag") == tag {
		t.Error("two streams have one tag")
	}
	for _, none := range []string{tag, "W/" + tag, `"x", ` + tag, "*"} {
		if resp, body := w.raw(id, "", "If-None-Match", none); resp.StatusCode != http.StatusNotModified || body != "" || resp.Header.Get("ETag") != tag {
			t.Errorf("If-None-Match %s: got %s", none, resp.Status)
		}
	}
	if resp, body := w.raw(id, "", "Range", "bytes=1-", "If-Range", tag); resp.StatusCode != http.StatusPartialContent || body != "ne" {
		t.Errorf("If-Range: got %s %q", resp.Status, body)
	}
	p.print("two")
	if resp, body := w.raw(id, "", "Range", "bytes=1-", "If-Range", tag); resp.StatusCode != http.StatusOK || body != "onetwo" {
		t.Errorf("If-Range of before: got %s %q", resp.Status, body)
	}
	if resp, body := w.raw(id, "", "If-None-Match", tag); resp.StatusCode != http.StatusOK || body != "onetwo" {
		t.Errorf("If-None-Match of before: got %s %q", resp.Status, body)
	}
}

func TestADroppedMiddleOfRawOutput(t *testing.T) {
	w := newWorld(t, 64<<10)
	whole := pattern(256 << 10)
	id := w.said(whole)

	resp, head := w.raw(id, "", "Range", "bytes=0-")
	if want := fmt.Sprintf("bytes 0-%d/%d", len(head)-1, len(whole)); resp.StatusCode != http.StatusPartialContent || resp.Header.Get("Content-Range") != want || head != whole[:len(head)] || len(head) < 16<<10 {
		t.Fatalf("the beginning: %s, %q, %d bytes", resp.Status, resp.Header.Get("Content-Range"), len(head))
	}
	var next int
	for _, ask := range []string{"", fmt.Sprintf("bytes=%d-", len(head)), fmt.Sprintf("bytes=%d-%d", len(head)+5, len(head)+9)} {
		resp, body := w.raw(id, "", "Range", ask)
		_, after, _ := strings.Cut(body, `"next_offset":`)
		next, _ = strconv.Atoi(strings.SplitN(after, ",", 2)[0])
		if resp.StatusCode != http.StatusGone || !strings.Contains(body, `"output_expired"`) || next <= len(head) || resp.Header.Get("ETag") != "" {
			t.Fatalf("%q: got %s %s", ask, resp.Status, body)
		}
	}
	for _, ask := range []string{fmt.Sprintf("bytes=%d-", next), fmt.Sprintf("bytes=-%d", len(whole)-next)} {
		if resp, tail := w.raw(id, "", "Range", ask); resp.StatusCode != http.StatusPartialContent || tail != whole[next:] {
			t.Fatalf("%q: got %s, %d bytes, want %d", ask, resp.Status, len(tail), len(whole)-next)
		}
	}
}

// What is dropped while it is sent must not be missing without a word.
func TestRawOutputThatIsDroppedMeanwhileBreaksOff(t *testing.T) {
	w := newWorld(t, 16<<20)
	id, p := w.start()
	p.print(pattern(16 << 20))
	resp := w.get(id, "", "Accept", acceptRaw)
	if resp.StatusCode != http.StatusOK || resp.ContentLength != 16<<20 {
		t.Fatalf("got %s, %d bytes", resp.Status, resp.ContentLength)
	}
	p.print(pattern(32 << 20)) // the last half is another now
	if body, err := io.ReadAll(resp.Body); err == nil {
		t.Fatalf("%d bytes came as if they were all", len(body))
	}
}

// B9: it is read in pieces, however long it is.
func TestRawOutputNeedsNoMemory(t *testing.T) {
	w := newWorld(t, 64<<20)
	const size = 30 << 20
	id := w.said(pattern(size))
	before := heap()
	resp := w.get(id, "", "Accept", acceptRaw)
	var got int64
	held := int64(size)
	for buffer := make([]byte, 1<<20); ; {
		n, err := io.ReadFull(resp.Body, buffer)
		got += int64(n)
		if got > size/2 {
			held = min(held, heap()-before)
		}
		if err != nil {
			break
		}
	}
	if got != size || held > 2<<20 {
		t.Errorf("%d bytes came, %d KiB were held", got, held>>10)
	}
}

// Neither who reads nothing nor who reads slowly reads on after his token's end.
func TestRawOutputEndsWithTheToken(t *testing.T) {
	for name, pause := range map[string]time.Duration{"frozen": time.Hour, "slow": 5 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan struct{})
			w := newWorld(t, 64<<20, func(h *handler) {
				h.Verifier, h.answerTime, h.Log = lasting(500*time.Millisecond), time.Hour, onEnd(ended)
			})
			id := w.said(pattern(40 << 20))
			resp := w.get(id, "", "Accept", acceptRaw)
			for over := false; !over; {
				select {
				case <-ended:
					over = true
				case <-time.After(pause):
					_, err := resp.Body.Read(make([]byte, 64<<10))
					over = err != nil
				}
			}
			if body, err := io.ReadAll(resp.Body); err == nil {
				t.Errorf("the last %d bytes came as if they were all", len(body))
			}
			wait(t, ended, "the answer outlives its token")
		})
	}
}

func FuzzParseRange(f *testing.F) {
	for _, seed := range []string{"bytes=0-", "bytes=-5", "bytes=3-4", "bytes=" + huge + "-" + huge, "x"} {
		f.Add(seed, int64(10))
	}
	f.Fuzz(func(t *testing.T, header string, total int64) {
		part, ok := parseRange(header)
		if total = max(0, total); !ok {
			return
		}
		if start, end := part.in(total); start < 0 || end > total || part.from < 0 {
			t.Fatalf("%q of %d is %d to %d", header, total, start, end)
		}
	})
}
