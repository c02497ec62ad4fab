package pattern

import "bytes"

// Found is where a pattern is: the line, or with multiline the lines, from Begin to End
// without the line end, and At, where what was found begins.
type Found struct{ Begin, End, At int }

// Scan looks for a pattern through a text. It is of one goroutine.
type Scan struct {
	line *Line
	text []byte
	next []int // per literal where it is next; see hit
}

// NewScan makes a scan; Reset gives it its text.
func (l *Line) NewScan() *Scan {
	return &Scan{line: l, next: make([]int, len(l.literals))}
}

// Reset begins with a text.
func (s *Scan) Reset(text []byte) {
	s.text = text
	for i := range s.next {
		s.next[i] = -1
	}
}

// Next gives the first line at or behind from, which is the beginning of a line, that
// the pattern is in. The lines of one text are looked at in order.
func (s *Scan) Next(from int) (Found, bool) {
	switch {
	case s.line.multiline:
		return s.over(from)
	case len(s.line.literals) == 0:
		return s.each(from)
	}
	for from < len(s.text) {
		at := s.hit(from)
		if at < 0 {
			break
		}
		begin := bytes.LastIndexByte(s.text[from:at], '\n') + 1 + from
		end, after := lineEnd(s.text, at)
		if f, ok := s.look(begin, end, at); ok {
			return f, true
		}
		from = after
	}
	return Found{}, false
}

// look asks for the pattern in one line, in which a literal is.
func (s *Scan) look(begin, end, at int) (Found, bool) {
	if s.line.expression != nil {
		return s.match(begin, end)
	}
	// A text with a CR at its end may reach over that of the line.
	return Found{begin, end, at}, at+len(s.line.literals[0].text) <= end
}

func (s *Scan) match(begin, end int) (Found, bool) {
	loc := s.line.expression.FindIndex(s.text[begin:end])
	if loc == nil {
		return Found{}, false
	}
	return Found{begin, end, begin + loc[0]}, true
}

// each asks all lines.
func (s *Scan) each(from int) (Found, bool) {
	for from < len(s.text) {
		end, after := lineEnd(s.text, from)
		if f, ok := s.match(from, end); ok {
			return f, true
		}
		from = after
	}
	return Found{}, false
}

// over asks all that is left of the text at once.
func (s *Scan) over(from int) (Found, bool) {
	if from >= len(s.text) || len(s.next) > 0 && s.hit(from) < 0 {
		return Found{}, false
	}
	begin, to := s.hit(from), 0
	if s.line.expression != nil {
		loc := s.line.expression.FindIndex(s.text[from:])
		if loc == nil {
			return Found{}, false
		}
		begin, to = from+loc[0], from+loc[1]
	}
	// The line end that it ends with belongs to it, and begins no other line.
	end, _ := lineEnd(s.text, max(begin, to-1))
	first := bytes.LastIndexByte(s.text[from:begin], '\n') + 1 + from
	return Found{first, max(first, end), begin}, first < len(s.text)
}

// hit gives where the first of the literals is.
func (s *Scan) hit(from int) int {
	first := -1
	for i, l := range s.line.literals {
		if at := s.next[i]; at < from && at != len(s.text) {
			if at = l.index(s.text, from); at < 0 {
				at = len(s.text)
			}
			s.next[i] = at
		}
		if at := s.next[i]; at < len(s.text) && (first < 0 || at < first) {
			first = at
		}
	}
	return first
}

// lineEnd gives where the line ends that holds a byte, and where the next begins.
func lineEnd(text []byte, at int) (end, after int) {
	end = len(text)
	after = end
	if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
		end = at + i
		after = end + 1
	}
	if end > 0 && text[end-1] == '\r' && end < len(text) {
		end--
	}
	return end, after
}

// After gives where the line behind a found one begins.
func After(text []byte, f Found) int {
	_, after := lineEnd(text, f.End)
	return after
}
