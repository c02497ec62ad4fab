package patch

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// line is a line of a hunk.
type line struct {
	op   byte   // ' ', '-' or '+'
	text string // without its line feed; a CR at its end is part of it
	open bool   // whether it has no line feed: it is a file's last
}

// hunk is lines that take the place of others.
type hunk struct {
	number   int // in its file, from 1
	lines    []line
	start    int      // which line of the old file it begins at, from 0; -1 where the patch does not say
	newStart int      // the same of the new file
	anchors  []string // lines that stand before it, outermost first
	atEnd    bool     // whether it ends at the end of the file
	marked   bool     // whether the patch says of a line that it has no end
	note     string   // what was wrong with it
}

// side gives the lines before (without '+') or after (without '-') as bytes.
func (h *hunk) side(without byte) []byte {
	n := 0
	for _, l := range h.lines {
		if l.op != without {
			n += len(l.text) + 1
		}
	}
	out := make([]byte, 0, n)
	for _, l := range h.lines {
		if l.op == without {
			continue
		}
		out = append(out, l.text...)
		if !l.open {
			out = append(out, '\n')
		}
	}
	return out
}

// count gives how many lines have the one mark.
func (h *hunk) count(op byte) int {
	n := 0
	for _, l := range h.lines {
		if l.op == op {
			n++
		}
	}
	return n
}

// trailing says whether the hunk ends with a line that stays.
func (h *hunk) trailing() bool {
	return len(h.lines) > 0 && h.lines[len(h.lines)-1].op == ' '
}

// header is what a hunk's first line says.
type header struct {
	oldStart, oldLines, newStart, newLines int
}

var headerForm = regexp.MustCompile(`^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@`)

// parseHeader reads the line that a hunk begins with; nil where it has no numbers.
func parseHeader(text string) (*header, error) {
	m := headerForm.FindStringSubmatch(text)
	if m == nil {
		return nil, nil
	}
	var h header
	for i, into := range []*int{&h.oldStart, &h.oldLines, &h.newStart, &h.newLines} {
		*into = 1
		if m[i+1] == "" {
			continue
		}
		n, err := strconv.ParseInt(m[i+1], 10, 32)
		if err != nil {
			return nil, fmt.Errorf("%s is no number of a line", m[i+1])
		}
		*into = int(n)
	}
	return &h, nil
}

// place gives where a range of lines begins, from 0; an empty range stands behind
// the line that it names.
func place(start, lines int) int {
	if lines == 0 {
		return start
	}
	return max(0, start-1)
}

// hunk reads a hunk, which begins with the next line.
func (s *source) hunk(file string, number int) (hunk, error) {
	h := hunk{number: number, start: -1, newStart: -1}
	head, err := parseHeader(s.peek(0))
	if err != nil {
		return h, s.reject(file, number, "%s", err)
	}
	s.at++
	first := s.at
	if head != nil {
		h.start, h.newStart = place(head.oldStart, head.oldLines), place(head.newStart, head.newLines)
		if s.counted(&h, head) {
			return h, nil
		}
		s.at = first
		h.lines, h.marked = nil, false
	}
	if err := s.uncounted(&h, file); err != nil {
		return h, err
	}
	if head != nil {
		h.mend(head)
	}
	if h.count('+')+h.count('-') == 0 {
		return h, s.reject(file, number, "it changes nothing")
	}
	return h, nil
}

// mend notes that the counts are wrong, and no longer takes an empty range by its word.
func (h *hunk) mend(head *header) {
	before, after := len(h.lines)-h.count('+'), len(h.lines)-h.count('-')
	h.note = fmt.Sprintf("hunk %d has %d and %d lines, and says %d and %d", h.number, before, after, head.oldLines, head.newLines)
	h.start, h.newStart = place(head.oldStart, before), place(head.newStart, after)
	if before == 0 && head.oldLines != 0 {
		h.start = -1
	}
}

