package patch

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"envapi/core/exact"
)

// change is content with the hunks of a file in it, or out of it.
type change struct {
	content []byte
	notes   []string
	stated  bool // whether every hunk stood at the line that the patch names
	strict  bool // whether also the ends of the file were where the patch shows them
}

// run puts the hunks of a file into content, or takes them back out of it.
func (f *File) run(content []byte, back bool, budget *int64) (change, error) {
	c := change{stated: true, strict: true}
	if reason := f.foreign(content); reason != "" {
		return c, &RejectedError{File: f.path(), Reason: reason}
	}
	ends, note := f.lineEnds(content)
	if note != "" {
		c.notes = append(c.notes, note)
	}
	t := &text{content: content, budget: budget}
	out := bytes.NewBuffer(make([]byte, 0, len(content)))
	for i := range f.hunks {
		h := &f.hunks[i]
		old, put, start := ends(h.side('+')), ends(h.side('-')), h.start
		if back {
			old, put, start = put, old, h.newStart
		}
		s, reason := t.locate(h, old, start)
		if back && len(old) == 0 && len(content) > 0 {
			reason = "nothing is to be seen of lines that were taken out"
		}
		if reason == "" {
			put, reason = t.joined(h, s, put)
		}
		if reason != "" {
			return c, &RejectedError{File: f.path(), Hunk: h.number, Reason: reason}
		}
		c.note(t, h, s, start)
		out.Write(content[t.from:s.at])
		out.Write(put)
		t.line += bytes.Count(content[t.from:s.end], []byte("\n"))
		t.from = s.end
	}
	out.Write(content[t.from:])
	c.content = out.Bytes()
	return c, nil
}

// note takes down what was not as the patch says.
func (c *change) note(t *text, h *hunk, s spot, start int) {
	c.stated = c.stated && s.stated
	atBegin, atEnd := s.at == 0, s.end == len(t.content)
	c.strict = c.strict && s.stated && h.note == "" && (start > 0 || atBegin) && (h.trailing() || atEnd)
	if h.note != "" {
		c.notes = append(c.notes, h.note)
	}
	if start >= 0 && !s.stated {
		c.notes = append(c.notes, fmt.Sprintf("hunk %d stood at line %d, and says %d", h.number, t.lineAt(s.at), start+1))
	}
	if s.noEnd && !h.marked {
		c.notes = append(c.notes, fmt.Sprintf("hunk %d does not say that the file's last line has no line end; it has none now either", h.number))
	}
}

// joined makes what is put at a place fit with the end of the file.
func (t *text) joined(h *hunk, s spot, put []byte) ([]byte, string) {
	if len(put) > 0 && put[len(put)-1] != '\n' && s.end < len(t.content) {
		return nil, "it says that its last line has no line end, and the file goes on behind it"
	}
	if !s.noEnd || h.marked {
		if s.at == s.end && s.noEnd {
			return nil, "the file's last line has no line end, so nothing can stand behind it; give that line, too"
		}
		return put, ""
	}
	lines := withoutEnd(put)
	if s.at == s.end {
		end := []byte("\n")
		if bytes.HasSuffix(put, []byte("\r\n")) {
			end = []byte("\r\n")
		}
		lines = append(end, lines...)
	}
	return lines, ""
}

// lineEnds gives how the lines of a patch are to be read for content: as they
// are, or, where the one has only CRLF and the other only LF, with the content's.
func (f *File) lineEnds(content []byte) (as func([]byte) []byte, note string) {
	lf, crlf := bytes.Count(content, []byte("\n")), bytes.Count(content, []byte("\r\n"))
	with, without := f.returns()
	switch {
	case lf > 0 && lf == crlf && with == 0 && without > 0:
		return func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n")) }, "the file has CRLF line ends and the patch LF ones; CRLF was kept"
	case lf > 0 && crlf == 0 && without == 0 && with > 0 && f.crlf:
		return func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n")) }, "the file has LF line ends and the patch CRLF ones; LF was kept"
	}
	return func(b []byte) []byte { return b }, ""
}

