package vault

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"envapi/sandbox/fsuser"
)

// Unpack makes the folder that an archive holds in base, which is the user's of uid (0:
// the service's own) and which nobody else sees. It fails with ErrDamaged where the
// archive is not whole, or not as Pack writes it. Where it fails, what it has made stays
// in base.
func Unpack(ctx context.Context, from io.Reader, base *os.File, uid int) (t *Tree, err error) {
	s, err := openSource(ctx, from)
	if err != nil {
		return nil, err
	}
	defer s.close()
	u := &unpacker{ctx: ctx, source: s, maker: making{&maker{uid: uid, base: base}}, buffer: make([]byte, chunk)}
	defer u.close()
	// All at once as the user: what reads the archive starts no goroutines.
	err = fsuser.Do(uid, uid, func() error {
		t, err = u.all()
		return err
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

// builder is told what an archive holds: a maker, or who only reads.
type builder interface {
	enter(name string, is meta) error
	leave() error
	create(name string) (content, error)
	symlink(name, target string, is meta) error
	fifo(name string, is meta) error
	// remember keeps what was just made under a number, unless that is 0, and link gives
	// what has a number another name.
	remember(number uint64, name string) error
	link(number uint64, name string) error
	finish() (*Tree, error)
	close()
}

// content is a file in the making.
type content interface {
	io.WriterAt
	io.Closer
	Truncate(size int64) error
	// finish gives it what it has beside its content.
	finish(is meta) error
}

// making is a maker as a builder.
type making struct{ *maker }

func (m making) create(name string) (content, error) {
	f, err := m.maker.create(name)
	if err != nil {
		return nil, err
	}
	return madeFile{f, m.maker}, nil
}

// madeFile is a file that a maker made.
type madeFile struct {
	*os.File
	maker *maker
}

func (f madeFile) finish(is meta) error { return f.maker.finishFile(f.File, is) }

// unpacker makes what an archive holds.
type unpacker struct {
	ctx     context.Context //nolint:containedctx // of one call
	source  *source
	maker   builder
	trail   trail
	entries int64
	file    *growing // the file that the last entry was of; nil where it was of none
	buffer  []byte
}

// growing is a file that may go on in the next entry.
type growing struct {
	file   content
	name   string // base
	size   int64
	end    int64 // of what it has
	number uint64
	meta   meta
}

func (u *unpacker) close() {
	if u.file != nil {
		_ = u.file.file.Close()
	}
	u.maker.close()
}

func (u *unpacker) all() (*Tree, error) {
	h, err := u.source.next()
	if err != nil {
		return nil, err
	}
	if h.Typeflag != tar.TypeXGlobalHeader || h.PAXRecords[recordVersion] != version {
		return nil, damaged("it does not begin as an archive of version %s", version)
	}
	for {
		if err := u.ctx.Err(); err != nil {
			return nil, err
		}
		if h, err = u.source.next(); err != nil {
			return nil, err
		}
		if h.Typeflag == tar.TypeXGlobalHeader {
			return u.finish(h)
		}
		if err := u.entry(h); err != nil {
			return nil, err
		}
		u.entries++
	}
}

// finish is the end of an archive.
func (u *unpacker) finish(h *tar.Header) (*Tree, error) {
	if n, err := parseNumber(h.PAXRecords[recordEntries]); err != nil || n != u.entries || n == 0 {
		return nil, damaged("it has %d entries, and says %.40q", u.entries, h.PAXRecords[recordEntries])
	}
	if err := u.source.finish(); err != nil {
		return nil, err
	}
	if err := u.closeFile(); err != nil {
		return nil, err
	}
	if err := u.leaveTo(1); err != nil {
		return nil, err
	}
	return u.maker.finish()
}

// leaveTo finishes directories until it is in one that is so deep.
func (u *unpacker) leaveTo(depth int) error {
	for u.trail.depth() > depth {
		if err := u.maker.leave(); err != nil {
			return err
		}
		u.trail.pop()
	}
	return nil
}

// place goes to where an entry belongs, and gives its last name.
func (u *unpacker) place(h *tar.Header) (string, error) {
	depth, err := parseNumber(h.PAXRecords[recordDepth])
	if err != nil {
		return "", damaged("%.100q is at no depth: %w", h.Name, err)
	}
	if depth == 0 || u.entries == 0 {
		if depth != 0 || u.entries != 0 || h.Name != topName || h.Typeflag != tar.TypeDir {
			return "", damaged("it does not begin with the folder")
		}
		return "", nil
	}
	if depth > int64(u.trail.depth()) {
		return "", damaged("%.100q is in no directory of it", h.Name)
	}
	if err := u.leaveTo(int(depth)); err != nil {
		return "", err
	}
	shown := h.Name
	if h.Typeflag == tar.TypeDir {
		shown = strings.TrimSuffix(shown, "/")
	}
	name, err := base(shown)
	if err != nil || u.trail.name(name) != shown {
		return "", damaged("%.100q is not where it belongs", h.Name)
	}
	return name, nil
}

func (u *unpacker) entry(h *tar.Header) error {
	if h.Typeflag == tar.TypeReg && h.PAXRecords[recordMore] != "" {
		return u.more(h)
	}
	if err := u.closeFile(); err != nil {
		return err
	}
	name, err := u.place(h)
	if err != nil {
		return err
	}
	attributes, err := attributesIn(h.PAXRecords)
	if err != nil {
		return damaged("%.100q: %w", h.Name, err)
	}
	var number uint64
	if text, ok := h.PAXRecords[recordLink]; ok {
		if number, err = strconv.ParseUint(text, 10, 64); err != nil || number == 0 {
			return damaged("%.100q has no number: %w", h.Name, err)
		}
	}
	is := meta{
		mode:       uint32(h.Mode) & 0o7777, //nolint:gosec // masked
		modified:   unix.Timespec{Sec: h.ModTime.Unix(), Nsec: int64(h.ModTime.Nanosecond())},
		attributes: attributes,
	}
	return u.make(h, name, number, is)
}

// make makes what an entry says.
func (u *unpacker) make(h *tar.Header, name string, number uint64, is meta) error {
	var err error
	switch h.Typeflag {
	case tar.TypeReg:
		return u.begin(h, name, number, is)
	case tar.TypeDir:
		if u.trail.depth() == mostDepth {
			return damaged("it is more than %d directories deep", mostDepth)
		}
		if err = u.maker.enter(name, is); err == nil {
			u.trail.push(name)
		}
		return twice(h.Name, err)
	case tar.TypeSymlink:
		if h.Linkname == "" || len(h.Linkname) >= unix.PathMax || strings.IndexByte(h.Linkname, 0) >= 0 {
			return damaged("the link %.100q leads to what is no path", h.Name)
		}
		err = u.maker.symlink(name, h.Linkname, is)
	case tar.TypeFifo:
		err = u.maker.fifo(name, is)
	case tar.TypeLink:
		return twice(h.Name, u.maker.link(number, name))
	default:
		return damaged("%.100q is of a type (%q) that is never packed", h.Name, h.Typeflag)
	}
	if err == nil {
		err = u.maker.remember(number, name)
	}
	return twice(h.Name, err)
}

// twice says of what cannot be made because of what was made before that the archive is
// at fault.
func twice(name string, err error) error {
	if errors.Is(err, unix.EEXIST) || errors.Is(err, errTwice) || errors.Is(err, errUnknown) {
		return damaged("%.100q: %w", name, err)
	}
	return err
}

// begin makes a file, with the content that its first entry has.
func (u *unpacker) begin(h *tar.Header, name string, number uint64, is meta) error {
	f, err := u.maker.create(name)
	if err != nil {
		return twice(h.Name, err)
	}
	u.file = &growing{file: f, name: name, number: number, meta: is, size: h.Size}
	if text, ok := h.PAXRecords[recordSize]; ok {
		if u.file.size, err = parseNumber(text); err != nil {
			return damaged("%.100q has no length: %w", h.Name, err)
		}
		return u.sparse(h)
	}
	if h.Size == 0 {
		return nil
	}
	return u.fill([]piece{{0, h.Size}})
}

// more goes on with the file of the entry before.
func (u *unpacker) more(h *tar.Header) error {
	if u.file == nil || h.Name != u.trail.name(u.file.name) || h.PAXRecords[recordSize] != strconv.FormatInt(u.file.size, 10) {
		return damaged("%.100q goes on with no file", h.Name)
	}
	return u.sparse(h)
}

func (u *unpacker) sparse(h *tar.Header) error {
	pieces, err := parseMap(h.PAXRecords[recordMap], u.file.end, u.file.size, h.Size)
	if err != nil {
		return damaged("%.100q: %w", h.Name, err)
	}
	return u.fill(pieces)
}

// fill writes pieces of content to where they belong.
func (u *unpacker) fill(pieces []piece) error {
	for _, p := range pieces {
		for end := p.at + p.length; p.at < end; {
			if err := u.ctx.Err(); err != nil {
				return err
			}
			b := u.buffer[:min(int64(len(u.buffer)), end-p.at)]
			if err := u.source.read(b); err != nil {
				return err
			}
			if _, err := u.file.file.WriteAt(b, p.at); err != nil {
				return err
			}
			p.at += int64(len(b))
		}
		u.file.end = p.at
	}
	return nil
}

// closeFile finishes the file that no more comes of. What is after its data is a hole.
func (u *unpacker) closeFile() error {
	g := u.file
	if g == nil {
		return nil
	}
	u.file = nil
	var err error
	if g.end < g.size {
		err = g.file.Truncate(g.size)
	}
	if err == nil {
		err = g.file.finish(g.meta)
	}
	if err = errors.Join(err, g.file.Close()); err != nil {
		return err
	}
	return twice(g.name, u.maker.remember(g.number, g.name))
}
