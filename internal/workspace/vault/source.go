package vault

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// mostWindow bounds the memory for unpacking, whatever an archive asks for.
const mostWindow = 2 * window

// ErrDamaged says that an archive is not what Pack wrote, or not all of it.
var ErrDamaged = errors.New("the archive is damaged")

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Errorf(format, args...)) //nolint:errorlint // the cause is for people
}

// source is an archive that is being read.
type source struct {
	ctx  context.Context //nolint:containedctx // of one call
	from io.Reader
	err  error // what reading from failed with
	zstd *zstd.Decoder
	tar  *tar.Reader
}

func openSource(ctx context.Context, from io.Reader) (*source, error) {
	s := &source{ctx: ctx, from: from}
	var err error
	s.zstd, err = zstd.NewReader(raw{s}, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(mostWindow))
	if err != nil {
		return nil, s.fault(err)
	}
	s.tar = tar.NewReader(s.zstd)
	return s, nil
}

func (s *source) close() { s.zstd.Close() }

// raw reads the archive as it is on disk, until the context ends.
type raw struct{ s *source }

func (r raw) Read(b []byte) (int, error) {
	if err := r.s.ctx.Err(); err != nil {
		r.s.err = err
		return 0, err
	}
	n, err := r.s.from.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		r.s.err = err
	}
	return n, err
}

// fault tells an archive that is damaged from one that cannot be read.
func (s *source) fault(err error) error {
	switch {
	case s.err != nil:
		return s.err
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return damaged("it ends too early")
	}
	return damaged("%w", err)
}

// next gives the next entry.
func (s *source) next() (*tar.Header, error) {
	h, err := s.tar.Next()
	if err != nil {
		return nil, s.fault(err)
	}
	return h, nil
}

// read fills all of b with the content of the entry.
func (s *source) read(b []byte) error {
	if _, err := io.ReadFull(s.tar, b); err != nil {
		return s.fault(err)
	}
	return nil
}

// finish sees that nothing comes any more. Only the end of the frame has its checksum.
func (s *source) finish() error {
	switch h, err := s.tar.Next(); {
	case err == nil:
		return damaged("%.100q follows after its end", h.Name)
	case !errors.Is(err, io.EOF):
		return s.fault(err)
	}
	var b [1]byte
	switch _, err := io.ReadFull(s.zstd, b[:]); {
	case err == nil:
		return damaged("something follows after its end")
	case !errors.Is(err, io.EOF):
		return s.fault(err)
	}
	return nil
}
