package edit

import (
	"fmt"
	"strings"
)

// NoMatchError says that the old text of an edit is not in the content.
type NoMatchError struct {
	Edit    int    // from 1
	Nearest []Line // lines of the content that are most like it, the likest first; at most 3
	Hint    string // in what it differs, if that is known
}

// Line is a line of the content.
type Line struct {
	Number int     // from 1
	Text   string  // at most 200 bytes of it, as UTF-8
	Score  float64 // how like it is, from 0 to 1: Dice's coefficient of pairs of bytes
}

func (e *NoMatchError) Error() string {
	var s strings.Builder
	fmt.Fprintf(&s, "edit %d: the text is not in the file", e.Edit)
	if e.Hint != "" {
		s.WriteString(": " + e.Hint)
	}
	if len(e.Nearest) > 0 {
		fmt.Fprintf(&s, "; the nearest is line %d: %q", e.Nearest[0].Number, e.Nearest[0].Text)
	}
	s.WriteString("; read the file and give the text exactly as it stands there")
	return s.String()
}

// AmbiguousError says that the old text of an edit is there more than once.
type AmbiguousError struct {
	Edit  int   // from 1
	Lines []int // the lines that the first of them begin in, from 1; at most 20
	Total int   // how many there are
}

func (e *AmbiguousError) Error() string {
	lines := strings.Trim(strings.ReplaceAll(fmt.Sprint(e.Lines), " ", ", "), "[]")
	if e.Total > len(e.Lines) {
		lines += ", …"
	}
	return fmt.Sprintf("edit %d: the text is in the file %d times, in lines %s; give more of what is around the one that is meant, or set replace_all", e.Edit, e.Total, lines)
}

// LimitError says that an edit makes too much of the content, or of the work.
type LimitError struct {
	Edit   int // from 1
	Limit  int64
	Reason string
}

func (e *LimitError) Error() string { return fmt.Sprintf("edit %d: %s", e.Edit, e.Reason) }

// EncodingError says that the texts of an edit and the content are of different
// encodings.
type EncodingError struct {
	Edit   int // from 1
	Reason string
}

func (e *EncodingError) Error() string { return fmt.Sprintf("edit %d: %s", e.Edit, e.Reason) }
