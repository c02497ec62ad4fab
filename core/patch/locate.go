package patch

import (
	"bytes"
	"fmt"
	"strings"

	"envapi/core/exact"
)

// maxSearched is how many bytes of files all hunks of a patch together may look
// for their place in: some seconds at worst.
const maxSearched = 1 << 30

// maxPlaces is how many places are told apart where there are several.
const maxPlaces = 6

// text is a file's content while hunks are placed in it, from its beginning to
// its end.
type text struct {
	content []byte
	from    int // where the hunk before ended, in bytes
	line    int // the same in lines, from 0
	budget  *int64
}

// spot is where a hunk's lines stand.
type spot struct {
	at, end int  // in bytes
	stated  bool // whether it is the line that the patch names
	noEnd   bool // whether the file ends there without the line end that the hunk has
}

// locate finds where a hunk belongs, or says why it cannot be told.
func (t *text) locate(h *hunk, old []byte, start int) (spot, string) {
	if len(h.anchors) > 0 {
		return t.anchored(h, old)
	}
	if len(old) == 0 {
		return t.insertion(h, start)
	}
	if at := t.offset(start); at >= 0 {
		if s, ok := t.matches(at, old); ok && (!h.atEnd || s.end == len(t.content)) {
			s.stated = true
			return s, ""
		}
	}
	spots, reason := t.search(h, old, t.from)
	switch {
	case reason != "":
		return spot{}, reason
	case len(spots) == 0:
		return spot{}, t.explain(old, start)
	case len(spots) > 1:
		return spot{}, fmt.Sprintf("its lines stand in several places, at lines %s; give more lines around the change", t.lines(spots))
	}
	return spots[0], ""
}

// insertion is the place of lines without any that stand around them.
func (t *text) insertion(h *hunk, start int) (spot, string) {
	end := len(t.content)
	if end == 0 || h.atEnd {
		return spot{at: end, end: end, stated: start == 0, noEnd: t.open()}, ""
	}
	at := t.offset(start)
	if at < 0 {
		return spot{}, "it has no lines that say where it belongs; give lines around the change"
	}
	return spot{at: at, end: at, stated: true, noEnd: at == end && t.open()}, ""
}

// open says whether the last line has no end.
func (t *text) open() bool {
	return len(t.content) > 0 && t.content[len(t.content)-1] != '\n'
}

// offset is where a line begins that is not before the last hunk's end; -1 where
// there is none.
func (t *text) offset(line int) int {
	if line < t.line || *t.budget < 0 {
		return -1
	}
	at := t.from
	for range line - t.line {
		if at >= len(t.content) {
			*t.budget -= int64(at - t.from)
			return -1
		}
		at = min(len(t.content), lineEnd(t.content, at)+1)
	}
	*t.budget -= int64(at - t.from)
	return at
}

func lineEnd(content []byte, at int) int {
	if n := bytes.IndexByte(content[at:], '\n'); n >= 0 {
		return at + n
	}
	return len(content)
}

// matches says whether lines stand at a place. The last one of the file matches
// without its end, if only that is missing.
func (t *text) matches(at int, old []byte) (spot, bool) {
	rest := t.content[at:]
	whole := old[len(old)-1] == '\n'
	if bytes.HasPrefix(rest, old) && (whole || len(rest) == len(old)) {
		return spot{at: at, end: at + len(old)}, true
	}
	if whole && len(rest) > 0 && bytes.Equal(rest, withoutEnd(old)) {
		return spot{at: at, end: len(t.content), noEnd: true}, true
	}
	return spot{}, false
}

func withoutEnd(lines []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(lines, []byte("\n")), []byte("\r"))
}

// search finds the places from one on where lines stand, several at most.
func (t *text) search(h *hunk, old []byte, from int) (spots []spot, reason string) {
	*t.budget -= int64(len(t.content)-from) + int64(len(old))
	if *t.budget < 0 {
		return nil, "too much had to be looked through for hunks that do not stand where they say; make the patch anew from the files as they are"
	}
	add := func(at int) {
		if at > 0 && t.content[at-1] != '\n' || at < from {
			return
		}
		if s, ok := t.matches(at, old); ok && (!h.atEnd || s.end == len(t.content)) {
			spots = append(spots, s)
		}
	}
	exact.Each(t.content[from:], old, true, func(at int) bool {
		add(from + at)
		return len(spots) < maxPlaces
	})
	if t.open() && len(spots) < maxPlaces && old[len(old)-1] == '\n' {
		add(len(t.content) - len(withoutEnd(old)))
	}
	return spots, ""
}

func (t *text) lineAt(at int) int {
	return t.line + 1 + bytes.Count(t.content[t.from:at], []byte("\n"))
}

func (t *text) lines(spots []spot) string {
	var numbers []string
	for i, s := range spots {
		if i == maxPlaces-1 {
			numbers = append(numbers, "…")
			break
		}
		numbers = append(numbers, fmt.Sprint(t.lineAt(s.at)))
	}
	return strings.Join(numbers, ", ")
}

// explain says in what the file differs from lines that are not in it.
func (t *text) explain(old []byte, start int) string {
	at := t.offset(start)
	if at < 0 || at >= len(t.content) || start == t.line && start == 0 && !t.similar(at, old) {
		at = t.likely(old)
	}
	if at < 0 {
		if t.from > 0 {
			return "its lines are not in the file behind the hunk before it; hunks stand in the order of the file and do not overlap"
		}
		return "its lines are not in the file; make the patch from the file as it is"
	}
	number := t.lineAt(at)
	for len(old) > 0 && at < len(t.content) {
		there := t.content[at:lineEnd(t.content, at)]
		want := old[:lineEnd(old, 0)]
		if !bytes.Equal(there, want) {
			return fmt.Sprintf("its lines are not in the file: line %d there is %q, and the hunk has %q%s", number, clipped(string(there)), clipped(string(want)), difference(there, want))
		}
		at = min(len(t.content), at+len(there)+1)
		old = old[min(len(old), len(want)+1):]
		number++
	}
	return fmt.Sprintf("its lines are not in the file: it ends at line %d", number-1)
}

// likely is the first line that is like the first of the hunk's with something
// in it, moved up to where the hunk would begin.
func (t *text) likely(old []byte) int {
	before := 0
	var key []byte
	for rest := old; len(rest) > 0 && len(key) == 0; before++ {
		end := lineEnd(rest, 0)
		key = bytes.TrimSpace(rest[:end])
		rest = rest[min(len(rest), end+1):]
	}
	if len(key) == 0 {
		return -1
	}
	for at := t.from; at < len(t.content); at = lineEnd(t.content, at) + 1 {
		if bytes.Equal(bytes.TrimSpace(t.content[at:lineEnd(t.content, at)]), key) {
			for ; before > 1 && at > t.from; before-- {
				at = bytes.LastIndexByte(t.content[:at-1], '\n') + 1
			}
			return max(at, t.from)
		}
	}
	return -1
}

// similar says whether the first line of the hunk is at a place but for white space.
func (t *text) similar(at int, old []byte) bool {
	return bytes.Equal(bytes.TrimSpace(t.content[at:lineEnd(t.content, at)]), bytes.TrimSpace(old[:lineEnd(old, 0)]))
}

func difference(there, want []byte) string {
	switch {
	case bytes.Equal(bytes.TrimSuffix(there, []byte("\r")), bytes.TrimSuffix(want, []byte("\r"))):
		return " (only the line end differs)"
	case bytes.Equal(bytes.Join(bytes.Fields(there), nil), bytes.Join(bytes.Fields(want), nil)):
		return " (only white space differs)"
	}
	return ""
}
