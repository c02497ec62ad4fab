package patch

import (
	"fmt"
	"strconv"
	"strings"
)

// section is what a unified diff says of a file, with names as they are written.
type section struct {
	File
	line               int    // of the patch, from 1
	before, after      string // after --- and +++
	pairOld, pairNew   string // after diff --git
	movedFrom, movedTo string // after rename and copy, which no part is put before
	stampOld, stampNew string
	git                bool
}

// unified reads a unified diff.
func (s *source) unified(strip *int) ([]File, error) {
	var sections []*section
	for s.more() {
		next, err := s.section()
		if err != nil {
			return nil, err
		}
		if next == nil {
			continue
		}
		if len(sections) == maxFiles {
			return nil, &RejectedError{Reason: fmt.Sprintf("the patch has more than %d files; send it in parts", maxFiles)}
		}
		sections = append(sections, next)
	}
	parts := partsOf(sections, strip)
	files := make([]File, 0, len(sections))
	for _, sec := range sections {
		if err := sec.name(parts); err != nil {
			return nil, err
		}
		sec.crlf, sec.whole = s.crlf, sec.git
		files = append(files, sec.File)
	}
	return files, nil
}

// section reads what the next line begins; nil where it begins nothing.
func (s *source) section() (*section, error) {
	sec := &section{line: s.at + 1}
	next := s.peek(0)
	switch {
	case strings.HasPrefix(next, "diff --git "):
		sec.git = true
		sec.pairOld, sec.pairNew, _ = pair(strings.TrimPrefix(next, "diff --git "))
		s.at++
		if err := s.extended(sec); err != nil {
			return nil, err
		}
	case s.atHeader():
	case strings.HasPrefix(next, "diff --cc "), strings.HasPrefix(next, "diff --combined "), strings.HasPrefix(next, "@@@ "):
		return nil, s.reject("", 0, "the diff of a merge says what differs from several files; make one against a single parent")
	case strings.HasPrefix(next, "@@ -"):
		return nil, s.reject("", 0, "a hunk stands before any file is named; put --- and +++ lines before it")
	case strings.HasPrefix(next, "Binary files ") && strings.HasSuffix(next, " differ"):
		return nil, s.reject("", 0, "it says that a binary file differs and not how; make it with git diff --binary")
	default:
		s.at++
		return nil, nil
	}
	if err := s.names(sec); err != nil {
		return nil, err
	}
	return sec, s.body(sec)
}

// names reads the --- and +++ lines, if they are next.
func (s *source) names(sec *section) error {
	if !strings.HasPrefix(s.peek(0), "--- ") || !strings.HasPrefix(s.peek(1), "+++ ") {
		return nil
	}
	var ok bool
	if sec.before, sec.stampOld, ok = headerName(s.peek(0)[4:]); !ok {
		return s.reject("", 0, "there is no name after ---")
	}
	s.at++
	if sec.after, sec.stampNew, ok = headerName(s.peek(0)[4:]); !ok {
		return s.reject("", 0, "there is no name after +++")
	}
	s.at++
	return nil
}

// body reads what a section says of the content.
func (s *source) body(sec *section) error {
	shown := sec.shownName()
	if s.peek(0) == "GIT binary patch" {
		return s.readBinary(sec, shown)
	}
	if next := s.peek(0); strings.HasPrefix(next, "Binary files ") && strings.HasSuffix(next, " differ") {
		return s.reject(shown, 0, "it is a binary file, and the patch does not say how it differs; make it with git diff --binary")
	}
	for s.more() && strings.HasPrefix(s.peek(0), "@@") {
		h, err := s.hunk(shown, len(sec.hunks)+1)
		if err != nil {
			return err
		}
		sec.hunks = append(sec.hunks, h)
		for s.more() && s.peek(0) == "" {
			s.at++
		}
	}
	return nil
}

// shownName is a name for errors while the patch is read.
func (sec *section) shownName() string {
	for _, name := range []string{sec.after, sec.before, sec.movedTo, sec.pairNew} {
		if name != "" && name != nowhere {
			return strings.TrimPrefix(name, "b/")
		}
	}
	return ""
}

// extended reads git's lines about a file.
func (s *source) extended(sec *section) error {
	for ; s.more(); s.at++ {
		next := s.peek(0)
		key, value, known := extendedKey(next)
		if !known {
			return nil
		}
		if err := sec.extend(key, value); err != nil {
			return s.reject(sec.shownName(), 0, "%q: %s", clipped(next), err)
		}
	}
	return nil
}

var extendedKeys = []string{
	"old mode ", "new mode ", "deleted file mode ", "new file mode ", "copy from ", "copy to ", "rename from ", "rename to ",
	"rename old ", "rename new ", "similarity index ", "dissimilarity index ", "index ",
}

func extendedKey(text string) (key, value string, known bool) {
	for _, key := range extendedKeys {
		if value, found := strings.CutPrefix(text, key); found {
			return key, value, true
		}
	}
	return "", "", false
}

