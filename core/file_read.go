package core

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

const (
	defaultPart = 64 << 10 // of a file, in bytes, as is answered in one call
	largestPart = 1 << 20
	// countBytes is up to which size the lines of a file are counted by themselves:
	// about a tenth of a second.
	countBytes = 256 << 20
	scanBuffer = 256 << 10
	// sniffBytes is how much is looked at to tell the charset.
	sniffBytes = 64 << 10
)

// The charsets that files are told to have.
const (
	charsetUTF8    = "utf-8"
	charsetUTF16LE = "utf-16le"
	charsetUTF16BE = "utf-16be"
	charsetBinary  = "binary"
)

// ReadFile reads a part of a file as text. It fails with `not_found` and the codes of
// paths.
func (s *Service) ReadFile(ctx context.Context, c Caller, in ReadFileInput) (FileText, error) {
	if err := in.check(); err != nil {
		return FileText{}, err
	}
	f, err := s.readFolder(ctx, c, in.EnvironmentID, in.Restoring)
	if err != nil {
		return FileText{}, err
	}
	defer f.Close()
	file, err := f.Open(ctx, in.Path)
	if err != nil {
		return FileText{}, err
	}
	defer file.Close()
	tag, err := s.tagOf(ctx, file, in.ETag)
	if err != nil {
		return FileText{}, err
	}
	r := reader{ctx: ctx, file: file, size: file.Info().Size, in: in}
	text, err := r.read()
	text.Path, text.ETag = in.Path, tag
	return text, err
}

func (in ReadFileInput) check() error {
	if err := checkPath("path", in.Path); err != nil {
		return err
	}
	lines := in.StartLine != nil || in.EndLine != nil
	switch {
	case lines && in.Offset != nil:
		return invalid("offset", "offset and lines are both given: give one of them")
	case in.StartLine != nil && *in.StartLine < 1:
		return invalid("start_line", "start_line is %d: lines are counted from 1", *in.StartLine)
	case in.EndLine != nil && *in.EndLine < value(in.StartLine, 1):
		return invalid("end_line", "end_line is %d, and start_line is %d: the last line is not before the first", *in.EndLine, value(in.StartLine, 1))
	case in.Offset != nil && *in.Offset < 0:
		return invalid("offset", "offset is %d: give 0 or more", *in.Offset)
	case in.LimitBytes != nil && (*in.LimitBytes < 1 || *in.LimitBytes > largestPart):
		return invalid("limit_bytes", "limit_bytes is %d: give 1 to %d", *in.LimitBytes, largestPart)
	}
	return nil
}