// counted reads as many lines as the header says. It is false where they are not
// there, or where there are more.
func (s *source) counted(h *hunk, head *header) bool {
	before, after := 0, 0
	for before < head.oldLines || after < head.newLines {
		if !s.more() || !s.take(h) {
			return false
		}
		switch last := h.lines[len(h.lines)-1]; {
		case s.lines[s.at-1] != "" && s.lines[s.at-1][0] == '\\':
			continue
		case last.op == ' ':
			before++
			after++
		case last.op == '-':
			before++
		default:
			after++
		}
	}
	if strings.HasPrefix(s.peek(0), `\ `) && len(h.lines) > 0 {
		s.take(h)
	}
	return before == head.oldLines && after == head.newLines && h.count('+')+h.count('-') > 0 && s.ends()
}

// ends says whether no line of the hunk before can come next: there may be
// empty lines and indented ones, but no changes.
func (s *source) ends() bool {
	for i := s.at; i < len(s.lines); i++ {
		here := source{lines: s.lines, at: i}
		next := here.peek(0)
		switch {
		case next != "" && strings.Contains("+-", next[:1]):
			return here.atHeader() || next == "-- " || next == "---"
		case next != "" && next[0] != ' ' || next != "" && i == s.at:
			return next[0] != ' '
		}
	}
	return true
}

// take reads a line of a hunk; it is false where the next is none.
func (s *source) take(h *hunk) bool {
	text := s.lines[s.at]
	switch {
	case text == "" || text == "\r":
		// Mailers and editors take the space off an empty line.
		h.lines = append(h.lines, line{op: ' ', text: text})
	case strings.Contains(" +-", text[:1]):
		h.lines = append(h.lines, line{op: text[0], text: text[1:]})
	case strings.HasPrefix(text, `\ `) && len(h.lines) > 0:
		last := &h.lines[len(h.lines)-1]
		last.open, h.marked = true, true
		if s.crlf {
			last.text = strings.TrimSuffix(last.text, "\r")
		}
	default:
		return false
	}
	s.at++
	return true
}

// uncounted reads the lines of a hunk up to where something else begins.
func (s *source) uncounted(h *hunk, file string) error {
	for s.more() && !s.atHeader() && !s.atSignature() {
		if !s.take(h) {
			break
		}
	}
	s.dropEmpty(h)
	// Where the counts do not say that a hunk is complete, nothing that looks like
	// a change may stay behind it.
	for i := s.at; i < len(s.lines); i++ {
		rest := source{lines: s.lines, at: i}
		next := rest.peek(0)
		if rest.atHeader() || rest.atSignature() || strings.HasPrefix(next, "@@") || strings.HasPrefix(next, "diff --git ") {
			break
		}
		if next != "" && strings.Contains("+-", next[:1]) {
			return s.reject(file, h.number, "%q is no line of a hunk, and changes come after it; each line begins with a space, + or -", clipped(s.peek(0)))
		}
	}
	return nil
}

// dropEmpty takes empty lines off a hunk's end, which are more likely to stand
// between it and what comes next.
func (s *source) dropEmpty(h *hunk) {
	for i := s.at - 1; len(h.lines) > 0 && strings.TrimSuffix(s.lines[i], "\r") == ""; i-- {
		h.lines = h.lines[:len(h.lines)-1]
	}
}

// atHeader says whether the next lines name a file.
func (s *source) atHeader() bool {
	return strings.HasPrefix(s.peek(0), "--- ") && strings.HasPrefix(s.peek(1), "+++ ") &&
		(strings.HasPrefix(s.peek(2), "@@") || s.peek(2) == "")
}

// atSignature says whether the next lines are what git format-patch ends with.
func (s *source) atSignature() bool {
	next := s.peek(1)
	return s.peek(0) == "-- " && len(s.lines)-s.at <= 4 && next != "" && next[0] >= '0' && next[0] <= '9'
}

// clipped shows no more of a line than a message can hold.
func clipped(text string) string {
	if len(text) > 120 {
		return strings.ToValidUTF8(text[:120], "") + "…"
	}
	return text
}
