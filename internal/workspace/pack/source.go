package pack

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"math"

	"envapi/core"
)

const (
	// perEntry is how many bytes an entry may take besides its content: a header, the
	// records for a long name, and the filling up to whole blocks. In all, slack is
	// free, which is also for entries with many extended attributes.
	perEntry = 16 << 10
	slack    = 64 << 20
	// mostPadding is how many zeros may stand after the end of a tar, which is
	// written in records of some size.
	mostPadding = 1 << 20
)

// source is a tar that is being read: from says what failed where, and the tar in it
// how far it was read.
type source struct {
	from   *noted // as it comes
	inner  *noted // unpacked
	tar    *tar.Reader
	done   func()
	budget int64
}

// noted remembers how reading ended.
type noted struct {
	io.Reader
	n     int64
	limit int64 // bytes that may be read; 0 is any number
	err   error
}

var errBudget = errors.New("the archive is larger than its entries may make it")

func (r *noted) Read(b []byte) (int, error) {
	if r.limit > 0 && r.n > r.limit {
		r.err = errBudget
		return 0, r.err
	}
	n, err := r.Reader.Read(b)
	r.n += int64(n)
	if n > 0 && errors.Is(err, io.EOF) {
		err = nil // it comes again, and then more was wanted than there is
	}
	if err != nil {
		r.err = err
	}
	return n, err
}

// read begins to read a tar, whichever way it is packed. close must be called.
func read(ctx context.Context, from io.Reader, o core.ImportOptions) (*source, error) {
	s := &source{from: &noted{Reader: patient{ctx, from}}, budget: o.MaxBytes}
	unpacked, done, err := decompress(s.from)
	s.done = done
	if err != nil {
		return nil, s.fault(err)
	}
	limit := min(o.MaxBytes, math.MaxInt64/4) + min(o.MaxFiles, math.MaxInt64/4/perEntry)*perEntry + slack
	s.inner = &noted{Reader: unpacked, limit: limit}
	s.tar = tar.NewReader(s.inner)
	return s, nil
}

func (s *source) close() { s.done() }

// next gives the next entry; io.EOF is the end of an archive that is whole.
func (s *source) next() (*tar.Header, error) {
	h, err := s.tar.Next()
	if errors.Is(err, io.EOF) {
		if err := s.finish(); err != nil {
			return nil, err
		}
		return nil, io.EOF
	}
	if err != nil {
		return nil, s.fault(err)
	}
	return h, nil
}

// finish sees that the tar has an end, and that nothing but zeros comes after it, nor
// anything after what it is packed in.
func (s *source) finish() error {
	if s.inner.err != nil {
		return s.fault(io.ErrUnexpectedEOF)
	}
	buffer := make([]byte, 4<<10)
	for padding := 0; ; {
		n, err := s.inner.Read(buffer)
		for _, b := range buffer[:n] {
			if b != 0 {
				return bad("something follows after its end")
			}
		}
		if padding += n; padding > mostPadding {
			return bad("more than %d bytes follow after its end", mostPadding)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return s.fault(err)
		}
	}
}

// Read reads the content of an entry.
func (s *source) Read(b []byte) (int, error) {
	n, err := s.tar.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		err = s.fault(err)
	}
	return n, err
}

// fault says whose fault it is that reading failed: of who sends, or of what he sent.
func (s *source) fault(err error) error {
	if ended := s.from.err; ended != nil && !errors.Is(ended, io.EOF) && !errors.Is(ended, io.ErrUnexpectedEOF) {
		return ended
	}
	if s.inner != nil && errors.Is(s.inner.err, errBudget) {
		return tooManyBytes(s.budget)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return bad("it ends too early, or is no tar").Because(err)
	}
	return bad("it is no tar, or damaged, or packed in a way that is not gzip, zstd or none (%v)", err).Because(err)
}

func tooManyBytes(allowed int64) *core.Error {
	return core.Errorf(core.CodeTooLarge, "cannot unpack the archive: unpacked it has more than %d bytes", allowed).With("allowed_bytes", allowed)
}
