package find

import (
	"bytes"
	"errors"
	"slices"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/core/pattern"
)

const (
	// overlapBytes is how much of a window is looked at again in the next one, in a
	// line that is longer.
	overlapBytes = 4 << 10
	// binaryBytes is how much of a file decides whether it is text.
	binaryBytes = 8 << 10
	// mostCount is how many matches are counted in one line.
	mostCount = 100
	// mostTextBytes and mostBlockBytes are how much of a line, or of several that
	// were found as one, is shown.
	mostTextBytes, mostBlockBytes = 512, 4 << 10
)

// reading is a file that is gone through window by window.
type reading struct {
	*worker
	file int
	left int64 // bytes that were not read
	path string

	text []byte // the window
	from int    // the line of it that comes next
	// line is the number of the line that begins at counted.
	line, counted int
	column        int  // bytes of the line that from is in that stand before it
	within        bool // from is within a line
	found         bool // and that line is one that was found

	matched int // lines
	wanted  bool
	matches []core.SearchMatch
	held    int // bytes of their text
}

func (r *reading) run() error {
	if err := r.fill(); err != nil {
		return err
	}
	if isBinary(r.text) {
		r.total.SkippedBinary++
		return nil
	}
	r.total.FilesSearched++
	if bytes.HasPrefix(r.text, []byte("\xef\xbb\xbf")) {
		r.from = 3 // a byte order mark is not of the line
	}
	defer r.finish()
	for {
		r.window()
		if r.left == 0 && r.from >= len(r.text) || r.search.ctx.Err() != nil {
			return nil
		}
		r.shift()
		if err := r.fill(); err != nil {
			return err
		}
	}
}

// isBinary says whether what a file begins with is not text that is looked through.
func isBinary(text []byte) bool {
	return bytes.HasPrefix(text, []byte("\xff\xfe")) || bytes.HasPrefix(text, []byte("\xfe\xff")) ||
		bytes.IndexByte(text[:min(len(text), binaryBytes)], 0) >= 0
}

// fill reads what the window has room for. A file that has become shorter ends early.
func (r *reading) fill() error {
	for r.left > 0 && len(r.text) < cap(r.text) {
		room := r.text[len(r.text):min(int64(cap(r.text)), int64(len(r.text))+r.left)]
		n, err := unix.Read(r.file, room)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		if r.left -= int64(n); n == 0 {
			r.left = 0
		}
		r.text = r.text[:len(r.text)+n]
	}
	return nil
}

// window goes through the lines that are whole, or through what there is of one that
// is longer than a window.
func (r *reading) window() {
	if r.within {
		r.rest()
	}
	to := r.whole()
	switch {
	case r.within:
	case to > r.from:
		r.lines(to)
	case len(r.text)-r.from >= cap(r.text)/2:
		r.piece(len(r.text))
	}
}

// whole says where the last line ends that is here as a whole.
func (r *reading) whole() int {
	if r.left == 0 {
		return len(r.text)
	}
	return bytes.LastIndexByte(r.text, '\n') + 1
}

// lines goes through whole lines, up to where they end or to one whose context is not
// here yet.
func (r *reading) lines(to int) {
	r.scan.Reset(r.text[:to])
	for r.from < to && r.search.ctx.Err() == nil {
		f, ok := r.scan.Next(r.from)
		if !ok {
			r.from = to
			return
		}
		if r.left > 0 && f.Begin > cap(r.text)/2 && r.search.query.Context > 0 {
			r.from = f.Begin // looked at again when what follows is here
			return
		}
		r.take(f)
		r.from = pattern.After(r.text, f)
	}
}

// rest goes on in a line that is longer than a window.
func (r *reading) rest() {
	end := bytes.IndexByte(r.text[r.from:], '\n')
	if end < 0 {
		r.piece(len(r.text))
		return
	}
	end += r.from
	r.piece(end - len(r.text[r.from:end]) + len(bytes.TrimSuffix(r.text[r.from:end], []byte("\r"))))
	r.within, r.found, r.column = false, false, 0
	r.from = end + 1
}

