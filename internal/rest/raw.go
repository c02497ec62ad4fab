package rest

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"envapi/core"
	"envapi/tools"
)

// rawChunk is how many bytes are read and sent at one time: what is held of an
// answer, however long it is.
const rawChunk = 64 << 10

// sendRaw answers with the bytes of a stream as they are, or with a range of them.
// What is dropped from the log while it is being sent breaks the answer off, so
// that nobody takes a part for the whole.
func (h *handler) sendRaw(w http.ResponseWriter, r *http.Request, in reading) error {
	ctx, stream, done, err := h.open(w, r, in)
	if err != nil {
		return err
	}
	defer done()
	extent, tag := stream.Extent(0)
	if matchesTag(strings.Join(r.Header.Values("If-None-Match"), ","), tag) {
		w.Header().Set("ETag", quoted(tag))
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	part, asked := parseRange(r.Header.Get("Range"))
	asked = asked && r.Method == http.MethodGet // for no other are there ranges (RFC 9110, 14.2)
	if condition := r.Header.Get("If-Range"); condition != "" && condition != quoted(tag) {
		asked = false
	}
	start, end, status := int64(0), extent.Total, http.StatusOK
	switch {
	case asked:
		if start, end, extent, tag, err = ranged(w, stream, part, extent); err != nil {
			return err
		}
		status = http.StatusPartialContent
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", start, end-1, extent.Total))
	case extent.Dropped > 0:
		return notWhole(stream, extent)
	}
	w.Header().Set("Content-Type", tools.RawBytes)
	w.Header().Set("ETag", quoted(tag))
	w.Header().Set("Accept-Ranges", "bytes")
	w.Header().Set("Content-Length", strconv.FormatInt(end-start, 10))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		copyRaw(ctx, w, stream, start, end)
	}
	return nil
}

// ranged gives what of a range there is now: its beginning up to the end of the
// stream or to a dropped part.
func ranged(w http.ResponseWriter, stream *core.OutputStream, part byteRange, now core.Extent) (start, end int64, e core.Extent, tag string, err error) {
	start, end = part.in(now.Total)
	if start >= end {
		w.Header().Set("Content-Range", fmt.Sprintf("bytes */%d", now.Total))
		err = core.Errorf(core.CodeRangeUnsatisfiable, "cannot give this range: the stream has %d bytes now", now.Total).With("total_bytes", now.Total)
		return 0, 0, now, "", err
	}
	e, tag = stream.Extent(start)
	if e.Start > start {
		return 0, 0, e, "", dropped(start, e.Start)
	}
	return start, min(end, e.End), e, tag, nil
}

// notWhole is the answer to who asks for all of a stream that is not all there.
func notWhole(stream *core.OutputStream, e core.Extent) error {
	first := int64(0)
	if e.Start == 0 {
		first = e.End
	}
	next, _ := stream.Extent(first)
	return core.Errorf(core.CodeOutputExpired, "cannot give the whole output: %d bytes from offset %d on were dropped, because the log is bounded; ask for it in ranges, bytes=0- first, then bytes=%d-", e.Dropped, first, next.Start).
		With("next_offset", next.Start)
}

func dropped(offset, next int64) error {
	return core.Errorf(core.CodeOutputExpired, "the output at offset %d was dropped, because the log is bounded: read on from offset %d", offset, next).
		With("next_offset", next)
}

// copyRaw sends the bytes from start up to end, as far as it can. Where those are
// fewer than was said before, the server breaks the connection off.
func copyRaw(ctx context.Context, w http.ResponseWriter, stream *core.OutputStream, start, end int64) {
	for start < end && ctx.Err() == nil {
		data, err := stream.Raw(start, min(rawChunk, end-start))
		if err != nil || len(data) == 0 {
			return
		}
		if _, err := w.Write(data); err != nil { //nolint:gosec // as application/octet-stream, with nosniff
			return
		}
		start += int64(len(data))
	}
}

// byteRange is a range of bytes as a request asks for it.
type byteRange struct {
	from, to int64 // to is the last one
	suffix   bool  // the last so many bytes, from
}

// in gives the range in a stream of total bytes, as the first byte and the one
// after the last; it is empty where it begins beyond the end.
func (b byteRange) in(total int64) (start, end int64) {
	if b.suffix {
		return max(0, total-b.from), total
	}
	if b.to >= total {
		return b.from, total
	}
	return b.from, b.to + 1
}

// parseRange reads a Range header. What is not one range of bytes is no range, as
// RFC 9110 has it.
func parseRange(header string) (byteRange, bool) {
	unit, spec, ok := strings.Cut(header, "=")
	if !ok || !strings.EqualFold(unit, "bytes") {
		return byteRange{}, false
	}
	first, last, ok := strings.Cut(strings.TrimSpace(spec), "-")
	from, fromOK := position(first)
	to, toOK := position(last)
	switch {
	case !ok:
		return byteRange{}, false
	case first == "" && toOK:
		return byteRange{from: to, suffix: true}, true
	case fromOK && last == "":
		return byteRange{from: from, to: maxPosition}, true
	case fromOK && toOK && from <= to:
		return byteRange{from: from, to: to}, true
	}
	return byteRange{}, false
}

// maxPosition stands for every position that is larger; no stream is so long.
const maxPosition = 1<<62 - 1

// position reads a number that is written with digits only.
func position(text string) (int64, bool) {
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		n = maxPosition // too large for the type
	}
	return min(n, maxPosition), true
}

func quoted(tag string) string { return `"` + tag + `"` }

// matchesTag says whether an If-None-Match header names a tag.
func matchesTag(header, tag string) bool {
	for entry := range strings.SplitSeq(header, ",") {
		if entry = strings.TrimPrefix(strings.TrimSpace(entry), "W/"); entry == "*" || entry == quoted(tag) {
			return true
		}
	}
	return false
}
