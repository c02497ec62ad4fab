package pack

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/internal/workspace/inside"
)

// commentBytes bounds the comment that lists what was skipped.
const commentBytes = 64 << 10

// Export writes a tar of what is below a directory, name by name in each. Files have
// the length that they have when their turn comes: one that grows meanwhile is cut
// there, and one that shrinks ends the export with `unavailable`. A file with several
// names is packed under each. Owners are left out. Where it fails, what was written is
// no whole archive, and whoever sends it on must break off too.
//
// What it skipped, it gives as paths like the one that it was asked for, 1000 at most
// and then how many more; in the archive it is the comment of a last, global record.
func (p *Packer) Export(ctx context.Context, path string, to io.Writer, c core.Compression) ([]string, error) {
	rel, err := p.root.Relative(path)
	if err != nil {
		return nil, err
	}
	w := &walk{name: rel}
	defer w.close()
	if err := p.root.As(func() error { return w.begin(p.root, rel) }); err != nil {
		return nil, err
	}
	buffered := bufio.NewWriterSize(to, chunk)
	packed, err := compress(buffered, c)
	if err != nil {
		return nil, err
	}
	x := &export{ctx: ctx, root: p.root, walk: w, tar: tar.NewWriter(packed), buffer: make([]byte, chunk)}
	if err := x.all(); err != nil {
		return w.skipped.list(), err
	}
	return w.skipped.list(), errors.Join(x.tar.Close(), packed.Close(), buffered.Flush())
}

// list gives the paths, and last how many are left out.
func (s *skipped) list() []string {
	if s.more == 0 {
		return s.paths
	}
	return append(s.paths[:len(s.paths):len(s.paths)], fmt.Sprintf("... and %d more", s.more))
}

// export is a tar that is being written.
type export struct {
	ctx    context.Context
	root   *inside.Root
	walk   *walk
	tar    *tar.Writer
	buffer []byte
}

func (x *export) all() error {
	for {
		if err := x.ctx.Err(); err != nil {
			return err
		}
		var found []entry
		err := x.root.As(func() (err error) {
			found, err = x.walk.next()
			return err
		})
		err = x.write(found, err)
		if err != nil {
			return err
		}
		if len(found) == 0 && len(x.walk.levels) == 0 {
			return x.comment()
		}
	}
}

// write writes entries, unless something failed before, and lets go of them.
func (x *export) write(found []entry, err error) error {
	for _, e := range found {
		if err == nil {
			err = x.entry(e)
		}
		if e.file != nil {
			_ = e.file.Close()
		}
	}
	return err
}

func (x *export) entry(e entry) error {
	h := &tar.Header{
		Format:     tar.FormatPAX,
		Name:       e.path,
		Mode:       int64(e.stat.Mode & modeBits),
		ModTime:    time.Unix(e.stat.Mtim.Unix()),
		PAXRecords: e.records,
	}
	switch e.stat.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		h.Typeflag, h.Name = tar.TypeDir, e.path+"/"
		h.Mode = int64(e.stat.Mode & (modeBits | stickyBit))
	case unix.S_IFLNK:
		h.Typeflag, h.Linkname = tar.TypeSymlink, e.target
	default:
		return x.file(h, e)
	}
	return x.header(h)
}

func (x *export) header(h *tar.Header) error {
	if err := x.tar.WriteHeader(h); err != nil {
		return fmt.Errorf("cannot pack %q: %w", join(x.walk.name, h.Name), err)
	}
	return nil
}

// file writes a file: as much as it holds now, no more and no less.
func (x *export) file(h *tar.Header, e entry) error {
	name := join(x.walk.name, e.path)
	st, err := stat(e.file)
	if err != nil {
		return inside.Fault(name, err)
	}
	h.Typeflag, h.Size, h.ModTime = tar.TypeReg, st.Size, time.Unix(st.Mtim.Unix())
	if err := x.header(h); err != nil {
		return err
	}
	n, err := io.CopyBuffer(x.tar, patient{x.ctx, io.LimitReader(e.file, st.Size)}, x.buffer)
	if err != nil {
		return fmt.Errorf("cannot pack %q: %w", name, err)
	}
	if n < st.Size {
		return changed(name, "became shorter")
	}
	return nil
}

// comment writes what was skipped, a quoted path a line, as far as there is room.
func (x *export) comment() error {
	if len(x.walk.skipped.paths) == 0 {
		return nil
	}
	var text strings.Builder
	fmt.Fprintf(&text, "FIFOs, sockets and devices that are not here: %d\n", len(x.walk.skipped.paths)+x.walk.skipped.more)
	for _, name := range x.walk.skipped.paths {
		if text.Len()+4*len(name) > commentBytes {
			break
		}
		text.WriteString(strconv.Quote(name) + "\n")
	}
	return x.header(&tar.Header{Typeflag: tar.TypeXGlobalHeader, Format: tar.FormatPAX, PAXRecords: map[string]string{"comment": text.String()}})
}
