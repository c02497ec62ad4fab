package vault

import (
	"context"
	"io"
)

// Verify reads an archive to its end, as Unpack does, and makes nothing. It fails with
// ErrDamaged where Unpack would, save for one thing: a name that is there twice is only
// found by making it; and where it has more files, directories and other entries than
// most, as DiskUse counts them, which bounds what it does for an archive that somebody
// else wrote. For each file with several names it takes some bytes of memory, and for the
// rest next to none.
func Verify(ctx context.Context, from io.Reader, most int64) error {
	s, err := openSource(ctx, from)
	if err != nil {
		return err
	}
	defer s.close()
	r := &onlooker{most: most, numbers: map[uint64]struct{}{}}
	u := &unpacker{ctx: ctx, source: s, maker: r, buffer: make([]byte, chunk)}
	defer u.close()
	_, err = u.all()
	return err
}

// onlooker is the builder that builds nothing.
type onlooker struct {
	files, most int64
	top         bool // the folder itself was there
	numbers     map[uint64]struct{}
}

// count counts an entry.
func (r *onlooker) count() error {
	if r.files++; r.files > r.most {
		return damaged("it has more files than the %d that were packed", r.most)
	}
	return nil
}

func (r *onlooker) enter(string, meta) error {
	if r.top {
		return r.count()
	}
	r.top = true
	return nil
}

func (r *onlooker) create(string) (content, error)     { return nothing{}, r.count() }
func (r *onlooker) symlink(string, string, meta) error { return r.count() }
func (r *onlooker) fifo(string, meta) error            { return r.count() }

func (r *onlooker) remember(number uint64, _ string) error {
	if number == 0 {
		return nil
	}
	if _, twice := r.numbers[number]; twice {
		return errTwice
	}
	r.numbers[number] = struct{}{}
	return nil
}

func (r *onlooker) link(number uint64, _ string) error {
	if _, known := r.numbers[number]; !known {
		return errUnknown
	}
	return nil
}

func (r *onlooker) leave() error           { return nil }
func (r *onlooker) finish() (*Tree, error) { return nil, nil } //nolint:nilnil // there is no tree
func (r *onlooker) close()                 {}

// nothing takes the content of a file, and keeps none of it.
type nothing struct{}

func (nothing) WriteAt(b []byte, _ int64) (int, error) { return len(b), nil }
func (nothing) Truncate(int64) error                   { return nil }
func (nothing) finish(meta) error                      { return nil }
func (nothing) Close() error                           { return nil }
