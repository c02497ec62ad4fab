// Package edit replaces exact texts in the content of a file, and shows what
// changed.
//
// It works on bytes and guesses nothing: a text that is not there exactly, or
// is there more than once, is an error that says what is there instead. One
// thing is taken as meant: in content whose line ends are all CRLF, a text that
// holds no CR means CRLF by its line ends.
//
// It does not protect against an edit that is exact and wrong, and it does not
// know what the content is: an edit may end up within a character of a file that
// is not UTF-8, if its bytes say so. The caller bounds the size of the content.
package edit

import (
	"bytes"
	"fmt"
	"strings"

	"envapi/core/exact"
)

// maxWork is how many bytes all edits of a call may look through together: 32
// passes over a file of 16 MiB, ten seconds at worst and commonly less than one.
const maxWork = 512 << 20

// maxLines is how many line numbers an AmbiguousError lists.
const maxLines = 20

// Edit is one replacement.
type Edit struct {
	Old, New string
	All      bool // wherever Old stands, from left to right; otherwise it must stand once
}

// Result is content with edits made.
type Result struct {
	Content      []byte
	Replacements int
}

// Apply makes the edits, each in what the ones before it left: all of them, or
// none. The content itself is not modified. The result has at most limit bytes.
//
// Its errors are *NoMatchError, *AmbiguousError, *EncodingError and *LimitError.
func Apply(content []byte, edits []Edit, limit int) (Result, error) {
	result := Result{Content: content}
	work := int64(0)
	for i, e := range edits {
		work += int64(len(result.Content)) + int64(len(e.Old))
		if work > maxWork {
			return Result{}, &LimitError{Edit: i + 1, Limit: maxWork, Reason: "the edits before it looked through as much as one call may; make fewer at a time"}
		}
		next, n, err := apply(result.Content, e, i+1, limit)
		if err != nil {
			return Result{}, err
		}
		result.Content = next
		result.Replacements += n
	}
	return result, nil
}

func apply(content []byte, e Edit, number, limit int) ([]byte, int, error) {
	if e.Old == "" {
		return nil, 0, &NoMatchError{Edit: number, Hint: "old is empty"}
	}
	old, put := withItsLineEnds(content, e)
	first, total := find(content, old, !e.All)
	if total == 0 {
		nearest, hint := explain(content, e.Old)
		return nil, 0, &NoMatchError{Edit: number, Nearest: nearest, Hint: hint}
	}
	if !e.All && total > 1 {
		return nil, 0, &AmbiguousError{Edit: number, Lines: lineNumbers(content, first), Total: total}
	}
	if reason := foreign(content, e); reason != "" {
		return nil, 0, &EncodingError{Edit: number, Reason: reason}
	}
	size := float64(len(content)) + float64(total)*(float64(len(put))-float64(len(old)))
	if size > float64(limit) {
		return nil, 0, &LimitError{Edit: number, Limit: int64(limit), Reason: fmt.Sprintf("the file would have %.0f bytes, and %d are allowed", size, limit)}
	}
	out := make([]byte, 0, int(size))
	from := 0
	exact.Each(content, old, false, func(at int) bool {
		out = append(append(out, content[from:at]...), put...)
		from = at + len(old)
		return true
	})
	return append(out, content[from:]...), total, nil
}

// foreign says why the texts of an edit do not go with the encoding of the content,
// though the old one is in its bytes.
func foreign(content []byte, e Edit) string {
	switch name := exact.Wide(content); {
	case name != "" && !fitsWide(content, e):
		return "the file is " + name + ", and the texts are not, so they are in its bytes by chance; convert it with a command (iconv), or write the file as a whole in base64"
	case name == "" && exact.Mixes(content, e.Old, e.New):
		return "the file is not UTF-8, and the new text has characters beyond ASCII, which would stand there in another encoding than the rest; convert it with a command (iconv) first, or write the file as a whole in base64"
	}
	return ""
}

// fitsWide says whether texts are whole characters of UTF-16, written as such, and
// the old one stands where characters begin.
func fitsWide(content []byte, e Edit) bool {
	fits := strings.Contains(e.Old, "\x00") && len(e.Old)%2 == 0 && len(e.New)%2 == 0
	exact.Each(content, []byte(e.Old), false, func(at int) bool {
		fits = fits && at%2 == 0
		return fits
	})
	return fits
}

// withItsLineEnds gives the texts of an edit as they are meant for this content.
// Whoever writes a CR knows of them, and is taken by the letter.
func withItsLineEnds(content []byte, e Edit) (old, put []byte) {
	old, put = []byte(e.Old), []byte(e.New)
	if strings.Contains(e.Old, "\r") || !strings.Contains(e.Old+e.New, "\n") || !onlyCRLF(content) {
		return old, put
	}
	old = bytes.ReplaceAll(old, []byte("\n"), []byte("\r\n"))
	if !strings.Contains(e.New, "\r") {
		put = bytes.ReplaceAll(put, []byte("\n"), []byte("\r\n"))
	}
	return old, put
}

func onlyCRLF(content []byte) bool {
	n := bytes.Count(content, []byte("\n"))
	return n > 0 && n == bytes.Count(content, []byte("\r\n"))
}

// find gives the first places where a text stands, and how many there are.
func find(content, text []byte, overlap bool) (first []int, total int) {
	exact.Each(content, text, overlap, func(at int) bool {
		if total < maxLines {
			first = append(first, at)
		}
		total++
		return true
	})
	return first, total
}

func lineNumbers(content []byte, at []int) []int {
	lines := make([]int, 0, len(at))
	line, from := 1, 0
	for _, a := range at {
		line += bytes.Count(content[from:a], []byte("\n"))
		from = a
		lines = append(lines, line)
	}
	return lines
}