// piece looks at a part of a line. A line is found once.
func (r *reading) piece(to int) {
	if !r.found {
		r.scan.Reset(r.text[:to])
		if f, ok := r.scan.Next(r.from); ok {
			r.found = true
			r.take(f)
		}
	}
	next := to
	if r.within = r.left > 0; r.within && !r.found {
		next = max(r.from, to-overlapBytes)
	}
	r.column += next - r.from
	r.from = next
}

// shift moves what is still needed to the beginning of the window: what was not looked
// at, and the lines before it that may be its context, up to a quarter of the window.
func (r *reading) shift() {
	keep := r.from
	for range r.search.query.Context {
		if r.within || keep == 0 {
			break
		}
		line := bytes.LastIndexByte(r.text[:keep-1], '\n') + 1
		if r.from-line > cap(r.text)/4 {
			break
		}
		keep = line
	}
	r.count(keep)
	r.text = r.text[:copy(r.text, r.text[keep:])]
	r.from -= keep
	r.counted -= keep
}

// count makes line the number of the line that begins at a place, or keeps it where
// that has been passed.
func (r *reading) count(to int) {
	if to > r.counted {
		r.line += bytes.Count(r.text[r.counted:to], []byte("\n"))
		r.counted = to
	}
}

// take counts a line that was found, and keeps it where it can be of the answer.
func (r *reading) take(f pattern.Found) {
	if r.matched == 0 {
		r.wanted = !r.search.query.NamesOnly && r.search.kept.wants(r.path)
	}
	r.matched++
	// One too many of either says that there are.
	if r.wanted && len(r.matches) <= r.search.query.Limit && r.held <= r.search.query.MaxBytes {
		m := r.match(f)
		r.held += textBytes(&m)
		r.matches = append(r.matches, m)
	}
}

// finish hands over what was found.
func (r *reading) finish() {
	if r.matched == 0 {
		return
	}
	r.total.FilesMatched++
	if r.search.query.NamesOnly {
		r.total.TotalMatches++
		r.search.kept.add(r.path, []core.SearchMatch{{Path: r.path, Count: r.matched}})
		return
	}
	r.total.TotalMatches += r.matched
	if len(r.matches) > 0 {
		r.search.kept.add(r.path, r.matches)
	}
}

// match makes a match of a line that was found.
func (r *reading) match(f pattern.Found) core.SearchMatch {
	r.count(f.Begin)
	m := core.SearchMatch{Path: r.path, Line: r.line, Column: r.column + f.At - f.Begin + 1}
	most := mostTextBytes
	if r.search.query.Multiline {
		most = mostBlockBytes
	}
	line := r.text[f.Begin:f.End]
	m.Text = excerpt(line, f.At-f.Begin, most)
	m.Cut = len(m.Text) < len(line) || r.column > 0 || r.left > 0 && f.End == len(r.text)
	m.Count = max(1, r.search.line.Count(line, mostCount))
	r.around(&m, f)
	return m
}

// around adds the lines before and after.
func (r *reading) around(m *core.SearchMatch, f pattern.Found) {
	begin, after, to := f.Begin, pattern.After(r.text, f), r.whole()
	for range r.search.query.Context {
		if begin > 0 && !r.within {
			line := r.text[:begin-1]
			begin = bytes.LastIndexByte(line, '\n') + 1
			m.Before = append(m.Before, contextLine(line[begin:]))
		}
		if after < to {
			line, _, _ := bytes.Cut(r.text[after:to], []byte("\n"))
			m.After = append(m.After, contextLine(line))
			after += len(line) + 1
		}
	}
	slices.Reverse(m.Before)
}

func contextLine(line []byte) string {
	return excerpt(bytes.TrimSuffix(line, []byte("\r")), 0, mostTextBytes)
}

// excerpt gives a line, or where that is too long a part of it with some of what
// stands before a place. It cuts no character.
func excerpt(line []byte, at, most int) string {
	if len(line) <= most {
		return string(line)
	}
	begin := max(0, min(at-most/4, len(line)-most))
	end := begin + most
	for range utf8.UTFMax {
		if begin > 0 && begin < at && !utf8.RuneStart(line[begin]) {
			begin++
		}
		if end < len(line) && !utf8.RuneStart(line[end]) {
			end--
		}
	}
	return string(line[begin:end])
}
