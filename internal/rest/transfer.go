package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"envapi/core"
	"envapi/tools"
)

const (
	// fileChunk is how much of a file is sent under one deadline.
	fileChunk = 4 << 20
	// smallFile is up to which length a file goes with the head of the answer, by one
	// write: else the head and each piece of it wake the client.
	smallFile = 64 << 10
	// maxTrailer bounds the list of what an archive has left out, in bytes: common
	// clients take 8 KiB of a header.
	maxTrailer = 4096
	// trailerSkipped is the trailer that has it.
	trailerSkipped = "Envapi-Skipped"
)

// transfer gives what serves a route that carries bytes or events.
func (h *handler) transfer(op tools.Operation) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		caller, _ := core.CallerFrom(r.Context())
		if err := caller.Require(op.Scope); err != nil {
			return err
		}
		in := reading{op: op, caller: caller}
		var err error
		if op.RawBody {
			return h.receive(w, r, in)
		}
		if in.input, err = readInput(w, r, op); err != nil {
			return err
		}
		switch op.Success.Kind {
		case tools.Archive:
			return h.sendArchive(w, r, in)
		case tools.Feed:
			return h.sendFeed(w, r, in)
		}
		return h.sendFile(w, r, in)
	}
}

// receive takes in a body of any size. It may come slowly, but not stand still.
func (h *handler) receive(w http.ResponseWriter, r *http.Request, in reading) error {
	if r.Header.Get("Content-Encoding") != "" {
		return core.Errorf(core.CodeUnsupportedEncoding, "cannot read the body: send it without a Content-Encoding")
	}
	members, err := outside(r, in.op)
	if err != nil {
		return err
	}
	ctx, cancel := h.Service.Stream(r.Context(), core.Caller{})
	defer cancel()
	body := &slowBody{ctx: ctx, from: r.Body, time: h.bodyTime, control: http.NewResponseController(w)}
	defer context.AfterFunc(ctx, body.cut)()
	if timed, ok := r.Body.(timedBody); ok {
		body.from = timed.ReadCloser
	}
	output, err := in.op.Upload(r.Context(), h.Service, in.caller, object(members, []byte("{}")), body, r.ContentLength)
	if body.failed != nil {
		return body.failure(err)
	}
	if err != nil {
		// Else nothing of it was sent, or there is no time.
		if (body.begun || r.Header.Get("Expect") == "") && ctx.Err() == nil {
			body.discard()
		}
		return err
	}
	if written, ok := output.(core.WrittenFile); ok {
		w.Header().Set("ETag", quoted(written.ETag))
	}
	return succeed(w, in.op.Success, output)
}

// sendFile answers with a file, or a range of it.
func (h *handler) sendFile(w http.ResponseWriter, r *http.Request, in reading) error {
	d, err := in.op.Download(r.Context(), h.Service, in.caller, in.input)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	if namesTag(r, in.input) {
		if err := d.Identify(r.Context()); err != nil {
			return err
		}
	}
	info := d.Info()
	header := w.Header()
	if d.Tag != "" {
		header.Set("ETag", quoted(d.Tag))
	}
	header.Set("Last-Modified", info.ModifiedAt.UTC().Format(http.TimeFormat))
	if unmet, err := checkMatch(r, d, in.input); unmet || err != nil {
		if err == nil {
			w.WriteHeader(http.StatusNotModified)
		}
		return err
	}
	start, end, status, err := span(w, r, d.Tag, info)
	if err != nil {
		return err
	}
	header.Set("Content-Type", tools.RawBytes)
	header.Set("Content-Disposition", disposition(info.Path))
	header.Set("Accept-Ranges", "bytes")
	header.Set("Content-Length", strconv.FormatInt(end-start, 10))
	w.WriteHeader(status)
	if r.Method == http.MethodHead {
		return nil
	}
	if end-start <= smallFile {
		sendSmall(w, d, start, end)
		return nil
	}
	ctx, cancel := h.Service.Stream(r.Context(), in.caller)
	defer cancel()
	if a, ok := w.(*answer); ok {
		defer a.endWith(ctx)()
	}
	copyFile(ctx, w, d, start, end)
	return nil
}

