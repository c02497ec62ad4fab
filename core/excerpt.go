package core

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"
)

// The sizes of what is answered of a stream in one call, in bytes.
const (
	defaultInline = 16 << 10
	largestInline = 1 << 20
)

// inlineBytes is how much of each stream is answered.
func inlineBytes(asked *int64) (int64, error) {
	if asked == nil {
		return defaultInline, nil
	}
	if *asked < 0 || *asked > largestInline {
		return 0, invalid("output_bytes", "output_bytes is %d: give 0 to %d", *asked, largestInline)
	}
	return *asked, nil
}

// part is an excerpt and where to read on.
type part struct {
	Excerpt
	stream Stream
	cutAt  int64 // the first byte of the stream that is not in the text
}

// excerpt gives the beginning and the end of a stream, inline bytes in all. Of
// bytes that are not UTF-8 it gives the beginning only. While the command runs,
// a character whose rest has not come yet is left for later.
func excerpt(log OutputLog, s Stream, inline int64, ended bool) (part, error) {
	total, _ := log.Size(s)
	begin, err := readFull(log, s, 0, min(total, inline))
	if err != nil && !isExpired(err) {
		return part{}, err
	}
	if int64(len(begin)) == total {
		if !ended {
			begin = begin[:wholeChars(begin)]
		}
		return cut(s, begin, nil, total), nil
	}
	head := begin[:min(int64(len(begin)), inline-inline/2)]
	head = head[:wholeChars(head)]
	_, tail, err := readTail(log, s, max(int64(len(head)), total-inline/2), inline/2)
	if err != nil {
		return part{}, err
	}
	tail = tail[:wholeChars(tail)]
	if !utf8.Valid(head) || !utf8.Valid(tail) {
		return cut(s, begin, nil, total), nil
	}
	return cut(s, head, tail, total), nil
}

// cut makes the part from the beginning and the end of a stream.
func cut(s Stream, head, tail []byte, total int64) part {
	p := part{stream: s, cutAt: int64(len(head))}
	p.TotalBytes = total
	p.OmittedBytes = total - int64(len(head)) - int64(len(tail))
	p.Truncated = p.OmittedBytes > 0
	if p.Truncated && len(tail) > 0 {
		head = slices.Concat(head, omission(head, s, p.OmittedBytes), tail)
	}
	p.Text, p.Encoding = encode(head)
	return p
}

// omission is the line that stands for what was left out after head.
func omission(head []byte, s Stream, omitted int64) []byte {
	line := fmt.Appendf(nil, "[… %d bytes omitted: read_output from offset %d, stream %s …]\n", omitted, len(head), s)
	if len(head) > 0 && !bytes.HasSuffix(head, []byte("\n")) {
		line = slices.Concat([]byte("\n"), line)
	}
	return line
}

// readFull reads up to limit bytes from offset on: less only at the end or where
// bytes were dropped. Where they were dropped right at offset it fails with
// *ExpiredError.
func readFull(log OutputLog, s Stream, offset, limit int64) ([]byte, error) {
	var all []byte
	for limit > int64(len(all)) {
		data, err := log.Read(s, offset+int64(len(all)), limit-int64(len(all)))
		if isExpired(err) && len(all) > 0 || err == nil && len(data) == 0 {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read output: %w", err)
		}
		all = append(all, data...)
	}
	return all, nil
}

// readTail reads up to limit bytes from the first character that is left at
// offset or after it, and says where that is.
func readTail(log OutputLog, s Stream, offset, limit int64) (int64, []byte, error) {
	data, err := readFull(log, s, offset, limit)
	if expired := (*ExpiredError)(nil); errors.As(err, &expired) {
		offset = expired.NextOffset
		if data, err = readFull(log, s, offset, limit); isExpired(err) {
			err = nil // the end, which was dropped too: on a full disk all may be
		}
	}
	if skip := splitChar(data); offset > 0 && utf8.Valid(data[skip:wholeChars(data)]) {
		offset, data = offset+int64(skip), data[skip:]
	}
	return offset, data, err
}

func isExpired(err error) bool {
	var expired *ExpiredError
	return errors.As(err, &expired)
}
