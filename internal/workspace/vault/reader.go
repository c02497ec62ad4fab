package vault

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/sandbox/fsuser"
)

// reader opens what is in a folder, whatever its mode says.
type reader struct {
	owner uint32 // of the folder
}

// loan is a mode that was changed so that its owner may read.
type loan struct{ mode, lent uint32 }

// file opens a regular file that leaf is a hold of, and reads its attributes.
func (r *reader) file(leaf *os.File, st *unix.Stat_t) (*os.File, []attribute, error) {
	f, lent, err := r.open(leaf, st)
	if err != nil {
		return nil, nil, err
	}
	defer lent.back(f)
	attributes, err := attributesOf(f)
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, attributes, nil
}

// open opens a regular file or directory that leaf is a hold of, and which st describes,
// for reading: the very thing, under whatever name it is now. Root reads for itself what
// belongs to the folder's owner, and all else as that owner: a link to a file of somebody
// else's, where the host lets users make one, must not show what is in it. Any other user
// lends himself the right that he lacks.
func (r *reader) open(leaf *os.File, st *unix.Stat_t) (f *os.File, lent *loan, err error) {
	flags, need := unix.O_RDONLY, uint32(0o400)
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		flags, need = flags|unix.O_DIRECTORY, 0o500
	}
	if os.Geteuid() == 0 {
		if st.Uid == r.owner {
			f, err = reopen(leaf, flags)
			return f, nil, err
		}
		err = fsuser.Do(int(r.owner), int(r.owner), func() error {
			f, err = reopen(leaf, flags)
			return err
		})
		return f, nil, err
	}
	if st.Mode&need != need && int(st.Uid) == os.Geteuid() {
		lent = &loan{mode: st.Mode & 0o7777, lent: st.Mode&0o7777 | need}
		if err := unix.Chmod(held(leaf), lent.lent); err != nil {
			return nil, nil, err
		}
	}
	if f, err = reopen(leaf, flags); err != nil {
		lent.back(leaf)
		return nil, nil, err
	}
	return f, lent, nil
}

// back gives what f holds its own mode again, unless somebody else has changed it.
func (l *loan) back(f *os.File) {
	if l == nil {
		return
	}
	if st, err := stat(f); err == nil && st.Mode&0o7777 == l.lent {
		_ = unix.Chmod(held(f), l.mode)
	}
}

// reopen opens what is held. It never waits, and never makes a terminal ours.
func reopen(leaf *os.File, flags int) (*os.File, error) {
	for {
		n, err := unix.Open(held(leaf), flags|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		switch {
		case err == nil:
			return os.NewFile(uintptr(n), leaf.Name()), nil
		case errors.Is(err, unix.EAGAIN):
			return nil, core.Errorf(core.CodeUnavailable,
				"cannot read a file now: a program holds a lease on it, which the kernel takes back within a minute; try again").
				With("retry_after_ms", 1000).Because(err)
		case !errors.Is(err, unix.EINTR):
			return nil, err
		}
	}
}
