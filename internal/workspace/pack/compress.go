package pack

import (
	"bufio"
	"bytes"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"envapi/core"
)

// mostWindow bounds the memory for unpacking zstd. Its levels up to 19 use 8 MiB;
// "--ultra" and "--long" can ask for more.
const mostWindow = 32 << 20

// compress packs what is written. Where it is not closed it leaves nothing behind.
func compress(to io.Writer, c core.Compression) (io.WriteCloser, error) {
	switch c {
	case core.CompressNone:
		return plain{to}, nil
	case core.CompressGzip:
		return gzip.NewWriter(to), nil
	case core.CompressZstd:
		// One at a time: it then starts no goroutines.
		return zstd.NewWriter(to, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(4<<20))
	}
	return nil, core.Errorf(core.CodeInvalidArgument, "cannot pack as %q: it is none, gzip or zstd", c).With("field", "compression")
}

type plain struct{ io.Writer }

func (plain) Close() error { return nil }

var (
	gzipMagic = []byte{0x1f, 0x8b}
	zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}
	// A zstd stream may begin with frames to skip: sixteen magic numbers, which end
	// in these bytes.
	skipMagic = []byte{0x2a, 0x4d, 0x18}
)

// decompress unpacks what begins as gzip or zstd does. done must be called.
func decompress(from io.Reader) (r io.Reader, done func(), err error) {
	b := bufio.NewReaderSize(from, chunk)
	begins, _ := b.Peek(len(zstdMagic)) // what fails, fails again when it is read
	switch {
	case bytes.HasPrefix(begins, gzipMagic):
		z, err := gzip.NewReader(b)
		return z, func() {}, err
	case bytes.Equal(begins, zstdMagic), len(begins) == 4 && begins[0]&0xf0 == 0x50 && bytes.Equal(begins[1:], skipMagic):
		z, err := zstd.NewReader(b, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(mostWindow))
		if err != nil {
			return nil, func() {}, err
		}
		return z, z.Close, nil
	}
	return b, func() {}, nil
}
