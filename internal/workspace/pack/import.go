package pack

import (
	"context"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/internal/workspace/inside"
)

// Import unpacks a tar, as it is or packed by gzip or zstd, into a directory that is
// made where it is missing, with those above it. An archive that has a name that leads
// out, an entry below a link or a file of its own, a hard link to what is not before
// it in it, a device or damage is refused whole: `invalid_argument`. So is one with
// more than the bounds say: `too_large`. Links are unpacked as they are, wherever they
// lead: whoever follows one later is held inside by that. FIFOs are skipped. Of
// several entries of a name the last one counts.
//
// A directory that is there gets what the archive has for it, and keeps its own mode.
// Anything else that is there fails with `already_exists`, unless overwrite, and a file
// or link is in the place of a file or link.
func (p *Packer) Import(ctx context.Context, path string, from io.Reader, o core.ImportOptions) (core.ImportResult, error) {
	var none core.ImportResult
	rel, err := p.root.Relative(path)
	if err != nil {
		return none, err
	}
	txn, err := p.tree.Begin()
	if err != nil {
		return none, err
	}
	defer txn.Discard()
	u := &unpacker{limit: o}
	defer u.close()
	if err := p.unpack(ctx, u, txn.Dir(), rel, from); err != nil {
		return none, err
	}
	m := &merge{root: p.root, tree: p.tree, unpacker: u, name: rel, overwrite: o.Overwrite}
	defer m.close()
	if err := p.root.As(func() error { return m.plan(ctx, rel) }); err != nil {
		return none, err
	}
	if err := m.commit(ctx, txn); err != nil {
		return none, err
	}
	return u.result, nil
}

// unpack unpacks all of an archive, once it is known that there is a place for it. As
// long as that takes, a thread is the environment's user.
func (p *Packer) unpack(ctx context.Context, u *unpacker, base *os.File, rel string, from io.Reader) error {
	return p.root.As(func() error {
		if err := p.mustBeDirectory(rel); err != nil {
			return err
		}
		if err := u.start(base); err != nil {
			return inside.Fault(rel, err)
		}
		s, err := read(ctx, from, u.limit)
		if err != nil {
			return err
		}
		defer s.close()
		return u.all(ctx, s)
	})
}

// mustBeDirectory holds the path to unpack to, or what of it is there, to being one.
func (p *Packer) mustBeDirectory(rel string) error {
	place, err := p.root.Locate(rel, inside.Mode{Follow: true, Missing: true})
	if err != nil {
		return err
	}
	defer place.Close()
	if place.Exists() && place.Kind() != unix.S_IFDIR {
		return inside.Fault(rel, unix.ENOTDIR)
	}
	return nil
}
