package edit

import (
	"bytes"
	"fmt"
	"html"
	"strings"

	"golang.org/x/text/unicode/norm"

	"envapi/core/exact"
)

// maxExplained is how much of the content is looked through for what may have
// been meant, in bytes: a help need not be complete, and must not be slow.
const maxExplained = 16 << 20

// explain says what is nearest to a text that is not there, and in what it differs.
func explain(content []byte, old string) ([]Line, string) {
	if name := exact.Wide(content); name != "" {
		return nil, fmt.Sprintf("the file is %s, and texts of edits are UTF-8; convert it with a command (iconv), or write the file as a whole in base64", name)
	}
	content = content[:min(len(content), maxExplained)]
	nearest, divergence := nearestLines(content, old)
	for _, kind := range []func([]byte, string) (string, int){otherSpelling, otherLook} {
		if hint, line := kind(content, old); hint != "" {
			return withFirst(nearest, lineNumbered(content, line)), hint
		}
	}
	return nearest, divergence
}

// withFirst puts the line that was meant before those that are like it.
func withFirst(nearest []Line, meant Line) []Line {
	lines := []Line{meant}
	for _, l := range nearest {
		if l.Number != meant.Number && len(lines) < maxNearest {
			lines = append(lines, l)
		}
	}
	return lines
}

func lineNumbered(content []byte, number int) Line {
	at := 0
	for range number - 1 {
		at = min(len(content), lineEnd(content, at)+1)
	}
	return Line{Number: number, Text: shown(content[at:lineEnd(content, at)]), Score: 1}
}

var unescaped = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\r`, "\r", `\"`, `"`, `\'`, `'`, `\\`, `\`)

// otherSpelling finds the text written another way, and the line where.
func otherSpelling(content []byte, old string) (hint string, line int) {
	lf := strings.ReplaceAll(old, "\r\n", "\n")
	for _, other := range []struct{ text, hint string }{
		{unescaped.Replace(old), `it stands there with real line ends, tabs or quotes, where the text has them as two characters (\n, \t, \")`},
		{html.UnescapeString(old), "it stands there with characters, where the text has entities (&lt; and the like)"},
		{html.EscapeString(old), "it stands there with entities (&lt; and the like), where the text has characters"},
		{lf, "it stands there with LF line ends, the text has CRLF"},
		{strings.ReplaceAll(lf, "\n", "\r\n"), "it stands there with CRLF line ends, and the file has both kinds; write CRLF in the text"},
		{strings.Trim(old, "\r\n"), "it stands there without the line ends at its beginning or end"},
		{strings.TrimSpace(old), "it stands there without the white space at its beginning or end"},
	} {
		if other.text == old || other.text == "" {
			continue
		}
		if found, _ := find(content, []byte(other.text), false); len(found) > 0 {
			line := lineOf(content, found[0])
			return fmt.Sprintf("%s (line %d)", other.hint, line), line
		}
	}
	return "", 0
}

// otherLook finds a text that differs only in something that is hard to see.
func otherLook(content []byte, old string) (hint string, line int) {
	for _, look := range []struct {
		in   string
		as   func([]byte) []byte
		line func(seen []byte, at int) int
	}{
		{"white space at the ends of lines", withoutLineTails, lineOf},
		{"indentation", withoutIndentation, lineOf},
		{"white space", withoutSpace, func(_ []byte, at int) int { return lineOfSolid(content, at) }},
		{"case", bytes.ToLower, lineOf},
		{"how accents are encoded (NFC or NFD)", norm.NFC.Bytes, lineOf},
	} {
		text := look.as([]byte(old))
		if len(text) == 0 {
			continue
		}
		seen := look.as(content)
		if found, _ := find(seen, text, false); len(found) > 0 {
			line := look.line(seen, found[0])
			return fmt.Sprintf("it differs only in %s from what begins in line %d", look.in, line), line
		}
	}
	return "", 0
}

func lineOf(content []byte, at int) int { return 1 + bytes.Count(content[:at], []byte("\n")) }

// lineOfSolid is lineOf for a place that is counted without white space.
func lineOfSolid(content []byte, at int) int {
	line := 1
	for _, c := range content {
		if c == '\n' {
			line++
		}
		if !isSpace(c) {
			if at == 0 {
				break
			}
			at--
		}
	}
	return line
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

func withoutSpace(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for _, c := range text {
		if !isSpace(c) {
			out = append(out, c)
		}
	}
	return out
}

func withoutIndentation(text []byte) []byte {
	out := make([]byte, 0, len(text))
	begin := true
	for _, c := range text {
		begin = begin && isSpace(c) || c == '\n'
		if !begin || c == '\n' {
			out = append(out, c)
		}
	}
	return out
}

func withoutLineTails(text []byte) []byte {
	out := make([]byte, 0, len(text))
	solid := 0 // how much of out ends with something to see
	for _, c := range text {
		if c == '\n' {
			out = out[:solid]
		}
		out = append(out, c)
		if c == '\n' || !isSpace(c) {
			solid = len(out)
		}
	}
	return out
}