// foreign says why lines of a patch do not go with the encoding of content.
func (f *File) foreign(content []byte) string {
	if len(f.hunks) == 0 {
		return ""
	}
	if name := exact.Wide(content); name != "" {
		return "the file is " + name + ", and a patch is of single bytes; convert it with a command (iconv), or write the file as a whole"
	}
	var old, put strings.Builder
	for i := range f.hunks {
		for _, l := range f.hunks[i].lines {
			if l.op != '+' {
				old.WriteString(l.text)
			} else {
				put.WriteString(l.text)
			}
		}
	}
	if exact.Mixes(content, old.String(), put.String()) {
		return "the file is not UTF-8, and the lines that are put into it are, beyond ASCII; convert it with a command (iconv) first"
	}
	return ""
}

// returns counts the lines of a patch that end with CRLF, and those with LF.
func (f *File) returns() (with, without int) {
	for i := range f.hunks {
		for _, l := range f.hunks[i].lines {
			switch {
			case l.open:
			case len(l.text) > 0 && l.text[len(l.text)-1] == '\r':
				with++
			default:
				without++
			}
		}
	}
	return with, without
}

// counts gives how many lines a patch adds to a file and takes from it.
func (f *File) counts() (added, removed int) {
	for i := range f.hunks {
		added += f.hunks[i].count('+')
		removed += f.hunks[i].count('-')
	}
	return added, removed
}

// outcome is what became of a file's content.
type outcome struct {
	content []byte
	notes   []string
	already bool
}

// forward applies a change to content that is known to be from before it.
func (f *File) forward(content []byte, limit int64, budget *int64) (outcome, error) {
	if f.binary != nil {
		return f.binary.apply(f.path(), content, limit)
	}
	c, err := f.run(content, false, budget)
	return outcome{content: c.content, notes: c.notes}, err
}

// backward takes a change out of content that is known to be from after it.
func (f *File) backward(content []byte, limit int64, budget *int64) ([]byte, error) {
	if f.binary != nil {
		return f.binary.takenBack(f.path(), content, limit)
	}
	c, err := f.run(content, true, budget)
	return c.content, err
}

// modify applies a change to the content of a file, unless it is in it already.
// Where the content could be from before the change and from after it, it is
// taken for the one that is more like what the patch shows.
func (f *File) modify(content []byte, limit int64, budget *int64) (outcome, error) {
	if f.binary != nil {
		return f.binary.apply(f.path(), content, limit)
	}
	forth, err := f.run(content, false, budget)
	if err == nil && len(f.hunks) > 0 && bytes.Equal(forth.content, content) {
		return outcome{content: content, already: true}, nil
	}
	if err == nil && (forth.strict || len(f.hunks) == 0) {
		return outcome{content: forth.content, notes: forth.notes}, nil
	}
	back, backErr := f.run(content, true, budget)
	if err != nil && backErr != nil {
		return outcome{}, err
	}
	if err != nil || backErr == nil && f.isAfter(forth, back) {
		return outcome{content: content, already: true, notes: f.doubts(err == nil && !back.strict)}, nil
	}
	return outcome{content: forth.content, notes: forth.notes}, nil
}

// doubts says that lines which are there already may be there by chance: where the
// change could be made as well, and no hunk shows a line that stays, as with diff -U0.
func (f *File) doubts(either bool) []string {
	if !either || slices.ContainsFunc(f.hunks, func(h hunk) bool { return h.count(' ') > 0 }) {
		return nil
	}
	return []string{"the lines that it adds stand there already, and it shows none around them: it is taken as applied before; if it was not, give lines around the change"}
}

// isAfter decides for content that a change can be put into and taken out of.
func (f *File) isAfter(forth, back change) bool {
	if back.strict || back.stated != forth.stated {
		return back.strict || back.stated
	}
	added, removed := f.counts()
	return added > removed
}
