package outputlog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"envapi/core"
)

// reader is one Read under way.
type reader struct {
	log    *Log
	stream core.Stream
	offset int64    // of the next byte
	out    []byte   // filled up to its capacity
	file   *os.File // of segment, kept for the next block
	from   *segment
	buf    []byte
}

// step appends the bytes at offset that are in one block.
func (r *reader) step() error {
	g, b, err := r.log.find(r.stream, r.offset)
	if err != nil {
		return err
	}
	if err := r.open(g); err != nil {
		return err
	}
	if r.file == nil {
		return nil // deleted in between: look again
	}
	if n := int(b.to - b.from); cap(r.buf) < n {
		r.buf = make([]byte, n)
	}
	r.buf = r.buf[:b.to-b.from]
	if _, err := r.file.ReadAt(r.buf, b.from); err != nil {
		return fmt.Errorf("cannot read output: %w", err)
	}
	before := len(r.out)
	r.out, err = copyStream(r.out, r.buf, b.at, r.stream, r.offset)
	r.offset += int64(len(r.out) - before)
	if err == nil && len(r.out) == before {
		err = errCorrupt // the block holds the byte, or its file was altered
	}
	return err
}

// open opens the file of g, unless it is open. Where the file is gone because
// g left the ring in the meantime, file is nil.
func (r *reader) open(g *segment) error {
	if r.file != nil && r.from == g {
		return nil
	}
	r.close()
	f, err := openFile(g.path, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) && r.from != g {
		r.from = g // not twice: then it is not the ring that took it
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read output: %w", err)
	}
	r.file, r.from = f, g
	return nil
}

// answer gives what was read before err, which the next Read will meet again,
// or else err.
func (r *reader) answer(err error) ([]byte, error) {
	if len(r.out) > 0 {
		return r.out, nil
	}
	return nil, err
}

func (r *reader) close() {
	if r.file != nil {
		_ = r.file.Close() // opened to read
		r.file = nil
	}
}