// sendSmall sends bytes of a file in one write, and has the server send them now, not
// when the log has its line. It is no stream: nobody can make it go on.
func sendSmall(w http.ResponseWriter, d *core.Download, start, end int64) {
	data := make([]byte, end-start)
	n, err := d.ReadAt(data, start)
	if err != nil && !errors.Is(err, io.EOF) {
		return
	}
	if _, err := w.Write(data[:n]); err == nil && n == len(data) {
		_ = http.NewResponseController(w).Flush()
	}
}

// namesTag says whether a request asks for a file that has some tag, or has not.
func namesTag(r *http.Request, input []byte) bool {
	if r.Header.Get("If-Range") != "" && r.Header.Get("Range") != "" {
		return true
	}
	match, noneMatch := r.Header.Get("If-Match"), noneMatchOf(input)
	return match != "" && match != "*" || noneMatch != "" && noneMatch != "*"
}

// noneMatchOf gives the field if_none_match, in which its header stands too.
func noneMatchOf(input []byte) string {
	var in struct {
		IfNoneMatch string `json:"if_none_match"`
	}
	_ = json.Unmarshal(input, &in) // what is no JSON was refused
	return in.IfNoneMatch
}

// checkMatch judges the conditions on what is there. Unmet says that the client has it
// already.
func checkMatch(r *http.Request, d *core.Download, input []byte) (unmet bool, err error) {
	path := strings.ToValidUTF8(d.Info().Path, string(utf8.RuneError))
	match := strings.Join(r.Header.Values("If-Match"), ",")
	if match != "" && !isStrongly(match, d.Tag) {
		return false, core.Errorf(core.CodeETagMismatch, "cannot give %q as If-Match asks: its content is another now; ask without it", path).
			With("path", path).With("etag", d.Tag)
	}
	for entry := range strings.SplitSeq(noneMatchOf(input), ",") { // the field has tags without quotes too
		entry = strings.TrimSpace(entry)
		if matchesTag(entry, d.Tag) && (d.Tag != "" || entry == "*") || d.Tag != "" && entry == d.Tag {
			return true, nil
		}
	}
	return false, nil
}

// isStrongly says whether an If-Match header names a tag; weak ones name none.
func isStrongly(header, tag string) bool {
	for entry := range strings.SplitSeq(header, ",") {
		if entry = strings.TrimSpace(entry); entry == "*" || tag != "" && entry == quoted(tag) {
			return true
		}
	}
	return false
}

// span gives which bytes are to be sent, and with which status.
func span(w http.ResponseWriter, r *http.Request, tag string, info core.FileInfo) (start, end int64, status int, err error) {
	part, asked := parseRange(r.Header.Get("Range"))
	condition := r.Header.Get("If-Range")
	switch {
	case !asked || r.Method != http.MethodGet:
		return 0, info.Size, http.StatusOK, nil
	case condition != "" && (tag == "" || condition != quoted(tag)):
		return 0, info.Size, http.StatusOK, nil
	}
	start, end = part.in(info.Size)
	if start >= end {
		w.Header().Set("Content-Range", fmt.Sprintf("bytes */%d", info.Size))
		return 0, 0, 0, core.Errorf(core.CodeRangeUnsatisfiable, "cannot give this range: the file has %d bytes", info.Size).With("total_bytes", info.Size)
	}
	w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", start, end-1, info.Size))
	return start, end, http.StatusPartialContent, nil
}

// disposition names the file for who saves it (RFC 6266), with a plain name for those
// who know no other.
func disposition(file string) string {
	name := path.Base(file)
	plain := strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' || c == '"' || c == '\\' || c == '%' {
			return '_'
		}
		return c
	}, name)
	value := `attachment; filename="` + plain + `"`
	if plain != name {
		value += "; filename*=UTF-8''" + strings.ReplaceAll(url.QueryEscape(strings.ToValidUTF8(name, "_")), "+", "%20")
	}
	return value
}

