package vault

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/internal/workspace/holes"
)

const (
	// window bounds how far back the compression looks, and with it its memory and that
	// for unpacking: it is twice to four times as much.
	window = 4 << 20
	// mostLinkPaths bounds the memory for paths that hard links are to lead to, of which
	// each takes aroundPath besides, however short it is. They are only for other programs.
	mostLinkPaths = 8 << 20
	aroundPath    = 64
)

// Pack writes the archive of a folder, and gives what is in it. The folder may be open
// only to hold it (O_PATH). Nothing may write to it meanwhile: a file that is cut short
// is an error.
func Pack(ctx context.Context, folder *os.File, to io.Writer) (core.DiskUse, error) {
	// One at a time: it then starts no goroutines.
	z, err := zstd.NewWriter(to, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(window), zstd.WithEncoderCRC(true))
	if err != nil {
		return core.DiskUse{}, err
	}
	p := &packer{ctx: ctx, tar: tar.NewWriter(z), buffer: make([]byte, chunk), paths: map[uint64]string{}, room: mostLinkPaths}
	if err := p.global(recordVersion, version); err != nil {
		return core.DiskUse{}, err
	}
	use, err := through(ctx, folder, core.DiskUse{}, p)
	if err != nil {
		return core.DiskUse{}, err
	}
	return use, errors.Join(p.global(recordEntries, strconv.FormatInt(p.entries, 10)), p.tar.Close(), z.Close())
}

// packer is the visitor that writes a tar.
type packer struct {
	ctx     context.Context //nolint:containedctx // of one call
	tar     *tar.Writer
	trail   trail
	entries int64
	paths   map[uint64]string // of what has several names
	room    int               // bytes for more of them
	buffer  []byte
}

func (p *packer) global(key, value string) error {
	return p.tar.WriteHeader(&tar.Header{
		Typeflag: tar.TypeXGlobalHeader, Name: "envapi", Format: tar.FormatPAX, PAXRecords: map[string]string{key: value},
	})
}

// header begins the header of an entry.
func (p *packer) header(e *entry, kind byte) *tar.Header {
	h := &tar.Header{
		Typeflag: kind, Name: p.trail.name(e.name), Mode: int64(e.stat.Mode & 0o7777), Format: tar.FormatPAX,
		ModTime:    time.Unix(e.stat.Mtim.Sec, e.stat.Mtim.Nsec),
		PAXRecords: map[string]string{recordDepth: strconv.Itoa(p.trail.depth())},
	}
	for _, a := range e.attributes {
		h.PAXRecords[attributePrefix+escaped.Replace(a.name)] = a.value
	}
	if e.number != 0 {
		h.PAXRecords[recordLink] = strconv.FormatUint(e.number, 10)
	}
	return h
}

func (p *packer) write(h *tar.Header) error {
	p.entries++
	if err := p.tar.WriteHeader(h); err != nil {
		return fmt.Errorf("write an entry: %w", err)
	}
	return nil
}

// remember keeps the path of what has several names, as far as there is room.
func (p *packer) remember(e *entry) {
	if e.number == 0 {
		return
	}
	name := p.trail.name(e.name)
	if takes := len(name) + aroundPath; takes <= p.room {
		p.room -= takes
		p.paths[e.number] = name
	}
}

func (p *packer) enter(e *entry) error {
	h := p.header(e, tar.TypeDir)
	if h.Name += "/"; p.trail.depth() == 0 {
		h.Name = topName
	}
	if err := p.write(h); err != nil {
		return err
	}
	p.trail.push(e.name)
	return nil
}

func (p *packer) leave() error {
	p.trail.pop()
	return nil
}

func (p *packer) other(e *entry) error {
	p.remember(e)
	if e.stat.Mode&unix.S_IFMT == unix.S_IFIFO {
		return p.write(p.header(e, tar.TypeFifo))
	}
	h := p.header(e, tar.TypeSymlink)
	h.Linkname = e.target
	return p.write(h)
}

func (p *packer) again(e *entry) error {
	h := p.header(e, tar.TypeLink)
	if h.Linkname = p.paths[e.number]; h.Linkname == "" {
		h.Linkname = cutName + strconv.FormatUint(e.number, 10)
	}
	return p.write(h)
}

// file writes a regular file: as one entry where all of it is data, and else its data
// with a map. One with very many holes takes several entries.
func (p *packer) file(e *entry) error {
	p.remember(e)
	size := e.stat.Size
	for at, more := int64(0), false; at < size || !more; more = true {
		pieces, next, err := pieces(e.file, at, size)
		if err != nil {
			return fmt.Errorf("find the holes of %q: %w", e.name, err)
		}
		h := p.header(e, tar.TypeReg)
		for _, piece := range pieces {
			h.Size += piece.length
		}
		if more {
			h.PAXRecords = map[string]string{recordDepth: h.PAXRecords[recordDepth], recordMore: version}
		}
		if more || h.Size != size {
			h.PAXRecords[recordSize], h.PAXRecords[recordMap] = strconv.FormatInt(size, 10), formatMap(pieces)
		}
		if err := p.write(h); err != nil {
			return err
		}
		if err := p.content(e, pieces); err != nil {
			return fmt.Errorf("pack %q: %w", e.name, err)
		}
		at = next
	}
	return nil
}

// pieces finds the data of a file from an offset on, as many pieces as an entry has, and
// gives where to go on.
func pieces(f *os.File, at, size int64) (all []piece, next int64, err error) {
	for at < size && len(all) < mostPieces {
		data, hole, err := holes.Next(f, at, size)
		if err != nil {
			return nil, 0, err
		}
		if data < hole {
			all = append(all, piece{data, hole - data})
		}
		at = hole
	}
	return all, at, nil
}

func (p *packer) content(e *entry, pieces []piece) error {
	for _, piece := range pieces {
		for at, end := piece.at, piece.at+piece.length; at < end; {
			if err := p.ctx.Err(); err != nil {
				return err
			}
			n, err := e.file.ReadAt(p.buffer[:min(int64(len(p.buffer)), end-at)], at)
			if n == 0 && errors.Is(err, io.EOF) {
				return errors.New("it was cut short while it was read")
			}
			if n == 0 && err != nil {
				return err
			}
			if _, err := p.tar.Write(p.buffer[:n]); err != nil {
				return fmt.Errorf("write the archive: %w", err)
			}
			at += int64(n)
		}
	}
	return nil
}
