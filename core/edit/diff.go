package edit

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/diff"
)

const (
	// maxDiffLines is how many lines both contents may have for the whole of
	// their difference to be looked for; the library needs some hundred bytes
	// for a line.
	maxDiffLines = 400_000
	contextLines = 3
)

// Diff shows what changed in a file as a unified diff of at most limit bytes, a
// last line that says so included where it is cut; "" where nothing changed. What
// is not text is only said to differ; in text that is not UTF-8 the bytes that are
// not stand as U+FFFD.
//
// It takes n log n time at worst. Where the contents have very many lines all of
// what is between the first and the last change is one hunk.
func Diff(path string, before, after []byte, limit int) string {
	if bytes.Equal(before, after) {
		return ""
	}
	a, b := quoted("a/"+path), quoted("b/"+path)
	if isBinary(before) || isBinary(after) {
		return fmt.Sprintf("Binary files %s and %s differ\n", a, b)
	}
	if bytes.Count(before, []byte("\n"))+bytes.Count(after, []byte("\n")) > maxDiffLines {
		return cut(oneHunk(a, b, before, after, limit), limit)
	}
	text := diff.Diff(a, before, b, after)
	// The library's first line is what diff -r says; readers of git's want none.
	_, text, _ = bytes.Cut(text, []byte("\n"))
	return cut(text, limit)
}

// quoted is a name as git writes it: where it holds what would not stand in a
// line, in quotes with escapes.
func quoted(name string) string {
	var out strings.Builder
	plain := true
	for _, c := range []byte(name) {
		switch {
		case c == '"' || c == '\\':
			out.WriteByte('\\')
			out.WriteByte(c)
			plain = false
		case c < ' ' || c == 0x7F:
			fmt.Fprintf(&out, `\%03o`, c)
			plain = false
		default:
			out.WriteByte(c)
		}
	}
	if plain {
		return name
	}
	return `"` + out.String() + `"`
}

// isBinary is git's question: whether there is a NUL in the first 8000 bytes.
func isBinary(content []byte) bool {
	return bytes.IndexByte(content[:min(len(content), 8000)], 0) >= 0
}

// cut ends a diff after a whole line, and says that there is more.
func cut(text []byte, limit int) string {
	text = bytes.ToValidUTF8(text, []byte(string(utf8.RuneError)))
	if len(text) <= limit {
		return string(text)
	}
	said := fmt.Sprintf("[cut: %d bytes in all]\n", len(text))
	room := text[:max(0, limit-len(said))]
	return string(room[:bytes.LastIndexByte(room, '\n')+1]) + said
}

// oneHunk is a diff with all that is between the first change and the last, of
// which no more is written than is shown.
func oneHunk(a, b string, before, after []byte, limit int) []byte {
	head := commonLines(before, after)
	tail := commonTail(before[head:], after[head:])
	start := head
	for range contextLines {
		start = bytes.LastIndexByte(before[:max(0, start-1)], '\n') + 1
	}
	end := len(before) - tail
	for range contextLines {
		end = min(len(before), lineEnd(before, min(end, len(before)))+1)
	}
	trail := before[len(before)-tail : end]
	line := lineOf(before, start)
	var out bytes.Buffer
	fmt.Fprintf(&out, "--- %s\n+++ %s\n@@ -%d,%d +%d,%d @@\n", a, b,
		line, countLines(before[start:end]), line, countLines(after[start:len(after)-tail])+countLines(trail))
	for _, part := range []struct {
		mark byte
		text []byte
	}{
		{' ', before[start:head]},
		{'-', before[head : len(before)-tail]},
		{'+', after[head : len(after)-tail]},
		{' ', trail},
	} {
		mark(&out, part.mark, part.text, limit)
	}
	return out.Bytes()
}

// mark writes lines with a mark before each, until there is more than can be shown.
func mark(out *bytes.Buffer, mark byte, text []byte, limit int) {
	for len(text) > 0 && out.Len() <= limit {
		end := min(len(text), lineEnd(text, 0)+1)
		out.WriteByte(mark)
		out.Write(text[:end])
		if text[end-1] != '\n' {
			out.WriteString("\n\\ No newline at end of file\n")
		}
		text = text[end:]
	}
}

// commonLines is how many bytes of whole lines two contents begin with alike.
func commonLines(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return bytes.LastIndexByte(a[:n], '\n') + 1
}

// commonTail is how many bytes of whole lines they end with alike.
func commonTail(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	begin := bytes.IndexByte(a[len(a)-n:], '\n')
	if begin < 0 {
		return 0
	}
	return n - begin - 1
}

func countLines(text []byte) int {
	n := bytes.Count(text, []byte("\n"))
	if len(text) > 0 && text[len(text)-1] != '\n' {
		n++
	}
	return n
}
