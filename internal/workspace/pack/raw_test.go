package pack_test

import (
	"archive/tar"
	"bytes"
	"testing"
	"time"
)

var time0 = time.Unix(1_600_000_000, 0)

// raw makes a tar of headers that a writer would not always write: of files that say
// they are larger than they are, too.
func raw(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var all bytes.Buffer
	for _, e := range entries {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		h := e.Header
		known := h.Typeflag != 'M'
		if !known {
			h.Typeflag = tar.TypeDir
		}
		must(t, w.WriteHeader(&h))
		if len(e.content) > 0 {
			_, err := w.Write([]byte(e.content))
			must(t, err)
			must(t, w.Flush())
		}
		bytes := b.Bytes()
		if !known {
			retype(bytes[len(bytes)-512:], e.Typeflag)
		}
		all.Write(bytes)
	}
	all.Write(make([]byte, 1024))
	return all.Bytes()
}

// retype gives a header another type, and the sum that it has then.
func retype(header []byte, kind byte) {
	header[156] = kind
	copy(header[148:156], "        ")
	sum := 0
	for _, b := range header {
		sum += int(b)
	}
	digits := []byte{0, 0, 0, 0, 0, 0, 0, ' '}
	for i := 5; i >= 0; i-- {
		digits[i] = byte('0' + sum&7)
		sum >>= 3
	}
	copy(header[148:156], digits)
}

// sparseTar makes a tar with records that the writer of package tar refuses: it writes
// them under another name of the same length.
func sparseTar(t testing.TB, e entry) []byte {
	t.Helper()
	records := map[string]string{}
	for name, value := range e.PAXRecords {
		records["XYZ"+name[3:]] = value
	}
	e.PAXRecords = records
	e.Format = tar.FormatPAX
	e.content = e.content + string(make([]byte, 512-len(e.content)))
	e.Size = 512
	return bytes.ReplaceAll(tarOf(t, e), []byte("XYZ.sparse."), []byte("GNU.sparse."))
}
