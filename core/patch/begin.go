package patch

import (
	"fmt"
	"strings"
)

// The lines of the form that begins with *** Begin Patch. Its grammar is
// published with the Codex CLI (apply_patch_tool_instructions.md).
const (
	beginLine  = "*** Begin Patch"
	endLine    = "*** End Patch"
	addLine    = "*** Add File: "
	deleteLine = "*** Delete File: "
	updateLine = "*** Update File: "
	moveLine   = "*** Move to: "
	eofLine    = "*** End of File"
)

// seekBegin goes behind the line that the form begins with, if it is there
// before anything that a unified diff begins with.
func (s *source) seekBegin() bool {
	for i := range s.lines {
		here := source{lines: s.lines, at: i}
		text := here.peek(0)
		if strings.TrimSpace(text) == beginLine {
			s.at = i + 1
			return true
		}
		if strings.HasPrefix(text, "diff --git ") || here.atHeader() {
			return false
		}
	}
	return false
}

// begun reads the form, from behind its first line.
func (s *source) begun() ([]File, error) {
	var files []File
	for ; s.more(); s.at++ {
		if strings.TrimSpace(s.peek(0)) == endLine {
			return files, nil
		}
		f, err := s.begunFile()
		if err != nil {
			return nil, err
		}
		if len(files) == maxFiles {
			return nil, &RejectedError{Reason: fmt.Sprintf("the patch has more than %d files; send it in parts", maxFiles)}
		}
		f.crlf = s.crlf
		files = append(files, f)
		s.at--
	}
	return nil, s.reject("", 0, "it does not end with %s, so something may be missing", endLine)
}

func (s *source) begunFile() (File, error) {
	next := s.peek(0)
	s.at++
	if name, ok := strings.CutPrefix(next, addLine); ok && name != "" {
		return s.added(name), nil
	}
	if name, ok := strings.CutPrefix(next, deleteLine); ok && name != "" {
		return File{Kind: Deleted, Old: name, blind: true}, nil
	}
	if name, ok := strings.CutPrefix(next, updateLine); ok && name != "" {
		return s.updated(name)
	}
	s.at--
	return File{}, s.reject("", 0, "%q is none of *** Add File: path, *** Delete File: path, *** Update File: path and %s", clipped(next), endLine)
}

func (s *source) added(name string) File {
	f := File{Kind: Created, New: name}
	h := hunk{number: 1, start: 0}
	for s.more() && strings.HasPrefix(s.peek(0), "+") {
		s.take(&h)
	}
	if len(h.lines) > 0 {
		f.hunks = []hunk{h}
	}
	return f
}

func (s *source) updated(name string) (File, error) {
	f := File{Kind: Modified, Old: name, New: name}
	if to, ok := strings.CutPrefix(s.peek(0), moveLine); ok && to != "" {
		f.Kind, f.New = Renamed, to
		s.at++
	}
	for s.more() && (s.peek(0) == eofLine || !strings.HasPrefix(s.peek(0), "*** ")) {
		h, err := s.begunHunk(name, len(f.hunks)+1)
		if err != nil {
			return f, err
		}
		if h != nil {
			f.hunks = append(f.hunks, *h)
		}
	}
	if len(f.hunks) == 0 && f.Kind == Modified {
		return f, s.reject(name, 0, "nothing is to be changed in it")
	}
	return f, nil
}

// begunHunk reads a hunk: anchors, lines, and perhaps that it is the last. It is
// nil where there are only empty lines before the next file.
func (s *source) begunHunk(file string, number int) (*hunk, error) {
	h := &hunk{number: number, start: -1, newStart: -1}
	for ; s.more() && strings.HasPrefix(s.peek(0), "@@"); s.at++ {
		if anchor := anchorOf(s.peek(0)); anchor != "" {
			h.anchors = append(h.anchors, anchor)
		}
	}
	for s.more() && s.peek(0) != eofLine && !strings.HasPrefix(s.peek(0), "*** ") && !strings.HasPrefix(s.peek(0), "@@") {
		if strings.HasPrefix(s.peek(0), `\`) || !s.take(h) {
			return nil, s.reject(file, number, "%q begins with neither a space, + nor -", clipped(s.peek(0)))
		}
	}
	s.dropEmpty(h)
	if s.peek(0) == eofLine {
		h.atEnd = true
		s.at++
	}
	changes := h.count('+') + h.count('-')
	if changes == 0 && strings.TrimSpace(string(h.side('+'))) == "" && len(h.anchors) == 0 {
		return nil, nil
	}
	if changes == 0 {
		return nil, s.reject(file, number, "it changes nothing")
	}
	return h, nil
}

// anchorOf is the line that stands after @@; the numbers of a unified diff say
// nothing here.
func anchorOf(text string) string {
	text = strings.TrimPrefix(text, "@@")
	if headerForm.MatchString("@@" + text) {
		return ""
	}
	return strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text), "@@"))
}