// value gives what a pointer points to, or else.
func value[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

// reader reads a part of one file.
type reader struct {
	ctx  context.Context
	file File
	size int64
	in   ReadFileInput
}

func (r *reader) read() (FileText, error) {
	t := FileText{SizeBytes: r.size}
	head, err := r.at(0, sniffBytes)
	if err != nil {
		return t, err
	}
	t.Charset, t.BOM = sniff(head, int64(len(head)) == r.size)
	first, known, err := r.begin(&t)
	if err != nil {
		return t, err
	}
	part, err := r.part(t.Offset, t.Charset)
	if err != nil {
		return t, err
	}
	part, done := upToLine(part, first, r.in.EndLine)
	t.Text, t.Encoding = encode(part)
	t.LineEnding = lineEnding(part)
	end := t.Offset + int64(len(part))
	if known {
		last := first + int64(bytes.Count(part, []byte{'\n'}))
		if len(part) > 0 && part[len(part)-1] == '\n' {
			if !done && end < r.size {
				next := last
				t.NextLine = &next
			}
			last--
		}
		t.StartLine, t.EndLine = &first, &last
	}
	if !done && end < r.size {
		t.NextOffset = &end
		t.Next = fmt.Sprintf("This is not all: read_file with offset %d reads on.", end)
	}
	return t, r.total(&t)
}

// begin finds where the part begins, and in which line that is.
func (r *reader) begin(t *FileText) (line int64, known bool, err error) {
	if r.in.Offset == nil {
		line = value(r.in.StartLine, 1)
		at, seen, err := r.scan(r.size, line-1)
		if err != nil {
			return 0, false, err
		}
		if seen < line-1 || at >= r.size && line > 1 {
			return 0, false, invalid("start_line", "cannot start at line %d: the file has %d lines", line, seen+r.unended(at, seen))
		}
		t.Offset = at
		return line, true, nil
	}
	t.Offset = min(*r.in.Offset, r.size)
	if t.Offset > countBytes {
		return 0, false, nil
	}
	_, seen, err := r.scan(t.Offset, -1)
	return seen + 1, err == nil, err
}

// unended is 1 where the file ends with a line that has no end.
func (r *reader) unended(_, _ int64) int64 {
	if r.size == 0 {
		return 0
	}
	if last, err := r.at(r.size-1, 1); err == nil && len(last) == 1 && last[0] != '\n' {
		return 1
	}
	return 0
}

// total counts the lines of the file.
func (r *reader) total(t *FileText) error {
	if r.size > countBytes {
		return nil
	}
	_, seen, err := r.scan(r.size, -1)
	if err == nil {
		seen += r.unended(0, 0)
		t.TotalLines = &seen
	}
	return err
}

// scan goes through the file up to an offset, or behind so many line ends where that
// is not less than 0. It says where it came to and how many it saw.
func (r *reader) scan(to, lines int64) (at, seen int64, err error) {
	buffer := make([]byte, min(scanBuffer, max(1, to)))
	for at < to && seen != lines {
		if err := r.ctx.Err(); err != nil {
			return at, seen, err
		}
		n, err := r.file.ReadAt(buffer[:min(int64(len(buffer)), to-at)], at)
		if err != nil && !errors.Is(err, io.EOF) {
			return at, seen, fmt.Errorf("cannot read a file: %w", err)
		}
		if n == 0 {
			return at, seen, nil // it was cut meanwhile
		}
		step, count := behind(buffer[:n], lines-seen)
		at, seen = at+step, seen+count
	}
	return at, seen, nil
}

// behind gives where so many line ends are passed, or the length, and how many were.
func behind(data []byte, lines int64) (step, seen int64) {
	count := int64(bytes.Count(data, []byte{'\n'}))
	if lines < 0 || count < lines {
		return int64(len(data)), count
	}
	for seen < lines {
		step += int64(bytes.IndexByte(data[step:], '\n')) + 1
		seen++
	}
	return step, seen
}

// at reads bytes; fewer at the end.
func (r *reader) at(offset, limit int64) ([]byte, error) {
	data := make([]byte, max(0, min(limit, r.size-offset)))
	n, err := r.file.ReadAt(data, offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("cannot read a file: %w", err)
	}
	return data[:n], nil
}

// part reads what is answered, which does not end within a character.
func (r *reader) part(offset int64, charset string) ([]byte, error) {
	limit := value(r.in.LimitBytes, defaultPart)
	data, err := r.at(offset, limit)
	if err != nil || offset+int64(len(data)) >= r.size {
		return data, err
	}
	whole := wholeIn(charset, data)
	if whole == 0 { // the limit is less than a character
		data, err = r.at(offset, utf8.UTFMax)
		whole = max(1, firstIn(charset, data))
	}
	return data[:min(whole, len(data))], err
}

// wholeIn gives the length of data without a character at its end that is cut.
func wholeIn(charset string, data []byte) int {
	if charset != charsetUTF16LE && charset != charsetUTF16BE {
		return wholeChars(data)
	}
	n := len(data) &^ 1
	if n >= 2 && isHigh(charset, data[n-2:]) {
		n -= 2
	}
	return n
}

// firstIn gives the length of the first character.
func firstIn(charset string, data []byte) int {
	if charset == charsetUTF16LE || charset == charsetUTF16BE {
		if len(data) >= 4 && isHigh(charset, data) {
			return 4
		}
		return min(2, len(data))
	}
	_, n := utf8.DecodeRune(data)
	return n
}

// isHigh says whether a unit of UTF-16 is the first half of a pair.
func isHigh(charset string, unit []byte) bool {
	high := unit[0]
	if charset == charsetUTF16LE {
		high = unit[1]
	}
	return high&0xfc == 0xd8
}

// upToLine cuts a part behind a line, and says whether that is in it.
func upToLine(part []byte, first int64, last *int64) ([]byte, bool) {
	if last == nil {
		return part, false
	}
	step, seen := behind(part, *last-first+1)
	return part[:step], seen == *last-first+1
}

// sniff tells the charset of a file by its beginning.
func sniff(head []byte, whole bool) (charset string, bom bool) {
	switch {
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}):
		return charsetUTF16LE, true
	case bytes.HasPrefix(head, []byte{0xfe, 0xff}):
		return charsetUTF16BE, true
	}
	bom = bytes.HasPrefix(head, []byte{0xef, 0xbb, 0xbf})
	if !whole {
		head = head[:wholeChars(head)]
	}
	if !utf8.Valid(head) || bytes.IndexByte(head, 0) >= 0 {
		return charsetBinary, false
	}
	return charsetUTF8, bom
}

// lineEnding says how the lines of a part end.
func lineEnding(part []byte) string {
	all, crlf := bytes.Count(part, []byte{'\n'}), bytes.Count(part, []byte("\r\n"))
	switch {
	case all == 0:
		return "none"
	case crlf == 0:
		return "lf"
	case crlf == all:
		return "crlf"
	}
	return "mixed"
}

// Download is a file that is sent as it is.
type Download struct {
	File
	Tag    string // "" where the file is too large to have one made by itself
	folder *folder
}

// Identify has the download have its Tag, also where the file is large: for who asks
// whether it is still the one that he knows.
func (d *Download) Identify(ctx context.Context) (err error) {
	if d.Tag == "" {
		always := true
		d.Tag, err = d.folder.service.tagOf(ctx, d.File, &always)
	}
	return err
}

// Close ends the use of the file.
func (d *Download) Close() error {
	err := d.File.Close()
	d.folder.Close()
	return err
}

// DownloadFile opens a file to be sent. The caller must close it. It fails with
// `not_found` and the codes of paths.
func (s *Service) DownloadFile(ctx context.Context, c Caller, in DownloadFileInput) (*Download, error) {
	if err := checkPath("path", in.Path); err != nil {
		return nil, err
	}
	f, err := s.readFolder(ctx, c, in.EnvironmentID, in.Restoring)
	if err != nil {
		return nil, err
	}
	file, err := f.Open(ctx, in.Path)
	if err != nil {
		f.Close()
		return nil, err
	}
	d := &Download{File: file, folder: f}
	if d.Tag, err = s.tagOf(ctx, file, in.ETag); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}
