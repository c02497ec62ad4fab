package e2e

import (
	"encoding/base64"
	"fmt"
	"path"
	"strings"
	"sync"
	"testing"
)

// readAll reads a file part by part, as next_offset or next_line say.
func (f folder) readAll(t *testing.T, name, by string, limit int) string {
	t.Helper()
	var all strings.Builder
	in := object{"path": name, "limit_bytes": limit}
	for range 10_000 {
		got := f.do(t, "read_file", in)
		part := text(got, "text")
		if text(got, "encoding") == "base64" {
			data, err := base64.StdEncoding.DecodeString(part)
			if err != nil {
				t.Fatal(err)
			}
			part = string(data)
		}
		if len(part) > limit+3 {
			t.Fatalf("a part has %d bytes", len(part))
		}
		all.WriteString(part)
		switch {
		case by == "next_line" && got["next_line"] != nil:
			in = object{"path": name, "limit_bytes": limit, "start_line": number(t, got, "next_line")}
		case got["next_offset"] != nil:
			in = object{"path": name, "limit_bytes": limit, "offset": number(t, got, "next_offset")}
		default:
			return all.String()
		}
	}
	t.Fatalf("it has no end: %d bytes", all.Len())
	return ""
}

var readCases = []fileCase{
	{"C56 part by part", func(t *testing.T, f folder) {
		for name, content := range map[string]string{
			"text":        strings.Repeat("line é 😀\n", 300),
			"CRLF":        strings.Repeat("line\r\n", 300) + "end",
			"one line":    strings.Repeat("é😀x", 1000),
			"bytes":       strings.Repeat("\xff\xfe\xe7\x00", 500),
			"mixed":       "a\xffb\né\xf0\x9f\n",
			"empty":       "",
			"a newline":   "\n",
			"BOM":         "\ufeffa\nb\n",
			"broken char": "ab\xf0\x9f\x98",
		} {
			f.holds(t, name, content)
			for _, by := range []string{"next_offset", "next_line"} {
				for _, limit := range []int{100, 101, 103, 65536} {
					if got := f.readAll(t, name, by, limit); got != content {
						t.Errorf("%s by %s of %d: %.200q, want %.200q", name, by, limit, got, content)
					}
				}
			}
		}
	}},
	{"lines", func(t *testing.T, f folder) {
		f.holds(t, "f", "1\n2\n3\n4\n5")
		for _, c := range []struct {
			start, end int
			text       string
		}{{1, 1, "1\n"}, {2, 3, "2\n3\n"}, {5, 5, "5"}, {4, 100, "4\n5"}} {
			got := f.do(t, "read_file", object{"path": "f", "start_line": c.start, "end_line": c.end})
			if text(got, "text") != c.text || number(t, got, "total_lines") != 5 {
				t.Errorf("%d to %d: %v", c.start, c.end, brief(got))
			}
		}
		f.fails(t, "invalid_argument", "read_file", object{"path": "f", "start_line": 6})
		f.fails(t, "invalid_argument", "read_file", object{"path": "f", "start_line": 3, "end_line": 2})
		f.fails(t, "invalid_argument", "read_file", object{"path": "f", "start_line": 3, "offset": 2})
		f.fails(t, "invalid_argument", "read_file", object{"path": "f", "start_line": 0})
	}},
	{"what it is", func(t *testing.T, f folder) {
		for content, want := range map[string]string{
			"a\nb\n":              "utf-8 utf-8 lf false",
			"a\r\nb\r\n":          "utf-8 utf-8 crlf false",
			"a\r\nb\n":            "utf-8 utf-8 mixed false",
			"a":                   "utf-8 utf-8 none false",
			"\ufeffa\n":           "utf-8 utf-8 lf true",
			"\xff\xfea\x00\n\x00": "base64 utf-16le * true",
			"\xfe\xff\x00a":       "base64 utf-16be * true",
			"\xe7\xe3\n":          "base64 binary lf false",
		} {
			f.holds(t, "f", content)
			got := f.do(t, "read_file", object{"path": "f"})
			is := fmt.Sprintf("%v %v %v %v", got["encoding"], got["charset"], got["line_ending"], got["bom"] == true)
			if fits, err := path.Match(want, is); !fits || err != nil {
				t.Errorf("%q is %s, want %s", content, is, want)
			}
			if text(got, "etag") != tagOf([]byte(content)) || number(t, got, "size_bytes") != int64(len(content)) {
				t.Errorf("%q: %v", content, brief(got))
			}
		}
	}},
	{"conditions", func(t *testing.T, f folder) {
		one := f.write(t, "f", "1")
		f.do(t, "write_file", object{"path": "f", "content": "2", "if_match": strings.Repeat("A", 32) + ", " + one})
		f.do(t, "write_file", object{"path": "f", "content": "3", "if_match": "*"})
		f.fails(t, "etag_mismatch", "write_file", object{"path": "f", "content": "4", "if_match": one})
		f.fails(t, "etag_mismatch", "write_file", object{"path": "none", "content": "4", "if_match": "*"})
		f.do(t, "write_file", object{"path": "new", "content": "4", "if_none_match": "*"})
		f.fails(t, "invalid_argument", "write_file", object{"path": "f", "content": "4", "if_none_match": one})
		f.fails(t, "etag_mismatch", "delete_file", object{"path": "f", "if_match": one})
		f.do(t, "delete_file", object{"path": "f", "if_match": tagOf([]byte("3"))})
	}},
	{"modes", func(t *testing.T, f folder) {
		f.do(t, "write_file", object{"path": "f", "content": "#!/bin/sh\necho ran\n", "mode": "755"})
		f.do(t, "write_file", object{"path": "g", "content": "", "mode": "0600"})
		f.write(t, "h", "")
		if got := f.run(t, "./f; umask; stat -c %a f g h"); !strings.HasPrefix(got, "ran\n") || !strings.HasSuffix(got, "755\n600\n644") {
			t.Errorf("there is %q", got)
		}
		f.run(t, "chmod 444 h")
		f.fails(t, "permission_denied", "write_file", object{"path": "h", "content": "x"})
		for _, mode := range []string{"9", "u+x", "-1", "1777", "2755"} {
			f.fails(t, "invalid_argument", "write_file", object{"path": "f", "content": "", "mode": mode})
		}
		f.fails(t, "invalid_argument", "write_file", object{"path": "f", "content": "no base64!", "encoding": "base64"})
		f.has(t, "h", "")
	}},
}

func TestCasesOfReads(t *testing.T) { playFiles(t, readCases) }

// TestWhatIsJustWrittenCanBeRun while boxes are started, whose processes have for a
// moment what the service has open: the kernel runs no program that is open for
// writing.
func TestWhatIsJustWrittenCanBeRun(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		f := s.place(t).folder(t, s.rest)
		done := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				answer, err := s.call(t.Context(), "create_environment", object{})
				if err != nil {
					t.Error(err)
					return
				}
				other := place{s.rest, text(answer, "id")}
				_, err = other.call(t.Context(), "exec", other.in(object{"command": "true"}))
				_, failed := other.call(t.Context(), "delete_environment", other.in(nil))
				if err != nil || failed != nil {
					t.Error(err, failed)
				}
			}
		})
		for i := range 30 {
			f.do(t, "write_file", object{"path": "run", "content": fmt.Sprintf("#!/bin/sh\necho %d\n", i), "mode": "0755"})
			if c := f.exec(t, object{"command": "./run", "cwd": f.dir}); c.Stdout.Text != fmt.Sprintln(i) {
				t.Errorf("it prints %q %q", c.Stdout.Text, c.Stderr.Text)
			}
		}
		close(done)
		wg.Wait()
	})
}