// extend takes in one of git's lines.
func (sec *section) extend(key, value string) (err error) {
	switch key {
	case "old mode ":
		sec.OldMode, err = mode(value)
	case "new mode ":
		sec.NewMode, err = mode(value)
	case "deleted file mode ":
		sec.Kind = Deleted
		sec.OldMode, err = mode(value)
	case "new file mode ":
		sec.Kind = Created
		sec.NewMode, err = mode(value)
	case "copy from ", "rename from ", "rename old ":
		sec.movedFrom, err = movedName(value)
	case "copy to ", "rename to ", "rename new ":
		sec.Kind = Renamed
		if key == "copy to " {
			sec.Kind = Copied
		}
		sec.movedTo, err = movedName(value)
	case "index ":
		ids, _, _ := strings.Cut(value, " ")
		before, after, _ := strings.Cut(ids, "..")
		sec.binary = &binary{oldID: before, newID: after}
	}
	return err
}

func movedName(text string) (string, error) {
	if !strings.HasPrefix(text, `"`) {
		if text == "" {
			return "", fmt.Errorf("there is no name")
		}
		return text, nil
	}
	name, _, ok := unquote(text)
	if !ok {
		return "", fmt.Errorf("the name's quotes or escapes are wrong")
	}
	return name, nil
}

// mode reads the mode of a file. Other things than files are made by commands.
func mode(text string) (*uint32, error) {
	n, err := strconv.ParseUint(strings.TrimSpace(text), 8, 32)
	if err != nil {
		return nil, fmt.Errorf("that is no mode")
	}
	const kind, file = 0o170000, 0o100000
	if n&kind != file {
		return nil, fmt.Errorf("only files can be patched; make links and submodules with a command")
	}
	m := uint32(n)
	return &m, nil
}

// partsOf is how many leading parts are to be taken off.
func partsOf(sections []*section, strip *int) int {
	if strip != nil {
		return *strip
	}
	for _, sec := range sections {
		before, after := sec.before, sec.after
		if sec.pairOld != "" {
			before, after = sec.pairOld, sec.pairNew // both, also of a file that is created or deleted
		}
		if !arePrefixed(before, after) {
			return 0
		}
	}
	return 1
}

// name settles what a section is about and what happens to it.
func (sec *section) name(parts int) error {
	before, after := sec.before, sec.after
	if before == "" && after == "" {
		before, after = sec.pairOld, sec.pairNew
	}
	before, okOld := stripped(before, parts)
	after, okNew := stripped(after, parts)
	if sec.movedFrom != "" || sec.movedTo != "" {
		before, okOld = stripped(sec.movedFrom, parts-1)
		after, okNew = stripped(sec.movedTo, parts-1)
	}
	if !okOld || !okNew {
		return &RejectedError{File: sec.shownName(), Reason: fmt.Sprintf("its path has no %d parts to strip and a name (line %d of the patch)", parts, sec.line)}
	}
	if before == "" || after == "" || before == nowhere && after == nowhere {
		return &RejectedError{Reason: fmt.Sprintf("it cannot be told which file this is about; put --- and +++ lines before the hunks (line %d of the patch)", sec.line)}
	}
	sec.settle(before, after)
	if sec.binary != nil && sec.binary.forward == nil {
		sec.binary = nil
	}
	return sec.sound()
}

func (sec *section) settle(before, after string) {
	switch {
	case sec.Kind == Created || before == nowhere:
		sec.Kind, sec.New = Created, after
	case sec.Kind == Deleted || after == nowhere:
		sec.Kind, sec.Old = Deleted, before
	case sec.Kind != "":
		sec.Old, sec.New = before, after
	default:
		// Of two names git takes the one that the other only adds to, as .orig does.
		if strings.HasPrefix(after, before) {
			after = before
		}
		sec.Kind, sec.Old, sec.New = Modified, after, after
		switch {
		case sec.git:
		case isEpoch(sec.stampOld) && sec.emptyBefore():
			sec.Kind, sec.Old = Created, ""
		case isEpoch(sec.stampNew) && sec.emptyAfter():
			sec.Kind, sec.New = Deleted, ""
		default:
			sec.blank = sec.emptyBefore()
		}
	}
}

// emptyBefore and emptyAfter say whether the hunks show a file that holds nothing.
func (sec *section) emptyBefore() bool {
	return len(sec.hunks) == 1 && sec.hunks[0].start == 0 && len(sec.hunks[0].lines) == sec.hunks[0].count('+')
}

func (sec *section) emptyAfter() bool {
	return len(sec.hunks) == 1 && len(sec.hunks[0].lines) == sec.hunks[0].count('-')
}

// sound says what contradicts itself in a section.
func (sec *section) sound() error {
	for i := range sec.hunks {
		h := &sec.hunks[i]
		switch {
		case sec.Kind == Created && len(h.lines) > h.count('+'):
			return &RejectedError{File: sec.path(), Hunk: h.number, Reason: "the file is created, and the hunk has lines of an old one"}
		case sec.Kind == Deleted && len(h.lines) > h.count('-'):
			return &RejectedError{File: sec.path(), Hunk: h.number, Reason: "the file is deleted, and the hunk keeps lines of it"}
		}
	}
	if len(sec.hunks) == 0 && sec.binary == nil && sec.Kind == Modified && sec.NewMode == nil {
		return &RejectedError{File: sec.path(), Reason: fmt.Sprintf("there are no hunks (line %d of the patch)", sec.line)}
	}
	return nil
}