// copyFile sends bytes of a file. Where it got shorter meanwhile, the server breaks the
// connection off, since fewer are sent than was said.
func copyFile(ctx context.Context, w http.ResponseWriter, d *core.Download, start, end int64) {
	for start < end && ctx.Err() == nil {
		n := min(fileChunk, end-start)
		section, err := d.Section(start, n)
		if err != nil {
			return
		}
		sent, err := io.Copy(w, section)
		if err != nil || sent < n {
			return
		}
		start += sent
	}
}

// ReadFrom lets the kernel send a part of a file by itself, under one deadline.
func (a *answer) ReadFrom(from io.Reader) (int64, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	a.hurry()
	return io.Copy(a.ResponseWriter, from)
}

// sendArchive answers with an archive as it is made. Before its first byte, a failure
// is an answer as any other; later, the connection is broken off.
func (h *handler) sendArchive(w http.ResponseWriter, r *http.Request, in reading) error {
	media, name := archiveOf(in.input)
	ctx, cancel := h.Service.Stream(r.Context(), in.caller)
	defer cancel()
	if a, ok := w.(*answer); ok {
		defer a.endWith(ctx)()
	}
	out := &archiveWriter{w: w, media: media, name: name, head: r.Method == http.MethodHead}
	skipped, err := in.op.Archive(ctx, h.Service, in.caller, in.input, out)
	switch {
	case err == nil:
	case out.head && out.begun:
		return nil
	case !out.begun:
		return err
	default:
		if ctx.Err() == nil && core.AsError(err).Code == core.CodeInternal {
			h.Log.ErrorContext(ctx, "internal error", "request_id", core.RequestIDFrom(r.Context()), "cause", err.Error())
		}
		panic(http.ErrAbortHandler)
	}
	out.begin()
	w.Header().Set(trailerSkipped, trailer(skipped))
	return nil
}

// archiveOf gives the media type of what was asked for, and what to save it as.
func archiveOf(input []byte) (media, name string) {
	var in struct {
		Path        string           `json:"path"`
		Compression core.Compression `json:"compression"`
	}
	_ = json.Unmarshal(input, &in) // what is none is refused where it is decoded
	name = path.Base(path.Join("/", in.Path))
	if name == "/" {
		name = "workspace"
	}
	switch in.Compression {
	case core.CompressNone:
		return tools.Tar, name + ".tar"
	case core.CompressZstd:
		return tools.Zstd, name + ".tar.zst"
	}
	return tools.Gzip, name + ".tar.gz"
}

// errHead ends the making of an archive of which only the header was asked for.
var errHead = errors.New("only the header was asked for")

// archiveWriter begins the answer with its first byte.
type archiveWriter struct {
	w     http.ResponseWriter
	media string
	name  string // to save it as
	head  bool
	begun bool
}

func (a *archiveWriter) begin() {
	if a.begun {
		return
	}
	a.begun = true
	a.w.Header().Set("Content-Type", a.media)
	a.w.Header().Set("Content-Disposition", disposition(a.name))
	a.w.Header().Set("Trailer", trailerSkipped)
	a.w.WriteHeader(http.StatusOK)
}

func (a *archiveWriter) Write(p []byte) (int, error) {
	a.begin()
	if a.head {
		return 0, errHead
	}
	return a.w.Write(p)
}

// trailer lists paths as JSON in ASCII, as many as fit.
func trailer(skipped []string) string {
	for {
		if skipped == nil {
			skipped = []string{}
		}
		text, err := json.Marshal(skipped)
		if err != nil {
			return "[]"
		}
		ascii := escaped(string(text))
		if len(ascii) <= maxTrailer {
			return ascii
		}
		skipped = skipped[:len(skipped)/2]
	}
}

// escaped writes what is not ASCII as JSON escapes.
func escaped(text string) string {
	var out strings.Builder
	for _, c := range text {
		switch {
		case c < utf8.RuneSelf:
			out.WriteRune(c)
		case c <= 0xffff:
			fmt.Fprintf(&out, `\u%04x`, c)
		default:
			high, low := utf16.EncodeRune(c)
			fmt.Fprintf(&out, `\u%04x\u%04x`, high, low)
		}
	}
	return out.String()
}
